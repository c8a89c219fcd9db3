"""Who has the quota that a gang lacks: the refusal's own words are read, and queues and Gangs."""

from typing import Any

import pytest

from cli.report.queue_usage import usage_of
from cli.report.queues import queues_report
from cli.report.quota_holders import QuotaHolders
from cli.report.snapshot import QUEUES, Snapshot, Unread
from cli.report.why import Case, why_report
from kube.objects.queues.queue import GangQueue
from scheduling.diagnosis.quota_refusals import lacked, over_quota
from tests.cli.objects import GPU, gang, placement, queue


def company(used: int, others: int, **preemption: str) -> tuple[GangQueue, ...]:
    """Research has 80 GPUs, product 48 and students none; the last has `others` of them."""
    rules = {"rules": {"preemption": preemption}} if preemption else {}
    return (
        queue("company", usage={GPU: str(used + others)}),
        queue("product", {GPU: 48}, "company", usage={GPU: "0"}),
        queue("research", {GPU: 80}, "company", usage={GPU: str(used)}, **rules),
        queue("students", {GPU: 0}, "company", usage={GPU: str(others)}),
    )


def refusal(queues: tuple[GangQueue, ...], needs: int) -> str:
    """What the coordinator says to a gang of research that needs so many GPUs."""
    usage = usage_of(queues)
    assert usage is not None
    tree, used = usage
    at, demand = tree.index["research"], tree.requests({GPU: needs})
    return over_quota(tree, "research", demand, used[at], tree.available(used)[at]).message


def said(queues: tuple[GangQueue, ...], needs: int, *gangs: Any) -> tuple[str, ...]:
    found = Snapshot(queues=queues, gangs=gangs)
    return QuotaHolders(found).of("research", refusal(queues, needs))


HOLDERS = (
    gang("big", "Running", queue="students", placement=placement("students", a=4, b=2)),
    gang("small", "Running", queue="students", placement=placement("students", a=1)),
    gang("mine", "Running", placement=placement("research", a=5)),
    gang("tiny", "Running", placement=placement("research", gpus=1, a=1)),
    gang("apart", "Running", queue="other", placement=placement("other", a=9)),
    gang("waits"),
)


def test_who_borrows_and_who_holds_most_is_named() -> None:
    borrowed, held, _ = said(company(72, 56), 16, *HOLDERS)
    assert borrowed == f"borrowers of {GPU}: students 56"
    assert held == (
        f"largest holders of {GPU}: team/big (queue students) 48, team/mine (queue research) 40, "
        "team/small (queue students) 8 and 1 more"
    )


@pytest.mark.parametrize(
    ("queues", "needs", "expected"),
    [
        (company(72, 56), 8, "reclaim would help: the quota of queue research covers the gang"),
        (company(72, 56, reclaim="Never"), 8, "is Never; allowed: LowerPriority, Any"),
        (company(72, 56, reclaim="Any"), 8, "reclaim helps: preemption.reclaim of queue research"),
        (company(72, 56, reclaim="LowerPriority"), 8, "what borrows and has a lower priority"),
        (company(72, 56), 16, "queue research would use more than its 80 nvidia.com/gpu"),
        (company(128, 0), 16, "reclaim would not help: no other queue borrows"),
    ],
)
def test_whether_reclaim_would_help_is_said(
    queues: tuple[GangQueue, ...], needs: int, expected: str
) -> None:
    assert expected in said(queues, needs)[-1]


def test_the_quota_of_a_queue_above_covers_a_gang_too() -> None:
    queues = (
        queue("company", usage={GPU: "128"}),
        queue("team", {GPU: 80}, "company", usage={GPU: "72"}),
        queue("research", parent="team", usage={GPU: "72"}),
        queue("students", {GPU: 48}, "company", usage={GPU: "56"}),
    )
    assert "the quota of queue team covers the gang" in said(queues, 8)[-1]


def test_nothing_is_said_where_queues_cannot_be_listed_or_no_quota_is_lacking() -> None:
    queues = company(72, 56)
    message = refusal(queues, 16)
    unread = Snapshot(queues=queues, unread=(Unread(QUEUES, "forbidden"),))
    assert QuotaHolders(unread).of("research", message) == ()
    assert QuotaHolders(Snapshot(queues=queues)).of("default", message) == ()
    assert QuotaHolders(Snapshot(queues=queues)).of("research", "2 of 4 workers fit") == ()


def test_amounts_are_read_as_they_were_written() -> None:
    queues = (queue("research", {"cpu": "4", "memory": "8Gi"}, usage={"cpu": "3500m"}),)
    usage = usage_of(queues)
    assert usage is not None
    tree, used = usage
    demand = tree.requests({"cpu": 1500, "memory": 9 * 2**30 + 1})
    message = over_quota(tree, "research", demand, used[0], tree.available(used)[0]).message
    assert "at most" in message
    assert lacked(message) == {}  # no end of others gives it that
    demand = tree.requests({"cpu": 1500, "memory": 2**30})
    message = over_quota(tree, "research", demand, used[0], tree.available(used)[0]).message
    assert lacked(message) == {"cpu": 1500}
    assert lacked(f"{message[:-1]}…") == {}  # cut: what it says is no amount any more
    assert lacked(f"{message}; its pods wait") == {"cpu": 1500}


def test_the_row_of_a_queue_has_it_for_its_first_gang_that_waits_for_quota() -> None:
    queues = company(72, 56)
    waiting = gang("train", reason="QuotaExceeded", message=refusal(queues, 16))
    rows = queues_report(Snapshot(queues=queues, gangs=(*HOLDERS, waiting))).queues
    held = {each.name: each.quota_held[:1] for each in rows}
    assert held["research"] == (f"borrowers of {GPU}: students 56",)
    assert held["product"] == ()


def test_why_has_it() -> None:
    queues = company(72, 56)
    waiting = gang("train", reason="QuotaExceeded", message=refusal(queues, 16))
    report = why_report(Snapshot(queues=queues, gangs=(*HOLDERS, waiting)), Case(waiting))
    assert report.quota[0] == f"borrowers of {GPU}: students 56"
