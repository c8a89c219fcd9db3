"""The moment of a step, and how long is waited for what may mend itself."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """When events are handled: monotonic seconds for deadlines, an RFC 3339 stamp for people.

    `wall` is the same moment in seconds since 1970, to be held against the stamps of others.
    """

    now: float
    stamp: str
    wall: float = 0.0


@dataclass(frozen=True, slots=True)
class Patience:
    """Deadlines of the repair, in seconds."""

    bind: float = 30.0
    """Until a released pod that kube-scheduler calls unschedulable is deleted."""

    torn: float = 300.0
    """Until a gang that lost a part before it ever ran whole gives the rest back."""

    slot: float = 600.0
    """Until the slot of a lost pod ends for which no replacement comes."""

    setback: float = 600.0
    """Until a gang that gave its room back because a release was refused has its place again."""

    refusal: float = 600.0
    """Until a node on which kube-scheduler refused a pod is tried again for pods of its shape.

    Longer than a gang stays torn: all else is tried first.
    """
