"""Admits a gang whose workers must be inside one domain of a label.

The head is not bound: it may be inside or outside. The domain is the one where most of what the
gang asks for now finds room; of those that hold all of it the tightest, which is where the minimum
fits the fewest times over; then the first by name. Where pods of the gang are already there is no
choice. Pods per node are counted once per shape and summed per domain; only domains whose sums are
enough are then tried, one after the other, by deciding the gang with its workers held to it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from scheduling.admission.domains import ELSEWHERE, Domains, Keys, confined, cost_of_try
from scheduling.admission.ruling import Decide, Ruling
from scheduling.diagnosis import domain_refusals, refusals
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Amounts, Mask
from scheduling.model.constraints import Requirement
from scheduling.model.gang import Group, Member, Occupied, PendingGang, Topology
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import cannot_fit, demand_of
from scheduling.placement.release_waves import first_alone

SCALE = 2**20
"""Shares are compared in parts of this."""


def decide_together(gang: PendingGang, room: FreeCapacity, steps: int, decide: Decide) -> Ruling:
    """Decide a gang whose workers are to be in one domain; `decide` places it once they are held.

    What is only preferred is tried first. A surplus that finds no room there is not lost: alone, it
    is tried without.
    """
    topology = gang.topology
    if topology is None or refusals.unsupported(gang.groups()):
        return decide(gang, room, steps)
    if not any(each.pod_set in topology.pod_sets for each in gang.groups()):
        return decide(gang, room, steps)
    spent = 0
    for keys in _levels(topology):
        left = steps - spent
        if keys:
            found = _Search(gang, topology.pod_sets, keys, room, topology.occupied)
            ruling = found.run(left, decide)
        else:
            ruling = decide(gang, room, left)
        spent += ruling.steps
        if _places(ruling):
            break
    return replace(ruling, steps=spent)


def decide_sharing(gang: PendingGang, room: FreeCapacity, steps: int, decide: Decide) -> Ruling:
    """Decide a gang whose pods share claims: together where the first of them leaves them.

    Those on the node of the first come in one turn, all others once it is bound: until then
    kube-scheduler refuses them.
    """
    sharing = gang.sharing
    if sharing is None or refusals.unsupported(gang.groups()):
        return decide(gang, room, steps)
    if not sharing.keys:
        ruling = decide(gang, room, steps)
    else:
        whom = f"the pods that share {sharing.claims}"
        found = _Search(gang, sharing.pod_sets, sharing.keys, room, whom=whom)
        ruling = found.run(steps, decide)
        if not sharing.certain and isinstance(ruling.verdict, Refusal):
            ruling = replace(ruling, verdict=domain_refusals.nowhere_together(whom))
    if isinstance(ruling.verdict, Admitted):
        placement = first_alone(ruling.verdict.placement, sharing.pod_sets)
        ruling = replace(ruling, verdict=replace(ruling.verdict, placement=placement))
    return ruling


def _levels(topology: Topology) -> Iterator[Keys]:
    """Yield the labels whose values the workers are to share, the most wanted first."""
    required = (topology.required,) if topology.required else ()
    if topology.preferred and topology.preferred != topology.required:
        yield (*required, topology.preferred)
    yield required


def _places(ruling: Ruling) -> bool:
    """Say whether anything was placed; a surplus alone is admitted also where none of it fits."""
    return isinstance(ruling.verdict, Admitted) and bool(ruling.verdict.placement.assignments)


class _Search:
    """One gang, and the domains in which its workers could be together."""

    def __init__(
        self,
        gang: PendingGang,
        bound: tuple[str, ...],
        keys: Keys,
        room: FreeCapacity,
        occupied: Iterable[Occupied] = (),
        whom: str = domain_refusals.WORKERS,
    ) -> None:
        self._gang, self._bound, self._room, self._whom = gang, bound, room, whom
        self._domains = Domains.by(keys, room.columns.traits)
        nodes = (each.node for each in occupied)
        self._home = self._domains.around(nodes, room.columns.index)
        self._minimum = self._demand(gang.minimum)
        self._asked = self._demand(gang.groups())
        self._sums = {shape: self._domains.sums(room.counts(shape)) for shape, _ in self._asked}

    def _demand(self, groups: Iterable[Group]) -> Demand:
        return demand_of(each for each in groups if each.pod_set in self._bound)

    def run(self, steps: int, decide: Decide) -> Ruling:
        """Try the domains in order until one takes the gang; say what the best of them lacks."""
        refused: list[tuple[int, Ruling]] = []
        spent, cost = 0, cost_of_try(self._gang, self._domains)
        for at in self._candidates():
            if refused and spent > steps:
                return Ruling(refusals.undecided(self._gang.minimum, self._room), self._room, spent)
            ruling = decide(self._held_to(at), self._room, steps - spent)
            spent += ruling.steps
            if _places(ruling) or _is_for(ruling, Reason.UNSUPPORTED):
                return replace(self._speaking_of(at, ruling), steps=spent)
            refused.append((at, ruling))
            spent += cost
        return replace(self._none(refused, steps - spent, decide), steps=spent)

    def _held_to(self, at: int) -> PendingGang:
        required = self._domains.requirements(at)

        def where(pods: Group | Member) -> tuple[Requirement, ...]:
            return required if pods.pod_set in self._bound else ()

        return confined(self._gang, where)

    # ---- which domains, in which order

    def _candidates(self) -> list[int]:
        """Return the domains whose sums are enough, the best first; one if none can help.

        So it is where what is not held to a domain fits nowhere.
        """
        at = np.flatnonzero(self._holds() & self._open())
        served = np.minimum(self._share(self._asked), SCALE)
        tightness = self._share(self._minimum or self._asked)
        order: list[int] = at[np.lexsort((at, tightness[at], -served[at]))].tolist()
        return order[:1] if cannot_fit(demand_of(self._gang.minimum), self._room) else order

    def _open(self) -> Mask:
        """Return the domains that the pods which are there already leave to choose from."""
        count = len(self._domains.names)
        if not self._home:
            return np.ones(count, dtype=np.bool_)
        return np.isin(np.arange(count), [*self._home] if len(self._home) == 1 else [])

    def _holds(self) -> Mask:
        """Return the domains with room for the minimum; where there is none, for some surplus."""
        if self._minimum:
            return self._share(self._minimum) >= SCALE
        units = {self._demand(unit) for unit in self._gang.surplus}
        some: Mask = np.logical_or.reduce([self._share(unit) >= SCALE for unit in units])
        return some

    def _share(self, demand: Demand) -> Amounts:
        """Return per domain how often the demand fits, shape by shape, in parts of SCALE."""
        shares = [self._sums[shape] * SCALE // count for shape, count in demand]
        fewest: Amounts = np.minimum.reduce(shares)
        return fewest

    # ---- what is said where none takes it

    def _none(self, refused: list[tuple[int, Ruling]], steps: int, decide: Decide) -> Ruling:
        """Place the rest of the gang where no worker is of its minimum; else explain."""
        if not self._minimum:
            ruling = decide(replace(self._gang, surplus=()), self._room, steps)
            return replace(ruling, why_not=lambda: self._why_not(refused, steps, decide))
        undecided = [pair for pair in refused if _is_for(pair[1], Reason.UNDECIDED)]
        if undecided or refused:
            at, ruling = (undecided or refused)[0]
        elif self._open().any():
            at = self._closest()
            ruling = decide(self._held_to(at), self._room, steps)
        else:
            return Ruling(self._no_choice(), self._room)
        about = ruling.about or self._held_to(at).minimum
        return Ruling(self._told(at, ruling.verdict), self._room, about=about)

    def _why_not(self, refused: list[tuple[int, Ruling]], steps: int, decide: Decide) -> Refusal:
        """Explain why no domain takes any of the surplus, by the best of them."""
        if not refused and not self._open().any():
            return self._no_choice()
        at, ruling = refused[0] if refused else (self._closest(), None)
        ruling = ruling or decide(self._held_to(at), self._room, steps)
        said = ruling.verdict if ruling.why_not is None else ruling.why_not()
        assert isinstance(said, Refusal)
        return self._told_of(at, said)

    def _speaking_of(self, at: int, ruling: Ruling) -> Ruling:
        """Have what is said of a surplus name the domain to which it is held."""
        why_not = ruling.why_not
        if why_not is None:
            return ruling
        keys, name = self._domains.keys, self._domains.names[at]
        return replace(
            ruling, why_not=lambda: domain_refusals.in_domain(keys, name, why_not(), self._whom)
        )

    def _told(self, at: int, verdict: Verdict) -> Verdict:
        return verdict if isinstance(verdict, Admitted) else self._told_of(at, verdict)

    def _told_of(self, at: int, refusal: Refusal) -> Refusal:
        """Say of which domain a refusal speaks, unless it speaks of others, or of all nodes."""
        if refusal.reason is Reason.NEVER_FITS:
            return refusal
        short = [each.pod_set for each in refusal.pod_sets if each.fit < each.wanted]
        if short and not set(short) & set(self._bound):
            return refusal
        keys, name = self._domains.keys, self._domains.names[at]
        if self._home or refusal.reason == Reason.UNDECIDED:
            return domain_refusals.in_domain(keys, name, refusal, self._whom)
        return domain_refusals.closest_domain(keys, name, refusal, self._whom)

    def _no_choice(self) -> Refusal:
        if not self._home:
            return domain_refusals.no_label(self._domains.keys, self._whom)
        names = [self._domains.names[at] for at in sorted(self._home) if at != ELSEWHERE]
        return domain_refusals.scattered(self._domains.keys, names)

    def _closest(self) -> int:
        """Return the domain that lacks the fewest pods, rather one that could hold all if empty."""
        count = len(self._domains.names)
        missing, hopeless = np.zeros((2, count), dtype=np.int64)
        for shape, pods in self._minimum or self._asked:
            missing += np.maximum(pods - self._sums[shape], 0)
            empty = self._domains.when_empty(shape, self._room.columns)
            hopeless += np.maximum(pods - empty, 0)
        order = (np.arange(count), hopeless, missing, hopeless > 0, ~self._open())
        return int(np.lexsort(order)[0])


def _is_for(ruling: Ruling, reason: Reason) -> bool:
    return isinstance(ruling.verdict, Refusal) and ruling.verdict.reason == reason
