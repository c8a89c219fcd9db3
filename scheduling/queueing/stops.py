"""Finds stopped queues: by their own `spec.stop`, or that of a queue above, they admit nothing new.

Other queues borrow the quota that a stopped queue does not use, because its gangs ask for none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scheduling.model.queue import Queue, Stop

STRENGTH = {stop: at for at, stop in enumerate(Stop)}


@dataclass(frozen=True, slots=True)
class StoppedBy:
    """How a queue is stopped, and the queue of which `spec.stop` says so: itself or one above."""

    queue: str
    stop: Stop

    @property
    def drains(self) -> bool:
        """Say whether what runs is stopped too."""
        return self.stop is Stop.HOLD_AND_DRAIN

    def in_words(self, queue: str) -> str:
        """Say that a queue is stopped, and by which field of which GangQueue."""
        above = "" if queue == self.queue else f" of GangQueue {self.queue} above it"
        return f"GangQueue {queue} is stopped (spec.stop: {self.stop}{above})"


def stops(queues: Mapping[str, Queue]) -> dict[str, StoppedBy]:
    """Return what stops each stopped queue: the strongest word, and of equal ones the nearest."""
    found = {name: _stopped_by(name, queues) for name in queues}
    return {name: by for name, by in found.items() if by.stop is not Stop.NONE}


def _stopped_by(name: str, queues: Mapping[str, Queue]) -> StoppedBy:
    said = (StoppedBy(each, queues[each].stop) for each in _upwards(name, queues))
    return max(said, key=lambda by: STRENGTH[by.stop])


def _upwards(name: str, queues: Mapping[str, Queue]) -> Iterator[str]:
    """Yield a queue and those above it, of a circle of parents each once."""
    seen: set[str] = set()
    while name in queues and name not in seen:
        seen.add(name)
        yield name
        name = queues[name].parent
