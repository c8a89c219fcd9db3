"""Says which nodes and quota a blocked gang keeps from the gangs behind it, by its queue's rule.

- Strict: nothing behind a blocked gang is decided (`QueueOrder.block`).
- BestEffort: all may pass.
- Backfill: others may pass that do not delay its start (`Reservations`).

Whatever the rule, nothing in its queue passes a gang that was passed too often; and nothing at all
one that has waited too long, but gangs that their own quota covers where it would borrow. What a
node has to spare beside such a gang passes all the same, and with Backfill what ends before its
start. Nodes and quota are kept together, but for gangs beyond all that their queue could ever get.
"""

from collections.abc import Hashable, Mapping, Sequence
from math import inf

import numpy as np

from scheduling.backfill.claims import Claims
from scheduling.backfill.empty_nodes import EmptyNodes, takes_amounts_alone
from scheduling.backfill.outlook import Cluster, Outlook, RunningGang
from scheduling.backfill.reservations import (
    Kept,
    LentQuota,
    Reservations,
    Start,
    StartReservation,
)
from scheduling.diagnosis.quota_refusals import BLOCKS_NOTHING, waits_for_lent, would_delay
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Positions
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.placement import Placement, room_of
from scheduling.model.queue import WhenBlocked
from scheduling.model.verdict import Reason, Refusal
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Queues

SOON = 1.0
"""Seconds until the next cycle, where this one had to leave verdicts on empty nodes to it."""

LONGEST = 60.0
"""After so many seconds a cycle decides anew what had to leave its room to a blocked gang."""


class Blocking:
    """The blocked gangs of one cycle, and what may pass them.

    `promised` are the starts that aged gangs were told in cycles before. `asks_again_in` is after
    how many seconds time alone may turn a refusal; infinite where none.
    """

    def __init__(
        self,
        queues: Queues,
        order: QueueOrder,
        cluster: Cluster,
        empty: EmptyNodes,
        promised: Mapping[GangKey, float],
    ) -> None:
        self._queues, self._order, self._cluster, self._empty = queues, order, cluster, empty
        self._tree, self._nodes = cluster.tree, cluster.nodes
        self._promised = {key: at for key, at in promised.items() if key in queues.aged}
        self._never: set[GangKey] = set()
        self._first: dict[str, PendingGang] = {}
        self._kept: Reservations | None = None
        self._keeps_quota = False
        self._quota_kinds: set[Hashable] = set()
        self._nodes_kept: set[str] = set()
        self._noted: dict[Hashable, PendingGang] = {}
        self._left: dict[str, bytes] = {}
        gangs = map(queues.waiting.gang, queues.aged)
        self._with_aged = {gang.queue for gang in gangs if gang is not None}
        self._claims = Claims(queues, order, cluster)
        self._started: list[RunningGang] = []
        self._delayed: dict[Hashable, Kept] = {}
        self.passed: list[GangKey] = []
        self.asks_again_in = inf

    @property
    def promised(self) -> Mapping[GangKey, float]:
        """Return the first start that each aged gang was told."""
        return {**self._promised, **self._kept.promised} if self._kept else self._promised

    # ---- refusals

    def note(self, gang: PendingGang, refusal: Refusal, room: FreeCapacity) -> None:
        """Take in a refusal; only a gang that waits for room that others hold is blocked."""
        if refusal.reason is not Reason.INSUFFICIENT_RESOURCES or gang.yields:
            return
        if self._is_first_to_hold_back(gang) and not self._may_ever_fit(gang):
            return
        self._hold_behind(gang)
        if (self._claims.is_aged(gang) or self._backfills(gang)) and not self._is_kept_by_another(
            gang
        ):
            self._keep_quota(self._outlook(room))
            self._keep(gang, gang.minimum, refusal.groups_without_room(gang))

    def delay(self, gang: PendingGang, broken: Kept) -> Refusal:
        """Refuse a gang that would keep a blocked one waiting wherever it is placed."""
        if self._cluster.existing is None:
            self._delayed[_kind(gang)] = broken
        return self._would_delay(gang, broken)

    def note_start(self, gang: PendingGang) -> None:
        """Note that a gang is admitted, perhaps past a blocked one."""
        self._delayed.clear()
        first = self._order.first_over_quota(gang.queue) or self._first.get(gang.queue)
        passes = bool(gang.minimum) and not gang.yields
        if first is not None and passes and self._claims.place(first) < self._claims.place(gang):
            self.passed.append(first.key)

    def delay_as_before(self, gang: PendingGang) -> Refusal | None:
        """Refuse a gang that asks for the same as one that was refused in this very room."""
        broken = self._delayed.get(_kind(gang)) if self._delayed else None
        if broken is None or gang.surplus or _must_start(gang):
            return None
        ends = self._queues.now + gang.duration
        if broken.lets_end(ends) or not broken.claim.is_heeded_by(self._claims.passer(gang)):
            return None
        return self._would_delay(gang, broken)

    def remark(self, gang: PendingGang) -> str:
        """Say of a gang that it was found to block no other, where it was."""
        return BLOCKS_NOTHING if gang.key in self._never else ""

    def _would_delay(self, gang: PendingGang, broken: Kept) -> Refusal:
        if gang.minimum and not gang.surplus:  # else its minimum is asked for alone
            self._hold_behind(gang)
        if isinstance(broken, LentQuota):
            self.asks_again_in = min(self.asks_again_in, LONGEST)
            return waits_for_lent(broken.claim.gang)
        starts = broken.starts if isinstance(broken, StartReservation) else None
        wait = None if starts is None else starts - self._queues.now
        again = LONGEST if wait is None else max(1.0, wait)
        self.asks_again_in = min(self.asks_again_in, again, LONGEST)
        return would_delay(broken.claim.gang, wait, gang.duration)

    def _hold_behind(self, gang: PendingGang) -> None:
        """Apply the rule of its queue to the gangs behind a blocked one."""
        if gang.yields:
            return
        self._first.setdefault(gang.queue, gang)
        self._order.block(gang)

    def _is_first_to_hold_back(self, gang: PendingGang) -> bool:
        """Say whether a gang would hold back others which nothing before it does.

        Of a queue that backfills only the first gang does that at once; for those behind it, which
        may be a thousand, it counts only where a start would be kept for them (`_keep`).
        """
        rule = self._claims.queue(gang.queue).when_blocked
        if self._claims.is_aged(gang) or rule is WhenBlocked.STRICT:
            return True
        return rule is WhenBlocked.BACKFILL and gang.queue not in self._first

    def _may_ever_fit(self, gang: PendingGang) -> bool:
        """Say whether the empty nodes might hold a gang; what they cannot hold blocks no other."""
        found = self._empty.might_hold(gang)
        if self._empty.is_unsure:
            self.asks_again_in = min(self.asks_again_in, SOON)
        if not found:
            self._never.add(gang.key)
        return found

    # ---- starts

    def start(self, gang: PendingGang, placement: Placement, room: FreeCapacity) -> Kept | None:
        """Count a gang as running from now on, unless that breaks what is kept; return that then.

        Those that start before the first reservation is made are kept for it.
        """
        if not placement.assignments:
            return None
        outlook = self._outlook(room)
        self._keep_quota(outlook)
        self._keep_lost_quota(gang.queue, outlook)
        if self._kept is None or _must_start(gang):
            self.let_start(gang, placement)
            return None
        return self._broken(
            Start(
                self._claims.passer(gang),
                self._starting(gang, placement),
                outlook,
                self._is_plain(gang),
            )
        )

    def nodes_kept_from(self, gang: PendingGang) -> Positions:
        """Return the nodes on which something is kept that a gang may not take."""
        who = self._claims.passer(gang)
        kept = self._kept.all() if self._kept else ()
        masks = [each.needed.nodes for each in kept if each.claim.is_heeded_by(who)]
        return np.flatnonzero(np.logical_or.reduce(masks)) if masks else np.zeros(0, np.intp)

    def let_start(self, gang: PendingGang, placement: Placement) -> None:
        """Count a gang as running from now on, whatever is kept for others."""
        if self._kept is not None:
            self._kept.start(self._starting(gang, placement))
        elif gang.duration < inf:
            self._started.append(self._starting(gang, placement))

    def _starting(self, gang: PendingGang, placement: Placement) -> RunningGang:
        ends = self._queues.now + gang.duration
        return self._cluster.running(gang.key, gang.queue, ends, room_of(placement))

    def _is_plain(self, gang: PendingGang) -> bool:
        """Say whether a gang takes nothing on its nodes but amounts of what they have."""
        return self._cluster.existing is None and takes_amounts_alone(gang, self._nodes)

    def _broken(self, start: Start) -> Kept | None:
        """Return what a gang would break; for a gang that can never fit nothing is kept."""
        while self._kept is not None and (broken := self._kept.broken_by(start)):
            if self._may_ever_fit(broken.claim.gang):
                return broken
            self._kept.drop(broken.claim.gang.key)
        return None

    # ---- what is kept

    def _keep_quota(self, outlook: Outlook) -> None:
        """Keep for the gangs that waited for quota when the cycle began, once."""
        if self._keeps_quota:
            return
        self._keeps_quota = True
        for queue in self._order.queues_over_quota():
            keeps_first = self._claims.queue(queue).when_blocked is WhenBlocked.BACKFILL
            if keeps_first or queue in self._with_aged:
                for at, gang in enumerate(self._order.over_quota(queue)):
                    if self._claims.is_aged(gang) or (keeps_first and at == 0):
                        self._keep_over_quota(gang, outlook)
        for gang in self._order.lenders():
            self._reservations().keep(self._claims.lent_quota(gang))

    def _keep_lost_quota(self, queue: str, outlook: Outlook) -> None:
        """Keep also for aged gangs of a queue that were within quota when the cycle began.

        What they would have borrowed others have taken since; those behind them take no more. They
        are the same as long as the queue may take the same.
        """
        left = self._order.available(queue).tobytes() if queue in self._with_aged else b""
        if left and self._left.get(queue) != left:
            self._left[queue] = left
            for gang in self._order.waiting_for_quota([queue]):
                if self._claims.is_aged(gang):
                    self._keep_over_quota(gang, outlook)

    def _keep_over_quota(self, gang: PendingGang, outlook: Outlook) -> None:
        """Keep for a gang that waits for quota; of equal ones in a queue the first is enough.

        Nodes are kept for the first aged one of a queue: those behind it start after it.
        """
        is_aged, overdue = self._claims.is_aged(gang), gang.key in self._queues.overdue
        kind = gang.queue, gang.minimum, is_aged, overdue
        if kind in self._quota_kinds or not self._claims.may_ever_have(gang):
            return
        self._quota_kinds.add(kind)
        if not is_aged or gang.queue in self._nodes_kept:
            self._keep(gang, (), ())
        elif self._may_ever_fit(gang):
            self._nodes_kept.add(gang.queue)
            self._keep(gang, gang.minimum, outlook.groups_without_room(gang))

    def _is_kept_by_another(self, gang: PendingGang) -> bool:
        """Say whether the same is kept for a gang before this one, which is enough for both."""
        kind = _kind(gang), self._claims.is_aged(gang), gang.key in self._queues.overdue
        first = self._noted.setdefault(kind, gang)
        is_before = self._claims.place(first) < self._claims.place(gang) and self._claims.turn(
            first
        ) <= self._claims.turn(gang)
        if first is not gang and not is_before:
            self._noted[kind] = gang
        return is_before

    def _keep(self, gang: PendingGang, needs: Sequence[Group], short: Sequence[Group]) -> None:
        """Keep what a gang waits for and what it has, of the groups that it `needs` nodes for.

        The `short` ones of them lack room.
        """
        kept = self._claims.reservation(gang, needs, short, self._promised.get(gang.key, inf))
        reservations = self._reservations()
        if not self._backfills(gang):
            for each in kept.instead:
                reservations.keep(each)
        elif kept.instead or (reservations.is_first(kept) and self._may_ever_fit(gang)):
            reservations.keep(kept)

    def _reservations(self) -> Reservations:
        if self._kept is None:
            running = [*self._claims.running, *self._started]
            self._kept = Reservations(self._queues.now, running)
        return self._kept

    def _backfills(self, gang: PendingGang) -> bool:
        return self._claims.queue(gang.queue).when_blocked is WhenBlocked.BACKFILL

    def _outlook(self, room: FreeCapacity) -> Outlook:
        return Outlook(self._cluster, room.free, self._order.held)


def _must_start(gang: PendingGang) -> bool:
    """Say whether no blocked gang may keep a gang waiting: one that runs without part of it."""
    return gang.only_repairs


def _kind(gang: PendingGang) -> Hashable:
    """Return what its placement follows from, in the same room; its key where that is more."""
    if gang.has_inter_pod_constraints or gang.mounts_volumes:
        return gang.key
    return gang.queue, gang.pod_priority, gang.topology, gang.minimum, gang.surplus
