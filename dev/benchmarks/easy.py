"""Simulates EASY backfilling on nodes: a floor for the rule `Backfill` that shares no code with it.

Gangs wait in the order in which they came. The first that does not fit has a start: the earliest
time at which it would, if the running ones end when they said; one that outlives that is taken to
end at twice its age. Another gang goes before it if it ends by then, or leaves it its room then.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

Free = list[int]


@dataclass(frozen=True, slots=True)
class Gang:
    """A gang of so many workers with so many GPUs each; times in seconds."""

    arrives: float
    runs: float
    told: float
    workers: int
    gpus: int


@dataclass(frozen=True, slots=True)
class _Running:
    gang: Gang
    began: float
    nodes: tuple[int, ...]

    def ends(self, now: float) -> float:
        told = self.began + self.gang.told
        return told if told > now else 2 * now - self.began


class Easy:
    """The nodes, and the gangs that wait and run."""

    def __init__(self, nodes: int, gpus: int) -> None:
        self._free: Free = [gpus] * nodes
        self._waiting: list[tuple[int, Gang]] = []
        self._running: dict[int, _Running] = {}
        self._ends: list[tuple[float, int]] = []

    def waits(self, gangs: Sequence[Gang]) -> list[float]:
        """Return how long each gang waits; they are given in the order in which they come."""
        for at, gang in enumerate(gangs):
            self._pass(gang.arrives)
            self._waiting.append((at, gang))
            self._decide(gang.arrives)
        self._pass(float("inf"))
        return [self._running[at].began - gang.arrives for at, gang in enumerate(gangs)]

    def _pass(self, until: float) -> None:
        """Let gangs end until a time."""
        while self._ends and self._ends[0][0] <= until:
            now, at = heapq.heappop(self._ends)
            _give_back(self._free, self._running[at])
            self._decide(now)

    def _decide(self, now: float) -> None:
        first, left = None, []
        for at, gang in self._waiting:
            nodes = _place(self._free, gang)
            if nodes is None and first is None:
                first = self._first_start(gang, now)
            if nodes is None or (first is not None and not first.lets(gang, nodes, now)):
                left.append((at, gang))
            else:
                self._running[at] = _Running(gang, now, nodes)
                heapq.heappush(self._ends, (now + gang.runs, at))
                _take(self._free, gang, nodes)
        self._waiting = left

    def _first_start(self, gang: Gang, now: float) -> "_Start":
        """Return when a gang would start, and what is free then."""
        then, ends = list(self._free), {at for _, at in self._ends}
        running = sorted((self._running[at].ends(now), at) for at in ends)
        for end, at in running:
            _give_back(then, self._running[at])
            if _place(then, gang) is not None:
                return _Start(gang, end, then)
        raise ValueError(f"{gang}: does not fit the empty nodes")


@dataclass(slots=True)
class _Start:
    gang: Gang
    at: float
    then: Free

    def lets(self, other: Gang, nodes: tuple[int, ...], now: float) -> bool:
        """Say whether another gang may start; if so and it stands then, it is counted."""
        if now + other.told <= self.at:
            return True
        beside = list(self.then)
        _take(beside, other, nodes)
        if min(beside) < 0 or _place(beside, self.gang) is None:
            return False
        self.then = beside
        return True


def _place(free: Free, gang: Gang) -> tuple[int, ...] | None:
    """Return the fullest nodes that take the workers, one a worker; None where too few do."""
    able = sorted((left, at) for at, left in enumerate(free) if left >= gang.gpus)
    places = [at for left, at in able for _ in range(left // gang.gpus)]
    return tuple(places[: gang.workers]) if len(places) >= gang.workers else None


def _take(free: Free, gang: Gang, nodes: Sequence[int]) -> None:
    for at in nodes:
        free[at] -= gang.gpus


def _give_back(free: Free, running: _Running) -> None:
    for at in running.nodes:
        free[at] += running.gang.gpus
