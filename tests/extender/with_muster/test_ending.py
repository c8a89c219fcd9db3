"""Room that a gang no longer needs goes to pods of others, unless it was made for another gang.

KubeRay, Muster, its extender and kube-scheduler together: what the coordinator gives up is what the
extender lets others have. The other one is a plain pod of another namespace.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from kube.objects import names
from testbed.muster import Extender, Muster
from tests.controlplane.plot import Plot, is_unschedulable, plotted
from tests.controlplane.rayclusters import GANG, Json, gang, group, head, pod, requests
from tests.extender.with_muster.conftest import deciding, scheduling

pytestmark = [pytest.mark.controlplane, pytest.mark.versions]

WORKERS = 5
HOLD = "test.muster.dev/hold"
SETTINGS = {"SLOT_PATIENCE": "3", "GUARD": "Extender"}
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def whole(muster: Muster, extender: Extender) -> Iterator[Muster]:
    """Muster with a coordinator, and a scheduler that asks the extender."""
    with deciding(muster, SETTINGS), scheduling(muster, extender.scheduler_config()):
        yield muster


@pytest.fixture
def plot(whole: Muster) -> Iterator[Plot]:
    with plotted(whole.cluster, f"ending-{next(_NUMBERS)}") as plot:
        yield plot


@pytest.fixture
def other(whole: Muster, plot: Plot) -> Iterator[Plot]:
    """Another tenant, with pods on the same nodes."""
    with plotted(whole.cluster, f"{plot.name}-other") as other:
        other.selector = plot.selector
        yield other


def run_gang(plot: Plot, **metadata: object) -> None:
    """Have a gang of a small head and its workers fill the one node."""
    plot.add_node(WORKERS + 1)
    made = gang("train", group(replicas=WORKERS))
    made["metadata"] |= metadata
    plot.create(made)
    plot.wait_running("train", WORKERS + 1)


def ask_for_the_room(other: Plot) -> None:
    """Create a pod that fits where the workers are, if they are gone and nothing is kept."""
    main = {"name": "main", "image": "none", "resources": requests(cpu=str(WORKERS))}
    other.create(pod("wants", containers=[main]))
    other.wait(lambda: is_unschedulable(other.get("Pod", "wants")), "the pod to be refused")


def lose_workers(plot: Plot) -> None:
    for each in plot.pods("train", "worker"):
        plot.delete("Pod", each["metadata"]["name"])


def wait_it_has_the_room(other: Plot) -> None:
    other.wait(lambda: other.get("Pod", "wants")["spec"].get("nodeName"), "the pod to be bound")


@pytest.mark.long
def test_slots_are_not_kept_for_ever_past_a_quota(plot: Plot, other: Plot) -> None:
    """The pods are not there, so the tenant's quota does not count what is kept for them."""
    run_gang(plot)
    ask_for_the_room(other)
    hard: Json = {"spec": {"hard": {"pods": "1"}}}
    plot.create({"kind": "ResourceQuota", "metadata": {"name": "small"}, **hard})
    plot.wait(
        lambda: plot.get("ResourceQuota", "small").get("status", {}).get("hard"),
        "the quota to be in force",
    )
    lose_workers(plot)
    wait_it_has_the_room(other)
    status = plot.wait_phase("train", "Running", "PodsRefused", "exceeded quota: small")
    assert [each.get("kept", 0) for each in status["podSets"]] == [0, 0]
    assert len(plot.bound("train")) == 1


@pytest.mark.variant
def test_nothing_is_kept_for_a_ray_cluster_that_is_being_deleted(plot: Plot, other: Plot) -> None:
    """A finalizer holds it: KubeRay makes no more pods, and those that run go on."""
    run_gang(plot, finalizers=[HOLD])
    ask_for_the_room(other)
    plot.delete("RayCluster", "train")
    status = plot.wait_phase("train", "Running", "Terminating", "6 pods are still bound")
    assert "placement" not in status
    lose_workers(plot)
    wait_it_has_the_room(other)
    assert len(plot.bound("train", "head")) == 1
    plot.patch("RayCluster", "train", {"metadata": {"finalizers": None}})
    plot.wait_no_gang("train")


@pytest.mark.variant
def test_a_gang_that_was_left_behind_keeps_nothing(plot: Plot, other: Plot) -> None:
    """`--cascade=orphan` takes the RayCluster and leaves its Gang and its pods."""
    run_gang(plot)
    ask_for_the_room(other)
    path = f"{plot.path('RayCluster', 'train')}?propagationPolicy=Orphan"
    plot._call("DELETE", path)
    plot.wait_gone("RayCluster", "train")
    lose_workers(plot)
    wait_it_has_the_room(other)
    plot.wait_no_gang("train")
    assert len(plot.bound("train", "head")) == 1


def test_room_is_for_the_gang_that_others_are_stopped_for(plot: Plot, other: Plot) -> None:
    """Pods that kube-scheduler tries again as soon as a victim is gone get none of it."""
    urgent: Json = {"priorityClassName": plot.add_priority_class("urgent", 1000)}
    plot.add_queue("team", preemption={"withinQueue": "LowerPriority"})
    labels = {**GANG, names.QUEUE: plot.queue("team")}
    run_gang(plot, labels=labels)
    fillers = [f"filler-{number}" for number in range(2 * WORKERS)]
    for name in fillers:
        other.create(pod(name))
    other.wait(
        lambda: all(is_unschedulable(other.get("Pod", name)) for name in fillers),
        "all of them to be refused",
    )
    workers = group(replicas=WORKERS, **urgent)
    plot.create(gang("first", workers, head_group=head(**urgent), labels=labels))
    plot.wait_running("first", WORKERS + 1)
    assert not [each for each in other.all("Pod") if "nodeName" in each["spec"]]
