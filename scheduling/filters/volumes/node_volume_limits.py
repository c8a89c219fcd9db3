"""NodeVolumeLimits: counts the volumes that a node can attach as a resource.

Plugin NodeVolumeLimits refuses a pod where the disks of a driver would be more than the node's
CSINode says. Per driver that has such a limit anywhere nodes have a made-up resource, and a pod
takes one of it per disk. A disk that several pods of a node share is counted for each of them
that waits or is assumed, and once for all that are there: that can refuse, and never overcommits.
Where nothing else might be in a gang's way, that is no refusal for good
(`is_short_of_shared`).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from scheduling.model.amounts import LIMIT, Amounts
from scheduling.model.pod import Mount
from scheduling.state.node_snapshot import NodeSnapshot

ATTACH = "attach:"
"""What the names of all these resources begin with."""


class SharedDisk(NamedTuple):
    """A disk that other pods may mount too: behind a claim, or one that pods name themselves."""

    driver: str
    mount: Mount


SharedDisks = Mapping[SharedDisk, frozenset[tuple[str, str]]]
"""Disks that are counted more often than nodes attach them, with pod sets and keys of shapes."""


def attach_row(driver: str) -> str:
    """Name the resource that counts the disks of a driver."""
    return ATTACH + driver


def is_attach(resource: str) -> bool:
    """Say whether the resource is one made up for disks."""
    return resource.startswith(ATTACH)


def disk_in_words(resource: str) -> str:
    """Name the resource for messages."""
    return f"attachable {resource.removeprefix(ATTACH)} (NodeVolumeLimits)"


def counted(
    columns: NodeSnapshot, limits: Mapping[str, int], taken: Mapping[str, int]
) -> tuple[Amounts, Amounts]:
    """Return what nodes take of a driver's disks, and how many they have, in order of the columns.

    A node without a limit takes any number.
    """
    most = [limits.get(name, LIMIT) for name in columns.names]
    have = [min(taken.get(name, 0), LIMIT) for name in columns.names]
    return np.array(most, dtype=np.int64), np.array(have, dtype=np.int64)
