"""Of the nodes that could take a pod, which one should, so that whole machines stay free?

The rule, in one place:

1. A pod that asks for no device goes where it leaves the fewest devices idle beside it: nodes
   without devices and nodes whose devices are taken come before idle GPU machines.
2. Then where it costs the rest of its gang least.
3. Then on the tightest node, where the fewest pods of its shape still fit, so that nodes are
   filled up before whole ones are opened.
4. Then by name.
"""

import numpy as np

from scheduling.columns import Amounts, Positions
from scheduling.counting import MOST
from scheduling.model import PodShape
from scheduling.room import Room


def order_nodes(shape: PodShape, room: Room, nodes: Positions, cost: Amounts) -> Positions:
    """Return the nodes in the order in which the shape should fill them.

    `nodes` are positions in order of name that take at least one pod; `cost` says for each what
    the rest of the gang loses by a pod of the shape there.
    """
    keys = (room.counts(shape)[nodes], cost, _idle_devices(shape, room)[nodes])
    telling = [key for key in keys if np.any(key != key[:1])]
    return nodes[np.lexsort(telling)] if telling else nodes


def _idle_devices(shape: PodShape, room: Room) -> Amounts:
    """Return per node how many devices are free; none counts where the shape asks for devices."""
    if any(is_device(resource) for resource, _ in shape.requests):
        return np.zeros(room.free.shape[1], dtype=np.int64)
    return room.remembered("idle devices", lambda: _free_devices(room))


def _free_devices(room: Room) -> Amounts:
    rows = [at for resource, at in room.columns.row.items() if is_device(resource)]
    idle: Amounts = room.free[rows].clip(0, MOST).sum(axis=0)
    return idle


def is_device(resource: str) -> bool:
    """Say whether the resource is an extended one, as device plugins offer them."""
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not domain.endswith("kubernetes.io")
