"""Says what is kept for a blocked gang, and from which gangs, by its quota and its age."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial

import numpy as np

from scheduling.backfill.outlook import Cluster, RunningGang
from scheduling.backfill.reservations import (
    NO_TURN,
    Bar,
    Claim,
    Contested,
    KeptPart,
    LentQuota,
    OwnQuota,
    Passer,
    StartReservation,
    Turn,
)
from scheduling.model.amounts import Amounts, Mask
from scheduling.model.gang import Group, PendingGang
from scheduling.model.queue import Queue
from scheduling.queueing.line import Place
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.queues import Holding, Queues


class Claims:
    """The claims of the blocked gangs of one cycle on nodes and quota."""

    def __init__(self, queues: Queues, order: QueueOrder, cluster: Cluster) -> None:
        self._queues, self._order, self._cluster = queues, order, cluster
        self._tree = cluster.tree
        self._unused = np.zeros_like(self._tree.subtree)

    def lent_quota(self, gang: PendingGang) -> LentQuota:
        """Keep what a gang's own queue has lent of the quota that it waits for."""
        row, lacks, sharing = self._short_quota(gang)
        contested = Contested(self._cluster.nodes_of(()), sharing, lacks)
        return LentQuota(Claim(gang, row, self.place(gang), is_of_lender=True), contested)

    def reservation(
        self, gang: PendingGang, needs: Sequence[Group], short: Sequence[Group], promised: float
    ) -> StartReservation:
        """Return the start that is kept for a gang, and what is kept `instead` if it has aged.

        It `needs` nodes for these groups, of which the `short` ones lack room; `promised` is the
        start that it was told before.
        """
        (row, lacks, sharing), nodes_of = self._short_quota(gang), self._cluster.nodes_of
        demand, all_nodes, none = self._cluster.demand(gang), nodes_of(needs), nodes_of(())
        needed = Contested(all_nodes, self._tree.same_root(row), demand > 0)
        contested = Contested(all_nodes if short else none, sharing, lacks)
        claim = self._claim(gang)
        if not self.is_aged(gang):
            return StartReservation(claim, contested, needed)
        if needs and lacks.any() and not self._may_have_beside_those_before(gang):
            needs = short = ()
        bar = Bar(claim, replace(contested, nodes=nodes_of(short)))
        fitting = tuple(each for each in needs if each not in short)
        part = replace(gang, minimum=fitting, surplus=())
        has = KeptPart(claim, replace(needed, nodes=nodes_of(fitting)), part)
        instead = (bar, has) if claim.borrows else (bar, has, self._own_quota(claim, needed))
        return StartReservation(claim, contested, needed, instead, promised)

    def _own_quota(self, claim: Claim, needed: Contested) -> OwnQuota:
        is_own: Mask = np.arange(len(self._unused)) == claim.queue
        of_own = replace(needed, nodes=self._cluster.nodes_of(()), queues=is_own)
        return OwnQuota(replace(claim, within=True), of_own)

    def _claim(self, gang: PendingGang) -> Claim:
        row, demand = self._row(gang), self._cluster.demand(gang)
        borrows = self._tree.borrowing_level(row, demand, self._unused, self._unused) > 0
        within = self.is_aged(gang) and gang.key not in self._queues.overdue
        return Claim(gang, row, self.place(gang), self.turn(gang), within, borrows)

    def _short_quota(self, gang: PendingGang) -> tuple[int, Mask, Mask]:
        """Return the row of a gang's queue, what it lacks, and the queues that use that."""
        row, demand = self._row(gang), self._cluster.demand(gang)
        used, available = self._order.used_by_queue, self._order.available_by_queue
        lacks: Mask = demand > np.maximum(self._order.available(gang.queue), 0)
        return row, lacks, self._tree.sharing(row, demand, used, available)

    def may_ever_have(self, gang: PendingGang, beside: Amounts | int = 0) -> bool:
        """Say whether the queue of a gang could ever get as much quota as it asks for."""
        most = self._tree.most[self._row(gang)]
        return bool((self._cluster.demand(gang) + beside <= most).all())

    def _may_have_beside_those_before(self, gang: PendingGang) -> bool:
        """Say whether a gang could have its quota while those before it in its queue go on running.

        Else no room helps it now, and those of higher priority may go on coming for ever.
        """
        ordering = self.queue(gang.queue).ordering
        both = zip(self._holdings, self.running, strict=True)
        ahead = (runs.quota for held, runs in both if held.is_before(gang, ordering))
        return self.may_ever_have(gang, sum(ahead))

    @cached_property
    def running(self) -> Sequence[RunningGang]:
        """What the gangs that run hold."""
        running = self._cluster.running
        return [running(each.key, each.queue, each.ends, each.room) for each in self._holdings]

    @cached_property
    def _holdings(self) -> Sequence[Holding]:
        return tuple(self._queues.holdings())

    # ---- gangs and their queues

    def passer(self, gang: PendingGang) -> Passer:
        """Return what claims ask of a gang that would start."""
        place, borrows = self.place(gang), partial(self._order.borrows, gang)
        return Passer(gang.key, self._row(gang), place, borrows, self.turn(gang))

    def is_aged(self, gang: PendingGang) -> bool:
        """Say whether a gang waited so long, or was passed so often, that it is passed no more."""
        return gang.key in self._queues.aged

    def queue(self, name: str) -> Queue:
        """Return the rules of a queue."""
        return self._tree.queues[self._tree.index[name]]

    def _row(self, gang: PendingGang) -> int:
        return self._tree.index[gang.queue]

    def place(self, gang: PendingGang) -> Place:
        """Return what orders a gang in its queue."""
        return self._queues.waiting.line(gang.queue).place(gang)

    def turn(self, gang: PendingGang) -> Turn:
        """Return what orders a gang among the overdue ones of all queues."""
        is_overdue = gang.key in self._queues.overdue
        return (gang.created, gang.key.namespace, gang.key.name) if is_overdue else NO_TURN
