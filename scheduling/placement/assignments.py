"""Assigns the nodes found for a shape to pod sets and replicas.

Searches place pods by shape; a placement is by pod set and replica. Pods of one shape go to its
groups in order of name, node after node, so that the pods of a replica stay close together.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from scheduling.filters.free_capacity import Distribution
from scheduling.model.gang import Group
from scheduling.model.placement import Assignment, Placement
from scheduling.model.pod import PodShape
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import in_order
from scheduling.state.node_snapshot import NodeSnapshot

RoundOf = Callable[[str, PodShape, str], int]
"""The round in which the pods of a pod set and shape on a node are bound."""


class Assignments:
    """Collects where the pods of a gang go, minimum and surplus alike."""

    def __init__(self, columns: NodeSnapshot) -> None:
        self._names = columns.names
        self._taken: dict[tuple[str, str, PodShape], dict[str, int]] = {}

    def hand_out(
        self, groups: Iterable[Group], demand: Demand, spreads: Iterable[Distribution]
    ) -> None:
        """Give every group as many nodes as it has pods; the spreads hold exactly that many."""
        left = {
            shape: self._nodes_of(spread)
            for (shape, _), spread in zip(demand, spreads, strict=True)
        }
        for group in in_order(groups):
            taken = self._taken.setdefault((group.pod_set, group.replica, group.shape), {})
            for node, pods in _dealt(left[group.shape], group.count):
                taken[node] = taken.get(node, 0) + pods

    def _nodes_of(self, spread: Distribution) -> list[tuple[str, int]]:
        """Return nodes with their pods, the first to be handed out last."""
        nodes = [self._names[at] for at in spread.nodes[::-1].tolist()]
        return list(zip(nodes, spread.pods[::-1].tolist(), strict=True))

    def placement(self, round_of: RoundOf | None = None) -> Placement:
        """Return all that was handed out, in the given rounds or all at once."""
        return Placement.of(
            Assignment(pod_set, replica, shape.key, shape.requests, nodes, each)
            for (pod_set, replica, shape), on in self._taken.items()
            for each, nodes in _by_round(pod_set, shape, on, round_of)
        )


def _by_round(
    pod_set: str, shape: PodShape, on: Mapping[str, int], round_of: RoundOf | None
) -> Iterable[tuple[int, tuple[tuple[str, int], ...]]]:
    """Return the nodes of one shape of a pod set by round, sorted by name."""
    if round_of is None:
        return [(0, tuple(sorted(on.items())))] if on else []
    rounds: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for node, count in sorted(on.items()):
        rounds[round_of(pod_set, shape, node)].append((node, count))
    return [(each, tuple(nodes)) for each, nodes in rounds.items()]


def _dealt(left: list[tuple[str, int]], count: int) -> list[tuple[str, int]]:
    """Take so many pods off what is left; return where they go."""
    dealt = []
    while count:
        node, pods = left.pop()
        if pods > count:
            left.append((node, pods - count))
            pods = count
        count -= pods
        dealt.append((node, pods))
    return dealt
