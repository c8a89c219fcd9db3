"""What the commands say on a manager of AppWrappers that wait, are asked for, or were sent."""

import io
from collections.abc import Callable
from typing import Any

from rich.console import Console

from cli.report.queues import one_queue_report
from cli.report.snapshot import Snapshot
from cli.report.status import status_report
from cli.report.why import Case, why_report
from cli.show import queues, status, why
from tests.cli.objects import Json, gang, placement, queue

NOWHERE: Json = placement()
NOWHERE["podSets"][0]["assignments"][0]["nodes"] = {"": 2}

RECORD = {"attempt": 1, "term": 1}
REFUSALS = [{"cluster": "east", "message": "1 of 2 pods fit"}]

WAITS = gang("appwrapper.waits", position=1, reason="QuotaExceeded", message="8 GPUs lack")
ASKED = gang(
    "appwrapper-mcad.asked",
    "QuotaReserved",
    placement=NOWHERE,
    reason="QuotaReserved",
    dispatch={**RECORD, "phase": "Asked", "refusals": REFUSALS},
)
SENT = gang(
    "appwrapper.sent",
    "Running",
    placement=NOWHERE,
    dispatch={**RECORD, "phase": "Started", "cluster": "west"},
)
FOUND = Snapshot(gangs=(WAITS, ASKED, SENT), queues=(queue("research"),))


def printed(show: Callable[[Console], Any]) -> str:
    out = Console(file=io.StringIO(), width=200)
    show(out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_status_lists_those_that_wait_and_those_that_were_sent_with_their_cluster() -> None:
    report = status_report(FOUND)
    assert [each.name for each in report.waiting] == ["appwrapper.waits"]
    assert {each.name: each.cluster for each in report.placed} == {
        "appwrapper-mcad.asked": "",
        "appwrapper.sent": "west",
    }
    shown = printed(status.table(report, "table", 0.0))
    (row,) = (each for each in shown.splitlines() if "appwrapper.sent" in each)
    assert "west" in row


def test_queue_has_the_cluster_of_what_holds_its_quota() -> None:
    report = one_queue_report(FOUND, "research")
    assert [each.name for each in report.waiting] == ["appwrapper.waits"]
    assert {each.name: each.cluster for each in report.holding}["appwrapper.sent"] == "west"
    assert "west" in printed(queues.table(report, "table", 0.0))


def test_why_tells_of_one_before_its_turn_of_each_refusal_and_of_the_cluster() -> None:
    before, asked, sent = (
        printed(why.table(why_report(FOUND, Case(each)), "table", 0.0)) for each in FOUND.gangs
    )
    assert "QuotaExceeded: 8 GPUs lack" in before
    assert "refused by east: 1 of 2 pods fit" in asked
    assert "cluster west" in sent
    assert "refused" not in sent


def test_why_says_which_cluster_may_stop_gangs_until_it_is_on_one() -> None:
    leave = {"cluster": "east", "until": "2026-01-01T00:06:00Z"}
    for more, said in (
        ({"phase": "Asked"}, True),
        ({"phase": "Offered", "cluster": "west"}, False),
    ):
        found = gang("far", "QuotaReserved", dispatch={**RECORD, **more, "stopsGangs": leave})
        shown = printed(why.table(why_report(Snapshot(gangs=(found,)), Case(found)), "table", 0.0))
        words = "cluster east, another one from 2026-01-01T00:06:00Z on"
        assert (words in shown) is said
