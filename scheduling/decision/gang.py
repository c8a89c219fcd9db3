"""Decides one gang in the room that those before it leave: admitted, or refused with a reason.

A gang that finds no room may have it made by preemption; else it is blocked, and by the rules of
its queue others leave their room to it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from scheduling.admission.question import Accepted, Untried
from scheduling.backfill.blocking import Blocking
from scheduling.decision.kept_refusals import KeptRefusals
from scheduling.decision.preemption_pass import PreemptionPass
from scheduling.decision.quota import quota_refusal
from scheduling.decision.reasons import RefusalReasons
from scheduling.decision.search import GangSearch
from scheduling.diagnosis.causes import Cause
from scheduling.diagnosis.preemption_refusals import with_note
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import PendingGang
from scheduling.model.placement import Placement, amounts_of
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.queueing.line import requests_of
from scheduling.queueing.order import QueueOrder
from scheduling.queueing.quota_tree import QuotaTree

Decided = tuple[Admitted | Refusal, FreeCapacity]
"""The verdict for a gang, and the room that it leaves."""


class GangDecision:
    """How one gang after another is decided; `took_room` says that one of them was given room."""

    def __init__(
        self,
        tree: QuotaTree,
        order: QueueOrder,
        blocking: Blocking,
        preemption: PreemptionPass,
        search: GangSearch,
        kept: KeptRefusals,
        reasons: RefusalReasons,
    ) -> None:
        self._tree, self._order, self._blocking = tree, order, blocking
        self._preemption, self._search, self._kept = preemption, search, kept
        self._reasons = reasons
        self.took_room = False

    def decide(self, asked: PendingGang, room: FreeCapacity) -> Decided:
        """Return the verdict for a gang, and the room that it leaves."""
        gang = self._search.mounted(asked)
        room = room.for_priority(gang.pod_priority)
        shared = self._reasons.short_of_shared(asked, gang, room)
        standing = self._kept.standing(gang, room, is_certain=not shared)
        if standing is not None:
            return self._refused(gang, standing, room)
        delay = self._blocking.delay_as_before(gang)
        if delay is not None:
            return delay, room.for_next()
        steps = self._search.steps
        units = self._order.units_within_quota(gang)
        outcome = self._search.outcome(_with_units(gang, units), room, steps)
        if isinstance(outcome, Accepted):
            return self._accepted(gang, units, outcome, room)
        may_be_parted = gang.is_separable and gang.key not in self._preemption.promised
        part = self._part_that_fits(gang, room) if may_be_parted else None
        if part is not None:
            return self._accepted(*part, room)
        refusal = self._reasons.refusal(gang, room, outcome.cause, shared)
        self._kept.keep(gang, refusal, room, steps)
        return self._refused(gang, refusal, room.for_next())

    # ---- admitted

    def _part_that_fits(
        self, gang: PendingGang, room: FreeCapacity
    ) -> tuple[PendingGang, Sequence[int], Accepted] | None:
        """Find the replicas of a minimum that fit without the others; None where none does."""
        replicas = tuple(gang.replicas())
        apart = replace(gang, minimum=(), surplus=replicas)
        found = self._search.outcome(apart, room, self._search.steps)
        if not isinstance(found, Accepted) or not found.units:
            return None
        part = gang.with_replicas(replicas[at] for at in found.units)
        again = self._search.outcome(part, room, self._search.steps)
        return (part, (), again) if isinstance(again, Accepted) else None

    def _accepted(
        self, gang: PendingGang, units: Sequence[int], outcome: Accepted, room: FreeCapacity
    ) -> Decided:
        """Admit a gang that fits, unless it must leave the room to a blocked one."""
        if gang.key in self._preemption.promised:
            self._blocking.let_start(gang, outcome.placement)
        else:
            asked = _with_units(gang, units)
            broken = self._blocking.start(asked, outcome.placement, room)
            if broken is not None:
                other = self._on_other_nodes(asked, outcome.placement, room)
                if other is None:
                    return self._delayed(gang, units, self._blocking.delay(asked, broken), room)
                outcome = other
            self._blocking.note_start(asked)
        self._order.take(gang, amounts_of(outcome.placement))
        self._preemption.admitted(gang, outcome.placement)
        verdict = self._admitted(gang, outcome)
        placed = tuple(units[at] for at in verdict.units)
        left_out = verdict.left_out
        if left_out is None and len(units) < len(gang.surplus):
            left_out = self._surplus_over_quota(gang, units)
        return replace(verdict, units=placed, left_out=left_out), outcome.room.for_next()

    def _on_other_nodes(
        self, gang: PendingGang, refused: Placement, room: FreeCapacity
    ) -> Accepted | None:
        """Place a gang where nothing is kept for a blocked one; None where that does not help."""
        kept = self._blocking.nodes_kept_from(gang)
        index = room.columns.index
        nodes = (node for each in refused.assignments for node, _ in each.nodes)
        used = {index[node] for node in nodes if node in index}
        if used.isdisjoint(kept.tolist()):
            return None
        free = np.maximum(room.free[:, kept], 0)
        found = self._search.outcome(gang, room.changed_by(kept, -free), self._search.steps)
        if not isinstance(found, Accepted) or self._blocking.start(gang, found.placement, room):
            return None
        return replace(found, room=found.room.for_next().changed_by(kept, free))

    def _delayed(
        self, gang: PendingGang, units: Sequence[int], delay: Refusal, room: FreeCapacity
    ) -> Decided:
        """Admit the minimum alone where only the surplus would keep a blocked gang waiting."""
        if gang.minimum and units:
            alone = replace(gang, surplus=())
            outcome = self._search.outcome(alone, room, self._search.steps)
            if isinstance(outcome, Accepted):
                verdict, room = self._accepted(alone, (), outcome, room)
                if isinstance(verdict, Admitted):
                    return replace(verdict, left_out=delay), room
                return verdict, room
        return delay, room.for_next()

    def _admitted(self, gang: PendingGang, outcome: Accepted) -> Admitted:
        """Assume the gang's pods on their nodes; return its verdict."""
        self._search.assume(gang, outcome.placement)
        self._reasons.assume(gang, outcome.placement)
        self.took_room = self.took_room or bool(outcome.placement.assignments)
        left_out = outcome.left_out
        refusal = self._surplus_refusal(gang, left_out, outcome.room) if left_out else None
        return Admitted(outcome.placement, outcome.units, refusal)

    def _surplus_refusal(
        self, gang: PendingGang, left_out: Cause | Untried, room: FreeCapacity
    ) -> Refusal:
        """Say why some of a surplus waits, as a cycle ago where gang and nodes are the same."""
        refusal = self._kept.standing_surplus(gang) or self._reasons.surplus(gang, left_out, room)
        self._kept.left_out[gang.key] = gang, refusal
        return refusal

    def _surplus_over_quota(self, gang: PendingGang, units: Sequence[int]) -> Refusal:
        """Say which quota keeps the next unit of a surplus waiting."""
        at = next(at for at in range(len(gang.surplus)) if at not in units)
        demand = self._tree.requests(requests_of(gang.surplus[at]))
        return quota_refusal(self._order, self._tree, gang.queue, demand)

    # ---- refused

    def _refused(
        self, gang: PendingGang, refusal: Refusal, room: FreeCapacity
    ) -> tuple[Refusal, FreeCapacity]:
        """Make room for a gang that finds none, if its queue may; else it is blocked."""
        if refusal.reason is Reason.INSUFFICIENT_RESOURCES and self._preemption.may(gang):
            made, room = self._preemption.make_room(gang, room)
            if made is not None:
                return made, room
            refusal = with_note(refusal, self._preemption.note(gang))
        self._blocking.note(gang, refusal, room)
        return with_note(refusal, self._blocking.remark(gang)), room


def _with_units(gang: PendingGang, units: Sequence[int]) -> PendingGang:
    """Return the gang with these units of its surplus."""
    if len(units) == len(gang.surplus):
        return gang
    return replace(gang, surplus=tuple(gang.surplus[at] for at in units))
