"""Finds room for waiting gangs by preemption, and holds the room for them from then on."""

from collections.abc import Collection, Iterator

from scheduling.backfill.blocking import Blocking
from scheduling.decision.answers import Answers
from scheduling.decision.search import GangSearch
from scheduling.diagnosis.preemption_refusals import preempting as is_preempting
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.preemption import Preemption
from scheduling.model.verdict import Refusal
from scheduling.preemption.holds import Holds
from scheduling.preemption.search import Outlook
from scheduling.preemption.victims import NoPreemption, Preempting
from scheduling.queueing.order import QueueOrder


class PreemptionPass:
    """The preemptions of one cycle.

    `promised` are the gangs that room was held for when it began. `is_open` says that steps were
    used up before it was certain that nothing can be taken for a gang.
    """

    def __init__(
        self,
        holds: Holds,
        preempting: Preempting,
        order: QueueOrder,
        blocking: Blocking,
        search: GangSearch,
        queues: Collection[str],
    ) -> None:
        self._holds, self._preempting, self._order = holds, preempting, order
        self._blocking, self._search, self._queues = blocking, search, queues
        self.promised: set[GangKey] = set()
        self.is_open = False

    def may(self, gang: PendingGang) -> bool:
        """Say whether a gang may take room of running ones."""
        return gang.key not in self._holds.asked and self._preempting.may(gang)

    def note(self, gang: PendingGang) -> str:
        """Return what the message of a gang says of why nothing is taken for it."""
        return self._preempting.note(gang.key)

    def admitted(self, gang: PendingGang, placement: Placement) -> None:
        """Count a gang that this cycle admits among those that quota covers."""
        if placement.assignments:
            self._preempting.admitted(gang)

    def waiting_for_quota(self, answers: Answers, room: FreeCapacity) -> Iterator[PendingGang]:
        """Yield gangs that wait for quota, and for which running ones might be stopped."""
        for gang in self._order.waiting_for_quota(self._queues):
            is_new = gang.key not in answers and self.may(gang)
            if is_new and not self._preempting.is_known_to_fail(gang, room):
                yield gang

    def try_room(self, asked: PendingGang, room: FreeCapacity, answers: Answers) -> FreeCapacity:
        """Make room for a gang that its quota does not cover; if there is none, say nothing."""
        if asked.key in answers or not self.may(asked):
            return room
        gang = self._search.mounted(asked)
        made, room = self.make_room(gang, room.for_priority(gang.pod_priority))
        if made is not None:
            answers.settle(gang, made)
        return room

    def make_room(
        self, gang: PendingGang, room: FreeCapacity
    ) -> tuple[Refusal | None, FreeCapacity]:
        """Find what has to end for a gang; from then on its room and quota are held for it."""
        outlook = Outlook(room, self._holds.with_all(self._order.held), self._search.constraints)
        made = self._preempting.make_room(gang, outlook, self._search.steps)
        self._search.budget.spend(made.spent)
        if isinstance(made, NoPreemption):
            self.is_open |= made.is_open
            return None, room
        if not self._may_start(gang, made.plan, room):
            return None, room
        room = self.hold(gang, Preemption(gang.key, made.taken, made.plan), room)
        self._preempting.took(made.parts)
        return is_preempting(made.parts), room

    def hold(self, gang: PendingGang, preemption: Preemption, room: FreeCapacity) -> FreeCapacity:
        """Hold room and quota for a gang from now on; return what is left."""
        hold = self._holds.add(gang, preemption)
        self._order.take_row(gang, hold.counted)
        self._order.block(gang)
        self._search.assume(gang, preemption.plan)
        return hold.out_of(room)

    def _may_start(self, gang: PendingGang, plan: Placement, room: FreeCapacity) -> bool:
        """Say whether no blocked gang would start later for a gang where it is to be.

        What was promised already stands.
        """
        if gang.key in self.promised:
            self._blocking.let_start(gang, plan)
            return True
        return self._blocking.start(gang, plan, room) is None
