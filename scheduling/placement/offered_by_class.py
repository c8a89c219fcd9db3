"""Treats a resource that a DeviceClass provides as if the nodes listed it.

A node that lists none of the resource offers one unit for each of its devices that no claim has,
whatever the class. Its pods cannot get more, so a placement beyond that is ruled out. Whether the
class selects these devices is checked for a placement that fits (`scheduling.devices`).
"""

from collections.abc import Sequence
from functools import partial
from itertools import chain

import numpy as np

from scheduling.devices.room import DeviceRoom
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import LIMIT, Mask
from scheduling.model.devices.class_requests import resources_of
from scheduling.model.gang import PendingGang
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot


def as_offered(gang: PendingGang, room: FreeCapacity) -> FreeCapacity:
    """Return the room as the pods of a gang find it; itself where no class gives them anything."""
    asked = {group.shape.restrictions.by_class for group in gang.groups()}
    resources = tuple(sorted(set(chain.from_iterable(map(resources_of, asked)))))
    if not resources or room.devices is None:
        return room
    return room.remembered(("offered", resources), partial(_offered, room, resources, room.devices))


def _offered(room: FreeCapacity, resources: Sequence[str], devices: DeviceRoom) -> FreeCapacity:
    columns, free = room.columns, room.free
    new = [name for name in resources if name not in columns.row]
    if new:
        nothing = np.zeros(len(columns.names), dtype=np.int64)
        columns = columns.with_rows(dict.fromkeys(new, (nothing, nothing)))
        free = np.vstack((free, np.zeros((len(new), len(columns.names)), dtype=np.int64)))
    allocatable, free = columns.allocatable.copy(), free.copy()
    given = np.minimum(devices.nodes.numbers_on(columns.nodes), LIMIT)
    for name in resources:
        row, lacking = columns.row[name], lists_none(name, columns.traits)
        allocatable[row, lacking] = free[row, lacking] = given[lacking]
    offered = NodeSnapshot(
        columns.traits,
        columns.resources,
        allocatable,
        allocatable - free,
        claimable=columns.claimable,
        free=free,
        ports=columns.ports,
    )
    return FreeCapacity(offered, free, room.grown, room.ports, devices)


def lists_none(resource: str, traits: NodeAttributes) -> Mask:
    """Return the nodes of which kube-scheduler asks the devices for a resource that a class gives.

    The mask is shared, never to be written.
    """
    return traits.remembered(
        ("lists none", resource),
        lambda: np.array([not node.allocatable.get(resource) for node in traits.nodes], np.bool_),
    )


def as_left_by(before: FreeCapacity, offered: FreeCapacity, after: FreeCapacity) -> FreeCapacity:
    """Return the room, less what was taken of it as it was offered: `after` is left of that."""
    if offered is before:
        return after
    rows = len(before.columns.resources)
    taken = offered.free[:rows] - after.free[:rows]
    at = np.flatnonzero(taken.any(axis=0))
    return before.less(at, taken[:, at], after.ports, after.devices)
