"""Keeps what each gang uses and needs of ResourceQuotas, and whose turn it is in each namespace."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.held_start.quota_order import Stake, Tier, Turn, needed_before, turn_of
from kube.foreseen.namespace_quota import Amounts, Bound, bounds_of, counted, shown
from scheduling.model.gang import GangKey

PATIENCE = 1.0
"""Seconds until a gang makes way: a quota counts pods before a watch tells of them."""

HOLDERS_NAMED = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """What the order of its namespace means for one gang."""

    fits: bool = False
    """All that it needs is free."""
    makes_way_for: GangKey | None = None
    """It is to be suspended for this one; itself if it never fits."""
    before: Amounts = field(default_factory=dict)
    """What those need that come before it, and do not have."""
    holders: str = ""
    """Who has the quota that it waits for."""


NO_ANSWER = Answer()


@dataclass(slots=True)
class _Namespace:
    """The gangs of one namespace that quotas count."""

    stakes: dict[GangKey, Stake] = field(default_factory=dict)
    limits: Mapping[tuple[str, str], int] = field(default_factory=dict)
    turn: Turn = field(default_factory=Turn)
    answers: dict[GangKey, Answer] = field(default_factory=dict)
    due: dict[GangKey, float] = field(default_factory=dict)
    """From when on gangs make way (monotonic seconds)."""


class QuotaTurns:
    """Whose turn it is in each namespace that has a ResourceQuota."""

    def __init__(self, cache: ClusterCache) -> None:
        self._cache = cache
        self._namespaces: defaultdict[str, _Namespace] = defaultdict(_Namespace)
        self._changed: set[str] = set()

    def note(self, key: GangKey, stake: Stake | None) -> None:
        """Take in what a gang has and wants; None: no quota counts it."""
        before = self._namespaces[key.namespace].stakes if key.namespace in self._namespaces else {}
        if before.get(key) == stake:
            return
        self._changed.add(key.namespace)
        stakes = self._namespaces[key.namespace].stakes
        if stake is None:
            del stakes[key]
        else:
            stakes[key] = stake

    def touch(self, namespace: str) -> bool:
        """Take in that quotas of a namespace changed; say whether their limits did."""
        limits = {each: bound.hard for each, bound in self.bounds(namespace).items()}
        here = self._namespaces[namespace]
        self._changed.add(namespace)
        before, here.limits = here.limits, limits
        return limits != before

    def bounds(self, namespace: str) -> dict[tuple[str, str], Bound]:
        """Return what the quotas of a namespace bound."""
        return bounds_of(self._cache.admission.quotas(namespace))

    def answer(self, key: GangKey) -> Answer:
        """Return what a gang was told last."""
        if key.namespace not in self._namespaces:
            return NO_ANSWER
        return self._namespaces[key.namespace].answers.get(key, NO_ANSWER)

    def before(self, key: GangKey) -> Amounts:
        """Return what gangs need that come before a gang, also before one that is new."""
        here = self._namespaces.get(key.namespace)
        stake = here.stakes.get(key) if here is not None else None
        if here is None or stake is None:
            return {}
        told = here.answers.get(key)
        if told is not None:
            return told.before
        return needed_before(stake, here.stakes.values(), here.turn)

    def due_at(self, key: GangKey) -> float | None:
        """Return from when on a gang makes way; None where it need not."""
        if key.namespace not in self._namespaces:
            return None
        return self._namespaces[key.namespace].due.get(key)

    def settle(self, now: float) -> Iterator[GangKey]:
        """Work out whose turn it is; yield the gangs for which the answer is another one."""
        changed, self._changed = sorted(self._changed), set()
        for here, namespace in ((self._namespaces[each], each) for each in changed):
            words = _Words(here.stakes, self.bounds(namespace), self._free(namespace))
            here.turn = turn = turn_of(here.stakes.values(), words.free)
            here.due = {key: here.due.get(key, now + PATIENCE) for key in turn.makes_way}
            before = here.answers
            here.answers = {key: words.answer(key, turn) for key in here.stakes}
            yield from (k for k, said in here.answers.items() if said != before.get(k, NO_ANSWER))

    def forget(self) -> None:
        """Drop everything, at the end of a term."""
        self._namespaces.clear()
        self._changed.clear()

    def _free(self, namespace: str) -> Counter[tuple[str, str]]:
        """Return what is left beside what placed gangs will take."""
        quotas = self._cache.admission.quotas(namespace)
        claims = counted(self._cache.foreseen.claimed_in(namespace), quotas)
        bounds = bounds_of(quotas)
        return Counter({b: each.hard - each.used - claims[b] for b, each in bounds.items()})


@dataclass(slots=True)
class _Words:
    """Says of the gangs of one namespace who has what they lack."""

    stakes: Mapping[GangKey, Stake]
    bounds: Mapping[tuple[str, str], Bound]
    free: Counter[tuple[str, str]]
    _said: dict[tuple[str, str], str] = field(default_factory=dict)

    def answer(self, key: GangKey, turn: Turn) -> Answer:
        before, way = turn.before.get(key, {}), turn.makes_way.get(key)
        fits, stake = key in turn.fits, self.stakes[key]
        holders = "" if fits else self._holders(stake, before)
        return Answer(fits, way, before, holders)

    def _holders(self, stake: Stake, before: Amounts) -> str:
        if stake.tier is Tier.NEVER_FITS:
            return "a ResourceQuota never admits all of it"
        lacks = sorted(stake.needs.items())
        short = (b for b, n in lacks if n > self.free[b] - before.get(b, 0) and b in self.bounds)
        bound = next(short, None)
        if bound is None:
            return ""
        if bound not in self._said:
            self._said[bound] = self._shares(bound)
        return self._said[bound] + self._stuck(bound, stake)

    def _shares(self, bound: tuple[str, str]) -> str:
        uses = {e.key.name: n for e in self.stakes.values() if (n := e.uses.get(bound, 0))}
        others, resource = self.bounds[bound].used - sum(uses.values()), bound[1]
        most = sorted(uses.items(), key=lambda each: (-each[1], each[0]))[:HOLDERS_NAMED]
        said = [f"{name} has {shown(resource, amount)}" for name, amount in most]
        rest = len(uses) - len(most)
        said += [f"{rest} more gang{'s have' if rest > 1 else ' has'} some"] if rest else []
        said += [f"other pods have {shown(resource, others)}"] if others > 0 else []
        return f"of {resource} in it {', '.join(said)}" if said else ""

    def _stuck(self, bound: tuple[str, str], mine: Stake) -> str:
        """Name the gangs that lack this quota too and hold some of it for good."""
        stay = [
            each.key.name
            for each in (self.stakes.values() if mine.tier <= Tier.STAYS else ())
            if each is not mine and each.needs.get(bound) and not each.may_make_way
            if not each.is_held
        ]
        said = ", ".join(sorted(stay)[:HOLDERS_NAMED])
        return f"; {said} lacks it too and cannot be suspended: delete one of them" if stay else ""
