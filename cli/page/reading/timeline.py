"""Tells when a Ray cluster waited, was admitted, ran and was stopped, by its conditions and Events.

Kubernetes keeps Events for an hour and of conditions the last change alone, so that of a long life
the beginning and what came last are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from cli.report.objects import Event
from kube.codec.fields import AFTER_ALL, moment_of
from kube.objects.gang import Gang
from kube.objects.ray import RayCluster
from scheduling.model.verdict import Reason

WAITED, ADMITTED, RUNNING, STOPPED = "waited", "admitted", "running", "stopped"

_STATES: Final = {
    Reason.ADMITTED: ADMITTED,
    Reason.RUNNING: RUNNING,
    Reason.SUSPENDED: STOPPED,
    Reason.HEAD_LOST: "",
    Reason.UNKNOWN_KEY: "",
}
"""What Events say of the state; empty says nothing. Other reasons are why a gang waits."""


class Zone(msgspec.Struct, frozen=True, rename="camel"):
    """A time in one state; the last one has no end."""

    state: str
    begin: str
    end: str


class Moment(msgspec.Struct, frozen=True, rename="camel"):
    """Something that happened; `count` times between `first` and `last`."""

    first: str
    last: str
    count: int
    of: str
    type: str
    reason: str
    message: str


class Timeline(msgspec.Struct, frozen=True):
    """The zones, and what happened in them, the oldest first."""

    zones: tuple[Zone, ...]
    moments: tuple[Moment, ...]


def timeline(
    cluster: RayCluster, gang: Gang | None, events: Iterable[tuple[str, Event]]
) -> Timeline:
    """Put conditions and Events in order; each Event comes with the kind of what it is about."""
    moments = sorted(
        (_moment(of, each) for of, each in events), key=lambda each: (each.last, each.reason)
    )
    marks = [
        (cluster.metadata.creation_timestamp or "", WAITED),
        *_by_conditions(cluster, gang),
        *_by_moments(moments, _admitted_since(gang)),
    ]
    return Timeline(tuple(_zones(marks)), tuple(moments))


def _moment(of: str, each: Event) -> Moment:
    created = each.metadata.creation_timestamp or ""
    return Moment(
        first=each.first_timestamp or each.event_time or created,
        last=each.last_timestamp or each.event_time or created,
        count=each.count or 1,
        of=of,
        type=each.type,
        reason=each.reason,
        message=each.message,
    )


def _by_conditions(cluster: RayCluster, gang: Gang | None) -> Iterator[tuple[str, str]]:
    for each in gang.status.conditions if gang is not None else ():
        held = each.status == "True"
        if each.type == "Admitted":
            stopped = STOPPED if each.reason == Reason.SUSPENDED else WAITED
            yield each.last_transition_time, ADMITTED if held else stopped
        elif each.type == "Ready" and held:
            yield each.last_transition_time, RUNNING
    for condition in cluster.status.conditions:
        if condition.status != "True" or condition.last_transition_time is None:
            continue
        if condition.type == "RayClusterSuspended":
            yield condition.last_transition_time, STOPPED
        elif condition.type == "RayClusterProvisioned" and gang is None:
            yield condition.last_transition_time, RUNNING


def _admitted_since(gang: Gang | None) -> float:
    """Return since when a gang has its place: what is told of it after that is no wait."""
    for each in gang.status.conditions if gang is not None else ():
        if each.type == "Admitted" and each.status == "True":
            return moment_of(each.last_transition_time)
    return AFTER_ALL


def _by_moments(moments: Sequence[Moment], admitted: float) -> Iterator[tuple[str, str]]:
    known = {each.value for each in Reason}
    for each in moments:
        if each.of != "Gang" or each.reason not in known:
            continue
        state = _STATES.get(Reason(each.reason), WAITED)
        # One Event stands for all of its reason: what lay between its first and last is others'.
        for stamp in dict.fromkeys((each.first, each.last)):
            if state and (state != WAITED or moment_of(stamp) < admitted):
                yield stamp, state


def _zones(marks: Iterable[tuple[str, str]]) -> Iterator[Zone]:
    """Yield the times between changes; what has no time, or one that is none, is left out."""
    ordered = sorted((each for each in marks if _is_time(each[0])), key=lambda e: moment_of(e[0]))
    changes = [each for at, each in enumerate(ordered) if at == 0 or each[1] != ordered[at - 1][1]]
    for at, (begin, state) in enumerate(changes):
        end = changes[at + 1][0] if at + 1 < len(changes) else ""
        if begin != end:
            yield Zone(state, begin, end)


def _is_time(stamp: str) -> bool:
    return 0 < moment_of(stamp) < AFTER_ALL
