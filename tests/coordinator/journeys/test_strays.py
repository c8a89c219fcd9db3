"""Pods that Muster released and that left their gang go on counting in its queue."""

from collections.abc import Callable

import pytest

from kube.codec.observed_pod import STRAYS
from kube.objects import names
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, Json, foreign_pod, node, pinned_to
from tests.coordinator.journeys.queues.worlds import change, gang_in, queue, status_of
from tests.coordinator.world import World

Leave = Callable[[World], None]


def running(*queues: Json, asked: str = "team") -> World:
    """A gang of 4 CPU that runs, and room for many."""
    world = World(node("n1", cpu=100), *queues)
    world.create(gang_in(asked, "a", 3))
    world.settle(seconds=10)
    assert world.status("a")["phase"] == "Running"
    return world


def orphan(world: World) -> None:
    """Delete its RayCluster as `kubectl delete --cascade=orphan` does."""
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["metadata"].update(ownerReferences=[]))
    world.delete("rayclusters", "a")


def unlabel(world: World) -> None:
    """Take off the label by which a pod of a RayCluster is known; KubeRay is not to make others."""
    world.edit("a", managedBy="example.com/nobody")
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["metadata"]["labels"].pop(names.RAY_NODE_TYPE))


def strays(world: World) -> list[Json]:
    """The pods that left, whatever is left of their labels."""
    return [pod for pod in world.pods() if pod["metadata"]["name"].startswith("a-")]


def bound(world: World) -> int:
    """How many of them are on a node."""
    return sum(bool(pod["spec"].get("nodeName")) for pod in strays(world))


def waits_for_quota(world: World, name: str = "b", asked: str = "team", **more: int) -> str:
    """Create a gang that would fit but for what the first one took: why it waits."""
    world.create(gang_in(asked, name, 2, **more))
    world.settle(seconds=10)
    status = world.status(name)
    assert (status["phase"], status["reason"]) == ("Queued", "QuotaExceeded")
    return str(status["message"])


leaving = pytest.mark.parametrize("leave", [orphan, unlabel])


@leaving
def test_pods_that_left_their_gang_count_in_its_queue(leave: Leave) -> None:
    """Longer than slots of lost pods are kept."""
    world = running(queue("team", cpu=4))
    leave(world)
    world.settle(seconds=3600)
    told = waits_for_quota(world)
    assert told.startswith("queue team uses 4 of its quota of 4 cpu and may take 0 more")
    assert status_of(world, "team")["admitted"] == 0
    assert bound(world) == 4


@leaving
def test_a_new_leader_counts_them_too_and_until_they_end(leave: Leave) -> None:
    world = running(queue("team", cpu=4))
    leave(world)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=3600)
    waits_for_quota(world)
    for pod in strays(world):
        world.api.remove(key_of(pod))
    world.settle(seconds=10)
    assert world.status("b")["phase"] == "Running"


def test_they_count_in_the_queue_of_their_release_where_the_namespace_has_several() -> None:
    """Not in the first by name, which would free the quota of the other."""
    world = running(queue("small", cpu=3), queue("team", cpu=4))
    orphan(world)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=60)
    assert waits_for_quota(world).startswith("queue team uses 4 of its quota of 4 cpu")
    world.create(gang_in("small", "c", 2))
    world.settle(seconds=10)
    assert world.status("c")["phase"] == "Running"


@pytest.mark.parametrize("noted", ["", "/others", "/gone"])
def test_where_that_queue_is_not_theirs_they_count_in_one_of_their_namespace(noted: str) -> None:
    """As released by an earlier Muster, or a note that was forged where no policy is in force."""
    other = {"namespaceSelector": {"matchLabels": {"team": "others"}}}
    world = running(queue("team", cpu=4), queue("others", cpu=4, **other))

    def note(pod: Json) -> None:
        pod["metadata"]["annotations"][names.RELEASED] = pod["metadata"]["uid"] + noted

    for pod in world.pods("a"):
        world.api.change(pod, note)
    orphan(world)
    world.settle(seconds=60)
    assert waits_for_quota(world).startswith("queue team uses 4 of its quota of 4 cpu")


def test_a_pod_with_the_note_of_another_is_a_plain_one() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    plain = foreign_pod("plain", "n1", cpu=4, affinity=pinned_to("n1")["affinity"])
    plain["metadata"]["annotations"] = {names.RELEASED: "another-uid/team"}
    world.create(plain)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert world.status("a")["phase"] == "Running"


def test_strays_do_not_hold_up_the_deletion_of_their_queue() -> None:
    """They are no gang; afterwards they count in another one of their namespace."""
    world = running(queue("team", cpu=4), queue("zone", cpu=4))
    orphan(world)
    world.settle(seconds=10)
    world.delete("gangqueues", "team", "")
    world.settle(seconds=60)
    assert [each["metadata"]["name"] for each in world.api.all("gangqueues")] == ["zone"]
    assert waits_for_quota(world, asked="zone").startswith("queue zone uses 4 of its quota")


def test_a_gang_that_may_take_quota_back_is_told_that_strays_hold_it() -> None:
    """No gang stops for it: whoever may delete the pods has to."""
    preempting = {"preemption": {"withinQueue": "LowerPriority"}}
    world = running(queue("team", cpu=4, **preempting))
    orphan(world)
    world.settle(seconds=10)
    assert STRAYS in waits_for_quota(world, priority=10)
    assert bound(world) == 4


def test_they_count_where_the_labels_of_their_namespace_say_later() -> None:
    """A queue that came to select it after their own was gone."""
    late = {"namespaceSelector": {"matchLabels": {"late": "true"}}}
    world = running(queue("team", cpu=4), queue("zone", cpu=4, **late))
    orphan(world)
    world.settle(seconds=10)
    change(world, "team", namespaceSelector={"matchLabels": {"team": "others"}})
    world.settle(seconds=10)
    team = world.api.get(Key("namespaces", "", TEAM))
    world.api.change(team, lambda obj: obj["metadata"].update(labels={"late": "true"}))
    world.settle(seconds=10)
    assert waits_for_quota(world, asked="zone").startswith("queue zone uses 4 of its quota")
