"""Finds what to stop so that one gang is admitted: first by quota, then by room on the nodes."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Amounts, exact_sum
from scheduling.model.gang import PendingGang
from scheduling.preemption.freed import Freed
from scheduling.preemption.minimal_set import first_enough, spared
from scheduling.queueing.line import requests_of
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.state.pod_index import ExistingPods

QUESTION = 20_000
"""Steps that a question costs beside its search: 0.4 ms, with 5,000 nodes."""

OF_DEVICES = 150_000
"""The same for a gang that claims devices: nodes are told apart by what is free on them."""


@dataclass(frozen=True, eq=False, slots=True)
class Outlook:
    """The room that a gang finds, and what the queues hold (queues x resources)."""

    room: FreeCapacity
    held: Amounts
    existing: ExistingPods | None = None


FreedBy = Callable[[Collection[int]], Freed]
"""What gives back the room of some parts."""


class Search:
    """The questions about one gang, within a bound of steps; the same is not asked twice.

    `is_cut_short` says that the steps were used up: then no refusal is certain.
    """

    def __init__(
        self, gang: PendingGang, outlook: Outlook, freed: FreedBy, tree: QuotaTree, steps: int
    ) -> None:
        self._gang, self._outlook, self._freed = replace(gang, surplus=()), outlook, freed
        self._tree, self._row, self._steps = tree, tree.index[gang.queue], steps
        self._question = OF_DEVICES if gang.claims_devices else QUESTION
        self._requests = requests_of(gang.minimum)
        self._demand = tree.requests(self._requests)
        self._answers: dict[frozenset[int], Accepted | None] = {}
        self.spent, self.is_cut_short = 0, False

    @property
    def has_steps(self) -> bool:
        """Say whether anything can be asked at all."""
        return self._steps > self.spent

    def might_fit(self, gone: Collection[int]) -> bool:
        """Say whether the gang might fit without these parts, by sums alone."""
        return self._covers(gone) and self._adds_up(gone)

    def fits(self, gone: Collection[int]) -> Accepted | None:
        """Return how the gang would be admitted once these parts have ended; None if not."""
        parts = frozenset(gone)
        if parts not in self._answers:
            self._answers[parts] = self._asked(parts) if self._covers(parts) else None
        return self._answers[parts]

    def needed(
        self, gone: Collection[int], candidates: Sequence[int], together: Mapping[int, set[int]]
    ) -> set[int] | None:
        """Return a minimal set of parts to end beside those that are gone; None if there is none.

        `together` names all that ends with a candidate. Where the steps are used up on the way, the
        set is enough, and not the smallest: it spares what came after the last that is needed.
        """

        def all_of(chosen: Sequence[int]) -> set[int]:
            return set(gone).union(*(together[each] for each in chosen))

        def enough(chosen: Sequence[int]) -> bool:
            return not self.is_cut_short and self.fits(all_of(chosen)) is not None

        first = first_enough(candidates, enough)
        if first is None or self.is_cut_short:
            return None
        return all_of(spared(first, enough)) - set(gone)

    def _asked(self, parts: frozenset[int]) -> Accepted | None:
        left = self._steps - self.spent - self._question
        if left <= 0:
            self.is_cut_short = True
            return None
        room = self._freed(parts).room(parts, self._outlook.room)
        outcome = admit(Question(self._gang, room, left, self._outlook.existing))
        self.spent += self._question + outcome.steps
        return outcome if isinstance(outcome, Accepted) else None

    def _covers(self, parts: Collection[int]) -> bool:
        """Say whether the quota covers the gang then."""
        if not self._tree.resources:
            return True
        held = self._freed(parts).held(parts, self._outlook.held)
        available = self._tree.available(self._tree.used(held))[self._row]
        return bool((self._demand <= np.maximum(available, 0)).all())

    def _adds_up(self, parts: Collection[int]) -> bool:
        """Say whether all nodes together have enough then of all that the gang asks for."""
        if not self._gang.needs_nodes or self._gang.claims_devices:
            return True
        room, freed = self._outlook.room, self._freed(parts).total(parts)
        free = room.remembered(("sums of free",), lambda: _sums(room.free))
        rows = room.columns.row
        asked = ((rows[name], amount) for name, amount in self._requests.items() if name in rows)
        return all(amount <= free[row] + int(freed[row]) for row, amount in asked)


def _sums(free: Amounts) -> list[int]:
    return [exact_sum(row) for row in np.maximum(free, 0)]
