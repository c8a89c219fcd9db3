"""Static volumes: which free volumes a claim may be bound to, and whether all claims get one.

kube-scheduler binds a claim to the smallest free volume that suits it and that the node reaches, of
equal ones to any (FindMatchingVolume of k8s.io/component-helpers). Which one that is depends on the
order in which pods come. A claim finds one in any order where the volumes of one `Pool`, all
reached from its node, are enough for all claims that may be bound to them: the largest volume for
the largest claim, and so on. Each that is bound leaves enough for the others, because it takes the
smallest (`tests/properties/test_static_volumes.py`).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from heapq import nlargest
from operator import ge

from scheduling.filters.volumes.claim_effect import BIND_IT, BINDING, Effect, Seeker, nowhere
from scheduling.filters.volumes.node_terms import merged
from scheduling.model.constraints import VolumeNodeRestriction
from scheduling.model.labels import selects
from scheduling.model.volume import Claim, Pool
from scheduling.state.volume_index import VolumeIndex

MOST_SELECTED = 32
"""Requirements of a claim's selector and their values; people write one or two."""

_FEW = "for which there may be too few free volumes beside other claims"

Choice = tuple[Pool, Mapping[int, int]]
"""A pool, and how many volumes of each size are in it."""


def alike(claim: Claim) -> Claim:
    """Return the claim without what makes it this one: claims that ask for the same are equal."""
    return replace(claim, name="", uid="", owner="")


def asks_much(claim: Claim) -> bool:
    """Say whether the selector of a claim is too long to be asked of thousands of volumes."""
    return sum(1 + len(each.values) for each in claim.selector) > MOST_SELECTED


def choices(table: VolumeIndex, claim: Claim) -> tuple[Choice, ...]:
    """Return the pools with a volume that suits a claim, wherever they are reached from."""
    least = claim.size or 0
    found = table.free(claim.storage_class).items()
    return tuple((pool, has) for pool, has in found if max(has) >= least and _suits(pool, claim))


def _suits(pool: Pool, claim: Claim) -> bool:
    return (
        (pool.kind, pool.attributes) == (claim.kind, claim.attributes)
        and {*claim.modes} <= {*pool.modes}
        and selects(claim.selector, dict(pool.labels))
    )


class StaticDemand:
    """All claims that may be bound to free volumes: those of a gang, and others beside it.

    `others` are of pods that are on their way, or on a node while their claim is not seen bound.
    What was decided before counts on pools that were enough then: they must still be.
    """

    def __init__(self, table: VolumeIndex, others: Iterable[Claim]) -> None:
        self._table = table
        self._asked: Counter[Claim] = Counter()
        self._named: set[tuple[str, str]] = set()
        self._promised: Counter[Claim] = Counter()
        for claim in others:
            self.add(claim, 1)

    def add(self, claim: Claim, pods: int) -> None:
        """Count the claims of some pods; one with a name is one, however many mount it."""
        if claim.name and claim.key in self._named:
            return
        if claim.name:
            self._named.add(claim.key)
        if not claim.volume and not self._table.kept_for(claim):
            self._asked[replace(alike(claim), namespace="")] += 1 if claim.name else pods

    def promise(self) -> None:
        """Note that what comes now is placed after all that was counted so far."""
        self._promised = self._asked.copy()

    def effect(self, seeker: Seeker) -> Effect | None:
        """Return where a claim is certain to find a volume; None where nowhere.

        It must take none that an earlier claim counts on, either.
        """
        claim, called = seeker
        enough: list[Pool] = []
        short: list[Choice] = []
        for pool, sizes in choices(self._table, claim):
            if is_enough(sizes, _for_pool(self._asked, pool, sizes)):
                enough.append(pool)
            else:
                short.append((pool, sizes))
        if not enough or any(_for_pool(self._promised, *each) for each in short):
            return None
        left_open = frozenset({called} if short else ())
        return Effect(tuple(_reach(enough, called)), left_open=left_open)


def too_few(seeker: Seeker) -> Effect:
    """Return what follows for a minimum where it matters which volume a claim is bound to."""
    remedy = BIND_IT if seeker.claim.name else "use a class that has a provisioner"
    return Effect(unsupported=frozenset({f"{seeker.called}, {_FEW} ({remedy})"}))


def too_few_for_more(seeker: Seeker) -> Effect:
    """Return what follows for a surplus: it waits until there are more volumes."""
    return nowhere(f"{seeker.called},", _FEW)


def _for_pool(claims: Mapping[Claim, int], pool: Pool, sizes: Mapping[int, int]) -> Counter[int]:
    """Count by size those of the claims that may be bound to a volume of the pool."""
    found: Counter[int] = Counter()
    for claim, count in claims.items():
        if (claim.size or 0) <= max(sizes) and _suits(pool, claim):
            found[claim.size or 0] += count
    return found


def _reach(pools: Iterable[Pool], called: str) -> Iterator[VolumeNodeRestriction]:
    """Yield from where the volumes of some pool are reached, unless that is from everywhere."""
    terms = [pool.terms for pool in pools]
    if None not in terms:
        each = (term.labels for some in terms for term in some or () if term.labels)
        yield VolumeNodeRestriction(BINDING, f"{called} (free volumes)", merged(each))


def is_enough(offered: Mapping[int, int], asked: Mapping[int, int]) -> bool:
    """Say whether each claim finds a volume of its size, in any order in which they are bound.

    Both count by size.
    """
    most = sum(asked.values())
    if most > sum(offered.values()):
        return False
    largest = nlargest(most, Counter(offered).elements())
    return all(map(ge, largest, sorted(Counter(asked).elements(), reverse=True)))
