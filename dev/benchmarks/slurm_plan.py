"""Plans starts as Slurm does, a baseline for estimates that shares no code with them.

Gangs that wait get, in their order, the earliest time at which they fit for as long as they said,
beside all that run and all that were planned before. One that outlives what it said is taken to
end at twice its age, which is kinder than a limit that kills.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Asked:
    """So many workers with so many GPUs each, for so many seconds."""

    workers: int
    gpus: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Holding:
    """What runs: until when, and how many GPUs on which node."""

    until: float
    on: Sequence[int]
    gpus: int


class Plan:
    """How many GPUs are free on each node, from one moment to the next."""

    def __init__(self, now: float, free: Sequence[int], running: Iterable[Holding]) -> None:
        self._times = [now]
        self._free: list[npt.NDArray[np.int64]] = [np.array(free, dtype=np.int64)]
        for each in running:
            self._change(max(now, each.until), float("inf"), each.on, each.gpus)

    def add(self, asked: Asked) -> float | None:
        """Plan a gang; returns when it starts, None where it never fits."""
        for at, start in enumerate(self._times):
            until = start + asked.seconds
            last = int(np.searchsorted(self._times, until))
            nodes = _place(np.min(self._free[at:last], axis=0), asked)
            if nodes is not None:
                self._change(start, until, nodes, -asked.gpus)
                return start
        return None

    def _change(self, start: float, until: float, nodes: Sequence[int], by: int) -> None:
        first, last = self._cut(start), self._cut(until) if until < float("inf") else None
        for free in self._free[first:last]:
            free[list(nodes)] += by

    def _cut(self, when: float) -> int:
        """Return the place of a moment, which becomes one at which something changes."""
        at = int(np.searchsorted(self._times, when))
        if at == len(self._times) or self._times[at] != when:
            self._times.insert(at, when)
            self._free.insert(at, self._free[at - 1].copy())
        return at


def _place(free: npt.NDArray[np.int64], asked: Asked) -> Sequence[int] | None:
    """Choose the fullest nodes that do."""
    fits = [int(node) for node in np.argsort(free, kind="stable") if free[node] >= asked.gpus]
    return fits[: asked.workers] if len(fits) >= asked.workers else None
