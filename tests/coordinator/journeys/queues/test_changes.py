"""Queues that change, come and go while gangs wait or run in them."""

import pytest

from coordinator.reconcile.advance import advance
from coordinator.reconcile.look import Look
from coordinator.state import agenda, gang_looks
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import gang_of, node
from tests.coordinator.journeys.queues.worlds import (
    active,
    change,
    found,
    gang_in,
    name_queue,
    phases,
    queue,
    reserved,
    status_of,
)
from tests.coordinator.world import World


def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs that are looked at from now on, as they come."""
    found: list[str] = []

    def advance_and_note(look: Look) -> None:
        found.append(look.view.key.name)
        advance(look)

    monkeypatch.setattr(gang_looks, "advance", advance_and_note)
    return found


def two_waiting() -> World:
    """Two queues, in each a gang that waits for quota that the queue above them does not have."""
    return World(
        node("n1", cpu=100),
        queue("all", cpu=2),
        queue("red", parent="all"),
        queue("blue", parent="all"),
        gang_in("red", "a", 4),
        gang_in("blue", "b", 4),
    )


def test_a_change_of_quota_has_no_gang_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world = two_waiting()
    world.settle(seconds=100)
    seen = looked_at(monkeypatch)
    change(world, "all", quota={"cpu": "3"})
    world.leader.hear_all()
    assert seen == []
    world.settle(seconds=100)
    assert "at most 3 cpu" in world.status("a")["message"], "the next cycle goes by it"


def test_a_change_of_what_a_queue_says_to_its_gangs_has_those_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = two_waiting()
    world.settle(seconds=100)
    seen = looked_at(monkeypatch)
    change(world, "red", timeouts={"readySeconds": 60})
    world.leader.hear_all()
    assert seen == ["a"]
    change(world, "red", namespaceSelector={"matchLabels": {"team": "red"}})
    world.leader.hear_all()
    assert seen == ["a", "a", "b"], "each may use other queues"


def test_where_many_gangs_are_looked_at_others_are_decided_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agenda, "AT_ONCE", 1)
    world = World(node("n1", cpu=4), queue("red"))
    world.create(*(gang_in("red", f"g{at}", 8) for at in range(6)))
    world.settle(seconds=100)
    world.create(gang_in("red", "small", 1))
    world.controllers()
    world.leader.hear_all()
    world.leader.act_all()
    seen = looked_at(monkeypatch)
    change(world, "red", timeouts={"readySeconds": 60})
    world.leader.hear_all()
    world.leader.cycle()
    world.leader.act_all()
    assert world.status("small")["placement"]
    assert {f"g{at}" for at in range(6)} - {*seen}
    world.settle(seconds=1)
    assert {f"g{at}" for at in range(6)} <= {*seen}


def test_a_gang_that_was_not_looked_at_yet_is_not_admitted_to_a_queue_that_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agenda, "AT_ONCE", 1)
    world = World(node("n1", cpu=8), queue("all"), queue("red", cpu=99, parent="all"))
    world.create(gang_in("red", "old", 7))
    world.settle(seconds=10)
    waiting = [f"g{at}" for at in range(6)]
    world.create(*(gang_in("red", name, 1) for name in waiting))
    world.settle(seconds=100)
    change(world, "red", lendingLimit={"cpu": "100"})
    world.delete("rayclusters", "old")
    world.settle(seconds=10)
    assert phases(world, *waiting) == ["Queued"] * 6
    assert {world.status(name)["reason"] for name in waiting} == {"QueueInactive"}


def test_gangs_of_a_queue_without_its_parent_wait_until_that_comes() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4, parent="all"))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)

    message = "spec.parent: there is no GangQueue 'all'"
    assert active(world, "team") == ("False", "MissingParent", message)
    assert status_of(world, "team")["pending"] == 1
    assert world.status("a")["reason"] == "QueueInactive"
    assert world.status("a")["message"] == f"GangQueue team is not active: {message}"
    assert reserved(world, "a") == ("False", "QueueInactive")

    world.create(queue("all", cpu=0))
    world.settle(seconds=10)
    assert active(world, "team") == ("True", "Active", "")
    assert phases(world, "a") == ["Running"]
    assert status_of(world, "team")["admitted"] == 1


def test_a_quantity_that_cannot_be_read_opens_no_other_queue_to_its_gangs() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_of("a", 9))
    world.settle(seconds=10)
    assert phases(world, "a") == ["Queued"]

    change(world, "team", quota={"cpu": "9999999999999999999999"})
    world.settle(seconds=20)
    assert (phases(world, "a"), world.bound("a")) == (["Queued"], {})
    assert world.status("a")["reason"] == "QueueInactive"
    assert world.gang("a")["spec"]["queue"] == "team"


@pytest.mark.parametrize("named", [{}, {names.QUEUE: "team"}])
def test_a_misconfigured_gang_is_in_the_queue_that_it_asks_for(named: dict[str, str]) -> None:
    """In its record as in the metrics; its namespace selects that queue, or it names it."""
    world = World(node("n1", cpu=16), queue("team", cpu=8))
    world.create(gang_of("a", 2, annotations={names.MIN_REPLICAS: "none=1", **named}))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "Misconfigured"
    assert world.gang("a")["spec"]["queue"] == "team"
    told = {each["type"]: each for each in world.status("a")["conditions"]}["QuotaReserved"]
    assert (told["status"], told["reason"]) == ("False", "Misconfigured")
    assert [queue for queue, *_ in world.leader.state.known.term.counts.gangs] == ["team"]


def test_a_queue_that_goes_while_gangs_wait_in_it_leaves_them_to_others() -> None:
    """One that named it is told that it is gone; one that did not goes to the default queue."""
    world = World(node("n1", cpu=100), queue("team", cpu=1))
    world.create(gang_in("team", "named", 3), gang_of("unnamed", 3))
    world.settle(seconds=10)
    assert phases(world, "named", "unnamed") == ["Queued", "Queued"]
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle(seconds=10)
    assert not list(world.api.all("gangqueues"))
    assert phases(world, "unnamed") == ["Running"]
    assert world.status("named")["reason"] == "Misconfigured"
    assert "GangQueue team does not exist" in world.status("named")["message"]

    world.create(queue("team", cpu=8))
    world.settle(seconds=10)
    assert phases(world, "named") == ["Running"]


def test_gangs_wait_again_when_a_parent_goes_and_start_when_it_comes_back() -> None:
    world = World(node("n1", cpu=100), queue("all", cpu=8), queue("team", cpu=0, parent="all"))
    world.create(gang_in("team", "a", 5))
    world.settle(seconds=10)
    world.api.hold(found(world, "all"))
    world.api.delete(Key("gangqueues", "", "all"))
    world.create(gang_in("team", "b", 1))
    world.settle(seconds=10)
    assert not [each for each in world.api.all("gangqueues") if each["metadata"]["name"] == "all"]
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert world.status("b")["reason"] == "QueueInactive"

    world.create(queue("all", cpu=7))
    world.settle(seconds=10)
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert world.status("b")["reason"] == "QuotaExceeded"
    change(world, "all", quota={"cpu": "8"})
    world.settle(seconds=10)
    assert phases(world, "b") == ["Running"]


def test_a_queue_that_moves_below_another_parent_takes_what_that_one_has() -> None:
    small, large = queue("small", cpu=1), queue("large", cpu=100)
    world = World(node("n1", cpu=100), small, large, queue("team", cpu=0, parent="small"))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert phases(world, "a") == ["Queued"]
    change(world, "team", parent="large")
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]
    assert status_of(world, "large")["summary"] == "cpu 4/100"
    change(world, "team", parent="small")
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]
    assert status_of(world, "small")["summary"] == "cpu 4/1"


def test_a_gang_stays_in_the_queue_that_it_was_admitted_in() -> None:
    world = World(node("n1", cpu=100), queue("red", cpu=4), queue("blue", cpu=4), replicas=2)
    world.create(gang_in("red", "a", 3))
    world.settle(seconds=10)
    name_queue(world, "a", "blue")
    world.create(gang_in("red", "b", 3))
    world.settle(seconds=20)
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert (
        'muster.dev/queue: "blue" is not valid; allowed: red: the queue of an admitted gang cannot '
        "be changed"
    ) in world.status("a")["message"]

    world.leader.resign()
    world.elect(1)
    world.settle(seconds=20)
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert status_of(world, "red")["summary"] == "cpu 4/4"
    assert world.gang("a")["status"]["placement"]["queue"] == "red"


def test_a_gang_that_waits_may_go_to_another_queue() -> None:
    world = World(node("n1", cpu=100), queue("red", cpu=1), queue("blue", cpu=4))
    world.create(gang_in("red", "a", 3))
    world.settle(seconds=10)
    assert phases(world, "a") == ["Queued"]
    name_queue(world, "a", "blue")
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]
    assert status_of(world, "blue")["summary"] == "cpu 4/4"


def test_pods_of_an_earlier_ray_cluster_stay_with_its_queue_until_they_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(node("n1", cpu=100), queue("red", cpu=4), queue("blue", cpu=100))
    world.create(gang_in("red", "a", 3))
    world.settle(seconds=10)
    with monkeypatch.context() as slow:
        slow.setattr(world, "kubelets", lambda: None)
        _replace_while_pods_end(world)
    world.settle(seconds=10)
    assert phases(world, "a", "b") == ["Running", "Running"]


def _replace_while_pods_end(world: World) -> None:
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    world.create(gang_in("blue", "a", 1), gang_in("red", "b", 3))
    world.settle(seconds=10)
    assert status_of(world, "red")["summary"] == "cpu 4/4"
    assert phases(world, "b") == ["Queued"]
