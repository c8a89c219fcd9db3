"""What pods of held gangs will take of quotas is added up, and given back, gang by gang."""

import random
from collections import Counter

from coordinator.cluster.foreseen_gangs import ForeseenGangs
from kube.foreseen.namespace_quota import Charges, Scoped
from scheduling.model.gang import GangKey

USUAL = Scoped(terminating=False, best_effort=False, priority_class="", crosses_namespaces=False)
BEST_EFFORT = Scoped(
    terminating=False, best_effort=True, priority_class="", crosses_namespaces=False
)


def gang(name: str, namespace: str = "team") -> GangKey:
    return GangKey(namespace, name)


def known(*keys: GangKey) -> ForeseenGangs:
    gangs = ForeseenGangs()
    for key in keys:
        gangs.put(key, constrained=False, mounting=False, templates=frozenset())
    return gangs


def summed(charges: Charges) -> dict[Scoped | None, Counter[str]]:
    """Amounts that are not zero."""
    found = {scoped: +Counter(amounts) for scoped, amounts in charges.items()}
    return {scoped: amounts for scoped, amounts in found.items() if amounts}


def test_claims_are_those_of_the_others_of_the_namespace() -> None:
    a, b, other = gang("a"), gang("b"), gang("a", "elsewhere")
    gangs = known(a, b, other)
    gangs.claim(a, {USUAL: {"pods": 4}})
    gangs.claim(b, {USUAL: {"pods": 2}, BEST_EFFORT: {"pods": 1}})
    gangs.claim(other, {USUAL: {"pods": 100}})
    count, claimed = gangs.claimed_beside(a)
    assert (count, summed(claimed)) == (1, {USUAL: {"pods": 2}, BEST_EFFORT: {"pods": 1}})
    count, claimed = gangs.claimed_beside(gang("c"))
    assert (count, summed(claimed)) == (2, {USUAL: {"pods": 6}, BEST_EFFORT: {"pods": 1}})


def test_sums_are_right_after_any_number_of_changes() -> None:
    drawn = random.Random(1)
    keys = [gang(f"g{at}") for at in range(6)]
    gangs, claims = known(*keys), dict[GangKey, Charges]()
    for _ in range(300):
        key = drawn.choice(keys)
        if drawn.random() < 0.5:
            claims[key] = {drawn.choice((USUAL, BEST_EFFORT)): {"pods": drawn.randint(1, 9)}}
            gangs.claim(key, claims[key])
        else:
            claims.pop(key, None)
            gangs.unclaim(key)
        wanted: dict[Scoped | None, Counter[str]] = {}
        for charges in (charges for other, charges in claims.items() if other != keys[0]):
            for scoped, amounts in charges.items():
                wanted.setdefault(scoped, Counter()).update(amounts)
        assert summed(gangs.claimed_beside(keys[0])[1]) == wanted


def test_a_claim_that_gets_smaller_or_ends_has_the_namespace_looked_at() -> None:
    a, b, other = gang("a"), gang("b"), gang("c", "elsewhere")
    gangs = known(a, b, other)
    gangs.claim(a, {USUAL: {"pods": 4}})
    gangs.claim(a, {USUAL: {"pods": 4}})
    assert gangs.take_freed() == []
    gangs.claim(a, {USUAL: {"pods": 2}})
    assert {*gangs.take_freed()} == {a, b}
    gangs.drop(a)
    assert gangs.take_freed() == [b]
    assert gangs.take_freed() == []
    assert list(gangs.of("team")) == [b]
    assert set(gangs) == {b, other}


def test_constraints_and_claims_of_volumes_are_known_while_the_gang_is() -> None:
    gangs = ForeseenGangs()
    gangs.put(gang("a"), constrained=True, mounting=True, templates=frozenset())
    assert gangs.constrained
    assert gangs.mounting
    gangs.put(gang("a"), constrained=False, mounting=True, templates=frozenset())
    assert not gangs.constrained
    gangs.drop(gang("a"))
    assert not gangs.mounting
