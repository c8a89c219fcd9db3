"""A recorder sees every change, whatever becomes of its connection."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from testbed.nodes import NodeSpec
from testbed.pytest_plugin import FolderCluster
from testbed.recorder import Recorder
from testbed.waiting import wait_until
from tests.testbed.running.conftest import SMALL

pytestmark = [pytest.mark.controlplane, pytest.mark.variant]


@pytest.fixture(scope="module")
def cluster(folder_cluster: FolderCluster) -> Iterator[Cluster]:
    """The small one, with a node."""
    cluster = folder_cluster(SMALL)
    cluster.add_nodes([NodeSpec("node")])
    yield cluster
    cluster.kubectl("delete", "node", "node")


@pytest.fixture
def bare(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster without pods."""
    yield cluster
    cluster.kubectl("delete", "pods", "--all")


@pytest.fixture
def recorder(bare: Cluster) -> Iterator[Recorder]:
    with Recorder(bare) as recorder:
        yield recorder


def create_pod(cluster: Cluster, name: str) -> None:
    spec = {"containers": [{"name": "main", "image": "none"}]}
    cluster.api.create(
        "/api/v1/namespaces/default/pods", {"metadata": {"name": name}, "spec": spec}
    )


def wait_running(recorder: Recorder, *names: str) -> None:
    def run() -> bool:
        return {pod.name for pod in recorder.pods if pod.phase == "Running"} == set(names)

    recorder.wait_until(run, f"only {', '.join(names)} to run")


def test_the_life_of_a_pod_is_recorded_in_order(bare: Cluster, recorder: Recorder) -> None:
    create_pod(bare, "a")
    wait_running(recorder, "a")
    bare.kubectl("delete", "pod", "a", "--wait=false")
    recorder.wait_until(lambda: not recorder.pods, "the pod to go")
    types = [event.type for event in recorder.events]
    assert types[0] == "ADDED"
    assert types[-1] == DELETED
    assert set(types[1:-1]) == {"MODIFIED"}
    nodes = [event.node for event in recorder.events]
    assert nodes == sorted(nodes)
    assert {"", "node"} == set(nodes)
    times = [event.time for event in recorder.events]
    assert times == sorted(times)
    with pytest.raises(TestbedError, match="in vain for pigs to fly"):
        recorder.wait_until(lambda: False, "pigs to fly", 0.01)


@pytest.mark.variant
def test_nothing_is_lost_over_a_restart_of_the_api_server(
    bare: Cluster, recorder: Recorder
) -> None:
    create_pod(bare, "stays")
    create_pod(bare, "goes")
    wait_running(recorder, "goes", "stays")
    bare.process("kube-apiserver").restart()
    bare.wait_healthy("kube-apiserver")
    bare.kubectl("delete", "pod", "goes", "--wait=false")
    create_pod(bare, "comes")
    wait_running(recorder, "comes", "stays")
    added = [event.name for event in recorder.events if event.type == "ADDED"]
    assert added == ["stays", "goes", "comes"], "what was known before is not told as new"


@pytest.mark.variant
def test_closing_does_not_wait_for_the_server(bare: Cluster) -> None:
    recorder = Recorder(bare)
    create_pod(bare, "a")
    wait_running(recorder, "a")
    began = time.monotonic()
    recorder.close()
    assert time.monotonic() - began < 30.0  # half of the silence that would end it anyway
    assert recorder.events


@pytest.mark.variant
def test_what_cannot_be_listed_is_an_error(bare: Cluster) -> None:
    with Follower(bare.api, "/apis/example.com/v1/nothing", lambda *_: None) as follower:
        said = wait_until(lambda: complaint(follower, "404"), "the follower to be told 404")
    assert "in vain to list /apis/example.com/v1/nothing" in said


def complaint(follower: Follower, word: str) -> str:
    """What the follower says of its list, once it says this word."""
    with pytest.raises(TestbedError) as caught:
        follower.wait_synced(0.1)
    return str(caught.value) if word in str(caught.value) else ""
