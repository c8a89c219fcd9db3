"""Keeps what gangs have and want of ResourceQuotas, by namespace, and whose turn it is there."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.quota_order import Stake, Tier, Turn, turn_of
from kube.foreseen.namespace_quota import Bound, bounds_of, counted, shown
from scheduling.model.gang import GangKey

PATIENCE = 1.0
"""Seconds until a gang makes way: a quota counts pods before a watch tells of them."""

HOLDERS_NAMED = 3

_NEW = (False, None, None, "")


@dataclass(slots=True)
class _Namespace:
    """The gangs of one namespace that quotas count."""

    stakes: dict[GangKey, Stake] = field(default_factory=dict)
    limits: Mapping[tuple[str, str], int] = field(default_factory=dict)
    turn: Turn | None = None
    """None: it is to be worked out anew."""
    free: Counter[tuple[str, str]] = field(default_factory=Counter)
    holders: dict[tuple[str, str], str] = field(default_factory=dict)
    """Who has what, in words, of what a gang lacks."""
    said: dict[GangKey, object] = field(default_factory=dict)
    """What gangs were last told."""
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
        if stake is None and key.namespace not in self._namespaces:
            return
        here = self._namespaces[key.namespace]
        if here.stakes.get(key) == stake:
            return
        here.turn = None
        self._changed.add(key.namespace)
        if stake is None:
            del here.stakes[key]
        else:
            here.stakes[key] = stake

    def touch(self, namespace: str) -> bool:
        """Take in that quotas of a namespace changed; say whether their limits did."""
        limits = {each: bound.hard for each, bound in self.bounds(namespace).items()}
        here = self._namespaces[namespace]
        before, here.limits, here.turn = here.limits, limits, None
        self._changed.add(namespace)
        return limits != before

    def bounds(self, namespace: str) -> dict[tuple[str, str], Bound]:
        """Return what the quotas of a namespace bound."""
        return bounds_of(self._cache.admission.quotas(namespace))

    def turn(self, namespace: str) -> Turn:
        """Return whose turn it is, by what is known now."""
        if namespace not in self._namespaces:
            return Turn()
        here = self._namespaces[namespace]
        if here.turn is None:
            here.free, here.holders = self._free(namespace), {}
            here.turn = turn_of(here.stakes.values(), here.free)
        return here.turn

    def due_at(self, key: GangKey) -> float | None:
        """Return from when on a gang makes way; None where it need not."""
        return self._namespaces[key.namespace].due.get(key) if self._has(key) else None

    def settle(self, now: float) -> Iterator[GangKey]:
        """Yield the gangs for which the answer is another one than before."""
        changed, self._changed = sorted(self._changed), set()
        for here, namespace in ((self._namespaces[each], each) for each in changed):
            way = self.turn(namespace).makes_way
            here.due = {each: here.due.get(each, now + PATIENCE) for each in way}
            before, here.said = here.said, {key: self._answer(key) for key in here.stakes}
            yield from (key for key, said in here.said.items() if said != before.get(key, _NEW))

    def holders(self, key: GangKey) -> str:
        """Say who has the quota that a gang waits for; empty where it waits for none."""
        here = self._namespaces[key.namespace] if self._has(key) else _Namespace()
        stake, turn = here.stakes.get(key), self.turn(key.namespace)
        if stake is not None and stake.tier is Tier.NEVER_FITS:
            return "a ResourceQuota never admits all of it"
        if stake is None or not stake.needs or key in turn.fits:
            return ""
        first = turn.before.get(key, {})
        short = (b for b, n in sorted(stake.needs.items()) if n > here.free[b] - first.get(b, 0))
        bound = next(short, None)
        if bound is None:
            return ""
        if bound not in here.holders:
            here.holders[bound] = self._in_words(key.namespace, bound)
        return here.holders[bound] + _stuck(here, bound, stake)

    def forget(self) -> None:
        """Drop everything, at the end of a term."""
        self._namespaces.clear()
        self._changed.clear()

    def _has(self, key: GangKey) -> bool:
        return key.namespace in self._namespaces

    def _answer(self, key: GangKey) -> object:
        turn = self.turn(key.namespace)
        way, before = turn.makes_way.get(key), turn.before.get(key)
        return key in turn.fits, way, before, self.holders(key)

    def _free(self, namespace: str) -> Counter[tuple[str, str]]:
        """Return what is left beside what placed gangs will take."""
        quotas = self._cache.admission.quotas(namespace)
        claims = counted(self._cache.foreseen.claimed_in(namespace), quotas)
        bounds = bounds_of(quotas)
        return Counter({b: each.hard - each.used - claims[b] for b, each in bounds.items()})

    def _in_words(self, namespace: str, bound: tuple[str, str]) -> str:
        stakes, all_of = self._namespaces[namespace].stakes, self.bounds(namespace)[bound]
        uses = {each.key.name: n for each in stakes.values() if (n := each.uses.get(bound, 0))}
        others = all_of.used - sum(uses.values())
        most = sorted(uses.items(), key=lambda each: (-each[1], each[0]))[:HOLDERS_NAMED]
        said = [f"{name} has {shown(bound[1], amount)}" for name, amount in most]
        rest = len(uses) - len(most)
        said += [f"{rest} more gang{'s have' if rest > 1 else ' has'} some"] if rest else []
        said += [f"other pods have {shown(bound[1], others)}"] if others > 0 else []
        return f"of {bound[1]} in it {', '.join(said)}" if said else ""


def _stuck(here: _Namespace, bound: tuple[str, str], mine: Stake) -> str:
    """Name the gangs that lack this quota too and hold some of it for good."""
    stay = [
        each.key.name
        for each in (here.stakes.values() if mine.tier <= Tier.STAYS else ())
        if each is not mine
        and each.needs.get(bound)
        and each.uses.get(bound)
        and not each.may_make_way
    ]
    said = ", ".join(sorted(stay)[:HOLDERS_NAMED])
    return f"; {said} lacks it too and cannot be suspended: delete one of them" if stay else ""
