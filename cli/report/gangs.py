"""Reports gangs for lists: the waiting gangs in their order, and what the other gangs hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from cli.report.forecast.told import ToldReport, told
from cli.report.order import natural
from cli.report.room.sums import placement_of
from kube.codec.fields import created_at, moment_of, quantity
from kube.objects.gang import Gang
from scheduling.model.amounts import PODS
from scheduling.model.queue import DEFAULT_QUEUE

WAITING = ("Gathering", "Queued", "Preempting", "")
"""Phases of gangs that have no place; one without a phase was not looked at yet."""

FAILED = "Failed"

FINISHED = "Finished"

_LAST = 2**31


class GangReport(msgspec.Struct, frozen=True, rename="camel"):
    """One gang; `position` is that in its queue, 0 where it has none. `holds` is by resource."""

    namespace: str
    name: str
    queue: str
    phase: str
    position: int
    priority: int
    ready: str
    reason: str
    message: str
    created: str
    holds: Mapping[str, str] = {}
    cluster: str = ""
    """The other cluster that it runs on, or is to start on."""
    expected_start: ToldReport | None = None
    """What the forecaster told of one that waits."""

    @property
    def key(self) -> str:
        """Namespace and name, as commands take them."""
        return f"{self.namespace}/{self.name}"


def gang_report(gang: Gang) -> GangReport:
    """Report on one gang."""
    status = gang.status
    return GangReport(
        namespace=gang.metadata.namespace,
        name=gang.metadata.name,
        queue=queue_of(gang),
        phase=status.phase,
        position=status.position or 0,
        priority=gang.spec.priority,
        ready=status.ready,
        reason=status.reason,
        message=status.message,
        created=gang.metadata.creation_timestamp or "",
        holds=holds(gang),
        cluster=cluster_of(gang),
        expected_start=told(gang) if waits(gang) else None,
    )


def queue_of(gang: Gang) -> str:
    """Name the queue that a gang holds quota of, else the one that it waits in."""
    if gang.status.placement is not None:
        return gang.status.placement.queue or DEFAULT_QUEUE
    return gang.spec.queue or DEFAULT_QUEUE


def cluster_of(gang: Gang) -> str:
    """Name the other cluster that a gang runs on, or is to start on; empty where it has none."""
    found = gang.status.dispatch
    return found.cluster if found is not None and found.is_open else ""


def waits(gang: Gang) -> bool:
    """Say whether a gang has no place yet."""
    return gang.status.phase in WAITING and gang.status.placement is None


def has_failed(gang: Gang) -> bool:
    """Say whether a gang neither has a place nor gets one."""
    return gang.status.phase == FAILED


def is_finished(gang: Gang) -> bool:
    """Say whether what a gang was for has ended: it counts nowhere."""
    return gang.status.phase == FINISHED


def gathered_at(gang: Gang) -> float | None:
    """Return since when all pods of a gang's minimum exist; None where they do not."""
    for each in gang.status.conditions:
        if each.type == "Gathered" and each.status == "True":
            return moment_of(each.last_transition_time)
    return None


def in_order(gangs: Iterable[Gang]) -> list[Gang]:
    """Sort waiting gangs by position, then as their queue sorts those of one position."""
    return sorted(gangs, key=_order)


def by_name(gangs: Iterable[GangReport]) -> list[GangReport]:
    """Sort gangs by their names, as people count."""
    return sorted(gangs, key=lambda each: natural(each.key))


def _order(gang: Gang) -> tuple[object, ...]:
    meta = gang.metadata
    place, name = gang.status.position or _LAST, natural(f"{meta.namespace}/{meta.name}")
    return place, -gang.spec.priority, created_at(meta), name


def holds(gang: Gang) -> dict[str, str]:
    """Return what the placement of a gang takes in all, by resource, as quantities."""
    sums = sorted(held(gang).items())
    return {each: quantity(each, amount) for each, amount in sums if each != PODS}


def held(gang: Gang) -> Counter[str]:
    """Return what the placement of a gang takes in all, by resource."""
    placement, sums = placement_of(gang), Counter[str]()
    for each in placement.assignments if placement is not None else ():
        pods = sum(count for _, count in each.nodes)
        sums.update({resource: amount * pods for resource, amount in each.requests})
    return sums
