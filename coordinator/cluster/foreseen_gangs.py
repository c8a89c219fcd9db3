"""Indexes held gangs by namespace: pods to come, their constraints, volumes, claims and quota.

Once such a gang is placed, its pods will use the ResourceQuotas of the namespace when they are
created. No quota counts them until then, so the index claims their amounts, and no other gang is
promised the same quota. A claim, and the check of a gang beside all claims, cost the same for any
number of held gangs.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Set
from itertools import chain

from kube.foreseen.namespace_quota import Charges, Scoped
from scheduling.model.gang import GangKey

MOST_PODS = 200_000
"""That are foreseen at a time, in all: each takes some 1.3 KB, and none has to exist for that."""

MOST_OF_A_NAMESPACE = 20_000


class QuotaClaims:
    """What the pods of placed gangs will take of the quotas of one namespace, added up."""

    def __init__(self) -> None:
        self._claims: dict[GangKey, Charges] = {}
        self.sum: defaultdict[Scoped | None, Counter[str]] = defaultdict(Counter)
        """What all claims come to."""

    def put(self, key: GangKey, charges: Charges) -> Charges | None:
        """Take in what a gang will take, in place of what was known of it; return that."""
        before = self._claims.get(key)
        self.drop(key)
        self._claims[key] = charges
        for scoped, amounts in charges.items():
            self.sum[scoped].update(amounts)
        return before

    def drop(self, key: GangKey) -> bool:
        """Forget a gang; say whether it had a claim."""
        charges = self._claims.pop(key, None)
        for scoped, amounts in (charges or {}).items():
            self.sum[scoped].subtract(amounts)
        if not self._claims:
            self.sum.clear()
        return charges is not None

    def of(self, key: GangKey) -> Charges:
        """Return the claim of one gang."""
        return self._claims.get(key, {})

    def beside(self, *keys: GangKey) -> tuple[int, Charges]:
        """Return how many gangs have claims beside these, and what those come to."""
        mine = [self._claims[key] for key in keys if key in self._claims]
        if not mine:
            return len(self._claims), self.sum
        others = {scoped: Counter(amounts) for scoped, amounts in self.sum.items()}
        for scoped, amounts in chain.from_iterable(each.items() for each in mine):
            others[scoped].subtract(amounts)
        return len(self._claims) - len(mine), others


class ForeseenGangs:
    """The gangs whose pods do not exist yet."""

    def __init__(self) -> None:
        self._gangs: defaultdict[str, set[GangKey]] = defaultdict(set)
        self._pods: dict[GangKey, int] = {}
        self._pods_in: Counter[str] = Counter()
        self._put_off: set[GangKey] = set()
        self._constrained: set[GangKey] = set()
        self._mounting: set[GangKey] = set()
        self._claiming: dict[GangKey, frozenset[str]] = {}
        self._claims: defaultdict[str, QuotaClaims] = defaultdict(QuotaClaims)
        self._freed: set[str] = set()
        self._fewer = False

    def takes(self, key: GangKey, pods: int) -> bool:
        """Say whether a gang of so many pods may be foreseen beside the others, and count it then.

        One that may not is among those that `take_freed` returns.
        """
        before = self._pods.pop(key, 0)
        self._pods_in[key.namespace] -= before
        in_all, mine = self._pods_in.total(), self._pods_in[key.namespace]
        fits = in_all + pods <= MOST_PODS and mine + pods <= MOST_OF_A_NAMESPACE
        if fits:
            self._pods[key] = pods
            self._pods_in[key.namespace] += pods
        (self._put_off.discard if fits else self._put_off.add)(key)
        return fits

    def put(
        self, key: GangKey, *, constrained: bool, mounting: bool, templates: frozenset[str]
    ) -> None:
        """Note whether the pods that a gang is to have bring constraints, or mount claims.

        `templates` are those of which claims of devices are to be made for them.
        """
        self._gangs[key.namespace].add(key)
        self._claiming.pop(key, None)
        if templates:
            self._claiming[key] = templates
        (self._constrained.add if constrained else self._constrained.discard)(key)
        (self._mounting.add if mounting else self._mounting.discard)(key)

    def drop(self, key: GangKey) -> None:
        """Forget a gang whose pods exist, or are not to come."""
        self.unclaim(key)
        self._pods_in[key.namespace] -= self._pods.pop(key, 0)
        self._put_off.discard(key)
        self._fewer = True
        self._constrained.discard(key)
        self._mounting.discard(key)
        self._claiming.pop(key, None)
        mine = self._gangs.get(key.namespace, set())
        mine.discard(key)
        if not mine:
            self._gangs.pop(key.namespace, None)
            self._claims.pop(key.namespace, None)
            del self._pods_in[key.namespace]

    def __contains__(self, key: GangKey) -> bool:
        return key in self._gangs.get(key.namespace, ())

    def __iter__(self) -> Iterator[GangKey]:
        return (key for mine in self._gangs.values() for key in mine)

    def of(self, namespace: str) -> Collection[GangKey]:
        """Return the gangs of a namespace; of the empty name all."""
        return self._gangs.get(namespace, ()) if namespace else list(self)

    @property
    def constrained(self) -> Set[GangKey]:
        """The gangs whose pods will have constraints about other pods."""
        return self._constrained

    @property
    def mounting(self) -> Set[GangKey]:
        """The gangs whose pods will mount volumes of claims."""
        return self._mounting

    @property
    def claiming(self) -> Mapping[GangKey, frozenset[str]]:
        """The gangs whose pods will claim devices, and by which templates."""
        return self._claiming

    # --- quotas -------------------------------------------------------------------------------

    def claim(self, key: GangKey, charges: Charges) -> None:
        """Claim the quota that this gang's pods will take, so that no other gang is promised it.

        A changed claim makes the other gangs be looked at: some pods may have counted twice, here
        and in the quota itself.
        """
        before = self._claims[key.namespace].put(key, charges)
        if before is not None and before != charges:
            self._freed.add(key.namespace)

    def unclaim(self, key: GangKey) -> None:
        """Let others have what the pods would take: quotas count them, or they are not to come."""
        claims = self._claims.get(key.namespace)
        if claims is not None and claims.drop(key):
            self._freed.add(key.namespace)

    def claimed_by(self, key: GangKey) -> Charges:
        """Return what a gang has a claim to."""
        claims = self._claims.get(key.namespace)
        return claims.of(key) if claims is not None else {}

    def claimed_beside(self, key: GangKey, *mates: GangKey) -> tuple[int, Charges]:
        """Return how many other gangs of the namespace have claims, and what these come to.

        `mates` are gangs that start with this one, and are none of those.
        """
        claims = self._claims.get(key.namespace)
        return claims.beside(key, *mates) if claims is not None else (0, {})

    def claimed_in(self, namespace: str) -> Charges:
        """Return what all claims of a namespace come to."""
        claims = self._claims.get(namespace)
        return claims.sum if claims is not None else {}

    def take_freed(self) -> list[GangKey]:
        """Return, once, the gangs of namespaces in which a claim ended, and those put off."""
        keys = [key for namespace in self._freed for key in self._gangs.get(namespace, ())]
        keys += self._put_off if self._fewer else ()
        self._freed.clear()
        self._fewer = False
        return keys
