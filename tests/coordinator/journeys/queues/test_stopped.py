"""Queues that their admin stops: nothing new is admitted, and with HoldAndDrain what runs ends."""

import pytest

from coordinator.messages.actions import EvictPod, SuspendRayJob
from tests.coordinator.builders import Json, gang_of, group, node, ray_cluster, template
from tests.coordinator.journeys.preemption.worlds import PDB, evicted
from tests.coordinator.journeys.queues.worlds import (
    active,
    change,
    gang_in,
    phases,
    queue,
    reserved,
    status_of,
)
from tests.coordinator.journeys.test_stopped_jobs import SHUTDOWN, set_spec, with_job
from tests.coordinator.stopping import act_until, condition, ending, names_of
from tests.coordinator.world import World

HOLD = "GangQueue team is stopped (spec.stop: Hold)"
DRAIN = "GangQueue team is stopped (spec.stop: HoldAndDrain)"


def team(*gangs: Json, cpu: int = 20, **spec: object) -> World:
    """A queue below another one, with gangs that run."""
    world = World(node("n1", cpu=cpu), queue("all"), queue("team", cpu=10, parent="all", **spec))
    world.create(*gangs)
    world.settle(seconds=10)
    return world


def reasons(world: World, *gangs: str) -> list[str]:
    return [world.status(each)["reason"] for each in gangs]


def test_a_stopped_queue_admits_nothing_new_and_leaves_what_runs() -> None:
    world = team(gang_in("team", "a", 1))
    change(world, "team", stop="Hold")
    world.create(gang_in("team", "b", 1))
    world.settle(seconds=10)
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert (world.status("b")["reason"], world.status("b")["message"]) == ("QueueStopped", HOLD)
    assert reserved(world, "b") == ("False", "QueueStopped")
    assert active(world, "team") == ("False", "Stopped", HOLD)
    assert status_of(world, "team")["pending"] == 1

    change(world, "team", stop="None")
    world.settle(seconds=10)
    assert phases(world, "a", "b") == ["Running", "Running"]
    assert active(world, "team") == ("True", "Active", "")


def test_what_waited_before_the_stop_is_not_admitted_after_it() -> None:
    world = team(gang_in("team", "a", 8))
    world.create(*(gang_in("team", f"w{at}", 5) for at in range(3)))
    world.settle(seconds=10)
    change(world, "team", stop="Hold")
    world.delete("rayclusters", "a")
    world.settle(seconds=10)
    assert reasons(world, "w0", "w1", "w2") == ["QueueStopped"] * 3


@pytest.mark.parametrize(
    ("above", "below", "told"),
    [
        ("Hold", "None", "Hold of GangQueue all above it)"),
        ("Hold", "Hold", "Hold)"),
        ("HoldAndDrain", "Hold", "HoldAndDrain of GangQueue all above it)"),
    ],
)
def test_queues_below_a_stopped_one_are_stopped_too(above: str, below: str, told: str) -> None:
    world = team()
    change(world, "team", stop=below)
    change(world, "all", stop=above)
    world.create(gang_in("team", "b", 1))
    world.settle(seconds=10)
    message = world.status("b")["message"]
    assert message == f"GangQueue team is stopped (spec.stop: {told}"
    assert active(world, "team") == ("False", "Stopped", message)


def test_a_running_gang_is_repaired_in_a_stopped_queue_and_does_not_grow() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=1), queue("team", cpu=10))
    world.create(gang_in("team", "a", 2))
    world.settle(seconds=10)
    change(world, "team", stop="Hold")
    lost = next(p for p in world.pods("a") if p["spec"].get("nodeName") == "n2")
    world.delete("nodes", "n2", namespace="")
    world.delete("pods", lost["metadata"]["name"])
    world.create(node("n3", cpu=5))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2, "n3": 1}

    world.scale("a", 4)
    world.settle(seconds=20)
    assert sum(world.bound("a").values()) == 3
    assert HOLD in world.status("a")["message"]


def test_others_borrow_the_quota_of_a_stopped_queue_and_its_gangs_reclaim_nothing() -> None:
    world = World(
        node("n1", cpu=4),
        queue("all"),
        queue("team", cpu=4, parent="all", preemption={"reclaim": "Any"}),
        queue("guest", cpu=0, parent="all"),
    )
    change(world, "team", stop="Hold")
    world.create(gang_in("team", "owner", 3), gang_in("guest", "g", 3))
    world.settle(seconds=20)
    assert phases(world, "owner", "g") == ["Queued", "Running"]
    assert evicted(world) == []

    change(world, "team", stop="None")
    world.settle(seconds=60)
    assert phases(world, "owner", "g") == ["Running", "Queued"]


def test_what_a_stopped_queue_has_borrowed_is_reclaimed_from_it() -> None:
    world = World(
        node("n1", cpu=4),
        queue("all"),
        queue("owner", cpu=4, parent="all", preemption={"reclaim": "Any"}),
        queue("guest", cpu=0, parent="all"),
    )
    world.create(gang_in("guest", "g", 3))
    world.settle(seconds=10)
    change(world, "guest", stop="Hold")
    world.create(gang_in("owner", "o", 3))
    world.settle(seconds=60)
    assert phases(world, "o", "g") == ["Running", "Queued"]
    assert reasons(world, "g") == ["QueueStopped"]


# ---- drained


def test_a_drained_queue_stops_what_runs_whole_and_takes_it_back_when_it_goes_on() -> None:
    world = team(gang_in("team", "a", 1), gang_in("team", "b", 2))
    change(world, "team", stop="HoldAndDrain")
    world.settle(seconds=20)
    assert (world.gated("a"), world.gated("b")) == (2, 3)
    assert phases(world, "a", "b") == ["Queued", "Queued"]
    assert reasons(world, "a", "b") == ["QueueStopped"] * 2
    told = condition(world, "a", "Evicted")
    assert (told["status"], told["reason"], told["message"]) == ("True", "QueueStopped", DRAIN)
    assert status_of(world, "team")["usage"] == {"cpu": "0m"}

    change(world, "team", stop="None")
    world.settle(seconds=20)
    assert phases(world, "a", "b") == ["Running", "Running"]


def urgent_in_team(name: str, priority: int) -> Json:
    more = gang_in("team", name, 1)["metadata"]["labels"]
    workers = group("workers", 1, priority=priority)
    return ray_cluster(name, workers, head=template(priority=priority), labels=more)


def test_gangs_are_drained_in_the_order_of_preemption() -> None:
    """What no quota of their own covers, then the lowest priority, then the newest."""
    world = team(urgent_in_team("high", 10), cpu=40)
    change(world, "all", quota={"cpu": "20"})
    for gang in (gang_in("team", "wide", 9), gang_in("team", "old", 1), gang_in("team", "new", 1)):
        world.create(gang)
        world.settle(seconds=10)
    change(world, "team", stop="HoldAndDrain")
    world.settle(seconds=20)
    first = {name.rsplit("-", 2)[0].split("-")[0]: None for name in evicted(world)}
    assert list(first) == ["wide", "new", "old", "high"]


def test_a_rayjob_of_a_drained_queue_is_suspended_and_resumed() -> None:
    world = with_job(**SHUTDOWN)
    world.delete("rayclusters", "p")
    change(world, "team", stop="HoldAndDrain")
    world.settle(seconds=30)
    sent = [type(each) for each in world.leader.log]
    assert (sent.count(SuspendRayJob), sent.count(EvictPod)) == (1, 0)
    assert reasons(world, "job-2") == ["QueueStopped"]
    change(world, "team", stop="None")
    world.settle(seconds=30)
    assert world.status("job-2")["phase"] == "Running"


def test_a_rayjob_that_would_be_lost_runs_on_in_a_drained_queue_and_says_why() -> None:
    world = with_job()
    change(world, "team", stop="HoldAndDrain")
    world.settle(seconds=30)
    assert evicted(world) == []
    status = world.status("job-1")
    assert status["phase"] == "Running"
    assert status["message"].startswith(
        f"the minimum is ready; {DRAIN}, but this gang runs on: RayJob job would be lost"
    )
    set_spec(world, **SHUTDOWN)
    world.settle(seconds=30)
    assert any(isinstance(each, SuspendRayJob) for each in world.leader.log)


def test_a_gang_that_a_budget_protects_is_drained_once_that_lets_it_go() -> None:
    world = team(gang_in("team", "a", 1))
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("a")), PDB))
    change(world, "team", stop="HoldAndDrain")
    world.settle(seconds=20)
    assert world.bound("a") == {"n1": 2}
    assert f"{DRAIN}, but this gang runs on: {PDB}" in world.status("a")["message"]
    world.api.budgets.clear()
    world.settle(seconds=100)
    assert world.gated("a") == 2


def test_a_gang_of_which_nothing_is_gone_runs_on_when_the_drain_is_called_off() -> None:
    world = team(gang_in("team", "a", 1))
    change(world, "team", stop="HoldAndDrain")
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    act_until(world, lambda: ending(world, "a"))
    change(world, "team", stop="Hold")
    leader.hear_all()
    world.api.budgets.update(dict.fromkeys(names_of(world.pods("a")), PDB))
    world.settle(seconds=20)
    assert (phases(world, "a"), world.bound("a")) == (["Running"], {"n1": 2})
    assert condition(world, "a", "Evicted") == {}


def test_a_new_leader_goes_on_with_a_drain() -> None:
    world = World(node("n1", cpu=20), queue("team", cpu=10), replicas=2)
    world.create(gang_in("team", "a", 1))
    world.settle(seconds=10)
    change(world, "team", stop="HoldAndDrain")
    world.leader.hear_all()
    world.leader.cycle()
    act_until(world, lambda: ending(world, "a"))
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=20)
    assert (phases(world, "a"), world.gated("a")) == (["Queued"], 2)


def test_a_gang_that_another_one_was_to_stop_is_drained_once() -> None:
    """The other one is of a queue that is not stopped, and gets the room."""
    lower = {"withinQueue": "LowerPriority"}
    world = World(node("n1", cpu=2), queue("team", cpu=10), queue("other", preemption=lower))
    world.create(gang_in("team", "a", 1), gang_of("out", 0))
    world.settle(seconds=10)
    change(world, "team", stop="HoldAndDrain")
    world.create(gang_in("other", "b", 1))
    world.settle(seconds=20)
    assert phases(world, "a", "b") == ["Queued", "Running"]
    assert len(evicted(world)) == 2
