"""How many of the volumes that somebody made by hand are free for claims, and on which nodes?

kube-scheduler binds a claim that waits for its first consumer to the smallest free volume that
suits it and that the node reaches (FindMatchingVolume of component-helpers). Claims that suit the
same volumes but for their sizes are one `Want`. On a node that has volumes of its own, as local
disks are, all claims of some pods find one, whoever of them comes first, if and only if for each
size there are no more claims of that size or above than free volumes: to take the smallest that
suits leaves one for each of the others where there was one. So each size that somebody asks for is
a resource with a row of its own, of which a pod takes one per claim of that size or above. What
pods take by their own sizes has a row too, that every node has plenty of: from those it is known
what is promised, whatever sizes others ask for. Other volumes that the node reaches only make it
easier, and are not counted on.

A want all of whose volumes are reached from several nodes is not counted like that: any claim may
take any of them. It goes where there are as many as there are claims that may be on their way.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from scheduling.columns import LIMIT, Amounts, Positions, Traits
from scheduling.company import selects
from scheduling.feasibility import matches
from scheduling.model import NODE_NAME, NodeTerm, Requirement
from scheduling.resources import LARGEST_SIZE, MAX_AMOUNT

PREFIX = "volume:"
"""What the names of all rows of volumes begin with."""

MOST_DIGITS = 1 + len(str(LARGEST_SIZE))
"""Of a size in the name of a row, its sign included; what somebody wrote there is none."""

Terms = tuple[NodeTerm, ...] | None
"""The node affinity of a volume; None: everywhere."""

Places = Mapping[Terms, Counter[int]]
"""How many volumes of which size are where."""


class Pool(NamedTuple):
    """Volumes that claims cannot tell apart but by size and place.

    `moves`: a driver took them over, and they may be reached from other nodes once they are bound.
    """

    storage_class: str
    modes: tuple[str, ...] = ()
    kind: str = "Filesystem"
    attributes: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    moves: bool = False


@dataclass(frozen=True, slots=True)
class Want:
    """What claims ask of a volume beside its size: `kind` is its mode, file system or block."""

    storage_class: str
    modes: tuple[str, ...] = ()
    kind: str = "Filesystem"
    attributes: str = ""
    selector: tuple[Requirement, ...] = ()

    def suits(self, pool: Pool) -> bool:
        """Say whether volumes of the pool will do."""
        alike = (self.storage_class, self.kind, self.attributes)
        return (
            alike == (pool.storage_class, pool.kind, pool.attributes)
            and {*self.modes} <= {*pool.modes}
            and selects(self.selector, dict(pool.labels))
        )

    @property
    def stem(self) -> str:
        """Return what the names of its rows begin with."""
        told = hashlib.sha256(repr(self).encode()).hexdigest()[:8]
        return f"{PREFIX}{self.storage_class}:{told}:"

    def row(self, size: int) -> str:
        """Name the resource that counts its volumes from a size on."""
        return f"{self.stem}{size}"

    def own_row(self, size: int) -> str:
        """Name the resource that counts its claims of a size."""
        return f"{self.stem}={size}"


class Wanted(NamedTuple):
    """A claim that waits for a volume made by hand; how it is called, and its size in bytes."""

    called: str
    want: Want
    size: int


def stem_of(row: str) -> str:
    """Return what a row's name begins with, as `Want.stem` has it."""
    return row.rpartition(":")[0] + ":"


def own_size(row: str) -> int | None:
    """Return the size of the claims that a row counts; None for one that counts volumes."""
    size = row.rpartition(":")[2]
    is_own = size.startswith("=") and size[1:].isdecimal() and len(size) <= MOST_DIGITS
    return int(size[1:]) if is_own else None


def is_static(resource: str) -> bool:
    """Say whether the resource is one made up for volumes."""
    return resource.startswith(PREFIX)


def spoken(resource: str) -> str:
    """Name the resource as people do."""
    return f'free volume of storage class "{resource.split(":")[1]}" (VolumeBinding)'


class Lot:
    """The free volumes that suit a want: those of single nodes by node, and the others."""

    def __init__(self, pools: Mapping[Pool, Places], where: "Whereabouts") -> None:
        self.pools = frozenset(pools)
        self._count = len(where.traits.names)
        nodes: list[int] = []
        sizes: list[int] = []
        numbers: list[int] = []
        self.wide: dict[Terms, Counter[int]] = defaultdict(Counter)
        for places in pools.values():
            for terms, amounts in places.items():
                node = where.only_one(terms)
                if node is None:
                    self.wide[terms].update(amounts)
                elif node >= 0:
                    nodes += [node] * len(amounts)
                    sizes += amounts
                    numbers += amounts.values()
        self._nodes: Positions = np.array(nodes, dtype=np.intp)
        within = [min(size, MAX_AMOUNT) for size in sizes]  # enough for claims up to there
        self._sizes, self._numbers = np.array([within, numbers], dtype=np.int64)

    @property
    def weight(self) -> int:
        """Return about how many bytes it takes; what volumes say themselves is kept elsewhere."""
        wide = sum(len(amounts) for amounts in self.wide.values())
        return 24 * len(self._nodes) + 400 * (len(self.pools) + len(self.wide) + wide)

    @property
    def is_local(self) -> bool:
        """Say whether any node has volumes of its own."""
        return bool(len(self._nodes))

    def counts(self, size: int) -> Amounts:
        """Return how many volumes of this size or above each node has for itself."""
        enough = self._sizes >= size
        sums = np.bincount(self._nodes[enough], self._numbers[enough], self._count)
        return np.minimum(sums, LIMIT).astype(np.int64)

    def wide_count(self, size: int) -> int:
        """Return how many of this size or above are of several nodes."""
        return sum(_number(amounts, size) for amounts in self.wide.values())

    def reached(self, size: int, claims: int) -> Terms:
        """Return from where so many volumes of this size or above can be reached, wide ones."""
        found: list[NodeTerm] = []
        for terms, amounts in self.wide.items():
            if _number(amounts, size) >= claims:
                if terms is None:
                    return None
                found += terms
        return tuple(found)


def _number(amounts: Counter[int], size: int) -> int:
    return sum(number for each, number in amounts.items() if each >= size)


class Whereabouts:
    """Which nodes match terms, found by the values of labels instead of node by node."""

    def __init__(self, traits: Traits) -> None:
        self.traits = traits
        self._by_value: dict[str, dict[str | None, list[int]]] = {}
        self._known: dict[Terms, int | None] = {None: None}

    def only_one(self, terms: Terms) -> int | None:
        """Return the one node that matches, -1 if none does; None where several may."""
        if terms not in self._known:
            if len(self._known) >= TERMS_KEPT:
                self._known = {None: None}
            self._known[terms] = self._found(terms or ())
        return self._known[terms]

    def _found(self, terms: tuple[NodeTerm, ...]) -> int | None:
        found: set[int] = set()
        for term in terms:
            some = self._candidates(term)
            if some is None:
                return None
            nodes = self.traits.nodes
            found.update(at for at in some if matches(term, nodes[at]))
            if len(found) > 1:
                return None
        return next(iter(found), -1)

    def _candidates(self, term: NodeTerm) -> list[int] | None:
        """Return the nodes with one of the values that the term asks for, where those are few."""
        for each in term.labels:
            if each.operator == "In" and each.key != NODE_NAME:
                by_value = self._nodes_by(each.key)
                some = [at for value in each.values for at in by_value.get(value, ())]
                if len(some) <= FEW:
                    return some
        return None

    def _nodes_by(self, key: str) -> Mapping[str | None, list[int]]:
        if key not in self._by_value:
            found: defaultdict[str | None, list[int]] = defaultdict(list)
            for at, node in enumerate(self.traits.nodes):
                found[node.labels.get(key)].append(at)
            self._by_value[key] = found
        return self._by_value[key]


TERMS_KEPT = 100_000
"""Answers kept: volumes of one node share their terms, and there are some per node."""

FEW = 8
"""Volumes are taken for those of several nodes where no label alone leaves fewer nodes."""
