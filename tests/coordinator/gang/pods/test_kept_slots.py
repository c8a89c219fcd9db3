"""The slot of a lost pod is kept for a bounded time when no replacement comes."""

from typing import Any

from coordinator.gang.pods.kept_slots import CERTAIN, Kept, Start
from coordinator.messages.clock import Patience
from coordinator.messages.events import WatchLost, WatchRecovered
from reservation.slots import Slot, SlotKind, Slots
from runtime.controller.moment import Moment
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, gang_of, group, node, ray_cluster
from tests.coordinator.deeds import slots
from tests.coordinator.world import World, name_of

Json = dict[str, Any]

PATIENCE = Patience()
INVALID = 'Pod "a-workers-worker-x7k2p" is invalid: spec.containers[0].imagePullPolicy: Nope'
QUOTA = 'pods "a-workers-worker-x7k2p" is forbidden: exceeded quota: small, limited: pods=1'


def failure(text: str) -> Json:
    """What KubeRay says where it cannot create a worker."""
    reason = "FailedCreateWorkerPod"
    condition = {"type": "ReplicaFailure", "status": "True", "reason": reason}
    return {**condition, "message": f"{reason}\n{text}"}


def running(workers: int = 4) -> World:
    """A gang of a head and workers of 1 CPU that fills its node, and one that waits for 2 CPU."""
    world = World(node("n1", cpu=1 + workers))
    world.create(gang_of("a", workers))
    world.settle(seconds=60)
    world.create(gang_of("b", 1))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 1 + workers}
    assert world.bound("b") == {}
    return world


def lose_workers(world: World, count: int) -> None:
    workers = [pod for pod in world.pods("a") if "workers" in name_of(pod)]
    for pod in workers[:count]:
        world.api.remove(key_of(pod))


def kept(world: World) -> dict[str, int]:
    """The kept slots of each pod set that the record tells of."""
    sets = world.status("a")["podSets"]
    return {each["name"]: each["kept"] for each in sets if "kept" in each}


def test_the_slots_of_lost_pods_end_when_no_replacement_came_in_time() -> None:
    world = running()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 3)
        world.settle(seconds=PATIENCE.slot - 1)
        assert kept(world) == {"workers": 3}
        assert "; 3 slots are kept for lost pods until 2026" in world.status("a")["message"]
        assert (slots(world), world.bound("b")) == (5, {})
        world.settle(seconds=30)
        assert (kept(world), slots(world)) == ({}, 2)
        assert "kept" not in world.status("a")["message"]
        assert world.bound("b") == {"n1": 2}


def test_a_replacement_that_comes_too_late_is_decided_anew() -> None:
    world = running()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 2)
        world.settle(seconds=PATIENCE.slot + 30)
    world.settle(seconds=60)
    assert (world.gated("a"), world.bound("a")) == (2, {"n1": 3})
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "BelowMinimum")
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert (world.bound("a"), world.status("a")["reason"]) == ({"n1": 5}, "Running")


def test_the_slots_end_at_once_where_no_pod_can_be_made_for_them() -> None:
    """As the API server will refuse the pod for as long as its template is that one."""
    world = running()
    with world.kuberay_refuses(failure(INVALID)):
        lose_workers(world, 3)
        world.settle(seconds=CERTAIN + 30)
        assert (kept(world), slots(world)) == ({}, 2)


def test_a_template_that_was_changed_since_is_waited_for() -> None:
    """What KubeRay said of the one before is no word on this one."""
    world = running()
    with world.kuberay_refuses(failure(INVALID)):
        cluster = world.api.get(Key("rayclusters", TEAM, "a"))
        world.edit("a", enableInTreeAutoscaling=False)
        said = {"conditions": [failure(INVALID)], "observedGeneration": 1}
        world.refused = {}
        world.api.change(cluster, lambda obj: obj.update(status=said))
        world.kuberay = lambda: None  # type: ignore[method-assign]
        lose_workers(world, 3)
        world.settle(seconds=CERTAIN + 30)
        assert slots(world) == 5


def test_a_gang_that_lost_all_of_its_pods_is_no_exception() -> None:
    world = running()
    with world.kuberay_refuses(failure(QUOTA)):
        for pod in world.pods("a"):
            world.api.remove(key_of(pod))
        world.settle(seconds=PATIENCE.slot - 1)
        assert (slots(world), world.bound("b")) == (5, {})
        world.settle(seconds=30)
        assert "placement" not in world.status("a")
        assert world.bound("b") == {"n1": 2}


def test_a_gang_that_is_opted_out_keeps_nothing() -> None:
    world = running()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=60)
        cluster = world.api.get(Key("rayclusters", TEAM, "a"))
        world.api.change(cluster, lambda obj: obj["metadata"]["labels"].clear())
        world.settle(seconds=60)
        assert sum(view.repairs.kept.total for view in world.leader.state.known.views.values()) == 0


def test_a_new_leader_counts_the_time_anew() -> None:
    world = running()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=PATIENCE.slot - 1)
        world.leader.restart()
        world.elect(0)
        world.settle(seconds=PATIENCE.slot - 1)
        assert slots(world) == 5
        world.settle(seconds=30)
        assert slots(world) == 4


def test_a_replica_of_several_hosts_keeps_all_of_its_slots_or_none() -> None:
    world = World(node("n1", cpu=5))
    world.create(ray_cluster("a", group("workers", 2, hosts=2)))
    world.settle(seconds=60)
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=PATIENCE.slot - 10)
        assert slots(world) == 5
        world.settle(seconds=30)
        assert slots(world) == 3


def test_a_slot_whose_pod_went_elsewhere_by_itself_is_not_kept() -> None:
    """Its gate was removed by others, and kube-scheduler bound it to another node."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.leader.hear_all()
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    world.leader.cycle()
    worker = next(pod for pod in world.pods("a") if "workers" in name_of(pod))

    def strip(pod: Json) -> None:
        pod["spec"].update(schedulingGates=[], nodeName="n2")

    world.create(node("n2", cpu=1))
    world.leader.act()  # the placement is written
    world.leader.act()  # and the head released
    world.api.change(worker, strip)
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 2, "n2": 1}
    assert kept(world) == {}
    assert slots(world) == 2


def test_pods_that_come_and_go_renew_the_time_of_no_slot_but_their_own() -> None:
    """Else one pod at a time, within any quota, would keep all of them for ever."""
    clocks, replicas = Kept(), [f"replica-{number}" for number in range(5)]

    def note(at: float) -> None:
        kinds = [SlotKind("workers", name, "shape") for name in replicas]
        held: Slots = Slots({Slot(kind, "n1"): 2 for kind in kinds})
        nonlocal clocks
        clocks = clocks.going_on(held, Moment(at, "2026-01-01T00:00:00Z"), 100)

    note(0)
    for at in range(10, 100, 20):
        replicas.remove(min(replicas))
        note(at)
        replicas.append(f"replica-{at}")
        note(at + 10)
    make = ("workers", "shape")
    assert clocks.over(99) == {}
    assert clocks.next_end == 100
    assert clocks.over(100) == {make: 8}
    assert clocks.over(200) == {make: 10}


def test_the_end_is_told_in_the_form_of_kubernetes() -> None:
    assert Start(7.0, "2026-01-01T23:55:00Z").end(600.0) == "2026-01-02T00:05:00Z"


def test_slots_that_end_at_different_times_are_told_by_the_last() -> None:
    world = running()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=60)
        lose_workers(world, 1)
        world.settle(seconds=120)
        text = "; 2 slots are kept for lost pods until 2026-01-01T00:13:00Z at the latest"
        assert text in world.status("a")["message"]


def test_nothing_ends_on_what_cannot_be_seen() -> None:
    world = running()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=60)
        world.leader.handle([WatchLost("raypods")])
        world.settle(seconds=PATIENCE.slot)
        assert slots(world) == 5
        world.leader.handle([WatchRecovered("raypods")])
        world.settle(seconds=1)
        assert slots(world) == 4


def test_a_pod_of_another_shape_does_not_end_the_slot_of_a_pod_that_may_yet_come() -> None:
    """Of two lost workers one came back, of another size; the other's slot is still its own."""
    world = running()
    world.edit("a", workerGroupSpecs=[group("workers", 4, cpu=2)])
    lose_workers(world, 2)
    world.kuberay()
    late = [pod for pod in world.pods("a") if not pod["spec"].get("nodeName")]
    world.api.remove(key_of(late[0]))
    world.kuberay = lambda: None  # type: ignore[method-assign]
    world.settle(seconds=60)
    assert kept(world) == {"workers": 1}


def replaced_by_held(world: World) -> None:
    """Have KubeRay replace all workers by pods that a gate of others holds too."""
    held = group("workers", 4, schedulingGates=[{"name": "tenant/x"}])
    world.edit("a", workerGroupSpecs=[held])
    lose_workers(world, 4)


def without_held_gates(obj: Json) -> None:
    gates = obj["spec"].get("schedulingGates", [])
    obj["spec"]["schedulingGates"] = [each for each in gates if each["name"] != "tenant/x"]


def test_slots_of_replacements_that_gates_of_others_hold_end_too() -> None:
    """Those gates may stay for ever, and a gated pod costs its tenant no CPU."""
    world = running()
    replaced_by_held(world)
    world.settle(seconds=PATIENCE.slot - 1)
    assert (kept(world), slots(world), world.bound("b")) == ({"workers": 4}, 5, {})
    world.settle(seconds=30)
    assert (kept(world), slots(world), world.bound("b")) == ({}, 1, {"n1": 2})
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "BelowMinimum")
    assert "still held by other gates" in status["message"]
    for pod in world.pods("a"):
        world.api.change(pod, without_held_gates)
    world.settle(seconds=60)
    assert (world.gated("a"), world.status("a")["reason"]) == (2, "BelowMinimum"), "two of four fit"
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 5}


def test_a_replacement_whose_other_gates_go_in_time_takes_its_slot() -> None:
    world = running()
    replaced_by_held(world)
    world.settle(seconds=PATIENCE.slot - 60)
    for pod in world.pods("a"):
        world.api.change(pod, without_held_gates)
    world.settle(seconds=120)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 5}, {})
