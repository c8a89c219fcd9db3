"""Searches for the domain in which all pods of some pod sets fit.

Pods per node are counted once per shape and summed per domain. Domains whose sums are enough are
tried one after the other, by asking for the gang with those pods held to it: first the domain where
most of what the gang asks for fits; of those that hold all of it the tightest, in which the minimum
fits the fewest times over; then the first by name.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from scheduling.admission.domains import ELSEWHERE, Domains, Keys, confined, cost_of_try
from scheduling.admission.question import Outcome, Question, Rejected, Untried, places_any
from scheduling.diagnosis.causes import (
    Cause,
    Domain,
    InDomain,
    NoDomain,
    NoLabel,
    Scattered,
    SearchEnded,
    groups_of,
    is_open,
    is_unsupported,
)
from scheduling.model.amounts import Amounts, Mask
from scheduling.model.constraints import Requirement
from scheduling.model.gang import Group, Member, Occupied
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import cannot_fit, demand_of

SCALE = 2**20
"""Shares are compared in parts of this."""

Tried = tuple[int, Cause]
"""A domain that did not take the gang, and why."""

Admit = Callable[[Question], Outcome]
"""The next stage of admission."""


class DomainSearch:
    """One gang, and the domains in which its pods of the `bound` pod sets could be.

    Messages call these `pods`. Some are on `occupied` nodes already.
    """

    def __init__(
        self,
        question: Question,
        bound: tuple[str, ...],
        keys: Keys,
        pods: str,
        occupied: Iterable[Occupied] = (),
    ) -> None:
        self._question, self._bound, self._pods = question, bound, pods
        self._gang, self._room = question.gang, question.room
        self._domains = Domains.by(keys, self._room.columns.traits)
        nodes = (each.node for each in occupied)
        self._home = self._domains.around(nodes, self._room.columns.index)
        self._minimum = self._demand(self._gang.minimum)
        self._asked = self._demand(self._gang.groups())
        self._sums = {
            shape: self._domains.sums(self._room.counts(shape)) for shape, _ in self._asked
        }

    def _demand(self, groups: Iterable[Group]) -> Demand:
        return demand_of(each for each in groups if each.pod_set in self._bound)

    def run(self, admit: Admit) -> Outcome:
        """Try the domains in order until one takes the gang; else say what the best one lacks."""
        tried: list[Tried] = []
        spent, cost = 0, cost_of_try(self._gang, self._domains)
        for at in self._candidates():
            if tried and spent > self._question.steps:
                return Rejected(SearchEnded(self._gang.minimum, self._room), spent)
            outcome = admit(self._held_to(at, spent))
            spent += outcome.steps
            if places_any(outcome) or _is_unsupported(outcome):
                return replace(self._naming(at, outcome), steps=spent)
            tried.append((at, _cause_of(outcome)))
            spent += cost
        return replace(self._none(tried, spent, admit), steps=spent)

    def _held_to(self, at: int, spent: int = 0) -> Question:
        """Return the question of the gang with its bound pods held to a domain."""
        required = self._domains.requirements(at)

        def where(pods: Group | Member) -> tuple[Requirement, ...]:
            return required if pods.pod_set in self._bound else ()

        return self._question.of(confined(self._gang, where), self._question.steps - spent)

    # ---- which domains, in which order

    def _candidates(self) -> list[int]:
        """Return the domains whose sums are enough, the best first; one if none can help.

        None can where what is not held to a domain fits nowhere.
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
        units = filter(None, {self._demand(unit) for unit in self._gang.surplus})
        some: Mask = np.logical_or.reduce([self._share(unit) >= SCALE for unit in units])
        return some

    def _share(self, demand: Demand) -> Amounts:
        """Return per domain how often the demand fits, shape by shape, in parts of SCALE."""
        shares = [self._sums[shape] * SCALE // count for shape, count in demand]
        fewest: Amounts = np.minimum.reduce(shares)
        return fewest

    # ---- why not

    def _none(self, tried: list[Tried], spent: int, admit: Admit) -> Outcome:
        """Place the rest of the gang where none of its minimum is bound; else say why not."""
        if not self._minimum:
            rest = replace(self._gang, surplus=())
            outcome = admit(self._question.of(rest, self._question.steps - spent))
            if isinstance(outcome, Rejected):
                return outcome
            return replace(outcome, left_out=self._left_out(tried))
        undecided = [each for each in tried if is_open(each[1])]
        if not tried and not self._open().any():
            return Rejected(self._no_choice())
        at, cause = next(iter(undecided or tried), None) or self._closest_tried(spent, admit)
        about = groups_of(cause) or self._held_to(at).gang.minimum
        return Rejected(self._no_domain(at, cause, about))

    def _left_out(self, tried: list[Tried]) -> Cause | Untried:
        """Return why no domain takes any of the surplus, by the best of them."""
        if tried:
            return self._no_domain(*tried[0])
        if not self._open().any():
            return self._no_choice()
        return Untried(self._question, self._domains.keys, self._bound)

    def why_untried(self, admit: Admit) -> Cause:
        """Return what stops a surplus in the domain that comes closest."""
        return self._no_domain(*self._closest_tried(0, admit))

    def _closest_tried(self, spent: int, admit: Admit) -> Tried:
        at = self._closest()
        return at, _cause_of(admit(self._held_to(at, spent)))

    def _no_domain(self, at: int, cause: Cause, about: tuple[Group, ...] = ()) -> Cause:
        return NoDomain(self._named(at), cause, self._bound, bool(self._home), about)

    def _naming(self, at: int, outcome: Outcome) -> Outcome:
        """Have what is said of a surplus name the domain to which it is held."""
        if isinstance(outcome, Rejected) or isinstance(outcome.left_out, Untried | None):
            return outcome
        return replace(outcome, left_out=InDomain(self._named(at), outcome.left_out))

    def _named(self, at: int) -> Domain:
        return Domain(self._domains.keys, self._domains.names[at], self._pods)

    def _no_choice(self) -> Cause:
        if not self._home:
            return NoLabel(self._domains.keys, self._pods)
        names = tuple(self._domains.names[at] for at in sorted(self._home) if at != ELSEWHERE)
        return Scattered(self._domains.keys, names)

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


def _is_unsupported(outcome: Outcome) -> bool:
    return isinstance(outcome, Rejected) and is_unsupported(outcome.cause)


def _cause_of(outcome: Outcome) -> Cause:
    """Return why a domain did not take the gang, or any of a surplus alone."""
    cause = outcome.cause if isinstance(outcome, Rejected) else outcome.left_out
    assert not isinstance(cause, Untried | None)
    return cause
