"""Limits how many gangs are released at one time, and chooses the next one.

A gang holds room and does not run from its first bound pod to its last. kube-scheduler takes
released pods by priority and then by age, whichever gang they belong to. So all gangs that are
released together are partly bound for a time. Only a few gangs are released at one time, in the
order of their admission, and so no gang before another that its pods have affinity to. Meanwhile
the other gangs have their placement written and their room reserved.

A slow gang must not hold up the rest: a volume may take a minute until its pod can be bound. So a
gang gives its place to the next when it makes no step for a second longer than kube-scheduler
usually pauses. Binds teach how long these pauses are, and each gang that is given up halves the
learned time. Time is an argument.
"""

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass

from coordinator.gang.view import GangView
from scheduling.model.gang import GangKey

UNDER_WAY = 8
"""Gangs released at one time. kube-scheduler needs some pods ahead to be busy; more only wait."""

SLACK = 1.0
"""Seconds beyond the usual pause after which a gang that makes no step does not count any more."""

LONGEST_PAUSE = 10.0
"""Seconds that are taken for a usual pause, at most."""

Rank = tuple[int, float, float, str]
"""Where a gang stands: when it was admitted, its priority, negated, when it was created, its name.

A leader does not know in which order an earlier one admitted gangs: those have the same number.
"""


@dataclass(slots=True)
class _Start:
    """When the last step of a gang was, and the longest pause that a bound pod has ended.

    One that is given up takes no place any more.
    """

    since: float
    pause: float | None = None
    given_up: bool = False


class Window:
    """The gangs under way, a few of them, and the line of those that wait for a place."""

    def __init__(self) -> None:
        self._under_way: dict[GangKey, _Start] = {}
        self._line: list[tuple[Rank, GangKey]] = []
        self._ranks: dict[GangKey, Rank] = {}
        self._pause = 0.0

    def __contains__(self, key: GangKey) -> bool:
        return key in self._under_way or key in self._ranks

    @property
    def has_line(self) -> bool:
        """Whether gangs wait for a place."""
        return bool(self._line)

    def has_in_line(self, key: GangKey) -> bool:
        """Whether a gang waits for a place."""
        return key in self._ranks

    def admits(self, key: GangKey, rank: Rank, now: float) -> bool:
        """Whether a gang may be released; if not yet, it has a place in the line from now on."""
        if key in self._under_way:
            return True
        if not self._line and self._free > 0:
            self._under_way[key] = _Start(now)
            return True
        if self._ranks.get(key) != rank:
            self._leave_line(key)
            self._ranks[key] = rank
            insort(self._line, (rank, key))
        return False

    def call(self, now: float) -> list[GangKey]:
        """Let in the first of the line, as many as there are places; returns them."""
        free = max(0, self._free)
        called = [key for _, key in self._line[:free]]
        del self._line[:free]
        for key in called:
            del self._ranks[key]
            self._under_way[key] = _Start(now)
        return called

    def step(self, key: GangKey, now: float) -> None:
        """Note that the gang goes on: a pod of it was released, or a request is under way."""
        if (start := self._under_way.get(key)) is not None:
            start.since = now

    def bound(self, key: GangKey, now: float) -> None:
        """Note that a pod of the gang was bound."""
        if (start := self._under_way.get(key)) is not None:
            start.pause = max(start.pause or 0.0, now - start.since)
            start.since = now
            if start.given_up:  # too early
                self._pause = max(self._pause, min(LONGEST_PAUSE, start.pause))

    def leave(self, key: GangKey) -> None:
        """Forget a gang that is bound, or that has nothing to release any more."""
        self._leave_line(key)
        start = self._under_way.pop(key, None)
        if start is not None and start.pause is not None and not start.given_up:
            self._pause = min(LONGEST_PAUSE, start.pause)

    def overdue(self, now: float) -> list[GangKey]:
        """Name the gangs that have made no step for too long."""
        return [key for key, start in self._counted() if self._end_of(start) <= now]

    def give_up(self, key: GangKey) -> None:
        """Give away the place of a gang that is overdue."""
        if (start := self._under_way.get(key)) is not None:
            start.given_up = True
            self._pause /= 2

    @property
    def next_end(self) -> float | None:
        """When the next gang is overdue, if nothing happens."""
        return min((self._end_of(start) for _, start in self._counted()), default=None)

    @property
    def _free(self) -> int:
        return UNDER_WAY - sum(1 for _ in self._counted())

    def _counted(self) -> Iterator[tuple[GangKey, _Start]]:
        return ((key, start) for key, start in self._under_way.items() if not start.given_up)

    def _end_of(self, start: _Start) -> float:
        return start.since + self._pause + SLACK

    def _leave_line(self, key: GangKey) -> None:
        if (rank := self._ranks.pop(key, None)) is not None:
            self._line.remove((rank, key))


def is_starting(view: GangView) -> bool:
    """Whether a gang has pods to release, or that are released and not bound yet.

    Not one whose release fails, for it is not known when it will go on; nor one whose minimum is
    bound: it can run.
    """
    if not view.survey.durable or is_failing(view) or _can_run(view):
        return False
    on_their_way = any(not pod.node for each in view.survey.standing for pod in each.settled)
    return (
        on_their_way
        or bool(view.pod_writes.inflight)
        or any(each.free for each in view.survey.standing)
    )


def is_failing(view: GangView) -> bool:
    """Whether a write to a pod of the gang has failed and not succeeded since."""
    return any(tried.failures for tried in view.pod_writes.attempts.values())


def _can_run(view: GangView) -> bool:
    return all(each.bound >= each.terms.minimum for each in view.survey.standing)
