"""Reports the cluster on one screen: gangs by phase, the next waiting gangs, queues, pools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from cli.report.gangs import (
    GangReport,
    by_name,
    gang_report,
    has_failed,
    in_order,
    is_finished,
    queue_of,
    waits,
)
from cli.report.queues import QueueReport, queues_report
from cli.report.room.nodes import NodesReport, nodes_report, told
from cli.report.snapshot import QUEUES, Snapshot
from kube.objects.gang import Gang


class StatusReport(msgspec.Struct, frozen=True, rename="camel"):
    """`reasons` counts the gangs that wait; `waiting` has them queue by queue, in their order.

    Each gang is in one of `waiting`, `placed` and `failed`; `finished` counts those that are over,
    which are in none of them. `queues_known` is false where
    GangQueues could not be listed: `queues` has then what gangs say of them.
    """

    namespace: str
    gangs: int
    phases: Mapping[str, int]
    reasons: Mapping[str, int]
    waiting: tuple[GangReport, ...]
    placed: tuple[GangReport, ...]
    failed: tuple[GangReport, ...]
    queues: tuple[QueueReport, ...]
    nodes: NodesReport
    finished: int = 0
    queues_known: bool = True
    unread: tuple[str, ...] = ()


def status_report(found: Snapshot, namespace: str = "", queue: str = "") -> StatusReport:
    """Report on the cluster; namespace and queue narrow the gangs that are counted and listed."""
    inside = [each for each in found.gangs if namespace in ("", each.metadata.namespace)]
    known = [each for each in inside if queue in ("", queue_of(each))]
    mine = [each for each in known if not is_finished(each)]
    phases = Counter(each.status.phase or "Gathering" for each in mine)
    waiting = in_order(each for each in mine if waits(each))
    failed = [each for each in mine if has_failed(each)]
    placed = [each for each in mine if not waits(each) and not has_failed(each)]
    return StatusReport(
        namespace=namespace or found.namespace,
        gangs=len(mine),
        phases=dict(phases.most_common()),
        reasons=dict(Counter(each.status.reason for each in waiting).most_common()),
        waiting=tuple(gang_report(each) for each in waiting),
        placed=_newest_first(placed),
        failed=_newest_first(failed),
        queues=queues_report(found).queues,
        nodes=msgspec.structs.replace(nodes_report(found), unread=()),
        finished=len(known) - len(mine),
        queues_known=not found.lacks(QUEUES),
        unread=told(found.unread),
    )


def _newest_first(gangs: Iterable[Gang]) -> tuple[GangReport, ...]:
    named = by_name(map(gang_report, gangs))
    return tuple(sorted(named, key=lambda each: each.created, reverse=True))
