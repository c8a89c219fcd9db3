"""Guards devices that several nodes reach: a pod must leave enough for the gangs on all of them.

A pod on one node takes them from pods on another. So they are counted over all nodes, and where
counting gives no answer, the pod is kept off.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from extender.devices.coming import Coming
from scheduling.devices.counting import DevicesOfSeveralNodes, FarDevices, counting
from scheduling.devices.keeping import OnTheWay, leaves_enough
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.node_index import NodeDevicesIndex, Pending
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.asked import requests_of
from scheduling.model.devices.in_use import NOTHING
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims

InFlightByUid = Mapping[str, Claims | None]
"""What passed pods claim, wherever they may be; None where that is not known."""

HERE = "here"


class FarDemand:
    """What pods that come to any node take of such devices.

    `bound` are the pods of no gang that are on nodes and have devices which no object tells of.
    """

    def __init__(
        self,
        coming: Mapping[str, Coming],
        bound: Iterable[tuple[str, Claims]],
        index: NodeDevicesIndex,
        nodes: Mapping[str, Node],
    ) -> None:
        self.index = index
        self._bound = tuple(bound)
        names = {*coming, *(name for name, _ in self._bound)}
        there = {name: index.of(nodes[name]) for name in names if name in nodes}
        self._there = {name: found for name, found in there.items() if found.has_far}
        self._coming = {name: each for name, each in coming.items() if name in self._there}
        self._rules = index.rules
        self._left_of: dict[FarDevices, int | None] = {}

    @cached_property
    def wanted(self) -> Set[DeviceID]:
        """Return the devices that pods of gangs which are to come may take."""
        found = set[DeviceID]()
        for name, each in self._coming.items():
            for claims in {claims for *_, claims in each.decided}:
                found |= _may_take(claims, self._there[name], self._rules)
            if each.unread:
                found |= {one.id for one in self._there[name].usable if not one.local}
        return found

    def leaves_enough(
        self, asked: Claims, node: NodeDevices, in_flight: InFlightByUid, steps: StepBudget
    ) -> bool:
        """Say whether a pod on a node leaves what is decided anywhere; False where not sure."""
        if not (node.has_far and self.wanted & _may_take(asked, node, self._rules)):
            return True
        counts = counting((asked,), node, self._rules, steps)
        unread = any(each.unread for each in self._coming.values()) or None in in_flight.values()
        if counts is None or unread:
            return False
        mine = {HERE: tuple((claims, 1) for claims in self._others(in_flight))}
        here = DevicesOfSeveralNodes(mine, {HERE: node}.get, self._rules)
        for devices, number in counts.drawn_from_afar([(asked, 1)]).items():
            if self.wanted.isdisjoint(devices):
                continue
            left, taken = self._left(devices, node, steps), here.left(devices, NOTHING, steps)
            if left is None or taken is None or left - (len(devices) - taken) < number:
                return False
        return True

    def _left(self, devices: FarDevices, node: NodeDevices, steps: StepBudget) -> int | None:
        if devices not in self._left_of:
            self._left_of[devices] = self._everywhere.left(devices, node.in_use, steps)
        return self._left_of[devices]

    def _others(self, in_flight: InFlightByUid) -> Sequence[Claims]:
        """Return the claims of passed pods that are not among those decided."""
        decided = {uid for each in self._coming.values() for _, _, uid, _ in each.decided}
        return [claims for uid, claims in in_flight.items() if claims and uid not in decided]

    @cached_property
    def _everywhere(self) -> DevicesOfSeveralNodes:
        pending: dict[str, Pending] = {}
        for name, each in self._coming.items():
            decided = (claims for *_, claims in each.decided)
            pending[name] = tuple(Counter((*decided, *each.bound)).items())
        for name, claims in self._bound:
            if name in self._there and name not in self._coming:
                pending[name] = (*pending.get(name, ()), (claims, 1))
        return DevicesOfSeveralNodes(pending, self._there.get, self._rules)


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges one pod on nodes to which the same pods come."""

    asked: Claims
    there: OnTheWay
    far: FarDemand | None
    in_flight: InFlightByUid

    def passes(self, node: NodeDevices, rules: Rules, steps: StepBudget) -> bool:
        """Say whether the pod leaves what is decided on the node and, of far devices, anywhere."""
        there, far = self.there, self.far
        is_free = not (there.waves or there.unread)
        return (is_free or leaves_enough(self.asked, there, node, rules, steps)) and (
            far is None or far.leaves_enough(self.asked, node, self.in_flight, steps)
        )


def _may_take(claims: Claims, node: NodeDevices, rules: Rules) -> set[DeviceID]:
    """Return the devices that several nodes reach and that a pod may be given."""
    found = set[DeviceID]()
    for asked in requests_of(claims):
        answers = node.selections(asked, rules)
        for each, answer in zip(node.usable, answers, strict=True):
            if not each.local and answer is not False:
                found.add(each.id)
    return found
