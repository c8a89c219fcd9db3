"""Remembers pods that got no node, and whether one of them would get one now.

kube-scheduler tries a pod that an extender refused again when something in the cluster changes
that it watches, or after five minutes. The end of a reservation is nothing that it watches.
"""

from collections.abc import Iterable

from extender.filter import filter_nodes
from extender.memory.in_flight_room import Recall
from extender.snapshot import Seen, Snapshot
from extender.wire.node_lists import NodeList
from scheduling.state.bounded_cache import MIB, BoundedCache

LIMIT = 10_000
BYTES = 32 * MIB
"""More refused pods than this are not told apart: any room that comes free then wakes the oldest.

One may be gone before it is noted here, so that nobody tells of its end; it ends as the oldest.
"""


class Refusals:
    """The pods that were refused everywhere at their last attempt."""

    def __init__(self) -> None:
        self._pods: BoundedCache[str, Seen] = BoundedCache(BYTES, most=LIMIT)
        self._unknown = True  # whom an earlier process refused

    def __len__(self) -> int:
        return len(self._pods)

    def note(self, asked: Seen) -> None:
        """The pod got no node."""
        self._unknown |= not self._pods.keep(asked.pod.uid, asked)

    def forget(self, uid: str) -> None:
        """The pod got a node, was bound, or is gone."""
        self._pods.forget(uid)

    def woken(self) -> None:
        """All were made to try again."""
        self._unknown = False

    def any_fits(self, nodes: Iterable[str], snapshot: Snapshot, recall: Recall) -> bool:
        """Whether one of them would get one of these nodes, by all that is known here."""
        names = [name for name in nodes if name in snapshot.bound.index]
        if self._unknown and names:
            return True
        there = NodeList(names)
        return any(
            filter_nodes(asked, there, snapshot, recall).passed
            for asked in self._different(snapshot)
        )

    def _different(self, snapshot: Snapshot) -> Iterable[Seen]:
        """One pod for each answer that can differ; members of gangs each for itself."""
        found: dict[object, Seen] = {}
        for uid, asked in self._pods.items():
            own = snapshot.gang_of(asked.pod) is not None
            found[uid if own else (asked.pod.used, asked.priority)] = asked
        return found.values()
