"""Holds what goes wrong with the pods of one gang, and since when."""

from dataclasses import dataclass, field

from coordinator.gang.pods.adoption import Rounds
from coordinator.gang.pods.kept_slots import Kept, Start


@dataclass(frozen=True, slots=True)
class MissingPods:
    """How many pods there are while some are missing, and when KubeRay is asked to look again."""

    exist: int
    fits: bool
    """A ResourceQuota refused them, and has room for them now."""
    due: float | None


@dataclass(frozen=True, slots=True)
class AwaitedDevices:
    """Pods whose release waits until it is known which devices those before them got."""

    pods: frozenset[str] = frozenset()
    unclaimed: str = ""
    """Says what claim of devices is not made yet, of a pod that has a slot."""


@dataclass(frozen=True, slots=True)
class BelowMinimum:
    """When a gang that ran lost a part of its minimum that is not back on nodes."""

    since: Start
    text: str = ""
    """Says of one that lacks it for good that it goes on without, and why."""


@dataclass(slots=True)
class Repairs:
    """What goes wrong with pods of the gang, and since when.

    Written by `gang.repair`, `reconcile.repair`, `reconcile.pod_writes.deletions` and, where a part
    is lost for good, by `reconcile.setbacks.below_minimum`.
    """

    stuck_since: dict[str, float] = field(default_factory=dict)
    torn_since: float | None = None
    lost_room: bool = False
    """Slots were dropped since their room was not there any more; others may have taken it."""
    devices: AwaitedDevices = AwaitedDevices()
    rounds: Rounds = field(default_factory=Rounds)
    """When pods that Muster did not release may be deleted."""
    unmade: MissingPods | None = None
    bind_refusal: str = ""
    """What kube-scheduler said of late against a pod on its node."""
    settled: frozenset[str] | None = None
    """Pods that were released or bound at the last look; None: there was none yet."""
    kept: Kept = field(default_factory=Kept)
    """The slots of lost pods."""
    had: dict[str, int] = field(default_factory=dict)
    """By pod set how many pods of its minimum a gang that ran has had: what it lacks is lost."""
    below: BelowMinimum | None = None
