"""Holds the gangs that ask an autoscaler for nodes to the quota that is left of their queues.

A gang that waits for room has taken no quota. Each may fit its queue alone; together they would
have more nodes made than the queue lets run, for money and to no use.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from coordinator.queues.ledger import QuotaLedger
from coordinator.queues.registry import QueueRegistry
from scheduling.model.amounts import Amounts
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import requests_of

Place = tuple[float, str]


class _Claim(NamedTuple):
    """What a gang has asked for, or is to ask for in its turn."""

    queue: str
    amounts: Mapping[str, int]
    place: Place
    has_asked: bool


class NodeQuota:
    """What gangs have asked for, and who waits to ask: first come, first served."""

    def __init__(self, held: QuotaLedger, queues: QueueRegistry) -> None:
        self._held, self._queues = held, queues
        self._claims: dict[GangKey, _Claim] = {}

    def admits(self, gang: PendingGang) -> bool:
        """Say whether what a gang needs is within quota beside what runs and those before it.

        One that has asked is before all that have not. Resources that no queue limits are free.
        """
        tree = self._queues.tree
        row = tree.index.get(gang.queue)
        if row is None or not tree.has_limits[row]:
            return True
        available = tree.available(tree.used(self._taken(tree, gang)))
        return bool((tree.requests(requests_of(gang.minimum)) <= available[row]).all())

    def note(self, gang: PendingGang, *, has_asked: bool) -> None:
        """Take in that a gang has asked, or that it waits to."""
        amounts = requests_of(gang.minimum)
        self._claims[gang.key] = _Claim(gang.queue, amounts, _place(gang), has_asked)

    def drop(self, key: GangKey) -> None:
        """Take in that a gang asks for nothing."""
        self._claims.pop(key, None)

    def forget(self) -> None:
        """Take in that nothing is known of what was asked."""
        self._claims.clear()

    def _taken(self, tree: QuotaTree, gang: PendingGang) -> Amounts:
        """Return what is held or asked for before a gang: queues x resources."""
        taken = self._held.held(tree).copy()
        for each in self._before(gang):
            if each.queue in tree.index:
                taken[tree.index[each.queue]] += tree.requests(each.amounts)
        return taken

    def _before(self, gang: PendingGang) -> Iterator[_Claim]:
        for key, each in self._claims.items():
            if key != gang.key and (each.has_asked or each.place < _place(gang)):
                yield each


def _place(gang: PendingGang) -> Place:
    return gang.created, str(gang.key)
