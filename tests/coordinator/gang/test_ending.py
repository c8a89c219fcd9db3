"""The reservation of a gang ends when its RayCluster or its Gang is deleted."""

from typing import Any

from coordinator.gang.ending import ORPHAN_DELAY, outlived_by
from coordinator.messages.actions import CreateGang, DeleteGang, FencePod, ReleasePod
from coordinator.messages.events import WatchLost, WatchRecovered
from coordinator.record.event_budget import RENEWAL
from kube.api.errors import Invalid
from kube.objects.gang import Gang, GangMeta
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import OPTED_IN, TEAM, gang_of, node
from tests.coordinator.client import Outcome
from tests.coordinator.world import World, name_of

Json = dict[str, Any]


def terminate(world: World, plural: str = "rayclusters", name: str = "a") -> None:
    """Delete an object that a finalizer holds."""
    obj = world.api.get(Key(plural, TEAM, name))
    world.api.change(obj, lambda obj: obj["metadata"].update(deletionTimestamp="now"))


def lose(world: World, pod_set: str) -> None:
    for pod in [pod for pod in world.pods("a") if pod_set in name_of(pod)]:
        world.api.remove(key_of(pod))


def started(workers: int = 2) -> World:
    """A gang that fills its node, and another one that waits for it."""
    world = World(node("n1", cpu=1 + workers))
    world.create(gang_of("a", workers))
    world.settle(seconds=60)
    world.create(gang_of("b", workers))
    world.settle(seconds=60)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 1 + workers}, {})
    return world


def decided(world: World) -> None:
    """Bring everything to where the releases are asked for, and none was sent."""
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    world.leader.cycle()
    world.leader.act_all_but(ReleasePod)


def test_nothing_is_kept_for_a_ray_cluster_that_is_being_deleted() -> None:
    """Its pods hold what they use; the slots of those that are gone are free at once."""
    world = started()
    terminate(world)
    lose(world, "workers")
    world.settle(seconds=5)
    status = world.status("a")
    assert "placement" not in status
    assert (status["phase"], status["reason"]) == ("Running", "Terminating")
    assert status["message"] == (
        "the RayCluster is being deleted: no pod is released any more, and no slot is kept; "
        "1 pod is still bound"
    )
    [view] = [each for each in world.leader.state.known.views.values() if each.key.name == "a"]
    assert not view.waits_for_room
    lose(world, "headgroup")
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 3}
    assert "Terminating" not in {each.reason for each in world.leader.emitted}
    assert "0 pods are still bound" in world.status("a")["message"]


def test_a_waiting_gang_that_is_being_deleted_is_neither_decided_nor_in_the_queue() -> None:
    world = started()
    terminate(world, name="b")
    world.delete("rayclusters", "a")
    world.settle(seconds=60)
    assert world.bound() == {}
    status = world.status("b")
    assert (status["phase"], status["reason"]) == ("Queued", "Terminating")
    assert "position" not in status
    assert [a.key.name for a in world.leader.log if isinstance(a, DeleteGang)] == []


def test_a_ray_cluster_that_is_being_deleted_is_told_no_more_that_it_waits() -> None:
    world = started()
    said = [each.reason for each in world.leader.emitted if each.key.name == "b"]
    assert said == ["InsufficientResources"]
    terminate(world, name="b")
    world.settle(seconds=2 * RENEWAL)
    assert [each.reason for each in world.leader.emitted if each.key.name == "b"] == said


def test_the_room_of_a_released_pod_stays_reserved_until_it_is_bound_or_gone() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    world.leader.act_all()
    assert len(world.leader.releases()) == 3
    terminate(world)
    world.leader.hear_all()
    world.leader.act_all()
    assert "3 released and not bound yet" in world.status("a")["message"]
    world.create(gang_of("b", 2))
    for _ in range(3):
        decided(world)
    assert "placement" not in world.status("b")
    assert "placement" in world.status("a")
    world.settle(seconds=60)
    assert "placement" not in world.status("a")
    assert (world.bound("a"), world.bound("b")) == ({"n1": 3}, {})


def test_a_release_that_may_yet_arrive_is_fenced_before_its_room_is_given_up() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    [(head, _)] = leader.releases()
    leader.act(outcome=Outcome.HELD)
    terminate(world)
    leader.hear_all()
    leader.act_all()
    assert "placement" in world.status("a")
    world.settle(seconds=5)
    assert [a.pod.metadata.name for a in leader.log if isinstance(a, FencePod)] == [head]
    assert "placement" not in world.status("a")
    assert isinstance(leader.client.let_go(), Invalid)
    assert (world.gated("a"), world.bound("a")) == (3, {})
    assert len(leader.releases()) == 1


def test_a_new_leader_fences_what_the_old_one_may_have_released() -> None:
    world = World(node("n1", cpu=3), replicas=2)
    world.create(gang_of("a", 2))
    decided(world)
    first = world.leader
    first.act(outcome=Outcome.HELD)
    first.resign()
    terminate(world)
    second = world.elect(1)
    assert sum(isinstance(a, FencePod) for a in second.todo) == 3
    assert "placement" in world.status("a")
    world.settle(seconds=5)
    assert "placement" not in world.status("a")
    assert isinstance(first.client.let_go(), Invalid)
    assert (world.gated("a"), world.bound("a")) == (3, {})


def test_an_opt_out_releases_no_pod_of_a_ray_cluster_that_is_being_deleted() -> None:
    world = started()
    cluster = world.api.get(Key("rayclusters", TEAM, "b"))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].clear())
    terminate(world, name="b")
    world.settle(seconds=60)
    assert world.gated("b") == 3


def test_a_gang_that_is_being_deleted_is_the_record_until_it_is_gone() -> None:
    """A finalizer of others holds it: what it says goes on being true, for extender and all."""
    world = started()
    terminate(world, "gangs")
    lose(world, "workers")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}
    assert (world.status("a")["reason"], world.bound("b")) == ("Running", {})
    before = world.status("a")["placement"]["podSets"]
    world.api.remove(Key("gangs", TEAM, "a"))
    world.settle(seconds=60)
    assert world.status("a")["placement"]["podSets"] == before


def without_garbage_collector(world: World) -> None:
    world.collect_garbage = lambda: None  # type: ignore[method-assign]


def test_a_gang_without_its_ray_cluster_is_deleted_where_the_garbage_collector_does_not() -> None:
    """`--cascade=orphan` leaves it behind, and the garbage collector may be stuck."""
    world = started()
    without_garbage_collector(world)
    world.delete("rayclusters", "a")
    world.settle(seconds=ORPHAN_DELAY - 1)
    assert "placement" in world.status("a")
    world.settle(seconds=2)
    assert [name_of(each) for each in world.api.all("gangs")] == ["b"]


def test_a_gang_that_lost_its_ray_cluster_unseen_is_seen_to_later() -> None:
    """While a watch is down it is not certain that the RayCluster is gone."""
    world = started()
    without_garbage_collector(world)
    world.leader.handle([WatchLost("rayclusters")])
    world.delete("rayclusters", "a")
    world.settle(seconds=3 * ORPHAN_DELAY)
    assert "placement" in world.status("a")
    world.leader.handle([WatchRecovered("rayclusters")])
    world.settle(seconds=ORPHAN_DELAY + 1)
    assert [name_of(each) for each in world.api.all("gangs")] == ["b"]


def test_a_gang_without_its_ray_cluster_that_a_finalizer_holds_gives_its_placement_up() -> None:
    world = started()
    without_garbage_collector(world)
    terminate(world, "gangs")
    world.delete("rayclusters", "a")
    world.settle(seconds=ORPHAN_DELAY + 1)
    status = world.status("a")
    assert "placement" not in status
    assert (status["reason"], status["phase"]) == ("Terminating", "Running")
    assert not [a for a in world.leader.log if isinstance(a, DeleteGang)]
    written = len(world.leader.log)
    world.settle(seconds=10 * ORPHAN_DELAY)
    assert len(world.leader.log) == written


def test_a_gang_that_is_seen_before_its_ray_cluster_is_left_alone() -> None:
    """Of two watches one is behind: it must not look as if the RayCluster was gone."""
    world = World(node("n1", cpu=3), replicas=2)
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    second = world.replicas[1]
    queued = second.watch.queues["rayclusters"].copy()
    second.watch.queues["rayclusters"].clear()
    second.hear_all()
    world.epoch += 1
    world.leader.resign()
    second.lead(world.epoch)
    world.api.now += ORPHAN_DELAY / 2
    second.tick()
    second.watch.queues["rayclusters"].extend(queued)
    second.hear_all()
    world.settle(seconds=2 * ORPHAN_DELAY)
    assert not [a for a in second.log if isinstance(a, DeleteGang | CreateGang)]
    assert world.status("a")["phase"] == "Running"


# ---- a Gang that a finalizer holds


def held() -> World:
    """A gang that runs beside one that waits; its Gang outlives its deletion."""
    world = started()
    world.api.hold(world.gang("a"), "example.com/keep")
    return world


def deletes(world: World) -> int:
    return sum(isinstance(each, DeleteGang) for each in world.leader.log)


def creations(world: World) -> int:
    mine = [each for each in world.leader.log if isinstance(each, CreateGang)]
    return sum(each.key.name == "a" for each in mine)


def test_a_gang_that_outlives_its_deletion_gives_its_placement_up() -> None:
    world = held()
    without_garbage_collector(world)
    for pod in world.pods("a"):
        world.api.remove(key_of(pod))
    world.delete("rayclusters", "a")
    world.settle(seconds=2 * ORPHAN_DELAY + 1)
    assert "deletionTimestamp" in world.gang("a")["metadata"]
    assert (world.status("a").get("placement"), world.status("a")["reason"]) == (
        None,
        "Terminating",
    )
    assert deletes(world) == 1
    world.settle(seconds=10 * ORPHAN_DELAY)
    assert deletes(world) == 1


def test_a_new_ray_cluster_of_the_name_is_told_what_holds_the_old_gang() -> None:
    world = held()
    world.delete("rayclusters", "a")
    world.collect_garbage()
    world.leader.hear_all()
    world.create(gang_of("a", 1))
    world.settle(seconds=300)
    assert (world.gated("a"), world.bound("b")) == (2, {"n1": 3})
    assert world.status("a").get("placement") is None
    assert creations(world) == 1
    said = (
        "the Gang of an earlier RayCluster of this name is being deleted, and finalizers hold it: "
        "example.com/keep; no pod is released until it is gone"
    )
    uid = world.api.get(Key("rayclusters", TEAM, "a"))["metadata"]["uid"]
    told = [e for e in world.leader.emitted if e.cluster_uid == uid]
    assert [(e.warning, e.reason, e.message) for e in told] == [(True, "Terminating", said)]
    assert [e.regarding.kind for e in world.leader.echoed if e.message == said and e.regarding] == [
        "Pod"
    ]
    world.delete("rayclusters", "b")
    world.api.unhold(world.gang("a"))
    world.settle(seconds=60)
    assert (world.bound("a"), world.status("a")["reason"]) == ({"n1": 2}, "Running")


def test_an_old_gang_that_is_deleted_by_us_and_held_is_not_taken_for_gone() -> None:
    """No garbage collector was there: the new RayCluster comes before the old Gang is deleted."""
    world = held()
    without_garbage_collector(world)
    for pod in world.pods("a"):
        world.api.remove(key_of(pod))
    world.delete("rayclusters", "a")
    world.create(gang_of("a", 1))
    world.settle(seconds=300)
    assert world.status("a").get("placement") is None
    assert (deletes(world), creations(world)) == (1, 1)
    assert world.bound("b") == {"n1": 3}
    assert [e.key.name for e in world.leader.emitted if "example.com/keep" in e.message] == ["a"]


def test_an_opt_out_empties_the_placement_of_a_gang_that_is_held() -> None:
    world = held()
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].clear())
    world.settle(seconds=60)
    assert world.status("a").get("placement") is None
    assert deletes(world) == 1
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].update(OPTED_IN))
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "Running"


def test_a_message_names_the_first_finalizers() -> None:
    meta = GangMeta("a", deletion_timestamp="now", finalizers=tuple("vwxyz"))
    assert "finalizers hold it: v, w, x and 2 more; no" in outlived_by(Gang(meta))
    assert outlived_by(Gang(GangMeta("a", finalizers=("x",)))) == ""
