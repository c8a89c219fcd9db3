"""Which gangs are being started, and which is next?

From its first bound pod to its last a gang holds room and does not run. kube-scheduler takes the
pods that are released by priority and then by age, whichever gang they are of: so of gangs that are
released together all are partly bound for a time. Few are released at one time, in the order of
the queue; the others have their placement written meanwhile, and their room is reserved.

What takes long with one gang must not hold up the rest: a volume may take a minute until its pod
can be bound. So a gang that makes no step for a second longer than kube-scheduler pauses otherwise
gives its place to the next. Time is an argument.
"""

from bisect import insort
from dataclasses import dataclass

from coordinator.view import GangView
from scheduling.model import GangKey

UNDER_WAY = 8
"""Gangs released at one time. kube-scheduler needs some pods ahead to be busy; more only wait."""

SLACK = 1.0
"""Seconds beyond the usual pause after which a gang that makes no step does not count any more."""

LONGEST_PAUSE = 10.0
"""Seconds that are taken for a usual pause, at most."""

Rank = tuple[float, float, str]
"""Where a gang stands in the queue: its priority, negated, when it was created, and its name."""


@dataclass(slots=True)
class _Start:
    """When the last step of a gang was, and the longest pause that a bound pod has ended."""

    since: float
    pause: float | None = None


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

    def admits(self, key: GangKey, rank: Rank, now: float) -> bool:
        """Whether a gang may be released; if not yet, it has a place in the line from now on."""
        if key in self._under_way:
            return True
        if not self._line and len(self._under_way) < UNDER_WAY:
            self._under_way[key] = _Start(now)
            return True
        if self._ranks.get(key) != rank:
            self._leave_line(key)
            self._ranks[key] = rank
            insort(self._line, (rank, key))
        return False

    def call(self, now: float) -> list[GangKey]:
        """Let in the first of the line, as many as there are places; returns them."""
        free = max(0, UNDER_WAY - len(self._under_way))
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

    def leave(self, key: GangKey) -> None:
        """Forget a gang that is bound, or that has nothing to release any more."""
        self._leave_line(key)
        start = self._under_way.pop(key, None)
        if start is not None and start.pause is not None:
            self._pause = min(LONGEST_PAUSE, start.pause)

    def overdue(self, now: float) -> list[GangKey]:
        """Name the gangs that have made no step for too long."""
        return [key for key, start in self._under_way.items() if self._end_of(start) <= now]

    def give_up(self, key: GangKey) -> None:
        """Forget a gang that is overdue; how long it takes says nothing of kube-scheduler."""
        self._under_way.pop(key, None)

    @property
    def next_end(self) -> float | None:
        """When the next gang is overdue, if nothing happens."""
        return min(map(self._end_of, self._under_way.values()), default=None)

    def _end_of(self, start: _Start) -> float:
        return start.since + self._pause + SLACK

    def _leave_line(self, key: GangKey) -> None:
        if (rank := self._ranks.pop(key, None)) is not None:
            self._line.remove((rank, key))


def is_starting(view: GangView) -> bool:
    """Whether a gang has pods to release, or that are released and not bound yet.

    One whose release is refused is none: nobody knows when it will go on.
    """
    if not view.durable or any(tried.refusal for tried in view.attempts.values()):
        return False
    on_their_way = any(not pod.node for each in view.standing for pod in each.settled)
    return on_their_way or bool(view.inflight) or any(each.free for each in view.standing)
