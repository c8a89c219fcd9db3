"""The cluster at one glance: gangs by phase and reason, in all namespaces or one."""

import io

from rich.console import Console

from cli.report.snapshot import Snapshot
from cli.report.status import StatusReport, status_report
from cli.show.status import table
from tests.cli.objects import gang, node, placement

GANGS = (
    gang("a", position=2, reason="QuotaExceeded"),
    gang("b", position=1, reason="QuotaExceeded"),
    gang("c", "Gathering", reason="GangIncomplete"),
    gang("d", "Running", placement=placement(a=1)),
    gang("e", "Failed", reason="RetriesExhausted"),
    gang("f", namespace="elsewhere", position=1, reason="InsufficientResources"),
)


def printed(report: StatusReport) -> str:
    out = Console(file=io.StringIO(), width=200)
    table(report, "table", 0.0)(out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_gangs_are_counted_by_phase_and_those_that_wait_by_reason() -> None:
    report = status_report(Snapshot(gangs=GANGS, nodes=(node("a"),)))
    assert report.gangs == 6
    assert report.phases == {"Queued": 3, "Gathering": 1, "Running": 1, "Failed": 1}
    assert report.reasons == {"QuotaExceeded": 2, "GangIncomplete": 1, "InsufficientResources": 1}
    assert [each.name for each in report.waiting] == ["f", "b", "a", "c"]
    assert [[each.name for each in found] for found in (report.placed, report.failed)] == [
        ["d"],
        ["e"],
    ]


def test_gangs_that_are_over_are_counted_apart() -> None:
    over = gang("g", "Finished", reason="AppWrapperEnded")
    report = status_report(Snapshot(gangs=(*GANGS, over)))
    assert (report.gangs, report.finished) == (6, 1)
    assert "Finished" not in report.phases
    listed = [*report.waiting, *report.placed, *report.failed]
    assert "g" not in [each.name for each in listed]


def test_a_queue_narrows_the_gangs() -> None:
    found = Snapshot(gangs=(gang("a", queue="x"), gang("b", queue="y"), gang("c", queue="x")))
    report = status_report(found, queue="x")
    assert (report.gangs, [each.name for each in report.waiting]) == (2, ["a", "c"])


def test_a_gang_that_others_are_stopped_for_waits() -> None:
    report = status_report(Snapshot(gangs=(gang("for", "Preempting", position=1),)))
    assert [each.name for each in report.waiting] == ["for"]


def test_a_namespace_narrows_the_gangs_and_not_what_is_reserved_on_nodes() -> None:
    report = status_report(Snapshot(gangs=GANGS, nodes=(node("a"),)), "elsewhere")
    assert (report.gangs, [each.name for each in report.waiting]) == (1, ["f"])
    assert report.nodes.nodes[0].reserved == 8


def test_a_gang_on_another_cluster_is_listed_with_it_and_else_there_is_no_column() -> None:
    far = {"attempt": 1, "term": 1, "phase": "Started", "cluster": "east"}
    here = gang("here", "Running", placement=placement(a=1))
    there = gang("there", "Running", placement=placement(), dispatch=far)
    over = gang("over", "Queued", dispatch={**far, "phase": "Closed"})
    report = status_report(Snapshot(gangs=(here, there, over)))
    assert {each.name: each.cluster for each in (*report.placed, *report.waiting)} == {
        "here": "",
        "there": "east",
        "over": "",
    }
    shown = printed(report)
    assert "CLUSTER" in shown
    assert "east" in shown
    assert "CLUSTER" not in printed(status_report(Snapshot(gangs=(here,))))
