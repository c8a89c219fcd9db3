"""Each scheduler configuration of the manifests guards what it says, and nothing more."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import Extender
from testbed.pytest_plugin import FolderCluster
from tests.extender.plot import BY_HAND, Plot, extending, plotted
from tests.extender.worlds import pod

pytestmark = [pytest.mark.controlplane, pytest.mark.versions]

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def started(folder_cluster: FolderCluster) -> Iterator[tuple[Cluster, Extender]]:
    """An extender; each test starts the scheduler it is about."""
    cluster = folder_cluster(BY_HAND)
    with extending(cluster) as extender:
        yield cluster, extender


@pytest.fixture
def plot(started: tuple[Cluster, Extender]) -> Iterator[Plot]:
    """A node with a reservation of 8 GPUs and 90 CPUs, and no scheduler yet."""
    with plotted(*started, f"variant-{next(_NUMBERS)}") as plot:
        (node,) = plot.add_nodes(1)
        plot.place("train", {node: 1}, cpu=90)
        yield plot
        plot.cluster.process(SCHEDULER).kill()


def schedule(plot: Plot, variant: str = "configuration", **changes: Any) -> None:
    plot.cluster.start_scheduler(plot.extender.scheduler_config(variant, **changes))


@pytest.mark.variant
def test_with_managed_resources_only_gpus_are_guarded(plot: Plot) -> None:
    schedule(plot, "managed-resources")
    plot.create(pod("gpu", gpu=1))
    plot.create(pod("cpu", cpu=20))
    plot.wait_refused("gpu", "reserved for a gang")
    plot.wait_bound("cpu")  # in reserved room: what this variant does not guard


def test_whole_nodes_on_the_wire_are_answered_too(plot: Plot) -> None:
    schedule(plot, nodeCacheCapable=False)
    plot.create(pod("filler", cpu=20))
    plot.wait_refused("filler", "reserved for a gang")
    plot.create(pod("small", cpu=2))
    plot.wait_bound("small")


@pytest.mark.parametrize("ignorable", [False, True])
def test_without_an_extender_pods_wait_or_go_unguarded(
    started: tuple[Cluster, Extender], plot: Plot, ignorable: bool
) -> None:
    _, extender = started
    schedule(plot, ignorable=ignorable)
    extender.process.kill()
    try:
        plot.create(pod("filler", cpu=20))
        if ignorable:
            plot.wait_bound("filler")
        else:
            plot.wait(lambda: _says(plot, "SchedulerError"), "the scheduler to say what fails")
            assert plot.bound() == {}
    finally:
        extender.process.restart()
        extender.wait_ready()
    if not ignorable:
        plot.wait_refused("filler", "reserved for a gang")


def _says(plot: Plot, reason: str) -> bool:
    conditions = plot.pods()["filler"]["status"].get("conditions") or ()
    return any(each.get("reason") == reason for each in conditions)
