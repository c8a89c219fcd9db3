"""Reports why a gang waits: its place, each pod set, the holders of the room, what helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from cli.report.forecast.told import ToldReport, told
from cli.report.gangs import cluster_of, in_order, queue_of, waits
from cli.report.objects import Event
from cli.report.order import natural
from cli.report.quota_holders import QuotaHolders
from cli.report.reasons import EXPLANATIONS
from cli.report.room.nodes import told as told_of
from cli.report.room.short_room import Shortage, judged
from cli.report.room.sums import key_of
from cli.report.snapshot import Snapshot
from forecast.expected import ForecastReport
from kube.objects.core import Pod
from kube.objects.gang import Gang, GangCondition, GangPodSetStatus, GangShortage
from scheduling.model.holder import Holder
from scheduling.model.placement import NOWHERE
from scheduling.model.verdict import Reason

MOST_AHEAD = 5
"""How many of the gangs ahead are named."""


_STAY = ("Namespace", "DaemonSet")
"""Holders that do not end: pods without a controller, and those that come with their node."""


class HolderReport(msgspec.Struct, frozen=True, rename="camel"):
    """Who holds how much of a resource; `reserved` is the part for pods that are not there yet."""

    kind: str
    namespace: str
    name: str
    amount: str
    reserved: str = "0"
    frees: int = 0


class ShortReport(msgspec.Struct, frozen=True, rename="camel"):
    """What stops the next pod of a pod set, in quantities.

    `nodes` could run it if they were empty, `holders` have what there is on those. `is_judged` says
    that both were worked out from the nodes; else the holders are those that the Gang names.
    """

    resource: str
    each: str
    needed: str
    free: str
    left: str
    largest: str
    total: str
    is_judged: bool
    nodes: int = 0
    holders: tuple[HolderReport, ...] = ()
    other_holders: int = 0


class PodSetReport(msgspec.Struct, frozen=True, rename="camel"):
    """How far a pod set has come, and what it waits for."""

    name: str
    count: int
    minimum: int
    gated: int
    released: int
    bound: int
    ready: int
    kept: int
    reason: str
    message: str
    short: ShortReport | None = None


class HistoryReport(msgspec.Struct, frozen=True, rename="camel"):
    """One Event of the gang."""

    last: str
    first: str
    count: int
    type: str
    reason: str
    message: str


class WhyReport(msgspec.Struct, frozen=True, rename="camel"):
    """One gang. `of` is how many wait in its queue, `ahead` names the nearest ones before it.

    `quota` says who has the quota that it lacks, and whether reclaim would help. `forecast` is
    there where it was asked for, `expected_start` where the forecaster told it. `cluster` is the
    other one that it runs on, `refused_by` says why clusters do not take it.
    """

    namespace: str
    name: str
    queue: str
    phase: str
    waits: bool
    position: int
    of: int
    ahead: tuple[str, ...]
    priority: int
    ready: str
    created: str
    reason: str
    message: str
    means: str
    remedy: str
    helps: tuple[str, ...]
    quota: tuple[str, ...]
    pod_sets: tuple[PodSetReport, ...]
    nodes: Mapping[str, int]
    conditions: tuple[str, ...]
    notes: tuple[str, ...]
    history: tuple[HistoryReport, ...]
    unread: tuple[str, ...] = ()
    forecast: ForecastReport | None = None
    expected_start: ToldReport | None = None
    cluster: str = ""
    refused_by: Mapping[str, str] = {}
    stops_gangs: str = ""
    """Which cluster may stop gangs for it, and from when another one may."""


@dataclass(frozen=True, slots=True)
class Case:
    """A gang with what was read about it: its own pods, also gated ones, and its Events."""

    gang: Gang
    pods: tuple[Pod, ...] = ()
    events: tuple[Event, ...] = ()


def why_report(found: Snapshot, case: Case) -> WhyReport:
    """Report on one gang."""
    gang = case.gang
    status, queue = gang.status, queue_of(gang)
    rivals = in_order(each for each in found.gangs if waits(each) and queue_of(each) == queue)
    shortages = judged(found, gang, case.pods) if waits(gang) or _is_short(gang) else {}
    explained = {each.value: said for each, said in EXPLANATIONS.items()}.get(status.reason)
    return WhyReport(
        namespace=gang.metadata.namespace,
        name=gang.metadata.name,
        queue=queue,
        phase=status.phase,
        waits=waits(gang),
        position=status.position or 0,
        of=len(rivals),
        ahead=tuple(_ahead(gang, rivals)),
        priority=gang.spec.priority,
        ready=status.ready,
        created=gang.metadata.creation_timestamp or "",
        reason=status.reason,
        message=status.message,
        means=explained.means if explained else "",
        remedy=explained.remedy if explained else "",
        # Of what fits nowhere no end of others helps.
        helps=() if status.reason == Reason.NEVER_FITS else tuple(_helps(gang, shortages)),
        quota=QuotaHolders(found).of(queue, status.message) if waits(gang) else (),
        pod_sets=tuple(_pod_set(each, shortages.get(each.name)) for each in status.pod_sets),
        nodes=_nodes(gang),
        conditions=tuple(f"{each.type}={each.status} {each.reason}" for each in status.conditions),
        notes=tuple(each.message for each in status.conditions if _is_note(each)),
        history=tuple(_history(case.events)),
        unread=told_of(found.unread),
        expected_start=told(gang) if waits(gang) else None,
        cluster=cluster_of(gang),
        refused_by=_refused_by(gang),
        stops_gangs=_stops_gangs(gang),
    )


def _stops_gangs(gang: Gang) -> str:
    """Say which cluster may stop gangs for a gang that none has room for; empty where none may."""
    found = gang.status.dispatch
    if found is None or found.is_recorded or found.stops_gangs is None:
        return ""
    return f"{found.stops_gangs.cluster}, another one from {found.stops_gangs.until} on"


def _refused_by(gang: Gang) -> dict[str, str]:
    """Return why each cluster does not take a gang that none of them has."""
    found = gang.status.dispatch
    if found is None or found.is_recorded:
        return {}
    return {each.cluster: each.message for each in found.refusals}


def _is_short(gang: Gang) -> bool:
    return any(each.shortage is not None for each in gang.status.pod_sets)


def _ahead(gang: Gang, rivals: Sequence[Gang]) -> Iterator[str]:
    """Yield the waiting gangs before it, the nearest last."""
    keys = [key_of(each) for each in rivals]
    at = keys.index(key_of(gang)) if key_of(gang) in keys else 0
    yield from map(str, keys[max(at - MOST_AHEAD, 0) : at])


def _pod_set(said: GangPodSetStatus, judged: Shortage | None) -> PodSetReport:
    return PodSetReport(
        name=said.name,
        count=said.count,
        minimum=said.minimum,
        gated=said.gated,
        released=said.released,
        bound=said.bound,
        ready=said.ready,
        kept=said.kept,
        reason=said.reason,
        message=said.message,
        short=_short(said.shortage, judged) if said.shortage is not None else None,
    )


def _short(said: GangShortage, judged: Shortage | None) -> ShortReport:
    if judged is None:
        holders = tuple(
            HolderReport(each.kind, each.namespace, each.name, str(each.amount))
            for each in said.holders
        )
    else:
        holders = tuple(
            HolderReport(
                each.holder.kind,
                each.holder.namespace,
                each.holder.name,
                each.amount,
                each.reserved,
                each.frees,
            )
            for each in judged.holders
        )
    return ShortReport(
        resource=said.resource,
        each=str(said.each),
        needed=str(said.needed),
        free=str(said.free),
        left=str(said.left),
        largest=str(said.largest),
        total=str(said.total),
        is_judged=judged is not None,
        nodes=judged.nodes if judged else 0,
        holders=holders,
        other_holders=judged.others if judged else 0,
    )


def _is_note(said: GangCondition) -> bool:
    """Whether a condition says what nothing waits for, and its user should know."""
    return said.reason == Reason.UNKNOWN_KEY and said.status == "False"


def _helps(gang: Gang, shortages: Mapping[str, Shortage]) -> Iterator[str]:
    """Yield what would make room, as far as one resource alone shows it."""
    for each in gang.status.pod_sets:
        if each.name in shortages:
            yield from _freed(each.name, shortages[each.name])
        elif each.shortage is not None:
            yield from _given_back(each.shortage)


def _freed(pod_set: str, short: Shortage) -> Iterator[str]:
    ends = (one for one in short.holders if one.holder.kind not in _STAY)
    best = max(ends, key=lambda one: one.frees, default=None)
    if best is not None and best.frees:
        pods = "pod" if best.frees == 1 else "pods"
        yield (
            f"if {best.holder} ended, {best.frees} more {pods} of {pod_set} would have "
            f"the {short.resource} they need"
        )


def _given_back(said: GangShortage) -> Iterator[str]:
    """Yield the holder that the Gang names first: of pods that do not exist no more is known."""
    for each in said.holders:
        if each.kind not in _STAY:
            holder = Holder(each.kind, each.namespace, each.name)
            yield f"if {holder} ended, the {said.resource} that it holds would come free"
            return


def _nodes(gang: Gang) -> dict[str, int]:
    """Return how many pods of the gang have their place on which node."""
    found: dict[str, int] = {}
    placement = gang.status.placement
    for pod_set in placement.pod_sets if placement else ():
        for assignment in pod_set.assignments:
            for node, count in assignment.nodes.items():
                if node != NOWHERE:
                    found[node] = found.get(node, 0) + count
    return {node: found[node] for node in sorted(found, key=natural)}


def _history(events: Iterable[Event]) -> Iterator[HistoryReport]:
    """Yield Events, the oldest first."""
    found = [
        HistoryReport(
            last=each.last_timestamp or each.event_time or each.metadata.creation_timestamp or "",
            first=each.first_timestamp or each.metadata.creation_timestamp or "",
            count=each.count or 1,
            type=each.type,
            reason=each.reason,
            message=each.message,
        )
        for each in events
    ]
    yield from sorted(found, key=lambda each: (each.last, each.reason))
