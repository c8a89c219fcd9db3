"""Remembers pods that got no node, and says whether one of them would get one now.

kube-scheduler tries a pod that an extender refused again on an event that it watches, or after five
minutes. The end of a reservation is no such event, so `extender/wake.py` makes one.

A pod is remembered until it gets a node, is bound or gone, or is pushed out by newer ones (10,000
pods of 32 MiB). It takes no room meanwhile, so it is kept apart from the pods that were passed
(`extender/memory/in_flight.py`): to forget one costs time and nothing else.
"""

from collections.abc import Iterable

from extender.devices.guard import lacking_on, may_take_devices
from extender.filter import filter_nodes
from extender.memory.in_flight_room import InFlight
from extender.snapshot import Snapshot, WatchedPod
from extender.wire.node_lists import NodeList
from scheduling.state.bounded_cache import MIB, BoundedCache

LIMIT = 10_000
BYTES = 32 * MIB
"""Beyond these bounds the oldest pods are forgotten, and any room that comes free wakes all.

A pod that is gone before it is noted here has no further event; it is forgotten as the oldest.
"""


def _offering(asked: WatchedPod, names: list[str], snapshot: Snapshot) -> NodeList:
    """Return the nodes that list what the pod asks for, or may give it by a class.

    Of others kube-scheduler does not ask.
    """
    nodes, index, by_class = snapshot.bound.traits.nodes, snapshot.bound.index, None
    left = []
    for name in names:
        lacking = lacking_on(asked.pod.used, nodes[index[name]])
        if lacking and by_class is None:
            by_class = snapshot.devices.resources
        if not lacking or all(each in (by_class or ()) for each, _ in lacking):
            left.append(name)
    return NodeList(left)


class UnscheduledPods:
    """The pods that were refused everywhere at their last attempt."""

    def __init__(self) -> None:
        self._pods: BoundedCache[str, WatchedPod] = BoundedCache(BYTES, most=LIMIT)
        self._unknown = True  # pods that an earlier process refused

    def __len__(self) -> int:
        return len(self._pods)

    def note(self, asked: WatchedPod) -> None:
        """The pod got no node."""
        self._unknown |= not self._pods.keep(asked.pod.uid, asked)

    def forget(self, uid: str) -> None:
        """The pod got a node, was bound, or is gone."""
        self._pods.forget(uid)

    def woken(self) -> None:
        """All are tried again."""
        self._unknown = False

    @property
    def ask_for_devices(self) -> bool:
        """Whether one of them asks for devices by claim, or may be given some for a resource."""
        return any(may_take_devices(asked.pod) for _, asked in self._pods.items())

    def any_fits(self, nodes: Iterable[str], snapshot: Snapshot, in_flight: InFlight) -> bool:
        """Whether one of them would get one of these nodes, by all that is known here."""
        names = [name for name in nodes if name in snapshot.bound.index]
        if self._unknown and names:
            return True
        return any(
            filter_nodes(asked, _offering(asked, names, snapshot), snapshot, in_flight).passed
            for asked in self._different(snapshot)
        )

    def _different(self, snapshot: Snapshot) -> Iterable[WatchedPod]:
        """One pod for each answer that can differ; members of gangs each for itself."""
        found: dict[object, WatchedPod] = {}
        for uid, asked in self._pods.items():
            own = snapshot.gang_of(asked.pod) is not None
            claims = snapshot.devices.claims(asked.pod) if asked.pod.claims else ()
            alike = asked.pod.used, asked.priority, claims
            found[uid if own or claims is None else alike] = asked
        return found.values()
