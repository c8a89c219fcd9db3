"""Places the gangs of one cycle within its step budget, and counts placed pods as present."""

from scheduling.admission.gang import admit
from scheduling.admission.pods import surroundings
from scheduling.admission.question import Outcome, Question, SearchSteps
from scheduling.admission.refusal_memory import Around
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import assumed_pods
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.gang import PendingGang
from scheduling.model.placement import Placement
from scheduling.state.pod_index import ExistingPods


class GangSearch:
    """The search for gangs among the pods and volumes that are there or assumed.

    `constraints` are the pods to be asked; None where no pod at all has inter-pod constraints.
    `per_gang` bounds the steps for one gang, `budget` those of all.
    """

    def __init__(
        self,
        existing: ExistingPods,
        volumes: Volumes,
        budget: SearchSteps,
        per_gang: int,
        *,
        is_constrained: bool,
    ) -> None:
        self.constraints = existing if is_constrained else None
        self.budget = budget
        self._volumes, self._per_gang = volumes, per_gang

    @property
    def steps(self) -> int:
        """How many steps the next gang may take."""
        return self.budget.at_most(self._per_gang)

    def mounted(self, gang: PendingGang) -> PendingGang:
        """Return the gang with what its volumes ask of nodes."""
        return self._volumes.mounted(gang)

    def outcome(self, gang: PendingGang, room: FreeCapacity, steps: int) -> Outcome:
        """Place a gang in this room, in so many steps at most."""
        outcome = admit(Question(gang, room, steps, self.constraints))
        self.budget.spend(outcome.steps)
        return outcome

    def assume(self, gang: PendingGang, placement: Placement) -> None:
        """Count volumes and pods of a gang as if they were there."""
        if not gang.needs_nodes:
            return
        self._volumes.assume(gang, placement)
        if self.constraints is not None:
            self.constraints.assume(assumed_pods(gang, placement))

    def around(self, gang: PendingGang, room: FreeCapacity) -> Around:
        """Return what pods mean to a gang."""
        existing = self.constraints
        if existing is None:
            return None
        if not (gang.has_inter_pod_constraints or existing.constrain_others()):
            return None
        return surroundings(gang, existing, room.columns)
