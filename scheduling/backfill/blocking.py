"""What the blocked gangs of a cycle keep from those behind them, by the rules of their queues.

- Strict: nothing behind a blocked gang is decided (`QueueOrder.block`).
- BestEffort: all may pass.
- Backfill: others may pass that do not delay its start (`Reservations`).

Whatever the rule, nothing in its queue passes a gang that was passed too often; and nothing at all
one that has waited too long, but gangs that their own quota covers where it would borrow. What a
node has to spare beside such a gang passes all the same.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question, SearchSteps
from scheduling.backfill.empty_nodes import EmptyNodes, takes_amounts_alone
from scheduling.backfill.reservations import (
    Contested,
    Outlook,
    Reservation,
    Reservations,
    RunningGang,
)
from scheduling.diagnosis.quota_refusals import BLOCKS_NOTHING, would_delay
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.node_resources_fit import pods_per_node
from scheduling.model.amounts import LIMIT, Amounts, Mask, Requests
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.model.queue import WhenBlocked
from scheduling.model.verdict import Reason, Refusal
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Queues
from scheduling.queueing.waiting import Place, place_of, requests_of
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.pod_index import ExistingPods

STEPS = 200_000
"""What the search for a later start may take each time it is asked, within what the cycle has."""


SOON = 1.0
"""Seconds until the next cycle, where this one had to leave verdicts on empty nodes to it."""

LONGEST = 60.0
"""After so many seconds a cycle decides anew what had to leave its room to a blocked gang."""


class Blocking:
    """The blocked gangs of one cycle, and what may pass them.

    `asks_again_in` is after how many seconds time alone may turn a refusal; infinite where none.
    """

    def __init__(
        self,
        queues: Queues,
        order: QueueOrder,
        nodes: NodeSnapshot,
        existing: ExistingPods | None,
        steps: SearchSteps,
        empty: EmptyNodes,
    ) -> None:
        self._queues, self._order, self._nodes, self._existing = queues, order, nodes, existing
        self._tree, self._steps = queues.waiting.tree, steps
        self._empty = empty
        self._never: set[GangKey] = set()
        self._first: dict[str, PendingGang] = {}
        self._kept: Reservations | None = None
        self._keeps_quota = False
        self._quota_kinds: set[Hashable] = set()
        self._left: dict[str, bytes] = {}
        gangs = map(queues.waiting.gang, queues.aged)
        self._with_aged = {gang.queue for gang in gangs if gang is not None}
        self._started: list[RunningGang] = []
        self._delayed: dict[Hashable, Reservation] = {}
        self.passed: list[GangKey] = []
        self.asks_again_in = inf

    def note(self, gang: PendingGang, refusal: Refusal) -> None:
        """Take in a refusal; only a gang that waits for room that others hold is blocked."""
        if refusal.reason is not Reason.INSUFFICIENT_RESOURCES:
            return
        if self._is_first_to_hold_back(gang) and not self._may_ever_fit(gang):
            return
        self._hold_behind(gang)
        if self._keeps_a_start(gang):
            self._keep_quota()
            short = self._short_of(gang, refusal)
            fitting = tuple(each for each in gang.minimum if each not in short)
            none = np.zeros(len(self._tree.names), dtype=np.bool_)
            self._keep(gang, Contested(self._nodes_of(short), none), fitting)

    def delay(self, gang: PendingGang, placement: Placement, room: FreeCapacity) -> Refusal | None:
        """Refuse a placement that keeps a blocked gang waiting; without a refusal, it stands."""
        broken = self.start(gang, placement, room) if placement.assignments else None
        if broken is not None:
            if self._existing is None:
                self._delayed[_kind(gang)] = broken
            return self._would_delay(gang, broken)
        self._delayed.clear()
        first = self._order.first_over_quota(gang.queue) or self._first.get(gang.queue)
        if first is not None and gang.minimum and self._place(first) < self._place(gang):
            self.passed.append(first.key)
        return None

    def delay_as_before(self, gang: PendingGang) -> Refusal | None:
        """Refuse a gang that asks for the same as one that was refused in this very room."""
        broken = self._delayed.get(_kind(gang)) if self._delayed else None
        if broken is None or gang.surplus or _must_start(gang):
            return None
        if not broken.is_heeded(self._tree.index[gang.queue], self._place(gang)):
            return None
        if not broken.has_no_time and self._queues.now + gang.duration <= broken.starts:
            return None
        return self._would_delay(gang, broken)

    def _would_delay(self, gang: PendingGang, broken: Reservation) -> Refusal:
        if gang.minimum and not gang.surplus:  # else its minimum is asked for alone
            self._hold_behind(gang)
        wait = None if broken.has_no_time else broken.starts - self._queues.now
        again = LONGEST if wait is None else max(1.0, wait)
        self.asks_again_in = min(self.asks_again_in, again, LONGEST)
        return would_delay(broken.gang, wait, gang.duration)

    def _place(self, gang: PendingGang) -> Place:
        return place_of(gang, self._tree.queues[self._tree.index[gang.queue]].ordering)

    def start(
        self, gang: PendingGang, placement: Placement, room: FreeCapacity
    ) -> Reservation | None:
        """Count a gang as running from now on, unless that breaks a reservation, which is returned.

        Those that start before the first reservation is made are kept for it.
        """
        self._keep_quota()
        self._keep_lost_quota(gang.queue)
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
        borrows, place = self._order.borrows(gang), self._place(gang)
        return replace(running, borrows=borrows, place=place, is_plain=self._is_plain(gang))

    def _is_plain(self, gang: PendingGang) -> bool:
        """Say whether a gang takes nothing on its nodes but amounts of what they have."""
        return self._existing is None and takes_amounts_alone(gang, self._nodes)

    def _broken(self, running: RunningGang, outlook: Outlook) -> Reservation | None:
        """Return the reservation that a gang would break; a gang that can never fit keeps none."""
        if self._kept is None:
            return None
        while broken := self._kept.delayed_by(running, outlook):
            if not broken.barred or self._may_ever_fit(broken.gang):
                return broken
            self._kept.drop(broken)
        return None

    def _hold_behind(self, gang: PendingGang) -> None:
        """Apply the rule of its queue to the gangs behind a blocked one."""
        self._first.setdefault(gang.queue, gang)
        self._order.block(gang)

    def _keep_quota(self) -> None:
        """Keep their start for the gangs that waited for quota when the cycle began, once."""
        if self._keeps_quota:
            return
        self._keeps_quota = True
        for queue in self._order.queues_over_quota():
            if queue in self._with_aged or self._is_backfilling(queue):
                self._keep_quota_of(self._order.over_quota(queue))

    def _keep_lost_quota(self, queue: str) -> None:
        """Keep it also for aged gangs of a queue that were within it when the cycle began.

        What they would have borrowed others have taken since; those behind them take no more. They
        are the same as long as the queue may take the same.
        """
        left = self._order.available(queue).tobytes() if queue in self._with_aged else b""
        if left and self._left.get(queue) != left:
            self._left[queue] = left
            waiting, aged = self._order.waiting_for_quota([queue]), self._queues.aged
            self._keep_quota_of([gang for gang in waiting if gang.key in aged])

    def _keep_quota_of(self, gangs: Sequence[PendingGang]) -> None:
        """Keep the quota that gangs of one queue wait for; of equal ones the first is enough."""
        nowhere, kept = np.zeros(len(self._nodes.names), dtype=np.bool_), self._quota_kinds
        for at, gang in enumerate(gangs):
            is_aged = gang.key in self._queues.aged
            kind = gang.queue, gang.minimum, is_aged, gang.key in self._queues.overdue
            if kind not in kept and (is_aged or (at == 0 and self._backfills(gang))):
                kept.add(kind)
                self._keep(gang, self._quota_for(gang, nowhere))

    def _is_first_to_hold_back(self, gang: PendingGang) -> bool:
        """Say whether a gang would hold back others which nothing before it does.

        Of a queue that backfills only the first gang does that at once; for those behind it, which
        may be a thousand, it counts only where a start would be kept for them (`_keep`).
        """
        queue = self._tree.queues[self._tree.index[gang.queue]]
        if gang.key in self._queues.aged or queue.when_blocked is WhenBlocked.STRICT:
            return True
        return queue.when_blocked is WhenBlocked.BACKFILL and gang.queue not in self._first

    def _may_ever_fit(self, gang: PendingGang) -> bool:
        """Say whether the empty nodes might hold a gang; what they cannot hold blocks no other."""
        found = self._empty.might_hold(gang)
        if self._empty.is_unsure:
            self.asks_again_in = min(self.asks_again_in, SOON)
        if not found:
            self._never.add(gang.key)
        return found

    def remark(self, gang: PendingGang) -> str:
        """Say of a gang that it was found to block no other, where it was."""
        return BLOCKS_NOTHING if gang.key in self._never else ""

    def _keeps_a_start(self, gang: PendingGang) -> bool:
        return gang.key in self._queues.aged or self._backfills(gang)

    def _backfills(self, gang: PendingGang) -> bool:
        return self._is_backfilling(gang.queue)

    def _is_backfilling(self, queue: str) -> bool:
        found = self._tree.queues[self._tree.index[queue]]
        return found.when_blocked is WhenBlocked.BACKFILL

    def _keep(
        self, gang: PendingGang, contested: Contested, fitting: tuple[Group, ...] = ()
    ) -> None:
        """Keep what a gang waits for; of an aged one also what its `fitting` groups have now."""
        if self._kept is None:
            running = [self._running(*each) for each in self._holdings()]
            running += self._started
            self._kept = Reservations(self._queues.now, running, self._fits, self._spares)
        row, borrows = self._tree.index[gang.queue], self._order.borrows(gang)
        kept = Reservation(gang, contested, row=row, borrows=borrows, place=self._place(gang))
        if gang.key in self._queues.aged:
            within = gang.key not in self._queues.overdue
            self._kept.bar(replace(kept, within=within))
            if fitting and not self._backfills(gang):
                there = replace(contested, nodes=self._nodes_of(fitting))
                part = replace(gang, minimum=fitting, surplus=())
                self._kept.keep(
                    replace(kept, gang=part, contested=there, within=within, is_part=True)
                )
        if self._backfills(gang):
            everywhere = self._nodes_of(gang.minimum) & contested.nodes.any()
            kept = replace(kept, contested=replace(contested, nodes=everywhere))
            if self._kept.may_reserve(kept) and self._may_ever_fit(gang):
                self._kept.reserve(kept)

    def _holdings(self) -> Iterable[tuple[GangKey, str, float, Iterable[tuple[str, Requests]]]]:
        return ((each.key, each.queue, each.ends, each.room) for each in self._queues.holdings())

    def _short_of(self, gang: PendingGang, refusal: Refusal) -> tuple[Group, ...]:
        """Return the groups without room for all of their pods."""
        short = {each.pod_set for each in refusal.pod_sets if each.fit < each.wanted}
        return tuple(each for each in gang.minimum if each.pod_set in short) or gang.minimum

    def _nodes_of(self, groups: Iterable[Group]) -> Mask:
        """Return the nodes that could run a pod of these groups if they were empty."""
        found: Mask = np.logical_or.reduce([self._could_run(each.shape) for each in groups])
        return found

    def _could_run(self, shape: PodShape) -> Mask:
        nodes, found = self._nodes, feasible(shape, self._nodes).copy()
        for resource, amount in shape.requests:
            if resource in nodes.row:
                found &= nodes.allocatable[nodes.row[resource]] >= amount
        return found

    def _quota_for(self, gang: PendingGang, nowhere: Mask) -> Contested:
        """Return the quota that the minimum of a gang waits for, and the queues that use it."""
        at, demand = self._tree.index[gang.queue], self._tree.requests(requests_of(gang.minimum))
        short = demand > np.maximum(self._order.available(gang.queue), 0)
        order = self._order
        sharing = self._tree.sharing(at, demand, order.used_by_queue, order.available_by_queue)
        return Contested(nowhere, sharing, short)

    def _fits(self, gang: PendingGang, outlook: Outlook) -> bool:
        """Say whether the minimum of a gang would be admitted: quota first, then the nodes."""
        at, tree = self._tree.index[gang.queue], self._tree
        demand = tree.requests(requests_of(gang.minimum))
        available = tree.available(tree.used(outlook.held))[at]
        if (demand > np.maximum(available, 0)).any():
            return False
        room = FreeCapacity(self._nodes, outlook.free)
        outcome = admit(Question(gang, room, self._steps.at_most(STEPS), self._existing))
        self._steps.spend(outcome.steps)
        return isinstance(outcome, Accepted)

    def _spares(self, gang: PendingGang, other: RunningGang, nodes: Mask, free: Amounts) -> bool:
        """Say whether nodes have what another gang takes to spare, beside all pods of a gang.

        So many of its pods as each node could run if it were empty: what ends there, and when, does
        not matter then. What the other gang takes none of does not either.
        """
        contested = nodes[other.nodes]
        at, takes = other.nodes[contested], other.room[:, contested]
        allocatable, row, wanted = self._nodes.allocatable[:, at], self._nodes.row, takes * 0
        for group in gang.minimum:
            requests = group.shape.requests
            pods = np.minimum(pods_per_node(requests, row, allocatable), group.count)
            for resource, amount in requests if pods.any() else ():
                wanted[row[resource]] += pods * amount
        return bool(((takes == 0) | (takes + wanted <= free[:, at])).all())

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
        if queue not in self._tree.index:  # it is not active: its gangs end, and give no quota back
            return RunningGang(key, ends, nodes, held, 0, np.zeros_like(quota))
        return RunningGang(key, ends, nodes, held, self._tree.index[queue], quota)


def _must_start(gang: PendingGang) -> bool:
    """Say whether no blocked gang may keep a gang waiting: one that runs without part of it."""
    return gang.only_repairs


def _kind(gang: PendingGang) -> Hashable:
    """Return what its placement follows from, in the same room; its key where that is more."""
    if gang.has_inter_pod_constraints or gang.mounts_volumes:
        return gang.key
    return gang.queue, gang.pod_priority, gang.topology, gang.minimum, gang.surplus


def _room_of(placement: Placement) -> Iterable[tuple[str, Requests]]:
    for placed in placement.assignments:
        for node, pods in placed.nodes:
            yield node, tuple((name, amount * pods) for name, amount in placed.requests)
