"""Runs a simulated cluster forward: gangs end as expected, and Muster's own rules decide the rest.

Between two ends time alone is let pass where a gang ages, or has a setback that ends. Bounded by a
budget: what has not happened by then is left to an estimate from the rate.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf

from coordinator.gang.view import GangView
from coordinator.messages.events import Event
from forecast.copied import copied
from forecast.course import Course, Running, Start, Waiting
from forecast.devices import Giving
from forecast.lengths import EXPECTED, Expectations, Lengths, learned_of
from forecast.waiting_statuses import leave_out_moved_numbers
from forecast.world import World
from kube.codec.observed_pod import ObservedPod
from scheduling.diagnosis.holes import GpuPools, Pool, pools
from scheduling.model.amounts import is_device
from scheduling.model.gang import GangKey, PendingGang

LOOKS = (600.0, 7200.0, 86400.0)
"""Seconds after an end at which is looked whether the setback of a gang is over."""

MOST_STEPS = 20_000


@dataclass(slots=True)
class Budget:
    """How far to run: CPU seconds by `spent`, moments, and starts; until `until` has started."""

    seconds: float = inf
    spent: Callable[[], float] = lambda: 0.0
    steps: int = MOST_STEPS
    starts: float = inf
    until: GangKey | None = None

    def allows(self, course: Course) -> bool:
        """Say whether there is any of it left."""
        if self.until is not None and self.until in course.starts:
            return False
        return self.steps > 0 and len(course.starts) < self.starts and self.has_time

    @property
    def has_time(self) -> bool:
        """Say whether there are CPU seconds left."""
        return self.spent() < self.seconds


@dataclass(slots=True)
class Forward:
    """A world that is led is run forward once; gangs are taken to run for so long."""

    world: World
    budget: Budget
    lengths: Lengths = EXPECTED
    course: Course = field(init=False)
    _expectations: Expectations = field(init=False)
    _ends: list[tuple[float, int, GangKey]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)
    _waits: set[GangKey] = field(default_factory=set)
    _set_back: set[GangKey] = field(default_factory=set)
    """Those of them that come later, for a time, because a start of theirs failed."""
    _runs: dict[GangKey, float] = field(default_factory=dict)
    """The gangs that run, with the end that they are run to."""
    _leaving: list[tuple[float, str, ObservedPod]] = field(default_factory=list)
    """Pods that are being deleted, with when they are gone and their uids."""

    def go_on(self) -> Course:
        """Run it on from its beginning; returns what came of it."""
        while self.budget.allows(self.course) and self._waits:
            at = self._next_moment()
            if at == inf:
                self.course.finished = True
                break
            self.budget.steps -= 1
            self._step(at)
        self.course.finished |= not self._waits
        return self.course

    # ---- the beginning

    def begin(self) -> None:
        """Have all decided that can be at once; until here no duration matters."""
        world, known = self.world, self.world.state.known
        self.course = Course(world.moment.wall, world.moment.wall)
        self._expectations = Expectations(self.lengths, learned_of(known))
        self._waits = {key for key, view in known.views.items() if _waits(view)}
        running = [view for view in known.views.values() if _has_room(view)]
        self.course.running = {view.key: self._expected(view) for view in running}
        for key, each in self.course.running.items():
            self._plan(key, each)
        world.tell(list(self._under_way()), lambda: self.budget.has_time)
        self.course.waiting = tuple(sorted(map(self._waiting, self._waits), key=_place))
        leave_out_moved_numbers(known)
        self._line_up({*self._waits, *known.views})
        self._settle(())
        views = ((key, known.views.get(key)) for key in self._runs)
        self.course.lacking = frozenset(
            key for key, view in views if view and view.asks_for_minimum
        )
        self.course.pools = _pools(world)

    def with_lengths(self, lengths: Lengths, budget: Budget) -> "Forward":
        """Return a forecast of its own that goes on from this beginning, with other durations."""
        return self._going_on(copied(self.world), lengths, budget)

    def turned_to(self, lengths: Lengths, budget: Budget) -> "Forward":
        """Return the same, of this very world: nothing else goes on from it then."""
        return self._going_on(self.world, lengths, budget)

    def _going_on(self, world: World, lengths: Lengths, budget: Budget) -> "Forward":
        found = Forward(world, budget, lengths)
        found._expectations = replace(self._expectations, lengths=lengths)
        found._waits, found._set_back = set(self._waits), set(self._set_back)
        found._leaving = list(self._leaving)
        views = found.world.state.known.views
        runs = {key: found._expected(views[key]) for key in self._runs}
        for key, each in runs.items():
            found._plan(key, each)
        mine = self.course
        found.course = replace(
            mine,
            running={key: runs.get(key, each) for key, each in mine.running.items()},
            starts=dict(mine.starts),
            stops=dict(mine.stops),
            started={key: runs.get(key, each) for key, each in mine.started.items()},
        )
        return found

    def _under_way(self) -> Iterator[Event]:
        """Bind what was released, and note when pods go that are being deleted."""
        giving = Giving(self.world.state.known)
        for pod in list(self.world.state.known.cache.pods.values()):
            if pod.terminating:
                heapq.heappush(self._leaving, (pod.ends_by, pod.uid, pod))
            elif pod.member is not None and not pod.node and pod.settled_on:
                yield from self.world.bound(pod, pod.settled_on, giving)

    def _waiting(self, key: GangKey) -> Waiting:
        view = self.world.state.known.views.get(key)
        if view is None:
            return Waiting(key, "", 0)
        asks, (reason, message) = isinstance(view.queueing.asked, PendingGang), _said(view)
        return Waiting(key, _queue(view), view.queueing.position, asks, reason, message)

    # ---- one moment

    def _next_moment(self) -> float:
        """Return when something happens next; infinite where nothing does."""
        while self._ends and self._runs.get(self._ends[0][2]) != self._ends[0][0]:
            heapq.heappop(self._ends)  # of a gang that was stopped meanwhile
        ends = [heap[0][0] for heap in (self._ends, self._leaving) if heap]
        happens, wall = min(ends, default=inf), self.world.moment.wall
        if happens < inf:
            happens = max(happens, wall)
        return min((at for at in self._looks() if wall < at < happens), default=happens)

    def _looks(self) -> Iterator[float]:
        """Yield when time alone may start a gang: the setback of one ends, or one ages."""
        known = self.world.state.known
        yield known.cycles.ages.next_due
        if self._set_back:
            yield from (self.course.reached + each for each in LOOKS)

    def _step(self, at: float) -> None:
        events: list[Event] = []
        ended: list[GangKey] = []
        self.world.pass_to(at)
        leaving: list[ObservedPod] = []
        while self._leaving and self._leaving[0][0] <= at:
            leaving.append(heapq.heappop(self._leaving)[2])
        events += self.world.gone(leaving)
        while self._ends and self._ends[0][0] <= at:
            until, _, key = heapq.heappop(self._ends)
            if self._runs.get(key) == until:
                del self._runs[key]
                ended.append(key)
                events += self.world.end(key)
        if events:
            self.course.reached = at
        self.world.tell(events, lambda: self.budget.has_time)
        self._line_up({*ended, *self.world.placed, *self.world.put_back, *self._set_back})
        self._settle(tuple(ended))

    def _line_up(self, keys: Iterable[GangKey]) -> None:
        """Note which of some gangs wait, and which of them are set back."""
        views = self.world.state.known.views
        for key in keys:
            view = views.get(key)
            waits = view is not None and _waits(view)
            asked = view.queueing.asked if view is not None and waits else None
            is_set_back = isinstance(asked, PendingGang) and bool(asked.setbacks)
            (self._waits.add if waits else self._waits.discard)(key)
            (self._set_back.add if is_set_back else self._set_back.discard)(key)
        self.world.put_back.clear()

    def _settle(self, ended: tuple[GangKey, ...]) -> None:
        """Note which gangs started and which stopped."""
        known, wall = self.world.state.known, self.world.moment.wall
        for key in [key for key in self._runs if not _is_there(known.views.get(key))]:
            del self._runs[key]
            self.course.stops.setdefault(key, wall)
        for key in sorted(self.world.placed, key=str):
            view = known.views.get(key)
            if view is not None and _has_room(view) and key not in self._runs:
                found = self._expected(view)
                self._plan(key, found)
                self.course.starts.setdefault(key, Start(wall, ended))
                self.course.started.setdefault(key, found)
        self.world.placed.clear()

    # ---- ends

    def _expected(self, view: GangView) -> Running:
        world = self.world
        return self._expectations.of(view, world.state.known, world.moment.wall)

    def _plan(self, key: GangKey, found: Running) -> None:
        self._runs[key] = found.ends
        if found.ends < inf:
            heapq.heappush(self._ends, (found.ends, next(self._numbers), key))


def _waits(view: GangView) -> bool:
    return view.looked_at and view.waits_for_room


def _has_room(view: GangView) -> bool:
    """Whether a gang runs, or has the room to."""
    placed = view.reservation.placement is not None or view.survey.ran
    return placed and not view.is_finished


def _is_there(view: GangView | None) -> bool:
    return view is not None and _has_room(view)


def _queue(view: GangView) -> str:
    return view.understood.terms.queue if view.understood.terms is not None else ""


def _said(view: GangView) -> tuple[str, str]:
    refusal, asked = view.queueing.refusal, view.queueing.asked
    said = refusal or asked
    return str(getattr(said, "reason", "")), str(getattr(said, "message", ""))


def _place(found: Waiting) -> tuple[str, bool, int, str]:
    return found.queue, not found.position, found.position, str(found.key)


def _pools(world: World) -> tuple[Pool, ...]:
    columns = world.state.known.cache.columns()
    devices = tuple(each for each in columns.resources if is_device(each))
    return tuple(pools(columns, {}, GpuPools(devices, world.state.known.gpu_pools.labels)))
