"""Fixtures of the tests of AppWrappers on the real control plane.

One cluster for all files here, with the webhook: what it judges comes first, then the wrapper by
itself, then all programs, and last what becomes of AppWrappers without the webhook's rules. Those
count once they are 30 s old, so they stay until then.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.muster import (
    APP_WRAPPER,
    Muster,
    start_muster,
    wait_app_wrappers_trusted,
    with_app_wrappers,
)
from testbed.options import WITHOUT_WATCH_LIST, Options
from testbed.pytest_plugin import FolderCluster
from tests.controlplane.app_wrappers.place import POOR, TENANT, Place
from tests.controlplane.provisioning import definition

_NUMBERS = itertools.count(1)
MCAD_DEFINITIONS = APP_WRAPPER / "crds-mcad"
PLUGIN = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
"""Wants a right to the finalizers of an owner that is to outlive what it owns."""


def job_set_definition(path: Path) -> Path:
    """Of a kind that no program here knows, for an API server to serve."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha2", "served": True, "storage": True}
    names_of = {"kind": "JobSet", "plural": "jobsets", "singular": "jobset", "listKind": "JobSets"}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "jobsets.jobset.x-k8s.io"},
        "spec": {
            "group": "jobset.x-k8s.io",
            "names": names_of,
            "scope": "Namespaced",
            "versions": [{**version, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    path.write_text(json.dumps(body))
    return path


@pytest.fixture(scope="session")
def muster(folder_cluster: FolderCluster, tmp_path_factory: pytest.TempPathFactory) -> Muster:
    """A cluster with the webhook, where all programs list what they watch."""
    folder = tmp_path_factory.mktemp("crds")
    job_sets = job_set_definition(folder / "jobsets.yaml")
    provisioning = definition(folder / "provisioningrequests.yaml")
    options = Options(
        users={TENANT: ("team",), POOR: ()},
        crds=(*MCAD_DEFINITIONS.glob("*.yaml"), job_sets, provisioning),
        apiserver_args=(PLUGIN, *WITHOUT_WATCH_LIST),
    )
    cluster = folder_cluster(with_app_wrappers(options))
    return start_muster(cluster, coordinators=0, app_wrappers="All", components=["provisioning"])


@pytest.fixture(scope="module")
def own(muster: Muster) -> Iterator[Muster]:
    """The same, with coordinators and wrappers that end with the file that starts them."""
    own = Muster(muster.cluster, muster.webhook, muster.webhook_health)
    yield own
    for each in (*own.wrappers, *own.coordinators):
        each.stop()  # and gives its Lease up


def start_all(own: Muster, **settings: str) -> Muster:
    """Start a coordinator and a wrapper, and wait until both lead and AppWrappers are trusted."""
    own.start_coordinator(settings={"APP_WRAPPERS": "true", **settings})
    own.start_wrapper()
    own.wait_ready()
    own.wait_led()
    own.wait_led("wrapper")
    wait_app_wrappers_trusted(own.cluster)
    return own


@pytest.fixture
def place(muster: Muster) -> Iterator[Place]:
    """A namespace of one test's own."""
    place = Place(muster.cluster, f"edge-{next(_NUMBERS)}")
    yield place
    place.clear()
