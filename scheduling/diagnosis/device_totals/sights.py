"""Finds devices that belong to no single node: claims share them, or several nodes reach them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from scheduling.devices.class_resources import STEPS_OF_ALL, Foreseeing
from scheduling.devices.counting import FarDevices, counting
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.node_index import NodeDevicesIndex, Pending
from scheduling.devices.pools import PoolDevice
from scheduling.devices.selection import Rules
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.model.devices.in_use import InUse
from scheduling.model.node import Node


class Sight(NamedTuple):
    """Devices of one `pool` that some nodes see alike, by their positions in what one node reaches.

    `after` is what is in use there once the pods on their way have theirs.
    """

    pool: str
    nodes: int
    found: NodeDevices
    at: tuple[int, ...]
    after: InUse


def sights(
    nodes: Iterable[Node],
    devices: NodeDevicesIndex,
    pending: Mapping[str, Pending],
    pool_of: Callable[[Node], str],
) -> Iterator[Sight]:
    """Yield shared devices by node, in the node's pool, then far ones in that of their driver."""
    far: defaultdict[Hashable, list[Sight]] = defaultdict(list)
    foreseeing = Foreseeing(devices.rules)
    for node in nodes:
        found = devices.of(node)
        shared = tuple(n for n, each in enumerate(found.usable) if each.shared and each.local)
        if shared:
            after = foreseeing.in_use_after(found, pending.get(node.name, ()))
            yield Sight(pool_of(node), 1, found, shared, after)
        if found.has_far:
            for key, at in _far_by_pool(found).items():
                ids = tuple(found.usable[n].id for n in at)
                far[key, ids].append(Sight(key, 1, found, tuple(at), found.in_use))
    for alike in far.values():
        yield alike[0]._replace(nodes=len(alike))


def _far_by_pool(found: NodeDevices) -> Mapping[str, list[int]]:
    by_pool: defaultdict[str, list[int]] = defaultdict(list)
    for n, each in enumerate(found.usable):
        if is_far(each):
            by_pool[each.id.pool].append(n)
    return by_pool


def is_far(each: PoolDevice) -> bool:
    """Say whether several nodes reach a device, the one that sees it among them."""
    return each.reached and not each.local


def drawn_from_afar(
    nodes: Iterable[Node], devices: NodeDevicesIndex, pending: Mapping[str, Pending]
) -> Mapping[FarDevices, int]:
    """Return how many far devices pods on their way take, by set, where counting says it.

    Nodes to which it does not get within the steps of one count are left out.
    """
    drawn: Counter[FarDevices] = Counter()
    steps = StepBudget(STEPS_OF_ALL)
    for node in nodes:
        pods = pending.get(node.name, ())
        try:
            drawn.update(_drawn_on(devices.of(node), pods, devices.rules, steps) if pods else {})
        except OutOfSteps:
            break
    return drawn


def _drawn_on(
    found: NodeDevices, pods: Pending, rules: Rules, steps: StepBudget
) -> Mapping[FarDevices, int]:
    if not found.has_far:
        return {}
    counts = counting([claims for claims, _ in pods], found, rules, steps)
    return counts.drawn_from_afar(pods) if counts else {}
