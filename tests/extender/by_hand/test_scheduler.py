"""The real kube-scheduler, with the extender beside it, keeps out of reserved room.

All of it on the testbed's own Kubernetes; the long run tries the older one too.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import Extender
from testbed.pytest_plugin import FolderCluster
from testbed.recipes import chosen_kubernetes
from tests.extender.plot import BY_HAND, Plot, extending, plotted, unschedulable
from tests.extender.worlds import member, pinned, pod

pytestmark = [pytest.mark.controlplane, pytest.mark.versions]

_NUMBERS = itertools.count(1)
_CALLS = "muster_extender_calls_total"


_OLDER = pytest.param("1.35.4", marks=[pytest.mark.long, pytest.mark.timeout(1800)])


@pytest.fixture(scope="module", params=[chosen_kubernetes(), _OLDER])
def extender(
    request: pytest.FixtureRequest, folder_cluster: FolderCluster
) -> Iterator[tuple[Cluster, Extender]]:
    """An extender with the scheduler of the manifests."""
    cluster = folder_cluster(replace(BY_HAND, kubernetes=request.param))
    with extending(cluster) as started:
        cluster.start_scheduler(started.scheduler_config())
        yield cluster, started
        cluster.process(SCHEDULER).kill()


@pytest.fixture
def plot(extender: tuple[Cluster, Extender]) -> Iterator[Plot]:
    with plotted(*extender, f"plot-{next(_NUMBERS)}") as plot:
        yield plot


def test_a_burst_of_fillers_leaves_reserved_room_alone(plot: Plot) -> None:
    """Half of the room is reserved; the extender is killed and comes back in between."""
    nodes = plot.add_nodes(6)
    slots = dict.fromkeys(nodes, 1)
    plot.place("train", slots, gpu=4)
    chance = random.Random(5)
    shapes = [pod(f"f{i}", gpu=chance.choice((1, 1, 2, 3, 4, 8))) for i in range(120)]
    plot.create_all(shapes[:60])
    plot.extender.process.kill()
    plot.extender.process.restart()
    plot.extender.wait_ready()
    plot.create_all(shapes[60:])
    plot.wait_judged(len(shapes))
    assert sum(plot.gpus().values()) > 0
    assert max(plot.gpus().values()) <= 4
    plot.create_all(plot.members("train", slots, gpu=4))
    plot.wait_bound(*(f"train-{name}-0" for name in nodes))
    assert set(plot.gpus().values()) == {8}


def test_forged_pins_and_labels_get_nowhere(plot: Plot) -> None:
    first, second, third = plot.add_nodes(3)
    plot.place("train", {first: 1, second: 1})
    plot.create(pinned(pod("pinned", gpu=1), first))
    labelled = member(pinned(pod("labelled", gpu=8), first), "train")
    labelled["metadata"]["ownerReferences"] = []
    plot.create(labelled)
    former = member(pinned(pod("former", gpu=8), first), "train")
    former["metadata"]["ownerReferences"][0]["uid"] = "uid-of-an-earlier-one"
    plot.create(former)
    plot.create(member(pinned(pod("other-set", gpu=8), first), "train", pod_set="other"))
    plot.create(member(pod("unpinned", gpu=8), "train"))
    plot.create(member(pinned(pod("elsewhere", gpu=1), third), "train"))
    plot.place("early", {})
    plot.create(member(pinned(pod("unplaced", gpu=1), third), "early"))
    for name in ("pinned", "labelled", "former"):
        plot.wait_refused(name, "reserved for a gang")
    for name in ("other-set", "unpinned", "elsewhere", "unplaced"):
        plot.wait_refused(name, "not a slot of its gang")
    assert plot.bound() == {}
    plot.create_all(plot.members("train", {first: 1, second: 1}))
    plot.wait_bound(f"train-{first}-0", f"train-{second}-0")


def test_a_lost_member_keeps_its_slot_while_fillers_wait(plot: Plot) -> None:
    (node,) = plot.add_nodes(1)
    plot.place("train", {node: 1})
    plot.create_all(plot.members("train", {node: 1}))
    plot.wait_bound(f"train-{node}-0")
    plot.create(pod("filler", gpu=1))
    plot.wait_refused("filler", "Insufficient")
    plot.delete(f"train-{node}-0")
    more = itertools.count()
    plot.wait(lambda: _told_of_the_slot(plot, f"more-{next(more)}"), "a filler to hear of the slot")
    plot.create_all(plot.members("train", {node: 1}))
    plot.wait_bound(f"train-{node}-0")
    assert plot.bound().keys() == {f"train-{node}-0"}


def _told_of_the_slot(plot: Plot, name: str) -> bool:
    """Whether one more filler is kept out by the slot, of which the extender hears by a watch.

    A filler that came before that was refused for lack of room, and is not tried again while there
    is none.
    """
    plot.create(pod(name, gpu=1))
    plot.wait(lambda: unschedulable(plot.pods()[name]), f"{name} to be judged")
    return "reserved for a gang" in unschedulable(plot.pods()[name])


@pytest.mark.variant
def test_no_pod_is_evicted_for_room_that_is_reserved(plot: Plot) -> None:
    """Without the verb `preempt` pods were evicted for a pod that was then refused."""
    (node,) = plot.add_nodes(1)
    plot.create(pod("small", gpu=4))
    plot.wait_bound("small")
    plot.place("train", {node: 1}, gpu=2)
    _priority_class(plot)
    plot.create(pod("big", gpu=8, priorityClassName="extender-high"))
    plot.wait_refused("big", "Insufficient")
    assert plot.bound().keys() == {"small"}
    plot.create(pod("fits", gpu=6, priorityClassName="extender-high"))
    plot.wait_bound("fits")  # beside the reservation, once the small one is gone
    assert plot.bound().keys() == {"fits"}


@pytest.mark.variant
def test_a_running_gang_does_not_lose_one_member(plot: Plot) -> None:
    first, second = plot.add_nodes(2)
    plot.place("train", {first: 1, second: 1})
    plot.create_all(plot.members("train", {first: 1, second: 1}))
    plot.wait_bound(f"train-{first}-0", f"train-{second}-0")
    _priority_class(plot)
    plot.create(pod("big", gpu=8, priorityClassName="extender-high"))
    plot.wait_refused("big", "Insufficient")
    assert plot.bound().keys() == {f"train-{first}-0", f"train-{second}-0"}


@pytest.mark.variant
def test_a_released_member_evicts_on_its_own_node(plot: Plot) -> None:
    """Another pod took its slot past the scheduler, and has a lower priority."""
    first, second = plot.add_nodes(2)
    plot.create_all(pod(f"on-{node}", gpu=4, on=node) for node in (first, second))
    plot.place("train", {first: 1})
    _priority_class(plot)
    (released,) = plot.members("train", {first: 1})
    released["spec"]["priorityClassName"] = "extender-high"
    plot.create(released)
    plot.wait_bound(f"train-{first}-0")
    assert plot.bound().keys() == {f"train-{first}-0", f"on-{second}"}


@pytest.mark.variant
def test_a_released_member_evicts_no_member_of_another_gang(plot: Plot) -> None:
    """Both were placed on the same room, by a mistake; the running one is left alone."""
    (node,) = plot.add_nodes(1)
    plot.place("running", {node: 1})
    plot.create_all(plot.members("running", {node: 1}))
    plot.wait_bound(f"running-{node}-0")
    plot.place("train", {node: 1})
    _priority_class(plot)
    (released,) = plot.members("train", {node: 1})
    released["spec"]["priorityClassName"] = "extender-high"
    plot.create(released)
    plot.wait_refused(f"train-{node}-0", "Insufficient")
    assert plot.bound().keys() == {f"running-{node}-0"}


def _priority_class(plot: Plot) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    if not plot.cluster.api.exists(f"{path}/extender-high"):
        plot.cluster.create_priority_class({"name": "extender-high"}, 1000)


def test_when_a_reservation_ends_refused_pods_are_tried_again(plot: Plot) -> None:
    nodes = plot.add_nodes(3)
    plot.place("train", dict.fromkeys(nodes, 1))
    waiting = [pod(f"w{i}", gpu=1) for i in range(24)]
    plot.create_all(waiting)
    plot.wait_judged(24)
    plot.end("train")
    # By itself kube-scheduler would try them again after five minutes.
    plot.wait_bound(*(f"w{i}" for i in range(24)))
    assert set(plot.gpus().values()) == {8}  # and packed


@pytest.mark.long
@pytest.mark.parametrize(
    ("count", "quiet"),
    [
        pytest.param(100, 10.0),
        pytest.param(500, 60.0, marks=[pytest.mark.long, pytest.mark.timeout(1800)]),
    ],
)
def test_refused_pods_are_left_alone_while_nothing_changes(
    plot: Plot, count: int, quiet: float
) -> None:
    """More nodes than the scheduler samples by default, some of them full, so that the sample would
    rotate and the text change from one attempt to the next."""
    nodes = plot.add_nodes(130)
    plot.place("train", dict.fromkeys(nodes[:115], 1))
    plot.create_all(pod(f"full-{i}", gpu=8, on=name) for i, name in enumerate(nodes[115:]))
    plot.create_all(pod(f"w{i}", gpu=1) for i in range(count))
    plot.wait_judged(count + 15)
    plot.wait(lambda: len(_texts(plot)) == 1, "all to be told the same")
    plot.wait(lambda: _calls_within(plot, 2.0) == 0, "the scheduler to leave them alone")
    assert _calls_within(plot, quiet) <= count  # none of them twice


def _texts(plot: Plot) -> set[str]:
    """What the scheduler says of those that wait."""
    return {unschedulable(each) for name, each in plot.pods().items() if name.startswith("w")}


def _calls_within(plot: Plot, seconds: float) -> float:
    """How often the extender was called in a time in which nothing happens."""
    before = plot.extender.metric(_CALLS)
    time.sleep(seconds)  # the quiet is what is looked at
    return plot.extender.metric(_CALLS) - before


@pytest.mark.variant
def test_whole_nodes_stay_free(plot: Plot) -> None:
    """At best 45 GPUs take 6 of 10 nodes; the default profile begins them all."""
    plot.add_nodes(10)
    chance = random.Random(7)
    shapes = [1] * 15 + [2] * 9 + [4] * 3
    chance.shuffle(shapes)
    pods = [pod(f"p{i}", gpu=gpus) for i, gpus in enumerate(shapes)]
    plot.create_all(pods)
    plot.wait_bound(*(each["metadata"]["name"] for each in pods))
    assert 10 - len(plot.gpus()) >= 3
