"""Judges whether whole gangs might fit on empty nodes, a few gangs per cycle.

An empty node is one with nothing but pods of DaemonSets and static pods on it: those use their part
of it whatever else runs, and no gang ever gets that.

Each group alone may fit and all together not, which no sum shows: only the whole verdict does, and
that costs milliseconds. So a cycle asks for few of them, and hands its answers on to the next one.
"""

from collections.abc import Hashable
from dataclasses import replace
from functools import cached_property

import numpy as np

from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question, SearchSteps
from scheduling.admission.refusal_memory import CERTAIN, EmptyAnswers
from scheduling.diagnosis.explain import explain
from scheduling.diagnosis.never_fits import never, patient
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Amounts
from scheduling.model.gang import PendingGang
from scheduling.placement.independent import demand_of
from scheduling.state.daemon_usage import DaemonUsage
from scheduling.state.node_snapshot import NodeSnapshot

STEPS = 200_000
"""What the search of one such verdict may take."""

NEW_VERDICTS = 10
"""So many verdicts are asked for in one cycle: of a gang of 4 groups one takes 1 to 2 ms, of one of
40 groups 10 ms."""


class EmptyNodes:
    """The empty nodes of one cycle.

    `before` are the answers of the cycle before, for the same nodes; they stand while pods of
    DaemonSets use the same. Kept are those that were of use in this cycle, so that what is kept is
    bounded by the gangs that wait. `is_unsure` says that a gang was taken to fit because too many
    others were asked about.
    """

    def __init__(
        self,
        nodes: NodeSnapshot,
        daemons: DaemonUsage,
        steps: SearchSteps,
        before: EmptyAnswers | None,
    ) -> None:
        self._nodes, self._usage, self._steps, self._before = nodes, daemons, steps, before
        self._left = NEW_VERDICTS
        self._used: dict[Hashable, bool] = {}
        self.is_unsure = False

    @property
    def answers(self) -> EmptyAnswers | None:
        """Return the answers that the next cycle may need."""
        return EmptyAnswers(self._daemons, self._used) if self._used else None

    def might_hold(self, gang: PendingGang) -> bool:
        """Say whether a gang might fit; a no is certain while DaemonSets run as they do.

        Pods that exist would only take nodes away, so that nothing is asked about them.
        """
        if never(demand_of(gang.minimum), self._nodes):
            return False
        if gang.has_inter_pod_constraints or not takes_amounts_alone(gang, self._nodes):
            return True
        key = gang.minimum, gang.topology
        found = self._answer(key)
        if found is None and not self._left:
            self.is_unsure = True
            return True
        self._used[key] = self._verdict(gang) if found is None else found
        return self._used[key]

    @cached_property
    def _daemons(self) -> Amounts:
        return self._usage.on(self._nodes)

    @cached_property
    def _stands(self) -> bool:
        """Whether the answers of the cycle before are those of this one."""
        before = self._before
        return before is not None and np.array_equal(before.daemons, self._daemons)

    def _answer(self, key: Hashable) -> bool | None:
        if key in self._used or self._before is None or not self._stands:
            return self._used.get(key)
        return self._before.might_hold.get(key)

    def _verdict(self, gang: PendingGang) -> bool:
        self._left -= 1
        asked = replace(gang, surplus=()).reshaped(lambda each: patient(each.shape))
        room = FreeCapacity(self._nodes, self._nodes.allocatable - self._daemons)
        outcome = admit(Question(asked, room, STEPS))
        self._steps.spend(outcome.steps)
        return isinstance(outcome, Accepted) or explain(outcome.cause).reason not in CERTAIN


def takes_amounts_alone(gang: PendingGang, nodes: NodeSnapshot) -> bool:
    """Say whether a gang takes nothing but amounts that nodes have: no host port, no volume."""
    return not gang.mounts_volumes and all(
        name in nodes.row for each in gang.groups() for name, _ in each.shape.requests
    )
