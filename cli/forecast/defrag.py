"""Advises which gangs to move so that a waiting one can start; nothing is moved."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

import numpy as np
from msgspec.structs import replace

from cli.forecast.movable import MICRO, Listed, gpus_of, list_movable
from cli.forecast.move_request import MoveRequest, request_of
from cli.imports.outcome import Fault
from cli.report.forecast.defrag import (
    DefragReport,
    LeftOutReport,
    MoveReport,
    PlacedReport,
    StartReport,
)
from coordinator.state.cycle.run_cycle import existing_pods
from coordinator.state.known import Known
from forecast.asking import Pictured
from forecast.course import Course, Waiting
from forecast.estimates import estimates, stamp
from forecast.lengths import EXPECTED
from forecast.world import World
from scheduling.defragmentation.moves import STEPS, Move, Moves, Running, cheapest_moves
from scheduling.diagnosis.amount_texts import amount_down, amount_up
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import exact_sum, is_device
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.verdict import Reason
from scheduling.preemption.needs_ending_pods import why_not
from scheduling.queueing.line import requests_of

MOST_TRIED: Final = 5
"""Waiting gangs for which moves are sought where none is named: those that come first."""


def advise(pictured: Pictured, wanted: GangKey | None, steps: int = STEPS) -> DefragReport:
    """Return the moves that let a gang start: the named one, or that with the most GPUs for them.

    Raises Fault for one that does not wait.
    """
    return advise_request(pictured, wanted, steps)[0]


def advise_request(
    pictured: Pictured, wanted: GangKey | None, steps: int = STEPS
) -> tuple[DefragReport, MoveRequest | None]:
    """Return the same, with what asks the coordinator for it; None without a plan."""
    begun = dataclasses.replace(pictured, seconds=inf).begun()  # else it may end half way
    advice = _Advice(begun.world, begun.course, steps)
    report = advice.on(wanted)
    if report.start is None:
        return report, None
    key = GangKey(report.start.namespace, report.start.name)
    request = request_of(key, advice.found[key], begun.world.state.known)
    course = begun.turned_to(EXPECTED, pictured.budget(until=key)).go_on()
    return _with_expected(report, course, key), request


def _with_expected(report: DefragReport, course: Course, key: GangKey) -> DefragReport:
    """Return a report with when its gang starts without moves."""
    assert report.start is not None, "it starts"
    found = next((e for e in estimates(course) if GangKey(e.namespace, e.name) == key), None)
    if found is None:
        return report
    start = replace(report.start, expected=found.at, why=found.why)
    return replace(report, start=start)


@dataclass
class _Advice:
    """A picture at rest: all starts that could be made without moves are made."""

    world: World
    course: Course
    steps: int
    found: dict[GangKey, Moves] = field(default_factory=dict)

    def on(self, wanted: GangKey | None) -> DefragReport:
        """Return the best plan for what is wanted."""
        taken = stamp(self.course.began)
        chosen = self._named(wanted) if wanted is not None else self._first()
        if not chosen:
            return DefragReport(taken, why="no gang waits for room on nodes")
        under_way = self._preempted()
        if under_way:
            return DefragReport(taken, why=under_way)
        waits = [each.key for each in self.course.waiting]
        listed = list_movable(self._known, self.world.moment, waits)
        tried = [self._plan(each, listed) for each in chosen]
        best = max(tried, key=_gain)
        left = [LeftOutReport(k.namespace, k.name, why) for k, why in listed.left_out.items()]
        return _with(best, tuple(str(e.key) for e in chosen), tuple(left), tuple(listed.notes))

    @property
    def _known(self) -> Known:
        return self.world.state.known

    # ---- which gang

    def _named(self, key: GangKey) -> list[Waiting]:
        found = next((each for each in self.course.waiting if each.key == key), None)
        if found is not None and key not in self.course.starts:
            return [found]
        if key in self.course.starts:
            raise Fault(f"{key}: there is room for it: the next cycle admits it, without moves")
        if key in self._known.views or key in self._known.cache.sources:
            raise Fault(f"{key}: it does not wait; allowed: a gang that waits for room")
        some = ", ".join(str(each.key) for each in self.course.waiting[:5]) or "none"
        raise Fault(f"{key}: there is no such gang; those that wait: {some}")

    def _first(self) -> list[Waiting]:
        left = (e for e in self.course.waiting if e.key not in self.course.starts)
        return [e for e in left if e.reason == Reason.INSUFFICIENT_RESOURCES][:MOST_TRIED]

    def _preempted(self) -> str:
        memory = self._known.cycles.memory
        found = memory.preemptions if memory is not None else ()
        if not found:
            return ""
        return f"gangs are being stopped for {found[0].preemptor}: ask again once they are gone"

    # ---- one gang

    def _plan(self, waits: Waiting, listed: Listed) -> DefragReport:
        taken, gang = stamp(self.course.began), self._known.cycles.waiting.gang(waits.key)
        if gang is None or waits.reason != Reason.INSUFFICIENT_RESOURCES:
            return DefragReport(taken, why=_other_reason(waits))
        existing = existing_pods(self._known) if self._known.cache.has_pod_constraints else None
        kept = why_not(gang, existing) or ("it mounts volumes" if gang.mounts_volumes else "")
        if kept:
            return DefragReport(taken, why=f"no moves are sought for {waits.key}: {kept}")
        room = FreeCapacity.of(self._known.cache.columns())
        short = _short(gang, room)
        if short:
            return DefragReport(taken, why=f"no moves help {waits.key}: {short}")
        tree = self._known.cycles.waiting.tree
        found = cheapest_moves(gang, Running(listed.movables, room, tree, existing), self.steps)
        if not isinstance(found, Moves):
            said = _none(waits.key, gang, room, listed, is_certain=found.is_certain)
            return DefragReport(taken, why=said, is_cheapest=found.is_certain)
        self.found[waits.key] = found
        return self._report(waits, gang, found, listed)

    def _report(
        self, waits: Waiting, gang: PendingGang, found: Moves, listed: Listed
    ) -> DefragReport:
        waited = int(max(0.0, self.world.moment.wall - gang.created))
        start = StartReport(
            waits.key.namespace,
            waits.key.name,
            waits.queue,
            _devices(gang),
            waited,
            _nodes(found.start),
            "",
            "",
        )
        return DefragReport(
            stamp(self.course.began),
            start,
            tuple(_move(each, listed) for each in _in_order(found.moves)),
            lost_gpu_hours=_hours(found.lost),
            is_cheapest=found.is_cheapest,
        )


def _with(
    report: DefragReport,
    tried: tuple[str, ...],
    left_out: tuple[LeftOutReport, ...],
    notes: tuple[str, ...],
) -> DefragReport:
    return replace(report, tried=tried, left_out=left_out, notes=notes)


def _gain(report: DefragReport) -> tuple[bool, float, int]:
    """Sort the best last: GPUs that start for each GPU-hour that is lost, then who waited."""
    if report.start is None:
        return False, 0.0, 0
    each = report.start.gpus / max(report.lost_gpu_hours, 1 / 3600)
    return True, each, report.start.waited_seconds


# ---- why not


def _other_reason(waits: Waiting) -> str:
    said = f"{waits.reason}: {waits.message}" if waits.reason else "it does not ask for room yet"
    return f"no moves help {waits.key}: it does not wait for room on nodes alone: {said}"


def _short(gang: PendingGang, room: FreeCapacity) -> str:
    """Say what all nodes together have too little of, which no move changes."""
    for resource, amount in sorted(requests_of(gang.minimum).items(), key=_devices_first):
        row = room.columns.row.get(resource)
        free = exact_sum(np.maximum(room.free[row], 0)) if row is not None else 0
        if free < amount:
            needed = amount_up(resource, amount)
            return f"it needs {needed}, and {amount_down(resource, free)} are free on all nodes"
    return ""


def _devices_first(each: tuple[str, int]) -> tuple[bool, str]:
    return not is_device(each[0]), each[0]


def _none(
    key: GangKey, gang: PendingGang, room: FreeCapacity, listed: Listed, *, is_certain: bool
) -> str:
    asked = sorted(requests_of(gang.minimum).items(), key=_devices_first)
    resource, amount = asked[0]
    free = exact_sum(np.maximum(room.free[room.columns.row[resource]], 0))
    numbers = f"it needs {amount_up(resource, amount)} of {amount_down(resource, free)} free"
    may, kept = len(listed.movables), len(listed.left_out)
    if not is_certain:
        return f"no moves were found for {key} before the search ended at its bound: {numbers}"
    return (
        f"no moves help {key}: {numbers}, and does not fit with any of the {may} gangs moved that "
        f"may be; {kept} may not"
    )


# ---- a plan


def _in_order(moves: Sequence[Move]) -> list[Move]:
    """Order moves: the largest first, which is the hardest to place."""
    return sorted(moves, key=lambda each: (-gpus_of(each.gang.parts), str(each.gang.key)))


def _move(move: Move, listed: Listed) -> MoveReport:
    key, since = move.gang.key, listed.since[move.gang.key]
    pods = Counter(node for part in move.gang.parts for node, _ in part.room)
    return MoveReport(
        key.namespace,
        key.name,
        move.gang.parts[0].queue,
        gpus_of(move.gang.parts),
        _hours(move.gang.lost),
        stamp(since.at),
        since.is_checkpoint,
        tuple(PlacedReport(node, count) for node, count in sorted(pods.items())),
        _nodes(move.to),
    )


def _nodes(placement: Placement) -> tuple[PlacedReport, ...]:
    found: Counter[str] = Counter()
    for node, pods in _spread(placement):
        found[node] += pods
    return tuple(PlacedReport(node, pods) for node, pods in sorted(found.items()))


def _spread(placement: Placement) -> Iterator[tuple[str, int]]:
    for each in placement.assignments:
        yield from each.nodes


def _devices(gang: PendingGang) -> int:
    asked: Iterable[tuple[str, int]] = requests_of(gang.minimum).items()
    return sum(amount for resource, amount in asked if is_device(resource))


def _hours(lost: int) -> float:
    return round(lost / MICRO, 2)
