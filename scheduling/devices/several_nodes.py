"""Says how many devices that several nodes reach are left, whatever node the pods to come go to."""

from collections.abc import Mapping

from scheduling.devices.counting import FarDevices, counting
from scheduling.devices.node_devices import NodeDevices, requests_of
from scheduling.devices.node_index import Pending
from scheduling.devices.selection import Rules
from scheduling.model.devices.in_use import InUse


class DevicesOfSeveralNodes:
    """What pods on their way, to any node, leave of such devices.

    `pending` are all of them, by node; of a node that is not known nothing is.
    """

    def __init__(
        self, pending: Mapping[str, Pending], nodes: Mapping[str, NodeDevices], rules: Rules
    ) -> None:
        self._pending, self._nodes, self._rules = pending, nodes, rules

    def left(self, devices: FarDevices, in_use: InUse) -> int | None:
        """Return how many are left; None where that depends on an order that is not known."""
        free = sum(each not in in_use for each in devices)
        for name, pods in self._pending.items():
            if not pods:
                continue
            there = self._nodes.get(name)
            taken = None if there is None else self._taken(devices, there, pods)
            if taken is None:
                return None
            free -= taken
        return free

    def _taken(self, devices: FarDevices, there: NodeDevices, pods: Pending) -> int | None:
        """Return how many of these devices pods on their way to one node take."""
        if not there.has_far:
            return 0
        counts = counting([claims for claims, _ in pods], there, self._rules)
        if counts is None:
            return None if self._may_take(devices, there, pods) else 0
        drawn = counts.drawn_from_afar(pods)
        overlaps = any(each != devices and each & devices for each in drawn)
        return None if overlaps else drawn.get(devices, 0)

    def _may_take(self, devices: FarDevices, there: NodeDevices, pods: Pending) -> bool:
        at = [n for n, found in enumerate(there.usable) if found.id in devices]
        asked = (request for claims, _ in pods for request in requests_of(claims))
        return any(there.selections(r, self._rules)[n] is not False for r in asked for n in at)
