"""Fair share over time: shares of queues and namespaces, and why gangs stand where they do."""

import io
from typing import Any

import msgspec
from rich.console import Console

from cli.report.fair_share import SHOWN
from cli.report.queues import OneQueueReport, QueuesReport, one_queue_report, queues_report
from cli.report.snapshot import Snapshot
from cli.show.queues import table
from kube.objects.gang import Gang
from kube.objects.queues.queue import GangQueue
from tests.cli.objects import GPU, gang, queue

AT, WAITS = "2026-11-22T12:00:00Z", {"phase": "Queued"}


def used(*namespaces: tuple[str, str], **rules: Any) -> GangQueue:
    """A queue in which namespaces have used so much."""
    said = [{"name": name, "share": share, "usage": {GPU: "1.5"}} for name, share in namespaces]
    sharing = {"fairSharing": {"weight": 2, "namespaceWeights": {"a": 3}}, **rules}
    told = {"at": AT, "share": "20.00%", "namespaces": said}
    return queue("research", {GPU: 8}, usage={GPU: "1"}, fairShare=told, rules=sharing)


def waiting(namespace: str, name: str, position: int, since: str = AT, **more: Any) -> Gang:
    gathered = {"type": "Gathered", "status": "True", "lastTransitionTime": since}
    return gang(name, namespace=namespace, position=position, conditions=[gathered], **more)


def printed(report: OneQueueReport | QueuesReport) -> str:
    out = Console(file=io.StringIO(), width=200)
    table(report, "table", 0.0)(out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def test_a_queue_says_what_each_namespace_used_and_why_gangs_stand_where_they_do() -> None:
    gangs = (
        waiting("b", "first", 1, "2026-11-20T12:00:00Z"),
        waiting("c", "new", 2),
        waiting("a", "a1", 3, priority=0),
        waiting("a", "a2", 4),
    )
    found = one_queue_report(
        Snapshot(queues=(used(("b", "18.00%"), ("a", "2.00%")),), gangs=gangs), "research"
    )
    assert [(each.name, each.share, each.weight) for each in found.namespaces] == [
        ("b", "18.00%", 1),
        ("a", "2.00%", 3),
    ]
    assert found.because == {
        "b/first": "priority 0; waited too long: as it arrived, before all that did not",
        "c/new": "priority 0; c used 0.00%",
        "a/a1": "priority 0; a used 2.00%",
        "a/a2": "priority 0; a used 2.00%, and has 1 before it",
    }
    said = printed(found)
    assert "20.00%" in said
    assert "1.5 nvidia.com/gpu" in said
    assert "a used 2.00%, and has 1 before it" in said
    assert "fairSharing half-life 604800 s, weight 2" in said


def test_in_a_fifo_queue_usage_is_no_reason() -> None:
    found = Snapshot(queues=(used(("a", "2.00%"), ordering="FIFO"),), gangs=(waiting("a", "g", 1),))
    assert one_queue_report(found, "research").because == {}


def test_without_fair_sharing_nothing_is_said_of_shares() -> None:
    plain = queue("research", {GPU: 8}, usage={GPU: "1"})
    found = Snapshot(queues=(plain,), gangs=(waiting("a", "g", 1),))
    assert "SHARE" not in printed(queues_report(found))
    report = one_queue_report(found, "research")
    assert (report.because, report.namespaces, report.queue.share) == ({}, (), "")
    off = msgspec.structs.replace(used(("a", "2.00%")), spec=plain.spec)
    assert queues_report(Snapshot(queues=(off,))).queues[0].share == "", (
        "it was switched off just now"
    )


def test_of_all_queues_the_largest_shares_are_shown() -> None:
    many = used(*((f"ns{at}", f"{100 - at}.00%") for at in range(100)))
    (found,) = queues_report(Snapshot(queues=(many,))).queues
    assert found.share == "20.00%"
    assert list(found.shares.items())[:2] == [("ns0", "100.00%"), ("ns1", "99.00%")]
    assert len(found.shares) == SHOWN
    assert "SHARE" in printed(queues_report(Snapshot(queues=(many,))))
