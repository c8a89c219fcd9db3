"""Keeps the slots of lost pods for a time, and ends them.

A slot is kept while no pinned or bound pod has taken it and no gated pod is meant for it that we
could release. No quota counts such a slot, so it may not last: it ends when no replacement came for
some time, and when none can come. A new leader counts the time anew.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from coordinator.gang.pods.pod_sets import Standing
from kube.codec.observed_pod import ObservedPod
from reservation.slots import SlotKind, Slots, slot_of, vacant_slots
from runtime.controller.moment import Moment
from scheduling.model.placement import Placement

CERTAIN = 5.0
"""Seconds for which a slot is kept though KubeRay can make no pod for it.

What KubeRay says and what it makes come by two watches, and it may say of one group what holds for
another only in a moment.
"""


Make = tuple[str, str]
"""Pod set and shape. The name of a replica is another one each time that it is made again."""


@dataclass(frozen=True, slots=True)
class Start:
    """When a slot lost its pod: monotonic seconds, and the same for people (RFC 3339)."""

    at: float
    stamp: str

    def end(self, patience: float) -> str:
        """Say for people when the slot ends."""
        end = datetime.fromisoformat(self.stamp) + timedelta(seconds=patience)
        return end.isoformat(timespec="seconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Kept:
    """The kept slots of one gang by make, the oldest first, and for how many seconds each is kept.

    A replacement ends the time of the youngest: pods that come and go one after another must not
    renew the time of all the other slots.
    """

    starts: Mapping[Make, tuple[Start, ...]] = field(default_factory=dict)
    patience: float = 0.0

    @property
    def total(self) -> int:
        """How many slots are kept."""
        return sum(map(len, self.starts.values()))

    def going_on(self, slots: Slots, moment: Moment, patience: float) -> "Kept":
        """Return the slots that are kept now."""
        new, counts = Start(moment.now, moment.stamp), Counter[Make]()
        for slot, count in slots.items():
            counts[_make(slot.kind)] += count
        known = {make: self.starts.get(make, ())[:count] for make, count in counts.items()}
        starts = {make: s + (new,) * (counts[make] - len(s)) for make, s in known.items()}
        return Kept(starts, patience)

    def over(self, now: float) -> Counter[Make]:
        """How many of each make have come to their end."""
        ends = ((make, each.at + self.patience) for make, s in self.starts.items() for each in s)
        return Counter(make for make, end in ends if end <= now)

    @property
    def next_end(self) -> float | None:
        """When the next of them ends."""
        return min((s[0].at + self.patience for s in self.starts.values()), default=None)

    @property
    def text(self) -> str:
        """Say for people how many are kept, and until when; empty where there is none."""
        ends = sorted(each.end(self.patience) for starts in self.starts.values() for each in starts)
        if not ends:
            return ""
        what = "1 slot is kept for a lost pod"
        if len(ends) > 1:
            what = f"{len(ends)} slots are kept for lost pods"
        return f"{what} until {ends[-1]}" + (" at the latest" if ends[0] != ends[-1] else "")


def kept_slots(placement: Placement, standing: Standing, pods: Sequence[ObservedPod]) -> Slots:
    """The slots that have no pod, or one that gates of others hold."""
    if standing and all(each.kept == 0 for each in standing):
        return Counter()
    slots = vacant_slots(placement, pods)
    for pod, node in (free for each in standing for free in each.free):
        slot = slot_of(pod, node)
        if slot is not None:
            slots[slot] -= 1
    return +slots


def ended(slots: Slots, over: Mapping[Make, int], standing: Standing) -> Slots:
    """Those of the kept slots that end: whose time is over, and that no pod can come for.

    A slot that was meant for a pod which went elsewhere by itself stays empty.
    """
    spare = Counter({each.terms.name: each.kept - each.claimants for each in standing})
    left = Counter(over)
    found: Slots = Counter()
    for slot in sorted(slots, reverse=True):
        count = min(slots[slot], max(left[_make(slot.kind)], spare[slot.kind.pod_set]))
        if count > 0:
            found[slot] = count
            left[_make(slot.kind)] -= count
            spare[slot.kind.pod_set] -= count
    return found


def _make(kind: SlotKind) -> Make:
    return kind.pod_set, kind.shape
