"""Gangs that lose nodes or their head."""

import pytest

from kube.objects import names
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import (
    TEAM,
    gang_of,
    node,
    template,
)
from tests.coordinator.deeds import slots
from tests.coordinator.gang.pods.test_kept_slots import QUOTA, failure, kept, lose_workers
from tests.coordinator.journeys.loss.worlds import (
    HEADS,
    OTHER,
    PATIENCE,
    REQUEUE,
    begun,
    events,
    said,
    without_a_node,
    without_other_gate,
)
from tests.coordinator.journeys.queues.worlds import gang_in, queue
from tests.coordinator.world import World, name_of


def test_workers_without_their_head_wait_for_it() -> None:
    """They would hold their room and wait for its port."""
    world = World(node("n1", cpu=2, labels=HEADS), node("n2", cpu=2))
    world.create(gang_of("a", 3, head=template(cpu=1, nodeSelector=HEADS)))
    world.settle(seconds=60)
    world.delete("nodes", "n1")
    world.create(node("n3", cpu=2, labels=HEADS))
    world.collect_garbage()
    world.leader.hear_all()
    world.kuberay()
    world.kuberay = lambda: None  # type: ignore[method-assign]
    (head,) = (pod for pod in world.pods("a") if "headgroup" in name_of(pod))
    world.api.remove(key_of(head))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("a")) == ({"n2": 2}, 1)
    del world.kuberay
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 2, "n3": 2}


def test_a_gang_that_loses_two_nodes_at_once_is_whole_again_on_two_others() -> None:
    """Kueue replaces one, and stops the gang where two fail; here none of the others notices."""
    world = World(*(node(f"n{at}", cpu=2) for at in range(5)))
    world.create(gang_of("a", 5))
    world.settle(seconds=60)
    (head,) = (pod["spec"]["nodeName"] for pod in world.pods("a") if "headgroup" in name_of(pod))
    lost = world.bound("a").keys() - {head}
    stay = {name_of(pod) for pod in world.pods("a") if pod["spec"]["nodeName"] == head}
    for name in lost:
        world.delete("nodes", name)
    world.settle(seconds=1)
    assert (len(lost), world.bound("a").total()) == (2, 6)
    assert stay <= {name_of(pod) for pod in world.pods("a")}


def test_the_room_of_a_broken_gang_is_not_given_to_a_filler_meanwhile() -> None:
    """A node that comes back is its own, though others wait for just that (Volcano 5805)."""
    world = begun()
    gone = without_a_node(world)
    world.create(gang_in("team", "filler", 1))
    world.settle(seconds=30)
    assert (world.bound("a").total(), said(world)[1]) == (2, "InsufficientResources")
    world.create(node(gone, cpu=2))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("filler")) == (4, {})


@pytest.mark.parametrize(
    ("other", "away", "grows_to"),
    [("team", 30, 3), ("team", PATIENCE.slot + 60, 3), ("idle", 30, 3), ("team", 30, 9)],
)
def test_a_node_that_comes_back_goes_to_the_broken_gang_before_an_older_filler(
    other: str, away: float, grows_to: int
) -> None:
    """Of the same priority, or of a queue that uses less of its quota (Volcano 5805).

    That the broken gang grows too does not put it behind; only its growth comes after others.
    """
    world = World(queue("team", cpu=8), queue("idle", cpu=80), node("n1", cpu=2), node("n2", cpu=2))
    head = template(cpu=1, schedulingGates=[OTHER])
    world.create(gang_in(other, "filler", 1, head=head))
    world.settle(seconds=5)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=60)
    for pod in world.pods("filler"):
        world.api.change(pod, without_other_gate)
    world.scale("a", grows_to)
    gone = without_a_node(world)
    world.settle(seconds=away)
    assert world.bound("a").total() == 2
    world.create(node(gone, cpu=2))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("filler")) == (4, {})


def test_a_gang_of_which_nothing_is_left_starts_whole_or_not_at_all() -> None:
    """It ran once; half of it that KubeRay could make again is no running gang."""
    world = begun()
    with world.kuberay_refuses(failure(QUOTA)):
        for pod in world.pods("a"):
            world.api.remove(key_of(pod))
        world.settle(seconds=PATIENCE.slot + 60)
    world.kuberay()
    world.kuberay = lambda: None  # type: ignore[method-assign]
    for late in [pod for pod in world.pods("a") if "workers" in name_of(pod)][1:]:
        world.api.remove(key_of(late))
    world.settle(seconds=30)
    assert (world.bound("a"), world.gated("a")) == ({}, 2)


def test_no_worker_starts_where_there_is_no_room_for_the_head_that_was_lost_with_it() -> None:
    world = World(node("n1", cpu=2, labels=HEADS), node("n2", cpu=2))
    world.create(gang_of("a", 3, head=template(cpu=1, nodeSelector=HEADS)))
    world.settle(seconds=60)
    world.delete("nodes", "n1")
    world.create(node("n3", cpu=1))
    world.settle(seconds=30)
    assert (world.bound("a"), world.gated("a")) == ({"n2": 2}, 2)
    world.create(node("n4", cpu=1, labels=HEADS))
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 2, "n3": 1, "n4": 1}


# ---- the head


def lose_head(world: World, name: str) -> None:
    (head,) = (pod for pod in world.pods(name) if "headgroup" in name_of(pod))
    world.api.remove(key_of(head))


def test_a_lost_head_whose_workers_all_begin_anew_is_told_by_one_event() -> None:
    """Without GCS fault tolerance each worker fails once its head is gone."""
    world = begun()
    before = len(world.leader.emitted)
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.kuberay = lambda: None  # type: ignore[method-assign]
    lose_head(world, "a")
    world.settle(seconds=90)
    for _ in range(3):
        lose_workers(world, 1)
        world.settle(seconds=90)
    assert said(world)[1] == "HeadLost"
    assert "4 slots are kept for lost pods" in world.status("a")["message"]
    del world.kuberay, world.kubelets
    world.settle(seconds=60)
    assert world.bound("a").total() == 4
    told = [each.reason for each in world.leader.emitted[before:]]
    assert told == ["HeadLost", "Admitted"], "the second says that it is over"


def test_a_lost_head_that_kuberay_makes_no_other_for_ends_its_gang() -> None:
    """As of a RayJob in SidecarMode: no slot is kept, and the room goes to the next."""
    world = World(node("n1", cpu=4), queue("team", **REQUEUE))
    world.create(gang_in("team", "a", 3, annotations={names.RAY_NO_OTHER_HEAD: "true"}))
    world.settle(seconds=30)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    ready = {"type": "RayClusterProvisioned", "status": "True"}
    world.api.change(cluster, lambda obj: obj.update(status={"conditions": [ready]}))
    world.settle(seconds=30)
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=5)
    assert (said(world), world.bound("b")) == (("Running", "Running"), {})
    world.kuberay = lambda: None  # type: ignore[method-assign]
    lose_head(world, "a")
    lose_workers(world, 1)
    world.settle(seconds=30)
    assert said(world) == ("Running", "HeadLost")
    assert "KubeRay makes no other" in world.status("a")["message"]
    assert (kept(world), slots(world)) == ({}, 2)
    assert len(events(world, "HeadLost")) == 1
    world.settle(seconds=PATIENCE.slot + 60)
    assert world.bound("a").total() == 2, "KubeRay ends what is left"
