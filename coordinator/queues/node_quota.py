"""Limits node requests to an autoscaler to the quota that is left in the queues of the gangs.

A gang that waits for room has taken no quota. Each such gang may fit its queue alone; together they
would request more nodes than the queue lets run, at a cost and to no use.
"""

from bisect import bisect_left
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from coordinator.queues.queue_usage import QuotaLedger
from coordinator.queues.registry import QueueRegistry
from scheduling.model.amounts import Amounts, Positions
from scheduling.model.gang import GangKey, PendingGang
from scheduling.queueing.line import requests_of
from scheduling.queueing.quota_tree import QuotaTree

NEXT_TURN = 10.0
"""Seconds between two looks of a gang at whether quota is left to ask for nodes, at least."""

PER_PLACE = 0.05
"""Seconds for each gang that is before it in line, where that is more."""

Place = tuple[float, str]


class _Claim(NamedTuple):
    """What a gang has asked for, or is to ask for in its turn."""

    queue: str
    amounts: Mapping[str, int]
    place: Place
    has_asked: bool


class _Line:
    """The gangs that wait to ask, as they came: the rows of their queues, and what they need.

    Arrays, for each look of each of thousands of gangs counts those before it.
    """

    def __init__(self, resources: int) -> None:
        self._places: list[Place] = []
        self._queues: Positions = np.zeros(0, dtype=np.intp)
        self._needs: Amounts = np.zeros((0, resources), dtype=np.int64)

    def put(self, place: Place, queue: int, needs: Amounts) -> None:
        at = bisect_left(self._places, place)
        self._places.insert(at, place)
        self._queues = np.insert(self._queues, at, queue)
        self._needs = np.insert(self._needs, at, needs, axis=0)

    def drop(self, place: Place) -> None:
        at = bisect_left(self._places, place)
        del self._places[at]
        self._queues = np.delete(self._queues, at)
        self._needs = np.delete(self._needs, at, axis=0)

    def before(self, place: Place) -> tuple[Positions, Amounts]:
        at = bisect_left(self._places, place)
        return self._queues[:at], self._needs[:at]


class NodeQuota:
    """What gangs have asked for, and who waits to ask: first come, first served.

    The sums are for the tree that was asked for last.
    """

    def __init__(self, held: QuotaLedger, queues: QueueRegistry) -> None:
        self._held, self._queues = held, queues
        self._claims: dict[GangKey, _Claim] = {}
        self._tree: QuotaTree | None = None
        self._asked: Amounts = np.zeros((0, 0), dtype=np.int64)
        self._line = _Line(0)

    def ask(self, gang: PendingGang) -> bool:
        """Let a gang ask for nodes, or put it in line; return whether it may ask now.

        Its needs must fit the quota beside running gangs, earlier requests and the gangs before it
        in line. Resources that no queue limits are free.
        """
        self.drop(gang.key)
        may = self._admits(gang)
        self._put(gang, has_asked=may)
        return may

    def turn(self, gang: PendingGang) -> float:
        """Return the seconds after which a gang that waits in line is to ask again.

        The pause grows with the line, so that some hundred gangs a second ask at most.
        """
        return max(NEXT_TURN, PER_PLACE * len(self._line.before(_place(gang))[0]))

    def asked(self, gang: PendingGang) -> None:
        """Take in that a gang has asked."""
        self.drop(gang.key)
        self._put(gang, has_asked=True)

    def drop(self, key: GangKey) -> None:
        """Take in that a gang asks for nothing."""
        claim = self._claims.pop(key, None)
        if claim is not None:
            self._count(claim, -1)

    def forget(self) -> None:
        """Take in that nothing is known of what was asked."""
        self._claims.clear()
        self._tree = None

    def _put(self, gang: PendingGang, *, has_asked: bool) -> None:
        amounts = requests_of(gang.minimum)
        claim = self._claims[gang.key] = _Claim(gang.queue, amounts, _place(gang), has_asked)
        self._count(claim, +1)

    def _admits(self, gang: PendingGang) -> bool:
        tree = self._queues.tree
        row = tree.index.get(gang.queue)
        if row is None or not tree.has_limits[row]:
            return True
        self._follow(tree)
        taken = self._held.held(tree) + self._asked
        free = _free(tree, taken)
        queues, needs = self._line.before(_place(gang))
        # One that could not ask now leaves what there is to others, but for its own strict queue.
        counts = (needs <= free[queues]).all(axis=1) | (tree.is_strict[row] & (queues == row))
        np.add.at(taken, queues[counts], needs[counts])
        return bool((tree.requests(requests_of(gang.minimum)) <= _free(tree, taken)[row]).all())

    def _follow(self, tree: QuotaTree) -> None:
        """Count all anew where the queues are other ones."""
        if self._tree is tree:
            return
        self._tree, self._line = tree, _Line(len(tree.resources))
        self._asked = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
        for each in self._claims.values():
            self._count(each, +1)

    def _count(self, claim: _Claim, sign: int) -> None:
        tree = self._tree
        row = tree.index.get(claim.queue) if tree is not None else None
        if tree is None or row is None:
            return
        if claim.has_asked:
            self._asked[row] += sign * tree.requests(claim.amounts)
        elif sign > 0:
            self._line.put(claim.place, row, tree.requests(claim.amounts))
        else:
            self._line.drop(claim.place)


def _free(tree: QuotaTree, taken: Amounts) -> Amounts:
    """Return what each queue may take more; nothing where it holds more than it may."""
    free: Amounts = np.maximum(tree.available(tree.used(taken)), 0)
    return free


def _place(gang: PendingGang) -> Place:
    """Return where in line a gang is; no other one keeps it from parts that it has lost."""
    return (float("-inf") if gang.is_repair else gang.created), str(gang.key)
