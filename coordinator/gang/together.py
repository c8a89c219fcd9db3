"""Holds what the leader knows of a gang that starts together with others."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from kube.objects.gang import GangTogether
from kube.ray.together import Together
from scheduling.model.gang import PendingGang


class PlacedSet(NamedTuple):
    """The gangs that were placed at once, by name, and the stamp that all their records get."""

    stamp: str = ""
    members: tuple[str, ...] = ()
    uids: tuple[str, ...] = ()
    """What each member is counted by, in their order: the uid of its owner, or its own."""


ALONE = PlacedSet()
"""That of a gang that was placed by itself."""


@dataclass(slots=True)
class Membership:
    """The gang as a member of its group. Written by `reconcile.together` and by `gang_looks`."""

    group: Together | None = None
    asks: PendingGang | None = None
    """What it asks for of its own; None while it is not ready to start with the others."""
    begun: bool = False
    """All placements were recorded: from then on it goes on alone, whatever becomes of others."""
    due_beside: int | None = None
    """The first release wave of which a pod of another member is not bound; None where the pods
    of all are released at once."""
    shown: tuple[object, ...] = ()
    """What the others saw of it last."""
    goes_on: str = ""
    """Says that it goes on though it was to end with others, and why; by `ended_members`."""


def together_json(group: Together | None, placed: PlacedSet) -> dict[str, Any]:
    """Write down the group of a gang, and with which others it was placed."""
    said: dict[str, Any] = {}
    if group is not None:
        said |= {"name": group.name, "size": group.size}
    if placed.stamp:
        said |= {"stamp": placed.stamp, "members": list(placed.members)}
        said |= {"memberUids": list(placed.uids)} if placed.uids else {}
    return said


def set_recorded(written: GangTogether | None) -> PlacedSet:
    """Read with which others a gang was placed."""
    if written is None or not written.stamp:
        return ALONE
    return PlacedSet(written.stamp, tuple(written.members), tuple(written.member_uids))
