"""Says whether a gang may be refused only because shared disks are counted once per pod."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.volumes.node_volume_limits import SharedDisks, attach_row
from scheduling.model.gang import Group
from scheduling.model.shape.node_restrictions import without_disks
from scheduling.placement.independent import cannot_fit, demand_of


def is_short_of_shared(groups: Iterable[Group], shared: SharedDisks, room: FreeCapacity) -> bool:
    """Say whether the groups may not fit only because shared disks are counted once per pod.

    They do not fit in any case where they do not with none of these disks counted, and the count
    does no harm where every node has enough of them for all pods that could go there.
    """
    pairs = [(group, _without(group, shared)) for group in groups]
    if cannot_fit(demand_of(bare for _, bare in pairs), room):
        return False
    rows = sorted({attach_row(disk.driver) for disk in shared})
    return any(_may_be_short(row, pairs, room) for row in rows)


def _without(group: Group, shared: SharedDisks) -> Group:
    """Return a group whose pods do not take the disks that they share."""
    mounting = group.pod_set, group.shape.key
    disks = Counter(attach_row(disk.driver) for disk, by in shared.items() if mounting in by)
    return replace(group, shape=without_disks(group.shape, disks))


def _may_be_short(row: str, pairs: Iterable[tuple[Group, Group]], room: FreeCapacity) -> bool:
    """Say whether pods that could go to some node take more by this count than is left."""
    needed = np.zeros(len(room.columns.names), dtype=np.int64)
    for group, bare in pairs:
        amount = dict(group.shape.requests).get(row, 0)
        needed += np.minimum(room.counts(bare.shape), group.count) * amount
    left = room.left(row)
    return left is not None and bool(np.any((needed > 0) & (needed > left)))
