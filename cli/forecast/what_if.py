"""Compares the forecast of a picture with that of the picture after changes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from cli.forecast.changes import Applying, Changes, check
from cli.report.forecast.what_if import DevicesReport, Effect, EffectReport, WhatIfReport
from coordinator.messages.events import NodeSeen
from forecast.asking import Pictured
from forecast.copied import copied
from forecast.course import Course
from forecast.estimates import estimates, stamp
from forecast.expected import ExpectedReport, Sure
from scheduling.diagnosis.holes import Pool
from scheduling.model.gang import GangKey

NOTICED = 1.0
"""Seconds by which a start moves at least where it is told."""

_SURENESS = (Sure.NOW, Sure.FORWARD, Sure.RATE, Sure.UNKNOWN)


def what_if(pictured: Pictured, changes: Changes) -> WhatIfReport:
    """Return what changes would do; raises Fault where they cannot be made."""
    check(changes)
    began = pictured.spent()
    events = (each.node for each in pictured.events if isinstance(each, NodeSeen))
    applying = Applying(changes, {each.metadata.name: each for each in events})
    world = pictured.led()
    changed = copied(world)
    changed.see(applying(changed.state, changed.moment))
    after, before = (pictured.begun_in(each).go_on() for each in (changed, world))
    return WhatIfReport(
        taken=stamp(before.began),
        reached=stamp(min(before.reached, after.reached)),
        cpu_seconds=round(pictured.spent() - began, 3),
        changes=tuple(changes),
        effects=tuple(_Comparison(before, after, {*applying.keys}, {*changes.stopped}).effects()),
        devices=tuple(_devices(before.pools, after.pools)),
        waiting=sum(each.asks for each in before.waiting),
        notes=tuple(dict.fromkeys(applying.notes)),
    )


@dataclass
class _Comparison:
    """Two forecasts of one moment; `submitted` and `stopped` are gangs of the changes."""

    before: Course
    after: Course
    submitted: set[GangKey]
    stopped: set[GangKey]

    def effects(self) -> Iterator[EffectReport]:
        """Yield what becomes of each gang that does otherwise, by effect and name."""
        found = [*self._at_once(), *self._of_waiting()]
        order = list(Effect)
        yield from sorted(found, key=lambda e: (order.index(e.effect), e.namespace, e.name))

    # ---- what runs

    def _at_once(self) -> Iterator[EffectReport]:
        for key, running in self.before.running.items():
            effect = self._of_running(key)
            if effect is not None:
                ends = self.after.stops.get(key)
                yield EffectReport(
                    key.namespace,
                    key.name,
                    running.queue,
                    effect,
                    after=stamp(ends) if effect is Effect.STOPS_LATER and ends else "",
                )

    def _of_running(self, key: GangKey) -> Effect | None:
        """Say what becomes of a gang that has its room; None where it runs on as before."""
        stops, stopped_before = self.after.stops.get(key), key in self.before.stops
        if key in self.stopped:
            return Effect.ENDS
        if stops is not None and not stopped_before:
            return Effect.STOPS if stops <= self.after.began else Effect.STOPS_LATER
        if key in self.after.lacking and key not in self.before.lacking:
            return Effect.WAITS_FOR_PODS
        return None

    # ---- what waits

    def _of_waiting(self) -> Iterator[EffectReport]:
        before = {(each.namespace, each.name): each for each in estimates(self.before)}
        for each in estimates(self.after):
            key = GangKey(each.namespace, each.name)
            known = before.get((each.namespace, each.name))
            if known is None and key not in self.submitted:
                continue  # it ran before, and is told of as stopped
            found = _compared(known, each)
            if found is not None:
                yield found
        there = {each.key for each in self.after.waiting}
        for gone in self.before.waiting:
            if gone.key in self.stopped and gone.key not in there:
                yield EffectReport(gone.key.namespace, gone.key.name, gone.queue, Effect.ENDS)


def _compared(before: ExpectedReport | None, after: ExpectedReport) -> EffectReport | None:
    """Compare two estimates of a gang; None where they say the same."""
    moved = _moved(before, after)
    effect = _effect(before, after, moved)
    if effect is None:
        return None
    said = [after.sure] if moved is None or before is None else [before.sure, after.sure]
    return EffectReport(
        after.namespace,
        after.name.rstrip("~"),
        after.queue,
        effect,
        before=before.at if before is not None else "",
        after=after.at,
        later_seconds=moved,
        sure=max(said, key=_SURENESS.index),
        why=after.why,
    )


def _moved(before: ExpectedReport | None, after: ExpectedReport) -> float | None:
    if before is None or before.in_seconds is None or after.in_seconds is None:
        return None
    return after.in_seconds - before.in_seconds


def _effect(
    before: ExpectedReport | None, after: ExpectedReport, moved: float | None
) -> Effect | None:
    if after.sure is Sure.NOW:
        return Effect.STARTS if before is None or before.sure is not Sure.NOW else None
    if before is None:
        return Effect.LATER if after.at else Effect.NO_MORE_KNOWN
    if moved is not None:
        return None if abs(moved) < NOTICED else Effect.LATER if moved > 0 else Effect.SOONER
    if bool(before.at) == bool(after.at):
        return None
    return Effect.KNOWN if after.at else Effect.NO_MORE_KNOWN


# ---- devices


def _devices(before: Iterable[Pool], after: Iterable[Pool]) -> Iterator[DevicesReport]:
    """Yield the devices by resource."""
    first, second = _sums(before), _sums(after)
    for resource in sorted({*first, *second}):
        one, two = first.get(resource, _NONE), second.get(resource, _NONE)
        yield DevicesReport(
            resource, one[0], two[0], one[1], two[1], one[2], two[2], one[3], two[3]
        )


_NONE = (0, 0, 0, 0.0)


def _sums(pools: Iterable[Pool]) -> Mapping[str, tuple[int, int, int, float]]:
    """Add up what there is, what is free, off and stranded."""
    found: defaultdict[str, list[Pool]] = defaultdict(list)
    for each in pools:
        found[each.resource].append(each)
    return {
        resource: (
            sum(each.allocatable for each in mine),
            sum(each.free for each in mine),
            sum(each.unschedulable for each in mine),
            round(sum(each.stranded for each in mine), 2),
        )
        for resource, mine in found.items()
    }
