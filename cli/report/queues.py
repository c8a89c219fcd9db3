"""Reports queues: quota, usage, what they borrow and may still take, and their waiting gangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from cli.endings import Absent
from cli.report.fair_share import (
    SHOWN,
    NamespaceShareReport,
    namespace_shares,
    reasons_of_order,
    share_of,
)
from cli.report.gangs import GangReport, by_name, gang_report, has_failed, in_order, queue_of, waits
from cli.report.order import natural
from cli.report.queue_usage import usage_of
from cli.report.quota_holders import QuotaHolders
from cli.report.room.nodes import told
from cli.report.snapshot import QUEUES, Snapshot
from forecast.expected import ForecastReport
from kube.codec.fields import quantity
from kube.objects.base import Quantities
from kube.objects.clusters.queue_clusters import QueueClusters
from kube.objects.queues.queue import GangQueue
from scheduling.model.amounts import Amounts
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.model.verdict import Reason
from scheduling.queueing.quota_tree import MOST, QuotaTree


class ResourceReport(msgspec.Struct, frozen=True, rename="camel"):
    """One resource of a queue, as quantities; None where nothing is said, or it is not known.

    `quota` is that of the queue and of what those below lend it, `may_take` is what the queue may
    take now with what it may borrow. `holes` says by GPUs of one pod how many pods still fit on the
    nodes of the queue, as its status does.
    """

    resource: str
    used: str | None = None
    quota: str | None = None
    reserved: str | None = None
    borrowed: str | None = None
    may_take: str | None = None
    holes: Mapping[str, int] = {}


class QueueReport(msgspec.Struct, frozen=True, rename="camel"):
    """One queue; `parent` is empty for a root.

    `quota_held` says who has the quota that the first of its gangs that wait for quota lacks,
    `share` what it used over time, `shares` what its largest namespaces did.
    """

    name: str
    parent: str
    depth: int
    active: bool
    fault: str
    pending: int
    admitted: int
    resources: tuple[ResourceReport, ...] = ()
    quota_held: tuple[str, ...] = ()
    share: str = ""
    shares: Mapping[str, str] = {}


class QueuesReport(msgspec.Struct, frozen=True, rename="camel"):
    """All queues, those below others after them; `is_known` is false where they are not listed."""

    queues: tuple[QueueReport, ...]
    is_known: bool = True
    unread: tuple[str, ...] = ()


class OneQueueReport(msgspec.Struct, frozen=True, rename="camel"):
    """One queue, its waiting gangs in their order, and those that hold anything of it.

    `because` says why a gang stands where it stands; `namespaces` have what each of them used.
    `forecast` is there where it was asked for.
    """

    queue: QueueReport
    rules: Mapping[str, str]
    waiting: tuple[GangReport, ...]
    holding: tuple[GangReport, ...]
    failed: tuple[GangReport, ...] = ()
    unread: tuple[str, ...] = ()
    because: Mapping[str, str] = {}
    namespaces: tuple[NamespaceShareReport, ...] = ()
    forecast: ForecastReport | None = None


def queues_report(found: Snapshot) -> QueuesReport:
    """Report on all queues, the built-in one too where gangs are in it."""
    limits = _limits(found.queues)
    held = _quota_held(found)
    reports = [
        msgspec.structs.replace(_report(each, limits), quota_held=held.get(each.metadata.name, ()))
        for each in found.queues
    ]
    reports += _built_in(found)
    known = not found.lacks(QUEUES)
    return QueuesReport(tuple(_as_tree(reports)), known, unread=told(found.unread))


def one_queue_report(found: Snapshot, name: str) -> OneQueueReport:
    """Report on one queue; raises Absent where there is none of that name."""
    reports = {each.name: each for each in queues_report(found).queues}
    if name not in reports and name != DEFAULT_QUEUE:
        raise Absent(_no_queue(found, name, reports))
    mine = [each for each in found.gangs if queue_of(each) == name]
    waiting = in_order(each for each in mine if waits(each))
    holding = [gang_report(each) for each in mine if each.status.placement is not None]
    failed = [gang_report(each) for each in mine if has_failed(each)]
    object_of = {each.metadata.name: each for each in found.queues}
    mine_is = object_of.get(name, GangQueue())
    return OneQueueReport(
        queue=reports.get(name, _empty_default()),
        rules=_rules(object_of[name]) if name in object_of else {},
        waiting=tuple(gang_report(each) for each in waiting),
        holding=tuple(sorted(by_name(holding), key=lambda each: each.created)),
        failed=tuple(by_name(failed)),
        unread=told(found.unread),
        because=reasons_of_order(mine_is, waiting),
        namespaces=tuple(namespace_shares(mine_is)),
    )


def _no_queue(found: Snapshot, name: str, reports: Iterable[str]) -> str:
    if found.lacks(QUEUES):
        return f"queue {name}: no gang that may be listed is in it, and gangqueues cannot be listed"
    some = sorted(reports, key=natural)[:10]
    return f"no GangQueue {name}; there are: {', '.join(some) or 'none'}"


class _Limits(NamedTuple):
    """By queue and resource: its quota with what those below lend it, and what it may take now."""

    quota: Mapping[tuple[str, str], str]
    may_take: Mapping[tuple[str, str], str]


_UNKNOWN: Final = _Limits({}, {})


def _report(queue: GangQueue, limits: _Limits) -> QueueReport:
    inactive = (e for e in queue.status.conditions if (e.type, e.status) == ("Active", "False"))
    fault = next((each.message or each.reason for each in inactive), "")
    return QueueReport(
        name=queue.metadata.name,
        parent=queue.spec.parent,
        depth=0,
        active=not fault,
        fault=fault,
        pending=queue.status.pending,
        admitted=queue.status.admitted,
        # One that is not active admits nothing, whatever its quota has left.
        resources=tuple(_resources(queue, limits if not fault else _UNKNOWN)),
        share=share_of(queue),
        shares={each.name: each.share for each in namespace_shares(queue)[:SHOWN]},
    )


def _quota_held(found: Snapshot) -> dict[str, tuple[str, ...]]:
    """Say by queue who has the quota that its first gang which waits for quota lacks."""
    short = [each for each in found.gangs if each.status.reason == Reason.QUOTA_EXCEEDED]
    holders = QuotaHolders(found)
    first = {queue_of(each): each.status.message for each in reversed(in_order(short))}
    return {queue: holders.of(queue, message) for queue, message in first.items()}


def _resources(queue: GangQueue, limits: _Limits) -> Iterator[ResourceReport]:
    status, quota, holes = queue.status, queue.spec.quota or {}, _holes(queue)
    limited = {*quota, *status.usage}
    for name in sorted({*limited, *holes}, key=lambda each: ("/" not in each, each)):
        yield ResourceReport(
            resource=name,
            used=str(status.usage.get(name, 0)) if name in limited else None,
            quota=limits.quota.get((queue.metadata.name, name), _text(quota, name)),
            reserved=_text(status.reserved, name),
            borrowed=_text(status.borrowed, name),
            may_take=limits.may_take.get((queue.metadata.name, name)),
            holes=holes.get(name, {}),
        )


def _holes(queue: GangQueue) -> dict[str, dict[str, int]]:
    """Return the holes by resource and size; of GPUs that no node of the queue has free, none."""
    found: dict[str, dict[str, int]] = {}
    for each in queue.status.holes:
        found.setdefault(each.resource, {})[str(each.size)] = each.pods
    quota = queue.spec.quota or {}
    return {
        name: by_size for name, by_size in found.items() if name in quota or any(by_size.values())
    }


def _text(amounts: Quantities, name: str) -> str | None:
    return str(amounts[name]) if name in amounts else None


def _limits(queues: Iterable[GangQueue]) -> _Limits:
    """Work out limits from the usage that the coordinator wrote, as it does itself."""
    usage = usage_of(queues)
    if usage is None:
        return _UNKNOWN
    tree, used = usage
    return _Limits(_quantities(tree, tree.subtree), _quantities(tree, tree.available(used)))


def _quantities(tree: QuotaTree, amounts: Amounts) -> dict[tuple[str, str], str]:
    """Return what is limited, as quantities by queue and resource."""
    return {
        (queue, resource): quantity(resource, max(int(amounts[at, column]), 0))
        for queue, at in tree.index.items()
        for resource, column in tree.column.items()
        if tree.limited[at, column] and amounts[at, column] < MOST
    }


def _rules(queue: GangQueue) -> dict[str, str]:
    spec = queue.spec
    found = {"ordering": spec.ordering, "whenBlocked": spec.when_blocked}
    if spec.node_selector:
        found["nodeSelector"] = ",".join(f"{k}={v}" for k, v in sorted(spec.node_selector.items()))
    if spec.clusters is not None:
        found["clusters"] = _clusters(spec.clusters)
    if spec.stop != "None":
        found["stop"] = spec.stop
    if spec.fair_sharing is not None:
        fair = spec.fair_sharing
        found["fairSharing"] = f"half-life {fair.half_life_seconds} s, weight {fair.weight}"
    if spec.preemption is not None:
        found["preemption.withinQueue"] = spec.preemption.within_queue
        found["preemption.reclaim"] = spec.preemption.reclaim
        found["preemption.whileBorrowing"] = spec.preemption.while_borrowing
    return found


def _clusters(found: QueueClusters) -> str:
    """Say which clusters the gangs of a queue are sent to."""
    labels = ",".join(f"{k}={v}" for k, v in sorted(found.selector.match_labels.items()))
    first = f", first {', '.join(found.order)}" if found.order else ""
    return f"{labels or 'all'}{first}"


def _empty_default() -> QueueReport:
    return QueueReport(DEFAULT_QUEUE, "", 0, active=True, fault="", pending=0, admitted=0)


def _built_in(found: Snapshot) -> list[QueueReport]:
    """Return the queue that has no object: `default`, and any that cannot be listed."""
    known = {each.metadata.name for each in found.queues}
    named = {DEFAULT_QUEUE} if not found.lacks(QUEUES) else {queue_of(each) for each in found.gangs}
    pending = Counter(queue_of(each) for each in found.gangs if each.status.phase == "Queued")
    holding = Counter(queue_of(each) for each in found.gangs if each.status.placement is not None)
    return [
        msgspec.structs.replace(
            _empty_default(), name=each, pending=pending[each], admitted=holding[each]
        )
        for each in sorted(named - known)
        if pending[each] or holding[each]
    ]


def _as_tree(reports: Iterable[QueueReport]) -> Iterator[QueueReport]:
    """Yield the queues below one right after it, by name; one in a circle of parents as a root."""
    named = {each.name: each for each in reports}
    below: dict[str, list[str]] = {}
    for each in sorted(named.values(), key=lambda one: natural(one.name)):
        above = each.parent if each.parent in named else ""
        below.setdefault(above, []).append(each.name)
    seen: set[str] = set()
    roots = [*below.get("", ()), *sorted(named, key=natural)]
    todo = [(name, 0) for name in reversed(roots)]
    while todo:
        name, depth = todo.pop()
        if name not in seen:
            seen.add(name)
            yield msgspec.structs.replace(named[name], depth=depth)
            todo += [(each, depth + 1) for each in reversed(below.get(name, ()))]
