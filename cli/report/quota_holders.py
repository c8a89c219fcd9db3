"""Names who has the quota that a waiting gang lacks, and says whether reclaim would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from cli.report.gangs import held, queue_of
from cli.report.order import natural
from cli.report.queue_usage import usage_of
from cli.report.room.sums import key_of
from cli.report.snapshot import QUEUES, Snapshot
from kube.objects.queues.queue import GangQueue
from scheduling.diagnosis.amount_texts import amount_up, written
from scheduling.diagnosis.quota_refusals import lacked
from scheduling.model.amounts import Amounts
from scheduling.queueing.quota_tree import QuotaTree

NAMED = 3
"""How many queues that borrow, and how many gangs, are named for a resource."""


class _Holding(NamedTuple):
    """What a gang holds of the quota of its queue."""

    gang: str
    queue: str
    amounts: Counter[str]


@dataclass(frozen=True, slots=True)
class _Case:
    """A gang's queue in the tree, what it asks for, and the queues whose use keeps it waiting."""

    tree: QuotaTree
    used: Amounts
    at: int
    demand: Amounts
    sharing: frozenset[str]

    @property
    def name(self) -> str:
        return self.tree.names[self.at]

    def borrowing(self, column: int) -> Counter[str]:
        """Return what the queues that share with this one borrow, those above it left out."""
        own = {self.tree.names[row] for row in self.tree.path(self.at)}
        borrowed = self.tree.borrowed(self.used)[:, column]
        return Counter(
            {
                name: int(borrowed[self.tree.index[name]])
                for name in sorted(self.sharing - own)
                if borrowed[self.tree.index[name]] > 0
            }
        )


class QuotaHolders:
    """Answers for all queues of a snapshot; nothing where queues cannot be listed.

    Who shares quota is then not known.
    """

    def __init__(self, found: Snapshot) -> None:
        self._found = found
        self._usage = usage_of(found.queues) if not found.lacks(QUEUES) else None
        self._rules = {each.metadata.name: each for each in found.queues}

    def of(self, queue: str, message: str) -> tuple[str, ...]:
        """Say for each resource that a refusal says to be short who has it, and what helps."""
        needed = lacked(message)
        if not needed or self._usage is None or queue not in self._usage[0].index:
            return ()
        tree, used = self._usage
        at, demand = tree.index[queue], tree.requests(needed)
        mask = tree.sharing(at, demand, used, tree.available(used))
        sharing = frozenset(name for name, shares in zip(tree.names, mask, strict=True) if shares)
        case = _Case(tree, used, at, demand, sharing)
        short = [tree.column[each] for each in needed if each in tree.column]
        return tuple(
            said
            for column in short
            for said in _of_resource(case, column, self._rules[queue], self._holdings)
        )

    @cached_property
    def _holdings(self) -> tuple[_Holding, ...]:
        return tuple(
            _Holding(str(key_of(each)), queue_of(each), held(each))
            for each in self._found.gangs
            if each.status.placement is not None
        )


def _of_resource(
    case: _Case, column: int, rules: GangQueue, holdings: Iterable[_Holding]
) -> Iterator[str]:
    resource, borrowing = case.tree.resources[column], case.borrowing(column)
    if borrowing:
        yield f"borrowers of {resource}: {_largest(borrowing, resource)}"
    holders = _holders(case, resource, holdings)
    if holders:
        yield f"largest holders of {resource}: {_largest(holders, resource)}"
    if len(case.sharing) > 1:
        yield _reclaim(case, column, borrowing, rules)


def _holders(case: _Case, resource: str, holdings: Iterable[_Holding]) -> dict[str, int]:
    """Return what each gang of the queues that share the quota holds."""
    return {
        f"{each.gang} (queue {each.queue})": each.amounts[resource]
        for each in holdings
        if each.queue in case.sharing and each.amounts[resource]
    }


def _largest(amounts: Mapping[str, int], resource: str) -> str:
    """Write the largest, and how many there are beside them."""
    order = sorted(amounts, key=lambda each: (-amounts[each], natural(each)))
    said = [f"{each} {written(resource, amounts[each], up=1)}" for each in order[:NAMED]]
    more = len(order) - NAMED
    return ", ".join(said) + (f" and {more} more" if more > 0 else "")


def _reclaim(case: _Case, column: int, borrowing: Mapping[str, int], rules: GangQueue) -> str:
    if not borrowing:
        return "reclaim would not help: no other queue borrows"
    covering = _covering(case)
    if covering is None:
        own = amount_up(case.tree.resources[column], int(case.tree.subtree[case.at, column]))
        return (
            "reclaim would not help: it takes back what a queue's quota covers, and with this "
            f"gang queue {case.name} would use more than its {own}"
        )
    policy = rules.spec.preemption.reclaim if rules.spec.preemption else "Never"
    if policy == "Never":
        return (
            f"reclaim would help: the quota of queue {covering} covers the gang, and "
            f"preemption.reclaim of queue {case.name} is Never; allowed: LowerPriority, Any"
        )
    what = "what borrows" if policy == "Any" else "what borrows and has a lower priority"
    return f"reclaim helps: preemption.reclaim of queue {case.name} is {policy}, which stops {what}"


def _covering(case: _Case) -> str | None:
    """Name the lowest queue whose quota covers the gang, from its own upwards."""
    tree, used = case.tree, case.used
    level = tree.borrowing_level(case.at, case.demand, used, used)
    rows = (row for row in tree.path(case.at) if tree.height[row] >= level)
    return next((tree.names[row] for row in rows), None)
