"""Counts per queue how many gangs wait, how many hold resources, and what these hold."""

from collections import Counter, defaultdict
from typing import NamedTuple

from coordinator.gang.demand import NotReady
from coordinator.gang.view import GangView
from coordinator.queues.queue_usage import Held
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.verdict import Reason


class Counted(NamedTuple):
    """How one gang counts: the queue that it waits in, if it waits, and what it holds.

    Ending pods of an earlier RayCluster of its name may hold something in another queue. What is
    opted out is no gang of the queue, whose deletion it does not hold up, but holds its quota.
    """

    waits_in: str = ""
    held: tuple[Held, ...] = ()
    opted_out: bool = False


NOT_COUNTED = Counted()

HELD = (Reason.QUEUE_INACTIVE, Reason.QUEUE_STOPPED, Reason.READY_TIMEOUT)
"""Reasons for which a complete gang waits in its queue without asking for room."""


def waits(view: GangView) -> bool:
    """Say whether a gang waits in its queue: complete and without its place."""
    asked = view.queueing.asked
    held = isinstance(asked, NotReady) and asked.reason in HELD
    return view.waits_for_room and (held or isinstance(asked, PendingGang))


class Census:
    """The counts by queue, kept up gang by gang; `changed` are the queues whose counts moved."""

    def __init__(self) -> None:
        self.pending: Counter[str] = Counter()
        self.admitted: Counter[str] = Counter()
        self.held: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.reserved: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.changed: set[str] = set()
        self._gangs: dict[GangKey, Counted] = {}

    def note(self, key: GangKey, now: Counted) -> None:
        """Count a gang anew."""
        before = self._gangs.get(key, NOT_COUNTED)
        if now == before:
            return
        self._add(before, -1)
        self._add(now, +1)
        if now == NOT_COUNTED:
            del self._gangs[key]
        else:
            self._gangs[key] = now

    def _add(self, gang: Counted, sign: int) -> None:
        if gang.waits_in:
            self.pending[gang.waits_in] += sign
            self.changed.add(gang.waits_in)
        for queue, amounts, reserved in gang.held:
            self.admitted[queue] += 0 if gang.opted_out else sign
            for resource, amount in amounts.items():
                self.held[queue][resource] += sign * amount
            for resource, amount in reserved.items():
                self.reserved[queue][resource] += sign * amount
            self.changed.add(queue)
