"""Where is there a place for disks that all pods of a gang share, which each node attaches once?

Disks that count against a node's limit are counted like room, each pod one per disk (`attach`).
Where all pods of a gang that have disks of a driver have the very same ones, each node attaches
those once however many pods it has: it has a place for all of them that are not there yet, or it
is left out. What such pods take is written down by the names of their claims, in rows that every
node has plenty of, so that it is known later which disks are promised where.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np

from scheduling.attach import ATTACH, attach_row
from scheduling.columns import LIMIT, Amounts, Columns
from scheduling.effects import Effect
from scheduling.model import Mount, Placement
from scheduling.storage import Disk, StorageTable

PREFIX = "attachOnce:"
"""What the names of all rows of shared disks begin with."""

MOST_ROWS = 32
"""So many shared disks are looked at in a cycle; more are counted for each pod."""

Held = Mapping[str, Mapping[str, int]]


def row_of(driver: str, namespace: str, claim: str) -> str:
    """Name the row that says which nodes have pods with the disk of a claim."""
    return f"{PREFIX}{driver}:{namespace}/{claim}"


def _mount_of(row: str) -> tuple[str, Mount]:
    """Return namespace and claim that a row is named after."""
    namespace, _, claim = row.rpartition(":")[2].partition("/")
    return namespace, Mount(claim)


def _driver_of(row: str) -> str:
    return row.removeprefix(PREFIX).partition(":")[0]


def once(pods: Iterable[tuple[Effect, int]]) -> dict[str, frozenset[str]]:
    """Return by driver the claims that all pods share which have disks of it."""
    sets: defaultdict[str, set[frozenset[str]]] = defaultdict(set)
    count: Counter[str] = Counter()
    unnamed: set[str] = set()
    for effect, number in pods:
        for driver, disks in Counter(effect.drivers).items():
            claims = frozenset(name for of, name in effect.named if of == driver)
            sets[driver].add(claims)
            count[driver] += number
            if len(claims) < disks:
                unnamed.add(driver)
    return {
        driver: next(iter(found))
        for driver, found in sets.items()
        if len(found) == 1 and count[driver] > 1 and driver not in unnamed
    }


class SharedDisks:
    """The disks that are on nodes or promised to them, and who was given any in this cycle."""

    def __init__(
        self,
        table: StorageTable,
        limits: Mapping[str, Mapping[str, int]],
        reserved: Callable[[str], Held],
    ) -> None:
        self._table, self._limits, self._reserved = table, limits, reserved
        self._rows: dict[str, None] = {}
        self._touched: defaultdict[str, set[str]] = defaultdict(set)
        self._once: defaultdict[str, set[str]] = defaultdict(set)

    def rows(
        self, columns: Columns, wanted: Iterable[Iterable[str]]
    ) -> dict[str, tuple[Amounts, Amounts]]:
        """Return rows for the shared disks of gangs, as long as there are not too many."""
        for rows in wanted:
            new = [row for row in rows if row not in self._rows]
            if len(self._rows) + len(new) <= MOST_ROWS:
                self._rows.update(dict.fromkeys(new))
        plenty = np.full(len(columns.names), LIMIT)
        return {row: (plenty, np.zeros_like(plenty)) for row in self._rows}

    def knows(self, rows: Iterable[str]) -> bool:
        """Say whether there is a row for each of them."""
        return all(row in self._rows for row in rows)

    def promised(self, driver: str) -> Counter[str]:
        """Count per node the shared disks that are promised and not there."""
        found = self._promised.get(driver, {})
        return Counter({node: len(disks - self._there(node)) for node, disks in found.items()})

    @cached_property
    def _promised(self) -> Mapping[str, Mapping[str, set[Disk]]]:
        found: defaultdict[str, defaultdict[str, set[Disk]]] = defaultdict(lambda: defaultdict(set))
        for row, nodes in self._reserved(PREFIX).items():
            disk = self._table.disk(*_mount_of(row))
            for node in nodes if disk is not None else ():
                found[_driver_of(row)][node].add(disk or ("", ""))
        return found

    def _there(self, node: str) -> set[Disk]:
        return self._table.disks_on().get(node, set())

    def full(self, rows: Iterable[str]) -> tuple[str, ...]:
        """Return the nodes that cannot attach all of the disks, by name.

        So is every node that this cycle has given disks of the driver to: how many is not known.
        """
        rows = sorted(rows)
        driver = _driver_of(rows[0])
        disks = {self._table.disk(*_mount_of(row)) for row in rows} - {None}
        taken = Counter(self._table.attached().get(driver, {}))
        taken.update(self.promised(driver))
        taken.update(self._reserved(ATTACH).get(attach_row(driver), {}))
        found = self._touched[driver] | {*self._table.broken()}
        for node, limit in self._limits.get(driver, {}).items():
            new = disks - self._there(node) - self._promised.get(driver, {}).get(node, set())
            if new and taken[node] + len(new) > limit:
                found.add(node)
        return tuple(sorted(found))

    def taken_once(self, driver: str) -> tuple[str, ...]:
        """Return the nodes that this cycle has given shared disks of a driver to, by name."""
        return tuple(sorted(self._once[driver]))

    def give(self, placement: Placement) -> None:
        """Note where a gang attaches disks."""
        for each in placement.assignments:
            nodes = {node for node, _ in each.nodes}
            for row, _ in each.requests:
                if row.startswith(PREFIX):
                    self._once[_driver_of(row)] |= nodes
                    self._touched[_driver_of(row)] |= nodes
                elif row.startswith(ATTACH):
                    self._touched[row.removeprefix(ATTACH)] |= nodes


def rows_of(
    namespace: str, shared: Mapping[str, frozenset[str]]
) -> Iterator[tuple[str, list[str]]]:
    """Yield drivers with the rows of the claims that pods of a namespace share."""
    for driver, claims in sorted(shared.items()):
        yield driver, [row_of(driver, namespace, claim) for claim in sorted(claims)]
