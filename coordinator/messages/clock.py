"""Converts deadlines to monotonic seconds, and sets how long a repair waits before it acts."""

from dataclasses import dataclass, field

from runtime.controller.moment import Moment


@dataclass(slots=True)
class Deadlines:
    """Deadlines by what they are for, from seconds since 1970 to monotonic ones.

    Each is turned over once, when it is first met with, and again where it is another one: a clock
    that is set meanwhile ends nothing before its time, and nothing long after it. A new leader goes
    by its own clock.
    """

    _met: dict[str, tuple[float, float]] = field(default_factory=dict)

    def at(self, what: str, wall: float, moment: Moment) -> float:
        """Return the monotonic seconds of a deadline that is in seconds since 1970."""
        met = self._met.get(what)
        if met is None or met[0] != wall:
            met = self._met[what] = wall, moment.now + wall - moment.wall
        return met[1]


MOST_DOUBLINGS = 5  # of a setback, which is then 32 times as long


@dataclass(frozen=True, slots=True)
class Patience:
    """Deadlines of the repair, in seconds."""

    bind: float = 30.0
    """Until a released pod that kube-scheduler calls unschedulable is deleted."""

    torn: float = 300.0
    """Until a gang that lost a part before it ever ran whole gives the rest back."""

    slot: float = 600.0
    """Until the slot of a lost pod ends for which no replacement comes."""

    arrival: float = 100.0
    """Until a request that was sent can change nothing any more (`reconcile.pod_writes.fences`)."""

    setback: float = 600.0
    """Until a gang has its place again that gave its room back: a release was refused, or its start
    was late. Doubled with each one in a row.
    """

    refusal: float = 600.0
    """Until a node on which kube-scheduler refused a pod is tried again for pods of its shape.

    Longer than a gang stays torn: all else is tried first.
    """

    def setback_after(self, count: int) -> float:
        """Return how long a gang is set back that gave its room back so often in a row."""
        return self.setback * 2.0 ** max(0, min(count - 1, MOST_DOUBLINGS))
