"""Aged borrowers, and quota that a queue has lent."""

import pytest

from scheduling.model.node import Node
from scheduling.model.queue import Queue
from scheduling.model.verdict import Admitted
from tests.builders import GPU, node
from tests.scheduling.backfill.cycles import NODES, asks, decide, holds, said, team

COMPANY = (
    Queue("all"),
    Queue("research", "all", {GPU: 10}),
    Queue("product", "all", {GPU: 6}),
    Queue("students", "all", {GPU: 0}),
)


def test_an_aged_borrower_does_not_come_before_guaranteed_quota() -> None:
    student = asks("student", 14, queue="students")
    verdicts, _ = decide(
        COMPANY, student, asks("within", 4, queue="research", created=5), aged=[student]
    )
    assert isinstance(verdicts["within"], Admitted)


def test_an_aged_borrower_that_waits_for_room_lets_guaranteed_quota_pass() -> None:
    """Nodes have 13 GPUs: the borrower waits for them, others of the queue behind it."""
    student = asks("student", 14, queue="students")
    verdicts, _ = decide(
        COMPANY,
        student,
        asks("second", 1, queue="students", created=1),
        asks("borrows", 8, queue="product", created=5),
        asks("within", 4, queue="research", created=6),
        running=[holds("small", {"n1": 2}, queue="product")],
        nodes=(*NODES[:1], node("n2", gpu=7)),
        aged=[student],
    )
    assert isinstance(verdicts["within"], Admitted)


LENDER = asks("lender", 4, queue="lender")
LENDING = (
    Queue("all"),
    Queue("lender", "all", {GPU: 4}),
    Queue("other", "all", {GPU: 2}),
    Queue("guest", "all", {GPU: 0}),
)


BY_GUESTS = [holds("g", {"n1": 3}, queue="guest")]
"""Of six GPUs of quota the guests hold three, so that the lender's four are not all there."""


@pytest.mark.parametrize(
    ("queue", "pods", "nodes", "passes"),
    [
        ("guest", 1, NODES, False),
        ("other", 3, NODES, False),  # it would borrow one
        ("other", 2, NODES, True),  # its own quota covers it
        ("lender", 1, NODES, True),  # in its own queue others pass until it has aged
        ("guest", 1, (node("n1", gpu=6),), True),  # the nodes could not take the lender's gang
    ],
)
def test_quota_that_a_queue_has_lent_is_kept_for_its_own_gang_from_those_that_borrow(
    queue: str, pods: int, nodes: tuple[Node, ...], *, passes: bool
) -> None:
    passer = asks("p", pods, queue=queue, created=1)
    verdicts, _ = decide(LENDING, LENDER, passer, running=BY_GUESTS, nodes=nodes)
    assert said(verdicts["lender"]).startswith("QuotaExceeded")
    assert isinstance(verdicts["p"], Admitted) == passes


def test_who_may_not_borrow_because_the_lender_waits_is_told_so() -> None:
    passer = asks("p", 1, queue="guest", created=1)
    verdicts, _ = decide(LENDING, LENDER, passer, running=BY_GUESTS)
    assert said(verdicts["p"]) == (
        "QueueBlocked: there is room, but team/lender waits for quota that its own queue has lent, "
        "so nothing more of it is borrowed"
    )


def test_an_aged_gang_is_decided_before_other_queues_that_need_as_little_to_borrow() -> None:
    queues = [team(gpus=16), Queue("b", quota={GPU: 16})]
    old, other = asks("old", 10, created=5), asks("other", 10, queue="b", created=1)
    verdicts, _ = decide(queues, old, other, aged=[old])
    assert isinstance(verdicts["old"], Admitted)
    verdicts, _ = decide(queues, old, other, passed=[old])
    assert isinstance(verdicts["other"], Admitted), "passes count in the queue alone"
