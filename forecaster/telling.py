"""Selects the estimates to write into Gangs: new ones, those that moved, and old ones.

The Gangs themselves hold all that it needs to know of earlier rounds. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from coordinator.record.status import pruned
from forecast.course import Course
from forecast.estimates import stamp
from forecast.expected import ExpectedReport, ForecastReport, Sure
from forecast.moved import why_later
from kube.codec.fields import moment_of
from kube.codec.pod_patches import JsonPatch, Operation
from kube.objects.expected_start import GangEstimate, GangExpectedStart
from kube.objects.gang import Gang
from scheduling.diagnosis.amount_texts import lasting
from scheduling.model.gang import GangKey

FIRST = 20
"""Gangs whose estimates are kept fresh, by the order of their starts."""
LATER = 10
"""Those of others are written anew so many times more seldom."""
MOVED_SHARE = 0.05
"""Of the time until the start: by less an estimate moves without being written at once."""
MOST_WRITES = 200
"""In one round: the rest of them has its turn in the next."""
LEAST_WAIT = 60.0
"""Seconds: of shorter waits a share would say nothing."""
MOST_TEXT = 1024
PATH = "/status/expectedStart"


class Write(NamedTuple):
    """What becomes of the estimate of one Gang; None takes it away."""

    key: GangKey
    uid: str
    estimate: GangExpectedStart | None

    @property
    def operations(self) -> JsonPatch:
        """Return the patch of the status: of this very Gang, and of nothing else in it."""
        same: Operation = {"op": "test", "path": "/metadata/uid", "value": self.uid}
        if self.estimate is None:
            return [same, {"op": "remove", "path": PATH}]
        said = pruned(msgspec.to_builtins(self.estimate))
        return [same, {"op": "add", "path": PATH, "value": said}]


class Started(NamedTuple):
    """A gang that started: where in the range it was told first, and how far off that was.

    The error is a share of the wait since then; None where no time was told, or the wait was short.
    """

    told: str
    error: float | None


@dataclass(frozen=True, slots=True)
class Telling:
    """The Gangs of one picture, and what the forecast of it says of them."""

    gangs: Mapping[GangKey, Gang]
    report: ForecastReport
    course: Course
    moved: float = 60.0
    refresh: float = 60.0

    def writes(self) -> list[Write]:
        """Return what is to be written now, the most urgent first."""
        found = sorted(self._due(), key=lambda each: (self._urgency(each), str(each.key)))
        return [*self._taken_away(), *found][:MOST_WRITES]

    def started(self) -> Iterator[Started]:
        """Yield the gangs that started since they were told."""
        for gang in self.gangs.values():
            told, at = gang.status.expected_start, _admitted(gang)
            if told is not None and gang.status.placement is not None and at:
                yield _held_against(told, at)

    # ---- which

    def _waiting(self) -> Iterator[tuple[Gang, ExpectedReport]]:
        """Yield the gangs that wait for room, with their estimates."""
        asks = {each.key for each in self.course.waiting if each.asks}
        for each in self.report.gangs:
            key = GangKey(each.namespace, each.name)
            gang = self.gangs.get(key)
            if gang is not None and key in asks and gang.status.placement is None:
                yield gang, each

    def _taken_away(self) -> Iterator[Write]:
        waits = {_key(gang) for gang, _ in self._waiting()}
        for key, gang in self.gangs.items():
            told = gang.status.expected_start is not None
            if told and key not in waits and not self._was_read_before_it_started(key, gang):
                yield Write(key, gang.metadata.uid, None)

    def _was_read_before_it_started(self, key: GangKey, gang: Gang) -> bool:
        # Its pods were read later and run: the start counts once its Gang says when it was.
        return may_wait(gang) and key in self.course.running

    def _due(self) -> Iterator[Write]:
        first = self._first()
        for gang, said in self._waiting():
            key, old = _key(gang), gang.status.expected_start
            every = self.refresh * (1 if key in first else LATER)
            if old is None and said.sure is Sure.NOW:
                continue  # it is admitted before anyone reads that
            if old is None or self._is_old(old, every) or self._has_moved(old, said):
                yield Write(key, gang.metadata.uid, self._told(key, said, old))

    def _first(self) -> frozenset[GangKey]:
        starts = sorted(self.course.starts.items(), key=lambda each: (each[1].at, str(each[0])))
        return frozenset(key for key, _ in starts[:FIRST])

    def _is_old(self, old: GangExpectedStart, every: float) -> bool:
        return self.course.began - moment_of(old.as_of) >= every

    def _has_moved(self, old: GangExpectedStart, said: ExpectedReport) -> bool:
        if said.sure is Sure.NOW:
            return False
        if not (old.time and said.at):
            return bool(old.time) != bool(said.at)
        new = moment_of(said.at)
        least = max(self.moved, MOVED_SHARE * (new - self.course.began))
        return abs(new - moment_of(old.time)) >= least

    def _urgency(self, write: Write) -> tuple[bool, float]:
        """Those of which nothing was told come first, then those that were told longest ago."""
        old = self.gangs[write.key].status.expected_start
        return old is not None, moment_of(old.as_of) if old is not None else 0.0

    # ---- what

    def _told(
        self, key: GangKey, said: ExpectedReport, old: GangExpectedStart | None
    ) -> GangExpectedStart:
        taken = self.report.taken
        earliest, latest = self._range(said, old)
        now = GangEstimate(said.at, earliest, latest, taken)
        first = (old.first if old is not None else None) or (now if said.at else None)
        new = GangExpectedStart(
            said.at,
            earliest,
            latest,
            taken,
            basis=said.sure.value,
            reason=said.why[:MOST_TEXT],
            first=first,
        )
        return replace(new, moved=self._why_moved(key, new, old.moved if old else ""))

    def _range(self, said: ExpectedReport, old: GangExpectedStart | None) -> tuple[str, str]:
        """Return the range; one that was not worked out is as wide as it was."""
        if said.earliest or old is None or not (said.at and old.time and old.earliest):
            return said.earliest, said.latest
        moved = moment_of(said.at) - moment_of(old.time)
        earliest = max(self.course.began, moment_of(old.earliest) + moved)
        return stamp(earliest), stamp(moment_of(old.latest) + moved) if old.latest else ""

    def _why_moved(self, key: GangKey, new: GangExpectedStart, before: str) -> str:
        """Say why it is later than was told first by more than its range; "" where it is not."""
        first = new.first
        if first is None or not (first.latest and new.time):
            return ""
        later = moment_of(new.time) - moment_of(first.time)
        if new.time <= first.latest:
            return ""
        since = moment_of(first.as_of)
        created = {each: moment_of(g.metadata.creation_timestamp) for each, g in self.gangs.items()}
        why = why_later(key, since, self.course, created)
        return f"{lasting(later)} later than told at {first.as_of}: {why}" if why else before


def gangs_by_key(found: Iterable[Gang]) -> Mapping[GangKey, Gang]:
    """Return Gangs by namespace and name."""
    return {_key(each): each for each in found}


def may_wait(gang: Gang) -> bool:
    """Say whether a gang may wait for room, by its Gang alone."""
    return gang.status.placement is None and gang.status.phase not in _OVER


_OVER = ("Running", "Failed", "Finished")


def nothing_waits(gangs: Iterable[Gang], now: float) -> Telling:
    """Return what is to be done where no gang waits: estimates of those that started go."""
    report = ForecastReport(stamp(now), stamp(now), finished=True, cpu_seconds=0.0)
    return Telling(gangs_by_key(gangs), report, Course(now, now, finished=True))


def bases(telling: Telling) -> Sequence[str]:
    """Return what the estimates of all waiting gangs are based on."""
    return [each.sure.value for each in telling.report.gangs]


def _key(gang: Gang) -> GangKey:
    return GangKey(gang.metadata.namespace, gang.metadata.name)


def _admitted(gang: Gang) -> float:
    """Return when a gang got its room; 0 where it has none."""
    found = (each for each in gang.status.conditions if each.type == "Admitted")
    return next((moment_of(e.last_transition_time) for e in found if e.status == "True"), 0.0)


def _held_against(told: GangExpectedStart, at: float) -> Started:
    first = told.first
    if first is None or not first.time:
        return Started("untold", None)
    earliest, latest = moment_of(first.earliest or first.time), moment_of(first.latest)
    within = "inside" if earliest <= at and (not latest or at <= latest) else "outside"
    where = within if within == "inside" else "earlier" if at < earliest else "later"
    wait = at - moment_of(first.as_of)
    error = abs(at - moment_of(first.time)) / wait if wait >= LEAST_WAIT else None
    return Started(where, error)
