"""Places pods that claim devices: where room and devices are there for all, and in which waves.

What is free else bounds the pods of each shape on each node; which of them get their devices, and
in which order they have to come, is foreseen for the whole (`scheduling.devices`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from scheduling.devices.gang import ClaimGroup, Foreseen, NodeOffer, NoPlacement, foresee
from scheduling.devices.mixes import Unknown
from scheduling.devices.room import DeviceRoom
from scheduling.devices.steps import StepBudget
from scheduling.filters.free_capacity import Distribution, FreeCapacity
from scheduling.model.amounts import LIMIT
from scheduling.placement.exact_search import Demand

DEVICE_STEPS = 100
"""Steps of a search that one look at a device, or at one mix of pods, counts as."""


@dataclass(frozen=True, eq=False, slots=True)
class PlacedWithDevices:
    """One distribution and one release wave per shape of the demand, and the room that is left."""

    distributions: tuple[Distribution, ...]
    waves: tuple[int, ...]
    room: FreeCapacity


Outcome = PlacedWithDevices | NoPlacement | Unknown


def place_with_devices(
    demand: Demand, room: FreeCapacity, devices: DeviceRoom, steps: int
) -> tuple[Outcome, int]:
    """Place all of the demand or nothing of it, in so many steps; return what it took of them."""
    resources = sorted({name for shape, _ in demand for name, _ in shape.requests})
    groups = [
        ClaimGroup(shape.restrictions.claims, count, _amounts(dict(shape.requests), resources))
        for shape, count in demand
    ]
    offers = _offers(demand, resources, room, devices)
    budget = StepBudget(max(0, steps) // DEVICE_STEPS)
    found = foresee(groups, offers, devices.rules, budget)
    spent = min(steps, steps - budget.left * DEVICE_STEPS)
    if isinstance(found, Foreseen):
        return _placed(demand, room, devices, found), spent
    return found, spent


def _amounts(requests: Mapping[str, int], resources: Sequence[str]) -> tuple[int, ...]:
    return tuple(min(requests.get(each, 0), LIMIT) for each in resources)


def _offers(
    demand: Demand, resources: Sequence[str], room: FreeCapacity, devices: DeviceRoom
) -> Iterator[NodeOffer]:
    """Yield the nodes that take a pod of the demand, with what of the resources is free there."""
    counts = np.array([room.counts(shape) for shape, _ in demand])
    zero = np.zeros(counts.shape[1], dtype=np.int64)
    lefts = [room.left(each) for each in resources]
    free = np.array([zero if left is None else left for left in lefts])
    for at in np.flatnonzero(counts.any(axis=0)).tolist():
        node = room.columns.traits.nodes[at]
        most, left = tuple(counts[:, at].tolist()), tuple(free[:, at].tolist())
        pending = devices.pending.get(node.name, ())
        yield NodeOffer(node.name, devices.nodes.of(node), most, left, pending)


def _placed(
    demand: Demand, room: FreeCapacity, devices: DeviceRoom, found: Foreseen
) -> PlacedWithDevices:
    index = room.columns.index
    distributions = []
    for at, (shape, _) in enumerate(demand):
        pods = {node: mix[at] for node, mix in found.placement if mix[at]}
        nodes = np.array([index[node] for node in pods], dtype=np.intp)
        distributions.append(Distribution(nodes, np.array(list(pods.values()), dtype=np.int64)))
        room = room.without(shape, distributions[-1])
        if shape.restrictions.claims:
            devices = devices.with_pods(shape.restrictions.claims, pods)
    return PlacedWithDevices(tuple(distributions), found.waves, room.with_devices(devices))
