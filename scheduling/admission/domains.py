"""Groups nodes by the values of a label, and holds a gang to one such domain.

A domain is the nodes with one value of a label, or of each of several. A node that lacks one of the
labels is in no domain.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from scheduling.filters.feasibility import feasible
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.model.amounts import Amounts, Positions
from scheduling.model.constraints import Requirement
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import inside_domain
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot

Keys = tuple[str, ...]


STEPS_PER_TRY = 3000
"""What one try costs beside the numbers of nodes and pods, in steps of some 20 ns."""

STEPS_PER_POD = 400
"""What one try costs for each pod of the gang."""

ELSEWHERE = -1
"""The position of a node that is in no domain."""

MOST = 2**31
"""Pods per domain are cut off here, so that shares of them can be compared in 64 bits."""


@dataclass(frozen=True, eq=False, slots=True)
class Domains:
    """The domains of some labels, by name: `of[i]` is that of node i, or ELSEWHERE."""

    keys: Keys
    names: tuple[Keys, ...]
    of: Positions

    @classmethod
    def by(cls, keys: Keys, traits: NodeAttributes) -> "Domains":
        """Return the domains of these labels on the nodes; they are worked out once."""
        return traits.remembered(("domains", keys), lambda: cls._found(keys, traits))

    @classmethod
    def _found(cls, keys: Keys, traits: NodeAttributes) -> "Domains":
        columns = [traits.label(key) for key in keys]
        codes = np.stack([column.of for column in columns])
        distinct, which = np.unique(codes, axis=1, return_inverse=True)
        values = [
            tuple(column.values[code] for column, code in zip(columns, each, strict=True))
            for each in distinct.T.tolist()
        ]
        names = sorted(_whole(values))
        places: Mapping[tuple[str | None, ...], int] = {name: at for at, name in enumerate(names)}
        place = np.array([places.get(each, ELSEWHERE) for each in values], dtype=np.intp)
        return cls(keys, tuple(names), place[which.reshape(-1)])

    def sums(self, amounts: Amounts) -> Amounts:
        """Add up amounts per node within each domain, to MOST at most."""
        inside = self.of != ELSEWHERE
        sums = np.bincount(self.of[inside], amounts[inside], len(self.names))
        return np.minimum(sums, MOST).astype(np.int64)

    def when_empty(self, shape: PodShape, columns: NodeSnapshot) -> Amounts:
        """Return how many pods of a shape each domain would hold if its nodes were empty."""
        fitting = pods_per_node(shape.counted, columns.row, columns.allocatable)
        if shape.ports:
            np.minimum(fitting, 1, out=fitting)
        return self.sums(fitting * feasible(shape, columns))

    def around(self, nodes: Iterable[str], index: Mapping[str, int]) -> set[int]:
        """Return the domains of the named nodes, as far as they exist."""
        return {int(self.of[index[node]]) for node in nodes if node in index}

    def requirements(self, at: int) -> tuple[Requirement, ...]:
        """Return what holds pods to a domain; for ELSEWHERE, what no node meets."""
        if at == ELSEWHERE:
            return tuple(Requirement(key, "In", ()) for key in self.keys)
        pairs = zip(self.keys, self.names[at], strict=True)
        return tuple(Requirement(key, "In", (value,)) for key, value in pairs)


def _whole(values: Iterable[tuple[str | None, ...]]) -> Iterable[Keys]:
    """Return those with a value of every label."""
    for each in values:
        found = tuple(value for value in each if value is not None)
        if len(found) == len(each):
            yield found


def cost_of_try(gang: PendingGang, domains: Domains) -> int:
    """Return how many steps it costs to decide a gang with its pods held to domains."""
    pods = max(len(gang.members), len(gang.minimum) + len(gang.surplus))
    return STEPS_PER_TRY + len(domains.of) + STEPS_PER_POD * pods


def confined(
    gang: PendingGang, where: Callable[[Group | Member], tuple[Requirement, ...]]
) -> PendingGang:
    """Return the gang with its pods held to what `where` requires of their nodes."""

    made: dict[tuple[PodShape, tuple[Requirement, ...]], PodShape] = {}

    def inside(pods: Group | Member) -> PodShape:
        wanted = pods.shape, where(pods)
        if wanted not in made:
            made[wanted] = inside_domain(*wanted)
        return made[wanted]

    return gang.reshaped(inside)
