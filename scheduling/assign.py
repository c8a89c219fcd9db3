"""Which group gets which of the nodes that its shape was given?

Shapes are placed, groups are promised: pods of one shape are handed out to the groups that want
them in order of name, node after node, so that the pods of a replica stay close together.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from scheduling.columns import Columns
from scheduling.fit import in_order
from scheduling.model import Assignment, Group, Placement, PodShape
from scheduling.room import Spread
from scheduling.search import Demand


class Assignments:
    """Collects where the pods of a gang go, minimum and surplus alike."""

    def __init__(self, columns: Columns) -> None:
        self._names = columns.names
        self._taken: dict[tuple[str, str, PodShape], Counter[str]] = {}

    def hand_out(self, groups: Iterable[Group], demand: Demand, spreads: Iterable[Spread]) -> None:
        """Give every group as many nodes as it has pods; the spreads hold exactly that many."""
        nodes = {
            shape: self._one_by_one(spread)
            for (shape, _), spread in zip(demand, spreads, strict=True)
        }
        for group in in_order(groups):
            taken = self._taken.setdefault((group.pod_set, group.replica, group.shape), Counter())
            taken.update(next(nodes[group.shape]) for _ in range(group.count))

    def _one_by_one(self, spread: Spread) -> Iterator[str]:
        for node, pods in zip(spread.nodes.tolist(), spread.pods.tolist(), strict=True):
            for _ in range(pods):
                yield self._names[node]

    def placement(self) -> Placement:
        """Return all that was handed out, sorted by name."""
        return Placement(
            tuple(
                Assignment(pod_set, replica, shape.key, shape.requests, tuple(sorted(on.items())))
                for (pod_set, replica, shape), on in sorted(
                    self._taken.items(), key=lambda item: (*item[0][:2], item[0][2].key)
                )
                if on
            )
        )
