"""What a cycle is told of the queues: the gangs that wait, what is held, and when that may end."""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np

from scheduling.model.amounts import Amounts, Requests
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.preemption import GangPart, Promise
from scheduling.model.queue import DEFAULT_QUEUE, Ordering, Queue
from scheduling.queueing.fair_shares import FairShares
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.waiting import WaitingGangs


class Holding(NamedTuple):
    """What a gang holds: amounts by node, also of pods that are ending and of slots it keeps.

    Its queue may be one that is not active. `ends` is when it is expected to give that back, and
    `since` when it began, in seconds on the clock of the cycle; both are infinite where not known.
    """

    key: GangKey
    queue: str
    room: tuple[tuple[str, Requests], ...]
    ends: float = inf
    priority: int = 0
    since: float = inf

    def is_before(self, gang: PendingGang, ordering: Ordering) -> bool:
        """Say whether it has to give way to no claim of a gang that waits in its queue.

        It began before that gang came, or its priority is higher.
        """
        is_higher = ordering is not Ordering.FIFO and self.priority > gang.priority
        return self.queue == gang.queue and (is_higher or self.since < gang.created)


def _nothing() -> Iterable[Holding]:
    return ()


def _no_parts() -> Iterable[GangPart]:
    return ()


@dataclass(frozen=True, eq=False, slots=True)
class Queues:
    """The queues as one cycle finds them.

    `held` is what the gangs of each queue hold (queues x resources of the tree), `cluster` what all
    nodes have together. `holdings` are asked only where a gang is blocked in a queue that
    backfills. `aged` are the gangs that waited so long, or were passed so often, that no gang of
    their queue may pass them any more; `overdue` those of them that waited so long that no gang of
    another queue may either. `parts` are those of all running gangs, asked only where a gang is
    refused whose queue may preempt. `fair` is what queues with fair sharing used over time; None
    where there is none of them. `promises` are kept whatever else is decided.
    """

    waiting: WaitingGangs
    held: Amounts
    cluster: Mapping[str, int] = field(default_factory=dict)
    now: float = 0.0
    holdings: Callable[[], Iterable[Holding]] = _nothing
    aged: Set[GangKey] = frozenset()
    overdue: Set[GangKey] = frozenset()
    parts: Callable[[], Iterable[GangPart]] = _no_parts
    fair: FairShares | None = None
    promises: Sequence[Promise] = ()


def one_queue(pending: Iterable[PendingGang], queue: Queue | None = None) -> Queues:
    """Let gangs wait in one queue, the default one if none is given, of which nothing is held."""
    waiting = WaitingGangs(QuotaTree([queue or Queue(DEFAULT_QUEUE)]))
    for gang in pending:
        waiting.put(gang)
    return Queues(waiting, np.zeros((1, len(waiting.tree.resources)), dtype=np.int64))
