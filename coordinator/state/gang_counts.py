"""Counts gangs by queue, phase and reason, their kept slots, and GPU-seconds held but not used.

Each look at a gang updates the counts, so that a read costs the same for any number of gangs.
GPU-seconds are sums over time of amounts that change only at a look.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar

from coordinator.gang.view import GangView
from coordinator.queues.queue_usage import Held
from scheduling.model.gang import GangKey

K = TypeVar("K")

NEW = "New"
"""The phase and the reason of a gang of which nothing is written yet."""


class GangFacts(NamedTuple):
    """How one gang counts.

    `unwhole` are GPUs that its pods have on nodes while some of its minimum are on none, and
    `awaited` those that are reserved for pods that are not there yet.
    """

    queue: str
    phase: str
    reason: str
    waits_for_room: bool
    kept_slots: int
    unwhole: int
    awaited: int


class Meter:
    """Adds up an amount over time, by queue."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._amounts: Counter[str] = Counter()
        self._since: dict[str, float] = {}

    def change(self, queue: str, by: int, now: float) -> None:
        """Change the amount of a queue, from now on."""
        if by:
            self._sums[queue] += self._amounts[queue] * (now - self._since.get(queue, now))
            self._since[queue] = now
            self._amounts[queue] += by

    def read(self, now: float) -> Mapping[str, float]:
        """Return the sums up to now, in amount-seconds."""
        since, amounts = self._since, self._amounts
        return {
            queue: total + amounts[queue] * max(0.0, now - since[queue])
            for queue, total in self._sums.items()
        }


class GangCounts:
    """The counts of all gangs, of which `note` tells one at a time."""

    def __init__(self) -> None:
        self.gangs: Counter[tuple[str, str, str]] = Counter()
        """Queue, phase and reason -> gangs."""
        self.without_room: Counter[str] = Counter()
        """Reason -> gangs that wait for room."""
        self.kept_slots = 0
        self.unwhole = Meter()
        self.awaited = Meter()
        self._known: dict[GangKey, GangFacts] = {}

    def note(self, key: GangKey, facts: GangFacts | None, now: float) -> None:
        """Count a gang anew; None of one that is no more."""
        before = self._known.get(key)
        if facts == before:
            return
        if before is not None:
            self._add(before, -1, now)
            del self._known[key]
        if facts is not None:
            self._add(facts, +1, now)
            self._known[key] = facts

    def _add(self, facts: GangFacts, sign: int, now: float) -> None:
        _count(self.gangs, (facts.queue, facts.phase, facts.reason), sign)
        if facts.waits_for_room:
            _count(self.without_room, facts.reason, sign)
        self.kept_slots += sign * facts.kept_slots
        self.unwhole.change(facts.queue, sign * facts.unwhole, now)
        self.awaited.change(facts.queue, sign * facts.awaited, now)


def _count(counts: Counter[K], key: K, sign: int) -> None:
    """Count, and forget what there is none of any more."""
    counts[key] += sign
    if not counts[key]:
        del counts[key]


def facts_of(view: GangView, queue: str, held: Held | None, gpus: Iterable[str]) -> GangFacts:
    """Say how a gang counts; `held` is what it holds, and `gpus` are the resources to be summed."""
    written = view.record.written
    amounts, reserved = (held.amounts, held.reserved) if held is not None else ({}, {})
    awaited = sum(reserved.get(each, 0) for each in gpus)
    on_nodes = sum(amounts.get(each, 0) for each in gpus) - awaited
    return GangFacts(
        queue=queue,
        phase=written.get("phase", NEW),
        reason=written.get("reason", NEW),
        waits_for_room=view.waits_for_room,
        kept_slots=view.repairs.kept.total,
        unwhole=0 if _is_whole(view) else on_nodes,
        awaited=awaited,
    )


def _is_whole(view: GangView) -> bool:
    """Say whether all pods of the minimum are on their nodes."""
    return all(each.bound >= each.terms.minimum for each in view.survey.standing)
