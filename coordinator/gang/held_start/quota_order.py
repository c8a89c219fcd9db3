"""Orders the gangs that share the ResourceQuotas of a namespace, and decides which make way.

A quota counts gated pods like running ones. So gangs that each have a part of their pods could wait
for each other for ever. A gang makes way only for a gang before it, and neither setbacks nor pauses
change the order. So the first gang gets what it needs once what runs has ended, then the next.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from kube.foreseen.namespace_quota import Amounts
from scheduling.model.gang import GangKey


class Tier(IntEnum):
    """What counts before priority."""

    STARTED = 0
    """It has its placement, or runs."""
    STAYS = 1
    """It waits, and cannot be suspended."""
    WAITS = 2
    NEVER_FITS = 3
    """No limit will ever hold it whole."""


@dataclass(frozen=True, slots=True)
class Stake:
    """What one gang has of the quotas of its namespace, and wants of them."""

    key: GangKey
    tier: Tier
    priority: int = 0
    arrived: float = 0.0
    uses: Amounts = field(default_factory=dict)
    """What its pods take."""
    needs: Amounts = field(default_factory=dict)
    """What is refused to it, or has to be there before its pods are created."""
    leaves: Amounts = field(default_factory=dict)
    """What comes free in any case: its pods are being deleted."""
    may_make_way: bool = False
    """It can be suspended, and nothing of it started."""
    is_promised: bool = False
    """What it needs is claimed for it, and free for no other gang."""
    is_held: bool = False
    """None of its pods exists: what is free for it is free for others until it is placed."""

    @property
    def gives(self) -> Amounts:
        """What comes free if it is suspended."""
        return self.uses if self.may_make_way else {}


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose turn it is."""

    fits: frozenset[GangKey] = frozenset()
    """The gangs for which all that they need is free, beside what those before them need."""
    makes_way: Mapping[GangKey, GangKey] = field(default_factory=dict)
    """The gangs to suspend, each with the one that it makes way for: itself if it never fits."""
    before: Mapping[GangKey, Amounts] = field(default_factory=dict)
    """What those need that come before a gang, and do not have."""


def in_order(stakes: Iterable[Stake]) -> list[Stake]:
    """Return stakes, the first to be served first."""
    return sorted(stakes, key=_place)


def needed_before(stake: Stake, others: Iterable[Stake], turn: Turn) -> Amounts:
    """Return what others need that come before a gang of which the turn was not told yet."""
    needed: Counter[tuple[str, str]] = Counter()
    for each in others:
        waits = not (each.is_held and each.key in turn.fits)
        if each.needs and waits and _place(each) < _place(stake):
            needed.update(each.needs)
    return needed


def _place(stake: Stake) -> tuple[int, int, float, str]:
    return stake.tier, -stake.priority, stake.arrived, stake.key.name


def turn_of(stakes: Collection[Stake], free: Amounts) -> Turn:
    """Say whose turn it is, where so much is free beside what is promised."""
    ordered, course = in_order(stakes), _Course(Counter(free), Counter(free))
    course.unpromise(each.needs for each in ordered if each.is_promised)
    course.expect(each.leaves for each in ordered)
    for each in ordered:
        if each.tier is Tier.NEVER_FITS and each.may_make_way:
            course.suspend(each, each)
    for at, each in enumerate(ordered):
        course.serve(each, ordered[at + 1 :])
    return Turn(frozenset(course.fits), course.makes_way, course.before)


@dataclass(slots=True)
class _Course:
    """How far the gangs are served; both amounts sink below 0 where more is needed."""

    free: Counter[tuple[str, str]]
    coming: Counter[tuple[str, str]]
    """What is free once all that was decided has happened."""
    needed: Counter[tuple[str, str]] = field(default_factory=Counter)
    fits: set[GangKey] = field(default_factory=set)
    makes_way: dict[GangKey, GangKey] = field(default_factory=dict)
    before: dict[GangKey, Amounts] = field(default_factory=dict)

    def expect(self, freed: Iterable[Amounts]) -> None:
        for amounts in freed:
            self.coming.update(amounts)

    def unpromise(self, promised: Iterable[Amounts]) -> None:
        """Free the promised quota until the turn of the gangs that need it."""
        for amounts in promised:
            self.free.update(amounts)
            self.coming.update(amounts)

    def suspend(self, stake: Stake, wanted_by: Stake) -> None:
        self.makes_way[stake.key] = wanted_by.key
        self.coming.update(stake.gives)

    def serve(self, stake: Stake, later: Sequence[Stake]) -> None:
        if not stake.needs:
            return
        self.before[stake.key] = Counter(self.needed)
        if all(self.free[each] >= amount for each, amount in stake.needs.items()):
            self.fits.add(stake.key)
            if stake.is_held:
                return
        for amounts in (self.free, self.coming):
            amounts.subtract(stake.needs)
        if not stake.is_promised:
            self.needed.update(stake.needs)
        for each in self._enough(stake, later):
            self.suspend(each, stake)

    def _enough(self, stake: Stake, later: Sequence[Stake]) -> list[Stake]:
        """Return the last gangs that give what is short, no more than needed; or none at all."""
        short = {each: -self.coming[each] for each in stake.needs if self.coming[each] < 0}
        chosen: list[Stake] = []
        for each in reversed(later):
            if each.key not in self.makes_way and _helps(each, _left(short, chosen)):
                chosen.append(each)
        if _left(short, chosen):
            return []
        for each in reversed(chosen.copy()):
            others = [other for other in chosen if other is not each]
            chosen = chosen if _left(short, others) else others
        return chosen


def _left(short: Amounts, chosen: Iterable[Stake]) -> dict[tuple[str, str], int]:
    """Return what is short still."""
    given: Counter[tuple[str, str]] = Counter()
    for each in chosen:
        given.update(each.gives)
    return {each: amount for each, amount in short.items() if amount > given[each]}


def _helps(stake: Stake, short: Amounts) -> bool:
    return any(stake.gives.get(each, 0) > 0 for each in short)
