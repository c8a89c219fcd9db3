"""Counts for GangQueues how many pods of 1, 2, 4 and 8 GPUs still fit on nodes that they may use.

Tenants may not list nodes: the status of their queue is all that they see of the room. The room
changes with every pod of the cluster, so the queues take turns, each queue seldom, and only while
something changed since its last turn.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from scheduling.diagnosis.holes import Holes, holes
from scheduling.model.amounts import Mask
from scheduling.queueing.queue_nodes import Labels, NodeRules
from scheduling.state.node_snapshot import NodeSnapshot

EACH = 30.0
"""Seconds from one turn of a queue to its next at the least."""

PAUSE = 1.0
"""Seconds from one turn to the next, whatever the number of queues."""

ANY_NODE = NodeRules()


class QueueHoles:
    """The holes of all queues at one moment; counted when they are first asked for.

    `read` returns the nodes at that time, and what of them is counted. It may be a view that later
    events change.
    """

    def __init__(
        self,
        read: Callable[[], tuple[NodeSnapshot, Sequence[str]]],
        rules: Mapping[str, NodeRules],
    ) -> None:
        self._read, self._rules = read, rules

    @cached_property
    def _counted(self) -> tuple[NodeSnapshot, Mapping[str, Holes]]:
        nodes, resources = self._read()
        return nodes, {each: holes(nodes, each) for each in resources if each in nodes.row}

    def of(self, queue: str) -> list[dict[str, Any]]:
        """Return the holes of one queue as its status has them, by resource and size."""
        rules = self._rules.get(queue, ANY_NODE)
        nodes, by_resource = self._counted
        return [
            {"resource": resource, "size": size, "pods": typical, "atMost": at_most}
            for resource, found in by_resource.items()
            for size, typical, at_most in found.on(_mask(nodes, rules.labels_for([resource])))
        ]


def _mask(nodes: NodeSnapshot, labels: Labels) -> Mask:
    """Return the nodes that have all these labels."""
    wanted = np.ones(len(nodes.names), dtype=np.bool_)
    for key, value in labels:
        wanted &= nodes.traits.label(key).among((value,))
    return wanted


class HoleTurns:
    """Whose turn it is, in the order of names. Time is an argument.

    `came` are the queues whose turn has come and that were not looked at since.
    """

    def __init__(self) -> None:
        self.came: set[str] = set()
        self._last = ""
        self._left = 0
        self._edition = -1
        self._free_at = float("-inf")

    @property
    def next_at(self) -> float | None:
        """When the next turn is; None while nothing moved since the last of each queue."""
        return self._free_at if self._left else None

    def moved(self, edition: int, queues: int) -> None:
        """Note the edition of nodes and use: where it is a new one, each queue has a turn again."""
        self._left = queues if edition != self._edition else min(self._left, queues)
        self._edition = edition

    def take(self, queues: Sequence[str], now: float) -> Iterator[str]:
        """Yield the queue whose turn it is, if one may have it now; `queues` are sorted."""
        if not self._left or now < self._free_at or not queues:
            return
        at = bisect_right(queues, self._last) % len(queues)
        self._last = queues[at]
        self._left -= 1
        self._free_at = now + max(PAUSE, EACH / len(queues))
        yield self._last
