"""Gangs in queues with quota, and what the objects of the queues say."""

from typing import Any, cast

import pytest

from coordinator.messages.actions import (
    Action,
    WriteGangStatus,
    WriteQueueFinalizers,
    WriteQueueStatus,
)
from coordinator.messages.events import SightLost, SightRegained
from coordinator.queues.holes import EACH as HOLES_EACH
from coordinator.queues.write_budget import EACH, MOST, WINDOW
from coordinator.reconcile.advance import advance
from coordinator.reconcile.look import Look
from coordinator.state import agenda, gang_looks
from coordinator.state.cycle.cycle_input import line_up, queues_of
from kube.objects import names
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from tests.coordinator.api import Api, Key, Outcome
from tests.coordinator.builders import GPU, OPTED_IN, TEAM, Json, foreign_pod, gang_of, node
from tests.coordinator.world import WALL, World

QUEUE_WRITES = (WriteQueueStatus, WriteQueueFinalizers)
FINALIZER = "muster.dev/admitted-gangs"


def queue(name: str, cpu: int | None = None, **spec: object) -> Json:
    """A GangQueue that is open to every namespace."""
    rules = {"namespaceSelector": {}, **spec}
    if cpu is not None:
        rules["quota"] = {"cpu": str(cpu)}
    return {"kind": "GangQueue", "metadata": {"name": name}, "spec": rules}


def gang_in(queue_name: str, name: str, workers: int, **more: Any) -> Json:
    """A Ray cluster of 1 CPU for the head and for each worker, in a queue."""
    return gang_of(name, workers, labels={**OPTED_IN, names.QUEUE: queue_name}, **more)


def found(world: World, name: str) -> Json:
    return world.api.get(Key("gangqueues", "", name))


def status_of(world: World, name: str) -> Json:
    return cast(Json, found(world, name)["status"])


def active(world: World, name: str) -> tuple[str, str, str]:
    (condition,) = status_of(world, name)["conditions"]
    assert condition["type"] == "Active"
    return condition["status"], condition["reason"], condition.get("message", "")


def change(world: World, name: str, **spec: object) -> None:
    world.api.change(found(world, name), lambda obj: obj["spec"].update(spec))


def reserved(world: World, name: str) -> tuple[str, str]:
    """The condition QuotaReserved of a gang: its status and reason."""
    conditions = {each["type"]: each for each in world.status(name)["conditions"]}
    return conditions["QuotaReserved"]["status"], conditions["QuotaReserved"]["reason"]


def phases(world: World, *gangs: str) -> list[str]:
    return [world.status(each)["phase"] for each in gangs]


def queue_writes(actions: list[Action], name: str = "") -> list[WriteQueueStatus]:
    writes = [each for each in actions if isinstance(each, WriteQueueStatus)]
    return [each for each in writes if name in ("", each.name)]


# ---- gangs


def test_quota_holds_a_gang_back_until_another_one_ends() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "b", 2))
    world.settle(seconds=10)

    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert world.status("b")["reason"] == "QuotaExceeded"
    assert world.status("b")["message"] == (
        "queue team uses 4 of its quota of 4 cpu and may take 0 more, and the gang needs 3"
    )
    assert reserved(world, "a") == ("True", "Admitted")
    assert reserved(world, "b") == ("False", "QuotaExceeded")

    world.delete("rayclusters", "a")
    world.settle(seconds=10)
    assert phases(world, "b") == ["Running"]
    assert reserved(world, "b") == ("True", "Admitted")


def test_a_quota_that_is_raised_lets_a_waiting_gang_in() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=2))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert world.status("a")["reason"] == "QuotaExceeded"

    change(world, "team", quota={"cpu": "4"})
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]


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


def test_a_quota_that_is_lowered_ends_nothing() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    change(world, "team", quota={"cpu": "1"})
    world.settle(seconds=60)

    assert phases(world, "a") == ["Running"]
    assert world.bound("a") == {"n1": 4}
    assert status_of(world, "team")["summary"] == "cpu 4/1"
    assert status_of(world, "team")["borrowed"] == {"cpu": "3000m"}


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


def two_teams() -> World:
    """Two queues that share 8 CPUs."""
    queues = [queue("all"), queue("red", cpu=4, parent="all"), queue("blue", cpu=4, parent="all")]
    return World(node("n1", cpu=100), *queues)


def test_what_an_inactive_queue_has_borrowed_is_not_given_out_again() -> None:
    world = two_teams()
    world.create(gang_in("red", "a", 5))
    world.settle(seconds=10)
    change(world, "red", lendingLimit={"cpu": "5"})
    world.create(gang_in("blue", "b", 3), gang_in("blue", "c", 1))
    world.settle(seconds=10)
    assert active(world, "red")[:2] == ("False", "InvalidSpec")
    assert phases(world, "a", "b", "c") == ["Running", "Queued", "Running"]
    assert status_of(world, "all")["summary"] == "cpu 4/4 (and 4 kept below)"

    world.delete("rayclusters", "a")
    world.delete("rayclusters", "c")
    world.settle(seconds=10)
    assert phases(world, "b") == ["Running"]


def test_an_inactive_queue_lends_nothing_and_takes_nothing_from_others() -> None:
    world = two_teams()
    world.create(gang_in("red", "a", 1))
    world.settle(seconds=10)
    change(world, "red", lendingLimit={"cpu": "5"})
    world.create(gang_in("blue", "b", 3), gang_in("blue", "c", 0))
    world.settle(seconds=10)
    assert phases(world, "a", "b", "c") == ["Running", "Running", "Queued"]
    assert world.status("c")["reason"] == "QuotaExceeded"


def test_what_is_below_an_inactive_queue_counts_above_it() -> None:
    world = World(
        node("n1", cpu=100),
        queue("all", cpu=8),
        queue("red", cpu=0, parent="all"),
        queue("inner", cpu=0, parent="red"),
        queue("blue", cpu=0, parent="all"),
    )
    world.create(gang_in("inner", "a", 5))
    world.settle(seconds=10)
    change(world, "red", lendingLimit={"cpu": "9999999999999999999999"})
    world.create(gang_in("blue", "b", 3))
    world.settle(seconds=10)
    assert active(world, "inner")[:2] == ("False", "ParentNotActive")
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert status_of(world, "all")["summary"] == "cpu 6/8"


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


def name_queue(world: World, gang: str, queue_name: str) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, gang))
    labels = {names.QUEUE: queue_name}
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].update(labels))


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


def test_a_queue_whose_rules_name_no_quota_requires_none() -> None:
    world = World(node("n1", cpu=100), queue("team"))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    conditions = {each["type"]: each for each in world.status("a")["conditions"]}
    assert conditions["QuotaReserved"]["reason"] == "NotRequired"
    assert conditions["QuotaReserved"]["message"] == "queue team has no quota"


def test_quota_costs_a_gang_no_more_status_writes() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=60)
    assert sum(isinstance(each, WriteGangStatus) for each in world.leader.log) == 2


def test_nothing_is_decided_while_the_watch_of_queues_is_down() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.settle(seconds=10)
    before = [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)]
    world.leader.handle([SightLost("gangqueues")])
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    change(world, "team", quota={"cpu": "5"})
    world.settle(seconds=10)
    assert not world.leader.releases()
    assert [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)] == before

    world.leader.handle([SightRegained("gangqueues")])
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]
    assert status_of(world, "team")["admitted"] == 1


# ---- what the object of a queue says


def test_a_queue_says_what_waits_in_it_and_what_it_holds() -> None:
    world = World(
        node("n1", cpu=100),
        queue("all"),
        queue("red", cpu=4, parent="all"),
        queue("blue", cpu=4, parent="all"),
    )
    world.create(gang_in("red", "a", 5), gang_in("red", "b", 5))
    world.settle(seconds=20)

    red = status_of(world, "red")
    assert (red["pending"], red["admitted"]) == (1, 1)
    assert red["usage"] == {"cpu": "6000m"}
    assert red["borrowed"] == {"cpu": "2000m"}
    assert red["reserved"] == {"cpu": "0m"}
    assert red["summary"] == "cpu 6/4"
    assert status_of(world, "all")["summary"] == "cpu 6/8"
    assert (status_of(world, "all")["pending"], status_of(world, "all")["admitted"]) == (0, 0)
    assert status_of(world, "blue")["summary"] == "cpu 0/4"
    assert active(world, "red") == ("True", "Active", "")


def test_the_queue_above_says_what_those_below_it_use_of_its_quota() -> None:
    world = World(node("n1", cpu=100), queue("all"), queue("red", cpu=4, parent="all"))
    world.settle(seconds=20)
    world.create(gang_in("red", "a", 3))
    world.settle(seconds=20)
    assert status_of(world, "all")["summary"] == "cpu 4/4"


def test_surplus_of_a_gang_that_runs_does_not_count_as_waiting() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=20)
    world.scale("a", 5)
    world.settle(seconds=20)
    assert world.gated("a") == 2
    assert (status_of(world, "team")["pending"], status_of(world, "team")["admitted"]) == (0, 1)


def test_a_queue_and_the_one_above_it_never_contradict_each_other() -> None:
    """Although the one below was written a moment ago."""
    world = World(queue("a", parent="all"))
    world.settle(seconds=1.5)
    assert active(world, "a")[:2] == ("False", "MissingParent")
    world.create(queue("all"))
    world.settle(seconds=1.5)
    assert active(world, "all")[:2] == ("True", "Active")
    assert active(world, "a")[:2] == ("True", "Active")
    world.api.remove(Key("gangqueues", "", "all"))
    world.settle(seconds=1.5)
    assert active(world, "a")[:2] == ("False", "MissingParent")


def test_room_of_pods_that_are_not_bound_is_reserved() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.grudges.add("n1")
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert status_of(world, "team")["reserved"] == {"cpu": "4000m"}
    assert status_of(world, "team")["usage"] == {"cpu": "4000m"}
    world.grudges.clear()
    world.settle(seconds=60)
    assert status_of(world, "team")["reserved"] == {"cpu": "0m"}


def test_a_condition_keeps_the_time_of_its_change_and_names_the_generation() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.settle(seconds=10)
    (before,) = status_of(world, "team")["conditions"]
    change(world, "team", quota={"cpu": "5"})
    world.settle(seconds=10)
    (after,) = status_of(world, "team")["conditions"]
    assert (before["observedGeneration"], after["observedGeneration"]) == (1, 2)
    assert after["lastTransitionTime"] == before["lastTransitionTime"]

    change(world, "team", parent="none")
    world.settle(seconds=10)
    (inactive,) = status_of(world, "team")["conditions"]
    assert inactive["lastTransitionTime"] > before["lastTransitionTime"]


def conditions(world: World, name: str) -> dict[str, tuple[str, str]]:
    found = status_of(world, name)["conditions"]
    return {each["type"]: (each["status"], each["reason"]) for each in found}


def test_a_selector_that_matches_no_namespace_is_told_as_long_as_it_does_not() -> None:
    of_red = {"matchLabels": {"team": "red"}}
    world = World(node("n1"), queue("red", namespaceSelector=of_red), queue("inner"))
    change(world, "inner", namespaceSelector=None)
    world.settle(seconds=20)
    assert conditions(world, "red") == {
        "Active": ("True", "Active"),
        "NamespacesSelected": ("False", "NoNamespace"),
    }
    assert conditions(world, "inner") == {"Active": ("True", "Active")}

    before = len(queue_writes(world.leader.log))
    made = {"kind": "Namespace", "metadata": {"name": "r", "labels": {"team": "red"}}}
    world.create(made)
    world.settle(seconds=20)
    assert conditions(world, "red") == {"Active": ("True", "Active")}
    for at in range(20):
        name = f"more-{at}"
        world.create({"kind": "Namespace", "metadata": {"name": name, "labels": {"team": "red"}}})
        world.settle(seconds=1)
    world.settle(seconds=20)
    assert len(queue_writes(world.leader.log)) == before + 1

    world.api.delete(Key("namespaces", "", "r"))
    for at in range(20):
        world.api.delete(Key("namespaces", "", f"more-{at}"))
    world.settle(seconds=20)
    assert conditions(world, "red")["NamespacesSelected"] == ("False", "NoNamespace")


def test_a_node_selector_that_binds_no_pod_is_told() -> None:
    """Neither a queue above nor one below names a device."""
    world = World(node("n1"), queue("all", cpu=8), queue("team", cpu=4, parent="all"))
    change(world, "team", nodeSelector={"gpu": "a100"})
    world.settle(seconds=20)
    assert conditions(world, "team")["NodeSelectorUsed"] == ("False", "NoDeviceQuota")
    change(world, "all", quota={"nvidia.com/gpu": "8"})
    world.settle(seconds=20)
    assert conditions(world, "team") == {"Active": ("True", "Active")}
    change(world, "all", quota={"cpu": "8"})
    change(world, "team", nodeSelectorScope="All")
    world.settle(seconds=20)
    assert conditions(world, "team") == {"Active": ("True", "Active")}


def test_a_resource_that_queues_beside_have_quota_of_and_this_one_has_not_is_told() -> None:
    """It is unlimited there; a queue that takes no gangs of its own need not hear of it."""
    gpus = queue("gpus", parent="all", quota={GPU: "8"})
    world = World(queue("all"), queue("team", cpu=4, parent="all"), gpus, queue("apart", cpu=1))
    world.settle(seconds=10)
    told = {each["type"]: each for each in status_of(world, "team")["conditions"]}
    assert (told["ResourcesLimited"]["status"], told["ResourcesLimited"]["reason"]) == (
        "False",
        "UnlimitedResource",
    )
    assert told["ResourcesLimited"]["message"] == (
        f"spec.quota: {GPU} is unlimited in this queue, though another one below all has quota of "
        "it; allowed: an amount here or in a queue above, 0 for none"
    )
    assert "cpu is unlimited" in conditions_of(world, "gpus")["ResourcesLimited"]
    assert "ResourcesLimited" not in conditions_of(world, "apart")

    change(world, "all", quota={"cpu": "0", GPU: "0"})
    world.settle(seconds=20)
    assert "ResourcesLimited" not in conditions_of(world, "team")


def conditions_of(world: World, name: str) -> dict[str, str]:
    """The messages of a queue's conditions."""
    return {each["type"]: each.get("message", "") for each in status_of(world, name)["conditions"]}


def test_the_built_in_queue_is_not_written() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)
    assert phases(world, "a") == ["Running"]
    assert not [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)]


def aged(world: World, gang: str) -> bool:
    state, now = world.leader.state, world.api.now
    moment = Moment(now, "", WALL + now)
    line_up(state.known)
    return GangKey(TEAM, gang) in queues_of(state.known, moment).aged


def test_age_counts_from_the_time_when_the_whole_minimum_was_there() -> None:
    """A RayCluster that was suspended for long has not waited."""
    ageing = {"maxWaitSeconds": 100}
    world = World(node("n1", cpu=4), queue("team", cpu=100, ageing=ageing))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    late = gang_in("team", "b", 3)
    late["spec"]["suspend"] = True
    world.create(late)
    world.settle(seconds=200)
    world.edit("b", suspend=False)
    world.settle(seconds=20)
    assert (phases(world, "b"), aged(world, "b")) == (["Queued"], False)
    world.settle(seconds=120)
    assert aged(world, "b")


def test_a_gang_that_waits_for_surplus_alone_does_not_age() -> None:
    ageing = {"maxWaitSeconds": 100}
    world = World(node("n1", cpu=3), queue("team", cpu=100, ageing=ageing))
    world.create(gang_in("team", "a", 2, annotations={names.MIN_REPLICAS: "workers=2"}))
    world.settle(seconds=10)
    world.scale("a", 5)
    world.settle(seconds=200)
    assert world.gated("a") == 3
    assert not aged(world, "a")


def test_a_gang_that_waits_for_surplus_alone_has_no_position_before_others() -> None:
    world = World(node("n1", cpu=4), queue("team", cpu=100))
    world.create(gang_in("team", "a", 2, annotations={names.MIN_REPLICAS: "workers=2"}))
    world.settle(seconds=10)
    world.scale("a", 9)
    world.settle(seconds=10)
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=90)
    assert status_of(world, "team")["pending"] == 1
    assert world.status("b")["position"] == 1


# ---- writes


def test_a_queue_that_does_not_change_is_written_once() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.settle(seconds=300)
    assert len(queue_writes(world.leader.log)) == 1


def test_a_queue_is_written_at_most_once_in_some_seconds() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=50))
    for at in range(10):
        world.create(gang_in("team", f"gang-{at}", 1))
        world.settle(seconds=1)
    assert 1 < len(queue_writes(world.leader.log)) <= 1 + 10 / EACH
    world.settle(seconds=EACH)
    assert status_of(world, "team")["admitted"] == 10


def test_few_queues_are_written_within_a_second() -> None:
    """Each write takes its turn, and none is forgotten."""
    many = [queue(f"team-{at:02}", cpu=4) for at in range(4 * MOST)]
    world = World(node("n1"), *many)
    written = []

    def writes() -> list[Action]:
        return [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)]

    for _ in range(12):
        before = len(writes())
        world.settle(seconds=WINDOW)
        written.append(len(writes()) - before)
    assert max(written) <= 2 * MOST, "a span of a second may have the ends of two"
    assert len(writes()) == 2 * len(many)
    assert sum(written[:4]) <= 5 * MOST


@pytest.mark.parametrize("outcome", [Outcome.UNSENT, Outcome.LOST, Outcome.BROKEN])
def test_a_failed_write_is_tried_again(outcome: Outcome) -> None:
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    world.leader.act(outcome=outcome)
    world.settle(seconds=30)
    assert active(world, "team") == ("True", "Active", "")
    assert len(queue_writes(world.leader.log)) <= 2


def test_after_a_conflict_the_watch_is_waited_for() -> None:
    """A write on a version that is too old would fail again and again."""
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    world.api.change(found(world, "team"), lambda obj: obj["metadata"].update(labels={"a": "b"}))
    world.leader.act()
    for _ in range(20):
        world.api.now += 10
        world.leader.tick()
    assert len(queue_writes(world.leader.log)) == 1
    world.settle(seconds=30)
    assert len(queue_writes(world.leader.log)) == 2
    assert active(world, "team") == ("True", "Active", "")


def test_one_write_of_a_queue_is_under_way_at_a_time() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    for quota in range(5, 25):
        change(world, "team", quota={"cpu": str(quota)})
        world.leader.hear_all()
        world.api.now += 1
        world.leader.tick()
    assert len(queue_writes(world.leader.log)) == 1


def test_finalizers_that_cannot_be_written_are_tried_more_and_more_seldom() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    fail_writes_of_finalizers(world, seconds=100)
    tries = [each for each in world.leader.log if isinstance(each, WriteQueueFinalizers)]
    assert 5 < len(tries) < 25


def fail_writes_of_finalizers(world: World, *, seconds: int) -> None:
    leader = world.leader
    for _ in range(seconds):
        world.controllers()
        leader.hear_all()
        leader.tick()
        leader.cycle()
        while leader.todo:
            failing = isinstance(leader.todo[0], WriteQueueFinalizers)
            leader.act(outcome=Outcome.UNSENT if failing else Outcome.DONE)
        world.api.now += 1


def test_a_queue_that_goes_before_it_is_written_is_forgotten() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.leader.hear_all()
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle(seconds=10)
    assert not queue_writes(world.leader.log)


class OldApi(Api):
    """Has the CRD of an older release, which does not know the summary."""

    def _store(self, key: Key, obj: Json) -> Json:
        known = {name: said for name, said in obj.get("status", {}).items() if name != "summary"}
        return super()._store(key, {**obj, "status": known})

    def _update(self, key: Key, old: Json, asked: Json, subresource: str) -> Json:
        asked.get("status", {}).pop("summary", None)
        return super()._update(key, old, asked, subresource)


def test_what_an_older_schema_drops_is_not_written_over_and_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tests.coordinator.world.Api", OldApi)
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.settle(seconds=300)
    assert len(queue_writes(world.leader.log)) < 4
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=20)
    assert status_of(world, "team")["admitted"] == 1


def until_queue_write(world: World) -> None:
    """Go on until the leader is about to write the status of a queue."""
    leader = world.leader
    leader.hear_all()
    while not queue_writes(leader.todo):
        leader.act_all()
        leader.hear_all()
        world.api.now += 1
        leader.tick()
    assert len(leader.todo) == 1


def test_only_the_leader_writes_and_another_one_goes_on() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert not queue_writes(world.replicas[1].log)

    world.leader.resign()
    world.elect(1)
    world.settle(seconds=30)
    assert not queue_writes(world.replicas[1].log), "it says the same"
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=30)
    assert status_of(world, "team")["pending"] == 1
    assert status_of(world, "team")["admitted"] == 1


def test_a_replica_that_does_not_lead_asks_for_no_time() -> None:
    world = World(node("n1"), queue("team", cpu=4), replicas=2)
    other = world.replicas[1]
    other.hear_all()
    assert other.state.next_wake is None
    world.leader.act_all()
    world.leader.hear_all()
    assert world.leader.state.next_wake is not None
    world.leader.resign()
    assert world.leader.state.next_wake is None


def test_a_write_that_an_earlier_term_did_not_make_is_made_in_the_next() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    until_queue_write(world)
    world.leader.resign()
    world.elect(0)
    world.settle(seconds=10)
    assert active(world, "team") == ("True", "Active", "")


def test_gangs_that_ended_under_another_leader_are_counted_no_more() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=10)
    world.leader.resign()
    world.elect(1)
    world.delete("rayclusters", "a")
    world.delete("rayclusters", "b")
    world.settle(seconds=20)
    world.replicas[1].resign()
    world.elect(0)
    world.settle(seconds=20)
    assert not world.leader.state.known.quota.gangs
    assert (status_of(world, "team")["pending"], status_of(world, "team")["admitted"]) == (0, 0)


def test_a_new_leader_counts_pods_whose_ray_cluster_is_gone() -> None:
    """They hold quota as they hold nodes until they are gone."""
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.delete("rayclusters", "a")
    world.collect_garbage()
    assert not list(world.api.all("gangs"))
    new = world.elect(1)
    (by_uid,) = new.state.known.quota.gangs.values()
    (held,) = by_uid.values()
    assert (held.queue, held.amounts["cpu"]) == ("team", 4000)


# ---- deletion


def test_a_queue_goes_only_with_its_last_gang() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == [FINALIZER]

    world.api.delete(Key("gangqueues", "", "team"))
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=10)
    said = "the GangQueue is being deleted: it goes once none of its gangs holds anything"
    assert active(world, "team") == ("False", "Terminating", said)
    assert phases(world, "a", "b") == ["Running", "Queued"]
    assert world.status("b")["reason"] == "QueueInactive"

    world.delete("rayclusters", "a")
    world.settle()
    assert not list(world.api.all("gangqueues")), "it is not kept longer"


def test_a_queue_that_is_deleted_as_soon_as_its_first_gang_is_placed_stays() -> None:
    """Without the finalizer it would go, and what its gangs hold would count nowhere."""
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle()
    assert phases(world, "a") == ["Running"]
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle(seconds=10)
    assert active(world, "team")[:2] == ("False", "Terminating")


def test_a_queue_that_is_being_deleted_is_written_no_more_often() -> None:
    gangs = [f"gang-{at}" for at in range(8)]
    world = World(node("n1", cpu=100), queue("team", cpu=50))
    world.create(*(gang_in("team", name, 1) for name in gangs))
    world.settle(seconds=20)
    world.api.delete(Key("gangqueues", "", "team"))
    before = len(queue_writes(world.leader.log))
    for name in gangs[1:]:
        world.delete("rayclusters", name)
        world.settle(seconds=1)
    assert len(queue_writes(world.leader.log)) - before <= 1 + len(gangs) / EACH


def test_the_finalizer_is_not_put_on_a_queue_that_is_being_deleted() -> None:
    """The API server would refuse it."""
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    world.api.hold(found(world, "team"), FINALIZER, "example.com/theirs")
    world.api.delete(Key("gangqueues", "", "team"))
    world.api.hold(found(world, "team"), "example.com/theirs")
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == ["example.com/theirs"]


def opt_in(world: World, gang: str, said: str) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, gang))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].update({names.OPT_IN: said}))


@pytest.mark.parametrize("leader", [0, 1])
def test_a_gang_that_was_opted_out_comes_back_into_its_queue(leader: int) -> None:
    """The queue that it names meanwhile was not asked for what its pods use."""
    queues = queue("team", cpu=4), queue("other", cpu=1)
    world = World(node("n1", cpu=100), *queues, replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    opt_in(world, "a", "false")
    world.settle(seconds=20)
    name_queue(world, "a", "other")
    world.settle(seconds=10)
    if leader:
        world.leader.resign()
        world.elect(leader)
        world.settle(seconds=20)
    opt_in(world, "a", "true")
    world.settle(seconds=20)
    used = {name: status_of(world, name)["summary"] for name in ("team", "other")}
    assert used == {"team": "cpu 4/4", "other": "cpu 0/1"}
    assert world.status("a")["phase"] == "Running"


def test_a_gang_that_was_opted_out_holds_quota_while_its_pods_run() -> None:
    """Its record says in which queue, and goes with them."""
    world = World(node("n1", cpu=100), queue("team", cpu=4), replicas=2)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    opt_in(world, "a", "false")
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=20)
    told = world.status("a")
    assert (told["reason"], "placement" in told) == ("OptedOut", False)
    assert "counts in queue team" in told["message"]
    assert phases(world, "b") == ["Queued"]
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=20)
    assert (phases(world, "b"), world.bound("a")) == (["Queued"], {"n1": 4})
    assert status_of(world, "team")["summary"] == "cpu 4/4"

    world.edit("a", suspend=True)
    world.settle(seconds=20)
    assert not [each for each in world.api.all("gangs") if each["metadata"]["name"] == "a"]
    assert phases(world, "b") == ["Running"]


def test_a_gang_that_was_opted_out_does_not_hold_up_the_deletion_of_its_queue() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    opt_in(world, "a", "false")
    world.settle(seconds=20)
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle(seconds=10)
    assert not list(world.api.all("gangqueues"))
    assert not list(world.api.all("gangs"))
    assert world.bound("a") == {"n1": 4}


def test_a_queue_without_gangs_goes_at_once() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == [FINALIZER]
    world.api.delete(Key("gangqueues", "", "team"))
    world.settle()
    assert not list(world.api.all("gangqueues"))


def test_finalizers_of_others_stay() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.api.hold(found(world, "team"), "example.com/theirs")
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == ["example.com/theirs", FINALIZER]
    world.api.delete(Key("gangqueues", "", "team"))
    world.delete("rayclusters", "a")
    world.settle(seconds=10)
    assert found(world, "team")["metadata"]["finalizers"] == ["example.com/theirs"]


def test_a_running_gang_that_loses_a_node_is_repaired_before_a_blocked_one_in_a_strict_queue() -> (
    None
):
    """`big` came first and waits for n0, which a pod of others fills."""
    nodes = (node("n0", cpu=10), node("n1", cpu=2), node("n2", cpu=1))
    world = World(*nodes, foreign_pod("x", "n0", cpu=10), queue("team", cpu=100))
    world.create(gang_in("team", "big", 9))
    world.settle(seconds=2)
    world.create(gang_in("team", "small", 2))
    world.settle(seconds=10)
    assert phases(world, "big", "small") == ["Queued", "Running"]

    change(world, "team", whenBlocked="Strict")
    world.delete("nodes", "n2", namespace="")
    for pod in world.pods("small"):
        if pod["spec"].get("nodeName") == "n2":
            world.delete("pods", pod["metadata"]["name"])
    world.create(node("n3", cpu=1), gang_in("team", "behind", 0))
    world.settle(seconds=60)
    assert world.bound("small") == {"n1": 2, "n3": 1}
    assert world.status("behind")["reason"] == "QueueBlocked"


def test_gangs_that_run_in_a_queue_that_stopped_working_are_expected_to_end() -> None:
    world = World(node("n1", cpu=4), queue("team", cpu=4))
    lasts = {names.EXPECTED_DURATION: "10m"}
    world.create(gang_in("team", "a", 3, annotations=lasts))
    world.settle(seconds=10)
    change(world, "team", parent="none")
    world.settle(seconds=10)
    state, now = world.leader.state, world.api.now
    (holding,) = queues_of(state.known, Moment(now, "", WALL + now)).holdings()
    assert (holding.queue, holding.key) == ("team", GangKey(TEAM, "a"))
    assert holding.ends == pytest.approx(WALL + 600, abs=5)


# ---- gangs that the nodes could hold only without DaemonSets


def comes_with_node(kind: str, on: str) -> Json:
    """A pod of a DaemonSet, or of a static pod, which uses 100m."""
    pod = foreign_pod("agent", on, cpu="100m")
    owner = {"kind": kind, "name": on, "uid": on, "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod


@pytest.mark.parametrize("kind", ["DaemonSet", "Node"])
@pytest.mark.parametrize("rules", [{"whenBlocked": "Strict"}, {"ageing": {"maxWaitSeconds": 60}}])
def test_a_gang_that_asks_for_more_than_daemonsets_leave_holds_back_no_other(
    rules: dict[str, Any], kind: str
) -> None:
    """Neither in its Strict queue nor, once it has aged, in other queues."""
    world = World(node("n1", cpu=4), queue("team", **rules), queue("other"))
    world.create(comes_with_node(kind, "n1"), gang_in("team", "big", 3))
    world.settle(seconds=100)
    world.create(gang_in("team" if "whenBlocked" in rules else "other", "small", 0))
    world.settle(seconds=10)
    assert phases(world, "big", "small") == ["Queued", "Running"]
    assert "it holds back no other gang" in world.status("big")["message"]


def test_a_gang_holds_others_back_again_once_daemonsets_leave_enough() -> None:
    world = World(node("n1", cpu=4), queue("team", whenBlocked="Strict"))
    world.create(foreign_pod("x", "n1"), gang_in("team", "big", 3))
    world.settle(seconds=10)
    world.create(gang_in("team", "first", 0))
    world.settle(seconds=60)
    assert phases(world, "first") == ["Queued"]

    world.create(comes_with_node("DaemonSet", "n1"))
    world.settle(seconds=60)
    assert phases(world, "big", "first") == ["Queued", "Running"]

    world.api.remove(Key("pods", "others", "agent"))
    world.create(gang_in("team", "second", 0))
    world.settle(seconds=60)
    assert phases(world, "big", "second") == ["Queued", "Queued"]
    assert "holds back no other" not in world.status("big")["message"]

    world.api.remove(Key("pods", "others", "x"))
    world.delete("rayclusters", "first")
    world.settle(seconds=60)
    assert phases(world, "big") == ["Running"]


# ---- holes


def holes_of(world: World, name: str) -> list[int]:
    """The pods of 1, 2, 4 and 8 GPUs that fit, as the queue says."""
    return [each.get("pods", 0) for each in status_of(world, name).get("holes", ())]


def test_a_queue_says_how_many_pods_of_each_size_still_fit_on_its_nodes() -> None:
    world = World(
        node("red", gpu=8, cpu=64, labels={"model": "red"}),
        node("blue", gpu=4, cpu=64, labels={"model": "blue"}),
        queue("any"),
        queue("reds", quota={GPU: "2"}, nodeSelector={"model": "red"}),
    )
    world.settle(seconds=2 * HOLES_EACH)
    assert holes_of(world, "any") == [12, 6, 3, 1]
    assert holes_of(world, "reds") == [8, 4, 2, 1], "whatever its quota"
    world.create(foreign_pod("one", "red", gpu=3))
    world.settle(seconds=2 * HOLES_EACH)
    assert holes_of(world, "any") == [9, 4, 2, 0]
    assert holes_of(world, "reds") == [5, 2, 1, 0]


def test_pods_that_come_and_go_cost_few_writes_of_holes() -> None:
    """Five pods a second for a minute, of no gang; then nothing moves any more."""
    world = World(node("n", gpu=1000, cpu=2000, pods=2000), queue("a"), queue("b"), queue("c"))
    world.settle(seconds=10)
    writes = len(queue_writes(world.leader.log))
    for at in range(65):
        for each in range(5):
            world.create(foreign_pod(f"p{at}-{each}", "n", gpu=1, cpu="1m"))
        for each in range(5 if at % 3 else 0):
            world.delete("pods", f"p{at}-{each}", namespace="others")
        world.settle(seconds=1)
    made = len(queue_writes(world.leader.log)) - writes
    assert 3 <= made <= 3 * (65 / HOLES_EACH + 1)
    world.settle(seconds=2 * HOLES_EACH)
    made = len(queue_writes(world.leader.log))
    world.settle(seconds=10 * HOLES_EACH)
    assert len(queue_writes(world.leader.log)) == made
