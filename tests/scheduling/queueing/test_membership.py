"""Which queue a gang waits in, by the name that it gives and the labels of its namespace."""

import pytest

from scheduling.model.constraints import Requirement
from scheduling.model.labels import selects
from scheduling.model.queue import DEFAULT_QUEUE, Queue
from scheduling.queueing import membership
from scheduling.queueing.membership import NotAllowed, Selections, choose_queue


def of_team(name: str, *teams: str) -> Queue:
    return Queue(name, namespaces=(Requirement("team", "In", teams),))


QUEUES = {
    each.name: each
    for each in (
        of_team("red", "red"),
        of_team("blue", "blue", "green"),
        of_team("shared", "green"),
        Queue("inner"),
    )
}


def choose(asked: str, team: str) -> str:
    found = choose_queue(asked, {"team": team}, Selections(QUEUES))
    return found.allowed if isinstance(found, NotAllowed) else found


def test_the_one_queue_that_selects_the_namespace_is_taken_unnamed() -> None:
    assert choose("", "red") == "red"


def test_a_namespace_that_no_queue_selects_uses_the_default_queue() -> None:
    assert choose("", "other") == DEFAULT_QUEUE
    assert choose(DEFAULT_QUEUE, "other") == DEFAULT_QUEUE


def test_of_several_queues_one_must_be_named() -> None:
    assert choose("shared", "green") == "shared"
    assert choose("", "green") == "one of the queues that select the namespace: blue, shared"


def test_a_queue_of_others_is_not_open() -> None:
    assert choose("blue", "red") == (
        "a queue that is open to the namespace: red (GangQueue blue does not select the namespace)"
    )


def test_a_queue_without_selector_takes_no_gangs() -> None:
    assert "GangQueue inner does not select the namespace" in choose("inner", "red")


def test_a_namespace_with_queues_cannot_leave_them_for_the_default_one() -> None:
    assert "open to the namespace: red" in choose(DEFAULT_QUEUE, "red")


def test_a_queue_that_is_not_there_is_told_so() -> None:
    assert choose("nope", "other").endswith("default (GangQueue nope does not exist)")


def test_selectors_are_asked_once_for_each_set_of_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a change of a thousand RayClusters would ask each of a thousand queues."""
    asked: list[object] = []

    def counted(requirements: tuple[Requirement, ...], labels: dict[str, str]) -> bool:
        asked.append(labels)
        return selects(requirements, labels)

    monkeypatch.setattr("scheduling.queueing.membership.selects", counted)
    found = Selections(QUEUES)
    assert [found.open_to({"team": team}) for team in ("red", "green", "red", "green")] == [
        ("red",),
        ("blue", "shared"),
        ("red",),
        ("blue", "shared"),
    ]
    assert len(asked) == 1 + 2, "and of others than those that may select it none"


def test_what_is_remembered_of_namespaces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership, "MOST_KEPT", 2)
    found = Selections(QUEUES)
    for at in range(20):
        assert found.open_to({"team": "red", "at": str(at)}) == ("red",)
    assert len(found._open) <= 2
