"""Chooses the victims for waiting gangs in one cycle, within what their queues may take.

What ends by itself comes first: a gang that fits once that is gone waits for it, and nothing more
is taken. So a preemption needs no memory to go on: each cycle finds again that the gang will fit.
What was found for one gang counts for all after it: its victims as gone, its plan as taken.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf

from scheduling.admission.refusal_memory import has_grown_for
from scheduling.diagnosis.preemption_refusals import not_taken
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.preemption import FailedAttempts, GangPart
from scheduling.model.queue import Queue, Reclaim
from scheduling.placement.independent import demand_of
from scheduling.preemption.candidates import Candidate, Claim, candidates, is_open
from scheduling.preemption.coverage import Coverage, Use, held_by
from scheduling.preemption.fewest import Found, cost, fewest_first
from scheduling.preemption.holds import Holds
from scheduling.preemption.needs_ending_pods import why_not
from scheduling.preemption.search import Outlook, Search
from scheduling.preemption.standing import Standing
from scheduling.preemption.turns import Turns
from scheduling.queueing.line import requests_of
from scheduling.queueing.queues import Queues
from scheduling.state.node_snapshot import NodeSnapshot

LISTING = 300
"""Steps for each part that is looked at, to choose or to see what quota covers: some 6 us."""


@dataclass(frozen=True, eq=False, slots=True)
class PreemptionPlan:
    """Where a gang will be once these parts have ended; `spent` are the steps that took.

    `taken` are those of them that end for it, or are ending; the rest was chosen for others.
    """

    plan: Placement
    parts: tuple[GangPart, ...]
    taken: tuple[GangPart, ...]
    spent: int


@dataclass(frozen=True, slots=True)
class NoPreemption:
    """Nothing can be taken for a gang; `note` is what its message says of that.

    `is_open` says that the steps were used up before it was certain.
    """

    note: str = ""
    spent: int = 0
    is_open: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class _Choice:
    """What one claim may take: candidates by their first part, and what is `kept` from it.

    `every` are all that would be gone then.
    """

    candidates: Found
    together: dict[int, set[int]]
    every: frozenset[int]
    kept: Sequence[GangPart]


class Preempting:
    """One cycle's preemptions; `holds` is the room that gangs were promised."""

    def __init__(
        self,
        queues: Queues,
        nodes: NodeSnapshot,
        holds: Holds,
        before: FailedAttempts | None,
        had_turn: Collection[GangKey] = (),
    ) -> None:
        self._queues, self._tree, self._nodes = queues, queues.waiting.tree, nodes
        self._holds, self._before, self.turns = holds, before, Turns(had_turn)
        self._held = holds.held(queues.held).tobytes() if self._tree.preempting else b""
        self._admitted: list[PendingGang] = []
        self._lowest: dict[str, int] = {}  # priority of what was admitted, by queue
        self._coverage: Coverage | None = None
        self._of_repair: tuple[GangKey, Coverage] | None = None
        self._listed = 0  # the steps of all that was listed for the gang of now
        self._choices: dict[tuple[int, int, frozenset[int]], _Choice] = {}
        self._first_levels: dict[tuple[object, ...], int] = {}
        self._failed_demands: dict[object, Sequence[GangPart]] = {}
        self._taken: tuple[GangPart, ...] = ()
        self._failed_attempts: dict[GangKey, tuple[PendingGang, tuple[GangPart, ...], str]] = {}

    def may(self, gang: PendingGang) -> bool:
        """Say whether a gang may take room of running ones.

        Never for its surplus; nor where it had room of late and could make no use of it.
        """
        is_able = bool(gang.minimum) and not gang.setbacks
        return gang.queue in self._tree.preempting and is_able

    def note(self, gang: GangKey) -> str:
        """Return what the message of a gang says of why nothing is taken for it."""
        found = self._failed_attempts.get(gang)
        return found[2] if found else ""

    def noted_anew(self) -> Iterator[GangKey]:
        """Yield the gangs whose note is another one than a cycle ago."""
        told = (
            {key: note for key, (_, _, note) in self._before.gangs.items()} if self._before else {}
        )
        for key in {**told, **self._failed_attempts}:
            if self.note(key) != told.get(key, ""):
                yield key

    def failed_attempts(self) -> FailedAttempts | None:
        """Return what the next cycle need not ask again."""
        if not self._failed_attempts:
            return None
        return FailedAttempts(self._tree, self._parts, self._held, self._failed_attempts)

    def is_known_to_fail(self, gang: PendingGang, room: FreeCapacity) -> bool:
        """Say whether nothing could be taken for a gang a cycle ago, nor can now."""
        before = None if gang.claims_devices else self._before
        known = before.gangs.get(gang.key) if before and self._is_as_before else None
        if known is None or (known[0] is not gang and known[0] != gang) or known[1] != self._taken:
            return False
        if len(room.grown) and has_grown_for(gang, room):
            return False
        self._failed_attempts[gang.key] = known
        return True

    def admitted(self, gang: PendingGang) -> None:
        """Count a gang that this cycle admits among those that quota covers."""
        lowest = self._lowest.get(gang.queue, gang.priority)
        self._lowest[gang.queue] = min(lowest, gang.priority)
        if self._tree.preempting and gang.minimum:
            self._admitted.append(gang)
            self._changed()

    def is_to_ask_again(self) -> bool:
        """Say whether a gang that found nothing might stop what this cycle admitted."""
        asked = {(gang.queue, gang.priority) for gang, _, _ in self._failed_attempts.values()}
        return any(
            is_open(self._queue(name), priority, of, lowest)
            for name, priority in asked
            for of, lowest in self._lowest.items()
        )

    def borrowing_level(self, gang: PendingGang, counted: int) -> int:
        """Return how far up the quota is that covers a gang; `counted` is that beside all in use.

        A gang that may reclaim is covered beside that alone which it could not stop: else others
        are begun before it and stopped at once. What nothing deeper covers when the cycle begins
        is not asked for again with each admission.
        """
        if not counted or not self.may(gang):
            return counted
        if self._queue(gang.queue).reclaim is Reclaim.NEVER:
            return counted
        kind = gang.queue, gang.priority, tuple(requests_of(gang.minimum).items())
        if kind not in self._first_levels:
            self._first_levels[kind] = self._level(gang)
        return min(counted, self._level(gang)) if self._first_levels[kind] < counted else counted

    def _level(self, gang: PendingGang) -> int:
        deepest = self._covering(gang).deepest(self._newest(gang))
        return self._tree.nowhere if deepest is None else self._standing.guarantees.height(deepest)

    def _queue(self, name: str) -> Queue:
        return self._tree.queues[self._tree.index[name]]

    def make_room(
        self, gang: PendingGang, outlook: Outlook, steps: int
    ) -> PreemptionPlan | NoPreemption:
        """Find what has to end so that the minimum of a gang is admitted, and where it goes."""
        if gang.key in self._failed_attempts or self.is_known_to_fail(gang, outlook.room):
            return NoPreemption(self.note(gang.key))
        reason = why_not(gang, outlook.existing)
        if reason:
            return self._no_preemption(gang, reason, 0)
        search, self._listed = Search(gang, outlook, self._standing.freed, self._tree, steps), 0
        found = self._waits(search) or self._takes(gang, search)
        spent = search.spent + self._listed
        if isinstance(found, PreemptionPlan):
            return replace(found, spent=spent)
        if search.is_cut_short:
            return NoPreemption("", spent, is_open=True)
        return self._no_preemption(gang, found, spent)

    def took(self, parts: Collection[GangPart]) -> None:
        """Count parts as gone, and what was promised to a gang as used."""
        self._standing.gone |= frozenset(self._standing.position(each) for each in parts)
        self._taken += tuple(each for each in parts if not each.is_ending)
        self._changed()

    # ---- one gang

    def _waits(self, search: Search) -> PreemptionPlan | None:
        """Find what is ending by itself that is enough."""
        gone = self._standing.gone
        if not gone or not search.might_fit(gone) or search.fits(gone) is None:
            return None
        each_alone = {at: {at} for at in gone}
        return self._plan(search, frozenset(), search.needed((), sorted(gone), each_alone))

    def _takes(self, gang: PendingGang, search: Search) -> PreemptionPlan | str:
        """Choose what is to end; or say why nothing is."""
        key = gang.queue, gang.priority, demand_of(gang.minimum), gang.pod_priority
        if key in self._failed_demands and _is_plain(gang):
            return not_taken(gang.key.namespace, self._failed_demands[key])
        if not self._may_ask(gang, search):
            return ""
        made, kept = self._chosen(gang, search)
        if made is None and search.is_cut_short:
            self.turns.cut_short(gang.key)
        elif made is None:
            self.turns.had(gang.key)
            if _is_plain(gang):
                self._failed_demands[key] = kept
        return made or not_taken(gang.key.namespace, kept)

    def _may_ask(self, gang: PendingGang, search: Search) -> bool:
        """Say whether it is a gang's turn, and steps are left."""
        is_due = self.turns.is_due(gang.key)
        if is_due and not search.has_steps:
            self.turns.cut_short(gang.key)
        search.is_cut_short |= not (is_due and search.has_steps)
        return not search.is_cut_short

    def _chosen(
        self, gang: PendingGang, search: Search
    ) -> tuple[PreemptionPlan | None, Sequence[GangPart]]:
        """Choose among what the gang may take; return what is kept from it, too."""
        gone, claim = self._standing.gone, self._claim(gang)
        choice, made = self._choice(claim, gang), None
        if choice.candidates and search.might_fit(choice.every):
            made = self._plan(search, gone, self._needed(gang, choice, search))
        return made, choice.kept

    def _needed(self, gang: PendingGang, choice: _Choice, search: Search) -> set[int] | None:
        """Return a minimal set to end beside what is gone: the better of two, if steps last."""
        gone, found = self._standing.gone, choice.candidates
        first = search.needed(gone, list(found), choice.together)
        if first is None or search.is_cut_short:
            return first
        again = fewest_first(found, requests_of(gang.minimum))
        other = search.needed(gone, again, choice.together) if search.has_steps else None
        return min((first, other or first), key=partial(cost, found))

    def _plan(
        self, search: Search, gone: frozenset[int], needed: set[int] | None
    ) -> PreemptionPlan | None:
        accepted = search.fits(gone | needed) if needed else None
        if accepted is None or needed is None:
            return None
        parts = self._standing.named(needed)
        own = {at for at in needed if at not in self._standing.gone}
        taken = tuple(p for p in parts if p.is_ending or self._standing.position(p) in own)
        return PreemptionPlan(accepted.placement, parts, taken, search.spent)

    def _no_preemption(self, gang: PendingGang, note: str, spent: int) -> NoPreemption:
        self._failed_attempts[gang.key] = gang, self._taken, note
        return NoPreemption(note, spent)

    # ---- by what right

    def _claim(self, gang: PendingGang) -> Claim:
        row = self._tree.index[gang.queue]
        covered = self._covering(gang).would_cover(self._newest(gang))
        return Claim(self._tree.queues[row], row, gang.priority, covered)

    def _covering(self, gang: PendingGang) -> Coverage:
        """Return the coverage that a gang joins: that of others, where it holds something."""
        if gang.is_repair:
            if self._of_repair is None or self._of_repair[0] != gang.key:
                self._of_repair = gang.key, self._covered_but(gang.key)
            return self._of_repair[1]
        if self._coverage is None:
            self._coverage = self._covered_but(None)
        return self._coverage

    def _covered_but(self, gang: GangKey | None) -> Coverage:
        uses = self._uses(gang)
        self._listed += LISTING * len(uses)
        return Coverage(self._standing.guarantees, uses)

    def _uses(self, but: GangKey | None) -> list[Use]:
        given = [*self._admitted, *self._holds.gangs()]
        standing = [use for _, use in self._standing.left() if use.gang != but]
        return standing + [
            self._newest(each, self._queues.now) for each in given if each.key != but
        ]

    def _newest(self, gang: PendingGang, admitted: float = inf) -> Use:
        """Return what the whole minimum of a gang would use."""
        amounts = self._tree.requests(requests_of(gang.minimum))
        own = self._standing.minimum(gang.key) if gang.is_repair else None
        if own is not None:
            amounts = amounts + held_by(own, self._tree)
        return self._standing.guarantees.newest(gang, amounts, admitted)

    def _choice(self, claim: Claim, gang: PendingGang) -> _Choice:
        key = claim.row, claim.priority, claim.covered
        if gang.is_repair or key not in self._choices:
            choice = self._chosen_from(claim, gang)
            if gang.is_repair:
                return choice
            self._choices[key] = choice
        return self._choices[key]

    def _chosen_from(self, claim: Claim, gang: PendingGang) -> _Choice:
        parts = [pair for pair in self._standing.left() if pair[0].gang != gang.key]
        coverage = self._covering(gang)
        self._listed += LISTING * len(parts)
        found, kept = candidates(claim, parts, coverage, self._standing.guarantees)
        groups = [self._positions(each) for each in found]
        together = {group[0]: set(group) for group in groups}
        every = self._standing.gone.union(*groups)
        return _Choice(dict(zip(together, found, strict=True)), together, every, kept)

    def _positions(self, candidate: Candidate) -> Sequence[int]:
        return [self._standing.position(each) for each in candidate.parts]

    # ---- the parts

    @cached_property
    def _standing(self) -> Standing:
        return Standing(self._parts, self._nodes, self._tree)

    @cached_property
    def _parts(self) -> tuple[GangPart, ...]:
        return tuple(self._queues.parts())

    @cached_property
    def _is_as_before(self) -> bool:
        """Say whether the running gangs, and what queues hold, are those of a cycle ago."""
        before = self._before
        if before is None or before.tree is not self._tree:
            return False
        return before.held == self._held and before.parts == self._parts

    def _changed(self) -> None:
        """Forget what followed from the gangs that stood so far."""
        self._coverage = self._of_repair = None
        self._choices.clear()
        self._failed_demands.clear()


def _is_plain(gang: PendingGang) -> bool:
    """Say whether the demand of a gang says all that decides whether it fits."""
    more = gang.topology or gang.sharing or gang.has_inter_pod_constraints
    return not (more or gang.is_repair or gang.claims_devices)
