"""How do CustomResourceDefinitions get in, so that their kinds can be used at once?"""

from __future__ import annotations

import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path

from testbed.api import Api, Json
from testbed.waiting import START_SECONDS, wait_until

_COLLECTION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def create_crds(api: Api, files: Iterable[Path]) -> None:
    """Create CRDs, one to a file, and wait until the API server serves every one."""
    with ThreadPoolExecutor() as pool:
        definitions = list(pool.map(lambda path: _create(api, path.read_bytes()), files))
    for definition in definitions:
        for version in definition["spec"]["versions"]:
            if version["served"]:
                _wait_until_served(api, definition["spec"], version["name"])


def _create(api: Api, manifest: bytes) -> Json:
    # The file goes as it stands: PyYAML would take seconds for each of KubeRay's.
    with api.session() as session:
        return session.call("POST", _COLLECTION, manifest, "application/yaml")


def _wait_until_served(api: Api, spec: Json, version: str) -> None:
    # Discovery lists what is Established, and costs a hundredth of reading the definition.
    path, plural = f"/apis/{spec['group']}/{version}", spec["names"]["plural"]
    wait_until(lambda: plural in _served(api, path), f"{path}/{plural} to be served", START_SECONDS)


def _served(api: Api, path: str) -> set[str]:
    with api.session() as session:
        status, answer = session.request("GET", path)
    found = json.loads(answer)["resources"] if status == HTTPStatus.OK else ()
    return {resource["name"] for resource in found}
