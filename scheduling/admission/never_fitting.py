"""Finds undecided gangs that would not fit even on empty nodes.

A gang that waits for quota is not tried on the nodes, so its owner would never learn this. Each
gang is judged once, and again when nodes have changed. A cycle judges a bounded number of gangs,
and the next cycle continues.
"""

from dataclasses import dataclass, field

import numpy as np

from scheduling.diagnosis.never_fits import never
from scheduling.model.amounts import Mask, Positions
from scheduling.model.gang import Group
from scheduling.placement.independent import demand_of
from scheduling.queueing.refusal_refresh import lengthened
from scheduling.queueing.waiting import WaitingGangs
from scheduling.state.node_snapshot import NodeAttributes, NodeSnapshot

JUDGED = 250
"""Gangs that a cycle judges; some 40 us each."""


NO_GANGS: Positions = np.zeros(0, np.intp)


@dataclass(frozen=True, eq=False, slots=True)
class NeverFitting:
    """What is known of the gangs that wait.

    By row of a gang its serial, the `version` of the nodes for which it was judged, and whether
    they could never hold it. `at` is where judging goes on after a change of nodes. `fresh` are
    those that were found in this cycle, by their place in the columns. `is_behind` says that some
    are still to be judged.
    """

    waiting: WaitingGangs
    serials: Positions
    versions: Positions
    found: Positions
    traits: NodeAttributes | None = None
    claimable: frozenset[str] = frozenset()
    version: int = 0
    at: int = 0
    fresh: Positions = field(default_factory=lambda: NO_GANGS)
    is_behind: bool = False

    @classmethod
    def nothing(cls, waiting: WaitingGangs) -> "NeverFitting":
        """Return that no gang was judged."""
        return cls(waiting, NO_GANGS, NO_GANGS, NO_GANGS)

    def judge(self, waits: Mask, nodes: NodeSnapshot) -> "NeverFitting":
        """Judge some of the gangs that wait without a decision: new ones first."""
        columns = self.waiting.columns
        by_row = self.serials, self.versions, self.found
        serials, versions, found = (lengthened(each, columns.rows) for each in by_row)
        rows, version = columns.rows, self.version + (not self._is_of(nodes))
        is_new = waits & (serials[rows] != columns.serials)
        new = np.flatnonzero(is_new)
        old = np.flatnonzero(waits & ~is_new & (versions[rows] != version))
        again = np.roll(old, -int(np.searchsorted(old, self.at)))[: max(0, JUDGED - len(new))]
        judged = np.concatenate([new[:JUDGED], again])
        answers = self._answers(judged, nodes)
        serials[rows[judged]], versions[rows[judged]] = columns.serials[judged], version
        found[rows[judged]] = answers
        return NeverFitting(
            self.waiting,
            serials,
            versions,
            found,
            nodes.traits,
            nodes.claimable,
            version,
            int(again[-1]) + 1 if len(again) else self.at,
            judged[answers],
            len(judged) < len(new) + len(old),
        )

    def of_columns(self) -> Mask:
        """Return which gangs that wait were found never to fit."""
        columns = self.waiting.columns
        same = self.serials[columns.rows] == columns.serials
        never_fit: Mask = same & (self.found[columns.rows] != 0)
        return never_fit

    def _is_of(self, nodes: NodeSnapshot) -> bool:
        return self.traits is nodes.traits and self.claimable == nodes.claimable

    def _answers(self, judged: Positions, nodes: NodeSnapshot) -> Mask:
        """Judge gangs by their place in the columns; those that ask for the same once."""
        known: dict[tuple[Group, ...], bool] = {}
        answers = np.zeros(len(judged), dtype=np.bool_)
        for at, gang in enumerate(map(self.waiting.at, judged.tolist())):
            if gang.minimum not in known:
                known[gang.minimum] = bool(never(demand_of(gang.minimum), nodes))
            is_bound = gang.needs_nodes and not gang.is_separable
            answers[at] = known[gang.minimum] and is_bound
        return answers
