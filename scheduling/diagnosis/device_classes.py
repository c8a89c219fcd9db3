"""Names missing resources that nodes may give through a DeviceClass which Muster does not judge.

kube-scheduler (feature DRAExtendedResource) asks a node's devices for an extended resource of which
the node itself has none. So where a class offers the resource, a pod that does not fit by what
nodes list may fit all the same.
"""

from collections.abc import Iterator, Sequence

from scheduling.diagnosis.partial_fit import Wanted
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.pod import PodShape

_REMEDY = (
    "only devices in a node's status.allocatable are counted: ask for others by claim, or add "
    "nodes that list them there"
)


def allocated_otherwise(wanted: Sequence[Wanted], room: FreeCapacity) -> Iterator[str]:
    """Yield what pods ask for that feasible nodes without any of it may give by a class."""
    if not room.columns.claimable:
        return
    judged = room.devices.nodes.facts.resources if room.devices is not None else ()
    for pod_set, shape, _ in wanted:
        asked = (name for name, _ in shape.requests if name not in judged)
        names = [name for name in asked if name in room.columns.claimable]
        lacking = [name for name in names if _is_lacking(name, shape, room)]
        if lacking:
            yield f"{pod_set}: {', '.join(lacking)} through a DeviceClass ({_REMEDY})"


def _is_lacking(resource: str, shape: PodShape, room: FreeCapacity) -> bool:
    """Say whether some feasible node has none at all; kube-scheduler asks its devices then."""
    row = room.columns.row.get(resource)
    nodes = feasible(shape, room.columns)
    lacking = nodes if row is None else nodes & (room.columns.allocatable[row] == 0)
    return bool(lacking.any())
