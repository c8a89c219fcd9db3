"""Refuses gangs that a cycle did not decide, if the refusal is new or due for a refresh."""

from collections.abc import Hashable, Iterator
from dataclasses import replace

import numpy as np

from scheduling.admission.never_fitting import NeverFitting
from scheduling.admission.refusal_memory import Memory
from scheduling.decision.quota import quota_refusal
from scheduling.diagnosis.preemption_refusals import with_note
from scheduling.diagnosis.quota_refusals import waits_behind
from scheduling.diagnosis.refusals import never
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Positions
from scheduling.model.verdict import Decision, Refusal
from scheduling.preemption.victims import Preempting
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.refusal_refresh import (
    BEHIND,
    DECIDED,
    NEVER,
    QUOTA,
    RefusalRefresh,
    UndecidedGangs,
)
from scheduling.queueing.waiting import WaitingGangs


class Undecided:
    """The gangs that wait for nodes that do not exist, for quota, or behind another gang.

    `refresh` and `never_fitting` are what the next cycle goes on from.
    """

    def __init__(
        self,
        waiting: WaitingGangs,
        order: QueueOrder,
        preempting: Preempting,
        memory: Memory | None,
    ) -> None:
        self._waiting, self._order, self._preempting = waiting, order, preempting
        self.refresh = RefusalRefresh.nothing(waiting)
        if memory and memory.refresh and memory.refresh.waiting is waiting:
            self.refresh = memory.refresh
        before = memory.never_fitting if memory else None
        is_same = before is not None and before.waiting is waiting
        self.never_fitting = before if before and is_same else NeverFitting.nothing(waiting)

    @property
    def is_behind(self) -> bool:
        """Whether more of them are to be told in the next cycle."""
        return self.refresh.is_behind or self.never_fitting.is_behind

    def refusals(self, room: FreeCapacity) -> Iterator[Decision]:
        """Refuse those for which that is news."""
        undecided = self._judged(self._order.undecided(), room)
        due, self.refresh = self.refresh.due(undecided)
        explained = dict[Hashable, Refusal | None]()  # many ask for the same
        again = np.union1d(self._with_other_notes(undecided), self.never_fitting.fresh)
        for at in np.union1d(due, again).tolist():
            kind, key = self._kind(undecided, at), self._waiting.at(at).key
            if kind not in explained:
                explained[kind] = self._refusal(undecided, at, room)
            refusal = explained[kind]
            if refusal is not None:  # else it is to be judged again on other nodes, and told then
                yield Decision(key, with_note(refusal, self._preempting.note(key)))

    def _judged(self, undecided: UndecidedGangs, room: FreeCapacity) -> UndecidedGangs:
        """Find those that no nodes could hold; where nodes can be asked for, none is sought."""
        queues = self._waiting.columns.queue
        waits = (undecided.why != DECIDED) & ~self._waiting.tree.gets_nodes[queues]
        self.never_fitting = self.never_fitting.judge(waits, room.columns)
        never_fit = waits & self.never_fitting.of_columns()
        return replace(undecided, why=np.where(never_fit, NEVER, undecided.why))

    def _with_other_notes(self, undecided: UndecidedGangs) -> Positions:
        """Return the undecided gangs of which is to be said now why nothing is taken for them."""
        gangs = map(self._waiting.gang, self._preempting.noted_anew())
        places = (self._order.place(gang) for gang in gangs if gang is not None)
        return np.array([at for at in places if undecided.why[at] != DECIDED], dtype=np.intp)

    def _kind(self, undecided: UndecidedGangs, at: int) -> Hashable:
        """Return what the refusal of an undecided gang follows from."""
        columns, why = self._waiting.columns, int(undecided.why[at])
        if why == NEVER:
            return why, self._waiting.at(at).minimum
        asked = columns.demands[:, at].tobytes() if why == QUOTA else b""
        return why, int(columns.queue[at]), asked

    def _refusal(self, undecided: UndecidedGangs, at: int, room: FreeCapacity) -> Refusal | None:
        """Refuse for want of nodes or of quota, or behind a blocked gang."""
        gang, why = self._waiting.at(at), undecided.why[at]
        if why == NEVER:
            return never(gang.minimum, room)
        if why == BEHIND:
            end = int(undecided.ends[self._waiting.columns.queue[at]])
            return waits_behind(self._waiting.line(gang.queue).gangs[end].key, gang.queue)
        demand = self._waiting.columns.demands[:, at]
        return quota_refusal(self._order, self._waiting.tree, gang.queue, demand)
