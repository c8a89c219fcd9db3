"""Says which gangs the nodes might hold if they were empty, with all their groups together.

Each group alone may fit and all together not, which no sum shows: only the whole verdict does, and
that costs milliseconds. So a cycle asks for few of them, and hands its answers on to the next one.
"""

from collections.abc import Hashable, Mapping
from dataclasses import replace

from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question, SearchSteps
from scheduling.admission.refusal_memory import CERTAIN
from scheduling.diagnosis.explain import explain
from scheduling.diagnosis.never_fits import never, patient
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import PendingGang
from scheduling.placement.independent import demand_of
from scheduling.state.node_snapshot import NodeSnapshot

STEPS = 200_000
"""What the search of one such verdict may take."""

NEW_VERDICTS = 10
"""So many verdicts are asked for in one cycle: of a gang of 4 groups one takes 1 to 2 ms, of one of
40 groups 10 ms."""

EmptyAnswers = Mapping[Hashable, bool]
"""Whether the empty nodes might hold what a gang asks for, by what it asks for."""


class EmptyNodes:
    """The empty nodes of one cycle.

    `known` are the answers of the cycle before, for the same nodes; `used` are those that were of
    use in this one, so that what is kept is bounded by the gangs that wait. `is_unsure` says that a
    gang was taken to fit because too many others were asked about.
    """

    def __init__(self, nodes: NodeSnapshot, steps: SearchSteps, known: EmptyAnswers) -> None:
        self._nodes, self._steps, self._known = nodes, steps, known
        self._left = NEW_VERDICTS
        self.used: dict[Hashable, bool] = {}
        self.is_unsure = False

    def might_hold(self, gang: PendingGang) -> bool:
        """Say whether a gang might fit; a no is certain.

        Pods that exist would only take nodes away, so that nothing is asked about them.
        """
        if never(demand_of(gang.minimum), self._nodes):
            return False
        if gang.has_inter_pod_constraints or not takes_amounts_alone(gang, self._nodes):
            return True
        key = gang.minimum, gang.topology
        found = self.used.get(key, self._known.get(key))
        if found is None and not self._left:
            self.is_unsure = True
            return True
        self.used[key] = self._verdict(gang) if found is None else found
        return self.used[key]

    def _verdict(self, gang: PendingGang) -> bool:
        self._left -= 1
        asked = replace(gang, surplus=()).reshaped(lambda each: patient(each.shape))
        outcome = admit(Question(asked, FreeCapacity(self._nodes, self._nodes.allocatable), STEPS))
        self._steps.spend(outcome.steps)
        return isinstance(outcome, Accepted) or explain(outcome.cause).reason not in CERTAIN


def takes_amounts_alone(gang: PendingGang, nodes: NodeSnapshot) -> bool:
    """Say whether a gang takes nothing but amounts that nodes have: no host port, no volume."""
    return not gang.mounts_volumes and all(
        name in nodes.row for each in gang.groups() for name, _ in each.shape.requests
    )
