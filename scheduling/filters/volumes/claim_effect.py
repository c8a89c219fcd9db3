"""How a claim restricts the pods that mount it: nodes, disks, what is not supported."""

from dataclasses import dataclass
from typing import NamedTuple

from scheduling.filters.volumes.node_volume_limits import SharedDisk
from scheduling.model.constraints import VolumeNodeRestriction
from scheduling.model.pod import Mount
from scheduling.model.predicates import Predicate
from scheduling.model.volume import Claim

BINDING = Predicate.VOLUME_BINDING


class Seeker(NamedTuple):
    """A claim that is to be bound to a free volume, and what messages call it.

    Those of ephemeral volumes that are alike are one, without a name, for all pods of a group.
    """

    claim: Claim
    called: str


@dataclass(frozen=True, slots=True)
class Effect:
    """How claims restrict a pod that mounts them.

    `single` names the claims that only one pod may have, with the predicate that says so. `shares`
    are the claims that several pods may have before they are bound, with the labels of nodes that
    say from where their volumes will be reached (None: it is not known). `named` are those among
    the disks that count against a limit which are not of this pod alone. `seekers` are to be bound
    to free volumes. `left_open` names claims that may fit on more nodes than `reach` says.
    """

    reach: tuple[VolumeNodeRestriction, ...] = ()
    drivers: tuple[str, ...] = ()
    unsupported: frozenset[str] = frozenset()
    single: frozenset[tuple[str, Predicate]] = frozenset()
    shares: frozenset[tuple[str, tuple[str, ...] | None]] = frozenset()
    named: frozenset[SharedDisk] = frozenset()
    seekers: frozenset[Seeker] = frozenset()
    left_open: frozenset[str] = frozenset()

    def __add__(self, other: "Effect") -> "Effect":
        """Return the effect of both together."""
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return Effect(
            tuple(dict.fromkeys((*self.reach, *other.reach))),
            tuple(sorted(self.drivers + other.drivers)),
            self.unsupported | other.unsupported,
            self.single | other.single,
            self.shares | other.shares,
            self.named | other.named,
            self.seekers | other.seekers,
            self.left_open | other.left_open,
        )

    @property
    def is_hopeless(self) -> bool:
        """Say whether it leaves no node."""
        return any(not each.terms for each in self.reach)


NOTHING = Effect()
UNKNOWN = Effect(
    unsupported=frozenset({"volumes of pods that have not been seen yet (wait until they are)"})
)

BIND_IT = "bind the claim first with a pod of its own, or use a class that binds immediately"
"""What helps where pods share a claim that is not bound yet."""


def spoken(mount: Mount) -> str:
    """Name what a pod mounts for messages."""
    if not mount.claim:
        return f'disk "{mount.owner}"'
    return f'ephemeral volume "{mount.volume}"' if mount.volume else f'volume claim "{mount.claim}"'


def nowhere(called: str, why: str) -> Effect:
    """Return the effect of a claim that leaves no node, with the reason."""
    return Effect((VolumeNodeRestriction(BINDING, f"{called} {why}", ()),))
