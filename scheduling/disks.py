"""How are disks that pods name themselves counted like room?

Plugin VolumeRestrictions refuses a pod whose disk some pod on the node has, unless both only read
it; of Amazon's disks it refuses even that. Per disk a node has WHOLE of a made-up resource: who
writes takes all of it, who reads a single unit. So it is with host ports (`ports`), and like them
it needs no rule of its own where room is counted.
"""

from collections.abc import Iterable
from typing import NamedTuple

from scheduling.ports import WHOLE

_PREFIX = "disk:"


class Disk(NamedTuple):
    """A disk that a pod names, and whether others may read it beside this pod."""

    name: str
    shared: bool = False


def disk_amounts(disks: Iterable[Disk]) -> dict[str, int]:
    """Return what a pod with these disks takes on its node; it never stands in its own way."""
    amounts: dict[str, int] = {}
    for disk in disks:
        row = _PREFIX + disk.name
        amounts[row] = max(amounts.get(row, 0), 1 if disk.shared else WHOLE)
    return amounts


def is_disk(resource: str) -> bool:
    """Say whether the resource is one made up for a disk."""
    return resource.startswith(_PREFIX)


def spoken(resource: str) -> str:
    """Name the disk as people do."""
    return f'disk "{resource.removeprefix(_PREFIX)}" (VolumeRestrictions)'
