"""What blocked gangs cost a cycle."""

from dataclasses import replace

import pytest

from scheduling.admission.gang import admit
from scheduling.admission.question import Outcome, Question, SearchSteps
from scheduling.backfill import outlook
from scheduling.backfill.reservations import Reservations
from scheduling.model.queue import Queue, WhenBlocked
from scheduling.model.verdict import Admitted, Verdict
from scheduling.queueing.order import QueueOrder
from tests.builders import GPU, gang, group, shape
from tests.scheduling.backfill.cycles import asks, decide, holds, said, team

walk = QueueOrder._walk


def delayed(count: int, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Verdict], int]:
    """Gangs of one kind that would delay the head, and how often a start was tried for it."""
    asked = []

    def counted(question: Question) -> Outcome:
        asked.append(question)
        return admit(question)

    monkeypatch.setattr(outlook, "admit", counted)
    waiting = [asks(f"g{at}", 2, created=1 + at, lasts=101 + at) for at in range(count)]
    short = replace(asks("short", 2, created=count + 2, lasts=100), priority=-1)
    verdicts, _ = decide(
        [team(WhenBlocked.BACKFILL)],
        asks("head", 16),
        *waiting,
        short,
        running=[holds("old", {"n1": 8}, ends=100)],
    )
    return verdicts, len(asked)


def test_gangs_that_ask_for_the_same_are_held_against_a_reservation_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few, tried = delayed(2, monkeypatch)
    many, tried_for_many = delayed(40, monkeypatch)
    assert tried_for_many == tried
    for verdicts in (few, many):
        assert isinstance(verdicts.pop("short"), Admitted)
        assert {said(each).split(":")[0] for name, each in verdicts.items() if name != "head"} == {
            "QueueBlocked"
        }
    assert "runs for 2m18s" in said(many["g37"])


def test_what_is_tried_for_a_blocked_gang_is_charged_to_the_cycle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent: list[int] = []
    monkeypatch.setattr(SearchSteps, "spend", lambda _, steps: spent.append(steps))
    decide(
        [team(WhenBlocked.BACKFILL)],
        asks("head", 16),
        asks("long", 1, created=1, lasts=200),
        running=[holds("old", {"n1": 8}, ends=100)],
    )
    assert len(spent) > 2, "the searches for both, and those for the start"


def test_only_queues_whose_turn_comes_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []

    def walk_and_count(order: QueueOrder, row: int, name: str) -> None:
        walked.append(name)
        walk(order, row, name)

    monkeypatch.setattr(QueueOrder, "_walk", walk_and_count)
    queues = [Queue("all", quota={GPU: 8}), *(Queue(f"q{at}", "all") for at in range(30))]
    waiting = [asks(f"g{at}", 8, queue=f"q{at % 30}", created=at) for at in range(90)]
    verdicts, _ = decide(queues, *waiting)
    assert [name for name, each in verdicts.items() if isinstance(each, Admitted)] == ["g0"]
    assert len(verdicts) == 90
    assert walked == ["q0"]


def test_thousands_of_equal_gangs_that_aged_keep_one_start_in_each_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(Reservations, "keep", lambda _, it: kept.append(it.claim.gang.key.name))
    waiting = [asks(f"g{at:02}", 8, created=at) for at in range(50)]
    decide(
        [team(gpus=8)],
        *waiting,
        asks("small", 1, created=99),
        running=[holds("old", {"n1": 1})],
        aged=waiting,
    )
    assert set(kept) == {"g00"}


def test_equal_units_of_a_surplus_are_counted_together_and_others_after_them() -> None:
    one, two, three = (group("workers", pods, shape(gpu=1)) for pods in (1, 2, 3))
    grows = replace(
        gang("g", group("workers", 1, shape(gpu=1)), surplus=((two,), (two,), (three,), (one,))),
        queue="a",
    )
    verdicts, _ = decide([team(gpus=6)], grows)
    grown = verdicts["g"]
    assert isinstance(grown, Admitted)
    assert grown.units == (0, 1, 3)
