"""What the blocked gangs of a cycle keep from those behind them, by the rules of their queues.

- Strict: nothing behind a blocked gang is decided (`QueueOrder.block`).
- BestEffort: all may pass.
- Backfill: others may pass that do not delay its start (`Reservations`).

Whatever the rule, nothing in its queue passes a gang that was passed too often; and nothing at all
one that has waited too long, but gangs that their own quota covers where it would borrow.
"""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

import numpy as np

from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question
from scheduling.backfill.reservations import (
    Contested,
    Outlook,
    Reservation,
    Reservations,
    RunningGang,
)
from scheduling.diagnosis.never_fits import never
from scheduling.diagnosis.quota_refusals import would_delay
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import LIMIT, Mask, Requests
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.queue import WhenBlocked
from scheduling.model.verdict import Reason, Refusal
from scheduling.placement.independent import demand_of
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Queues
from scheduling.queueing.waiting import Place, place_of, requests_of
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods

STEPS = 200_000
"""What the search for a later start may take each time it is asked."""


LONGEST = 60.0
"""After so many seconds a cycle decides anew what had to leave its room to a blocked gang."""


class Blocking:
    """The blocked gangs of one cycle, and what may pass them.

    `asks_again_in` is after how many seconds time alone may turn a refusal; infinite where none.
    """

    def __init__(
        self, queues: Queues, order: QueueOrder, nodes: NodeSnapshot, existing: ExistingPods | None
    ) -> None:
        self._queues, self._order, self._nodes, self._existing = queues, order, nodes, existing
        self._tree = queues.waiting.tree
        self._first: dict[str, PendingGang] = {}
        self._kept: Reservations | None = None
        self._started: list[RunningGang] = []
        self.passed: list[GangKey] = []
        self.asks_again_in = inf
        nowhere = np.zeros(len(nodes.names), dtype=np.bool_)
        for first, *others in order.over_quota():
            self._first[first.queue] = first
            for gang in (first, *(each for each in others if each.key in queues.aged)):
                if self._keeps_a_start(gang):
                    self._keep(gang, self._quota_for(gang, nowhere))

    def note(self, gang: PendingGang, refusal: Refusal) -> None:
        """Take in a refusal; only a gang that waits for room that others hold is blocked."""
        if refusal.reason is not Reason.INSUFFICIENT_RESOURCES:
            return
        self._hold_behind(gang)
        if self._keeps_a_start(gang):
            none = np.zeros(len(self._tree.names), dtype=np.bool_)
            self._keep(gang, Contested(self._waits_for(gang, refusal), none))

    def delay(self, gang: PendingGang, placement: Placement, room: FreeCapacity) -> Refusal | None:
        """Refuse a placement that keeps a blocked gang waiting; without a refusal, it stands."""
        broken = self.start(gang, placement, room) if placement.assignments else None
        if broken is not None:
            if gang.minimum and not gang.surplus:  # else its minimum is asked for alone
                self._hold_behind(gang)
            wait = None if broken.barred else broken.starts - self._queues.now
            again = LONGEST if wait is None else max(1.0, wait)
            self.asks_again_in = min(self.asks_again_in, again, LONGEST)
            return would_delay(broken.gang, wait, gang.duration)
        first = self._first.get(gang.queue)
        if first is not None and gang.minimum and self._place(first) < self._place(gang):
            self.passed.append(first.key)
        return None

    def _place(self, gang: PendingGang) -> Place:
        return place_of(gang, self._tree.queues[self._tree.index[gang.queue]].ordering)

    def start(
        self, gang: PendingGang, placement: Placement, room: FreeCapacity
    ) -> Reservation | None:
        """Count a gang as running from now on, unless that breaks a reservation, which is returned.

        Those that start before the first reservation is made are kept for it.
        """
        if self._kept is None or _must_start(gang):
            self.let_start(gang, placement)
            return None
        running = self._starting(gang, placement)
        return self._broken(running, Outlook(room.free, self._order.held))

    def let_start(self, gang: PendingGang, placement: Placement) -> None:
        """Count a gang as running from now on, whatever is kept for others."""
        if self._kept is not None:
            self._kept.start(self._starting(gang, placement))
        elif gang.duration < inf:
            self._started.append(self._starting(gang, placement))

    def _starting(self, gang: PendingGang, placement: Placement) -> RunningGang:
        ends = self._queues.now + gang.duration
        running = self._running(gang.key, gang.queue, ends, _room_of(placement))
        return replace(running, borrows=self._order.borrows(gang), place=self._place(gang))

    def _broken(self, running: RunningGang, outlook: Outlook) -> Reservation | None:
        """Return the reservation that a gang would break; a gang that can never fit keeps none."""
        if self._kept is None:
            return None
        while broken := self._kept.delayed_by(running, outlook):
            if not (broken.barred and never(demand_of(broken.gang.minimum), self._nodes)):
                return broken
            self._kept.drop(broken)
        return None

    def _hold_behind(self, gang: PendingGang) -> None:
        """Apply the rule of its queue to the gangs behind a blocked one."""
        self._first.setdefault(gang.queue, gang)
        self._order.block(gang)

    def _keeps_a_start(self, gang: PendingGang) -> bool:
        return gang.key in self._queues.aged or self._backfills(gang)

    def _backfills(self, gang: PendingGang) -> bool:
        queue = self._tree.queues[self._tree.index[gang.queue]]
        return queue.when_blocked is WhenBlocked.BACKFILL

    def _keep(self, gang: PendingGang, contested: Contested) -> None:
        if not self._keeps_a_start(gang):
            return
        if self._kept is None:
            running = [self._running(*each) for each in self._holdings()]
            self._kept = Reservations(self._queues.now, running + self._started, self._fits)
        row, borrows = self._tree.index[gang.queue], self._order.borrows(gang)
        kept = Reservation(gang, contested, row=row, borrows=borrows, place=self._place(gang))
        if gang.key in self._queues.aged:
            within = gang.key not in self._queues.overdue
            self._kept.bar(replace(kept, within=within))
        if self._backfills(gang):
            reach = [feasible(each.shape, self._nodes) for each in gang.minimum]
            everywhere: Mask = np.logical_or.reduce(reach) & contested.nodes.any()
            self._kept.reserve(
                replace(
                    kept, contested=Contested(everywhere, contested.queues, contested.resources)
                )
            )

    def _holdings(self) -> Iterable[tuple[GangKey, str, float, Iterable[tuple[str, Requests]]]]:
        return ((each.key, each.queue, each.ends, each.room) for each in self._queues.holdings())

    def _waits_for(self, gang: PendingGang, refusal: Refusal) -> Mask:
        """Return the nodes that the pods without room may go to."""
        short = {each.pod_set for each in refusal.pod_sets if each.fit < each.wanted}
        groups = [each for each in gang.minimum if each.pod_set in short] or gang.minimum
        masks = [feasible(each.shape, self._nodes) for each in groups]
        found: Mask = np.logical_or.reduce(masks)
        return found

    def _quota_for(self, gang: PendingGang, nowhere: Mask) -> Contested:
        """Return the quota that the minimum of a gang waits for, and the queues that use it."""
        at, demand = self._tree.index[gang.queue], self._tree.requests(requests_of(gang.minimum))
        short = demand > np.maximum(self._order.available(gang.queue), 0)
        used = self._tree.used(self._order.held)
        return Contested(nowhere, self._tree.sharing(at, demand, used), short)

    def _fits(self, gang: PendingGang, outlook: Outlook) -> bool:
        """Say whether the minimum of a gang would be admitted: quota first, then the nodes."""
        at, tree = self._tree.index[gang.queue], self._tree
        demand = tree.requests(requests_of(gang.minimum))
        available = tree.available(tree.used(outlook.held))[at]
        if (demand > np.maximum(available, 0)).any():
            return False
        room = FreeCapacity(self._nodes, outlook.free)
        return isinstance(admit(Question(gang, room, STEPS, self._existing)), Accepted)

    def _running(
        self, key: GangKey, queue: str, ends: float, room: Iterable[tuple[str, Requests]]
    ) -> RunningGang:
        """Add up what a gang holds on each node, and of the quota of its queue."""
        index, row = self._nodes.index, self._nodes.row
        places = [(index[node], amounts) for node, amounts in room if node in index]
        nodes = np.unique(np.array([at for at, _ in places], dtype=np.intp))
        held = np.zeros((len(row), len(nodes)), dtype=np.int64)
        quota = np.zeros(len(self._tree.resources), dtype=np.int64)
        for at, amounts in places:
            column = int(np.searchsorted(nodes, at))
            for resource, amount in amounts:
                if resource in row:
                    held[row[resource], column] += min(amount, LIMIT)
                if resource in self._tree.column:
                    quota[self._tree.column[resource]] += min(amount, LIMIT)
        return RunningGang(key, ends, nodes, held, self._tree.index[queue], quota)


def _must_start(gang: PendingGang) -> bool:
    """Say whether no blocked gang may keep a gang waiting: one that runs without part of it."""
    return gang.is_repair and not gang.surplus


def _room_of(placement: Placement) -> Iterable[tuple[str, Requests]]:
    for placed in placement.assignments:
        for node, pods in placed.nodes:
            yield node, tuple((name, amount * pods) for name, amount in placed.requests)
