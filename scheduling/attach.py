"""How are the volumes that a node can attach counted like room?

Plugin NodeVolumeLimits refuses a pod where the disks of a driver would be more than the node's
CSINode says. Per driver that has such a limit anywhere nodes have a made-up resource, and a pod
takes one of it per disk. A disk that several pods of a node share is counted for each of them
that waits or has its room promised, and once for all that are there: that can refuse, and never
overcommits. Where nothing else might be in a gang's way, that is no refusal for good
(`is_short_of_shared`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from scheduling.columns import LIMIT, Amounts, Columns
from scheduling.fit import cannot_fit, demand_of
from scheduling.model import Group
from scheduling.resources import sorted_requests
from scheduling.room import Room

ATTACH = "attach:"
"""What the names of all these resources begin with."""


class ClaimDisk(NamedTuple):
    """The disk behind a claim, which other pods of its namespace may mount too."""

    driver: str
    claim: str


SharedDisks = Mapping[ClaimDisk, frozenset[tuple[str, str]]]
"""Disks that are counted more often than nodes attach them, with pod sets and keys of shapes."""


def attach_row(driver: str) -> str:
    """Name the resource that counts the disks of a driver."""
    return ATTACH + driver


def is_attach(resource: str) -> bool:
    """Say whether the resource is one made up for disks."""
    return resource.startswith(ATTACH)


def spoken(resource: str) -> str:
    """Name the resource as people do."""
    return f"attachable {resource.removeprefix(ATTACH)} (NodeVolumeLimits)"


def counted(
    columns: Columns, limits: Mapping[str, int], taken: Mapping[str, int]
) -> tuple[Amounts, Amounts]:
    """Return what nodes take of a driver's disks, and how many they have, in order of the columns.

    A node without a limit takes any number.
    """
    most = [limits.get(name, LIMIT) for name in columns.names]
    have = [min(taken.get(name, 0), LIMIT) for name in columns.names]
    return np.array(most, dtype=np.int64), np.array(have, dtype=np.int64)


def is_short_of_shared(groups: Iterable[Group], shared: SharedDisks, room: Room) -> bool:
    """Say whether it may be only by counting shared disks for each pod that groups do not fit.

    It is not where they do not fit with none of those counted, or where all that could go to a node
    can be counted there.
    """
    pairs = [(group, _without(group, shared)) for group in groups]
    if cannot_fit(demand_of(bare for _, bare in pairs), room):
        return False
    rows = sorted({attach_row(disk.driver) for disk in shared})
    return any(_may_be_short(row, pairs, room) for row in rows)


def _without(group: Group, shared: SharedDisks) -> Group:
    """Return pods that do not take what they share."""
    unit, amounts = (group.pod_set, group.shape.key), dict(group.shape.requests)
    for disk in (disk for disk, units in shared.items() if unit in units):
        amounts[attach_row(disk.driver)] -= 1
    return replace(group, shape=replace(group.shape, requests=sorted_requests(amounts)))


def _may_be_short(row: str, pairs: Iterable[tuple[Group, Group]], room: Room) -> bool:
    """Say whether the pods that could go to some node are counted for more than is left there."""
    needed = np.zeros(len(room.columns.names), dtype=np.int64)
    for group, bare in pairs:
        amount = dict(group.shape.requests).get(row, 0)
        needed += np.minimum(room.counts(bare.shape), group.count) * amount
    left = room.left(row)
    return left is not None and bool(np.any((needed > 0) & (needed > left)))
