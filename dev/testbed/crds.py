"""Installs CustomResourceDefinitions, and waits until their kinds can be used."""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple

from testbed.api import Api, Json
from testbed.waiting import wait_until

_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Served(NamedTuple):
    """One version of a kind that the API server offers."""

    group_version: str
    plural: str


def create_crds(api: Api, files: Iterable[Path]) -> list[Served]:
    """Create CRDs, one to a file, and wait until the API server serves every one."""
    with ThreadPoolExecutor() as pool:
        definitions = list(pool.map(lambda path: _create(api, path.read_bytes()), files))
    offered = [served for definition in definitions for served in _offered(definition["spec"])]
    wait_until_served(api, offered)
    return offered


def wait_until_served(api: Api, offered: Iterable[Served]) -> None:
    """Wait until the kinds of CRDs that exist can be used."""
    for served in offered:
        _wait_for_one(api, served)


def _create(api: Api, manifest: bytes) -> Json:
    # The file goes as it stands: PyYAML would take seconds for each of KubeRay's.
    with api.session() as session:
        return session.call("POST", _COLLECTION, manifest, "application/yaml")


def _offered(spec: Json) -> list[Served]:
    plural = spec["names"]["plural"]
    versions = [version["name"] for version in spec["versions"] if version["served"]]
    return [Served(f"{spec['group']}/{version}", plural) for version in versions]


def _wait_for_one(api: Api, served: Served) -> None:
    # Discovery lists what is Established, and costs a hundredth of reading the definition.
    what = f"{served.plural} of {served.group_version} to be served"
    wait_until(lambda: served.plural in _listed(api, served.group_version), what)


def _listed(api: Api, group_version: str) -> set[str]:
    with api.session() as session:
        status, answer = session.request("GET", f"/apis/{group_version}")
    found = json.loads(answer)["resources"] if status == HTTPStatus.OK else ()
    return {resource["name"] for resource in found}
