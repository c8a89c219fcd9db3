"""Kubernetes 1.34 and 1.35, where pools come in any order: yes and no against brute force."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.devices.allocator import PARTS_OF_POOLS, allocate
from scheduling.devices.gang import ClaimGroup, Foreseen, NodeOffer, NoPlacement, foresee
from scheduling.devices.keeping import OnTheWay, leaves_enough
from scheduling.devices.mixes import UNFORESEEN
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import Allocated, Unsupported
from scheduling.devices.pools import SliceIndex, gather_pools
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.features import features_of, version_of
from scheduling.model.devices.in_use import NOTHING, InUse
from scheduling.model.devices.resource_slice import ResourceSlice
from scheduling.model.node import Node
from scheduling.model.shape.restrictions import Claims
from tests.scheduling.devices.builders import (
    DRIVER,
    RULES,
    claim,
    device,
    every,
    exactly,
    node_devices,
    partition,
    slice_of,
)
from tests.scheduling.devices.test_gang_properties import CLAIMS, pods_of

OLDER = replace(RULES, features=features_of((1, 35)))
EITHER = claim((exactly("type=X", name="x"), exactly("type=Y", name="y")))

plain = st.sampled_from(CLAIMS[:3]).map(lambda one: (one,))
claims = st.one_of(plain, st.sampled_from([(), *((one,) for one in CLAIMS)]))
gangs = st.lists(st.tuples(claims, st.integers(1, 2)), min_size=1, max_size=2)
both_pools = st.tuples(*[st.lists(st.sampled_from(["X0", "X1", "Y0"]), max_size=2)] * 2)


def in_two_pools(types: Sequence[Sequence[str]], name: str = "a") -> NodeDevices:
    """Return a node with two pools of devices, each by its type and its NUMA node."""
    return node_devices(*(pool(of, name, f"{name}-{at}") for at, of in enumerate(types)), node=name)


def pool(types: Sequence[str], node: str, name: str) -> ResourceSlice:
    made = [device(f"{name}-{at}", type=kind[0], numa=kind[1]) for at, kind in enumerate(types)]
    return replace(slice_of(made, node, name=name), pool=name)


def after(pod: Claims, node: NodeDevices, in_use: InUse) -> list[InUse | None]:
    """What may be in use after one more pod, by the order of the pools; None if it is refused."""
    found: list[InUse | None] = []
    for order in permutations(node.pools):
        outcome = allocate(pod, order, in_use, OLDER, StepBudget(100_000))
        found.append(in_use.plus(outcome.given) if isinstance(outcome, Allocated) else None)
    return found


def always(pods: Sequence[Claims], node: NodeDevices, in_use: InUse = NOTHING) -> bool:
    return not pods or all(
        then is not None and always(pods[1:], node, then) for then in after(pods[0], node, in_use)
    )


def sometimes(pods: Sequence[Claims], node: NodeDevices, in_use: InUse = NOTHING) -> bool:
    return not pods or any(
        then is not None and sometimes(pods[1:], node, then)
        for then in after(pods[0], node, in_use)
    )


@given(gangs, both_pools)
def test_yes_is_for_every_order_of_pools_and_no_for_none(
    groups: list[tuple[Claims, int]], types: tuple[list[str], list[str]]
) -> None:
    gang, node = [ClaimGroup(*each) for each in groups], in_two_pools(types)
    counts = tuple(each.count for each in gang)
    verdict = foresee(gang, [NodeOffer(["a"], node, counts)], OLDER, StepBudget(1_000_000))
    orders = set(permutations(pods_of(gang, counts)))
    match verdict:
        case Foreseen(placement, waves):
            event("placed")
            assert (placement, set(waves)) == ((("a", counts),), {0})
            assert all(always(order, node) for order in orders)
        case NoPlacement():
            event("no placement")
            assert not any(sometimes(order, node) for order in orders)
        case Unsupported(feature):
            event("unsupported")
            assert feature == UNFORESEEN


def foreseen(groups: Sequence[ClaimGroup], node: NodeDevices, version: str) -> object:
    rules = replace(RULES, features=features_of(version_of(version)))
    counts = tuple(each.count for each in groups)
    return foresee(groups, [NodeOffer(["a"], node, counts)], rules, StepBudget(100_000))


def test_what_counting_does_not_decide_is_unsupported_before_1_36() -> None:
    node, pair = in_two_pools([["X0"], ["Y0"]]), [ClaimGroup((EITHER,), 2)]
    assert isinstance(foreseen(pair, node, "1.36"), Foreseen)
    assert foreseen(pair, node, "1.35") == Unsupported(UNFORESEEN)
    assert isinstance(foreseen([ClaimGroup((claim(exactly()),), 2)], node, "1.35"), Foreseen)


def test_pods_without_claims_go_anywhere() -> None:
    node = in_two_pools([["X0"], ["Y0"]])
    both = [ClaimGroup((), 1), ClaimGroup((EITHER,), 1)]
    rules, elsewhere = replace(RULES, features=features_of((1, 35))), in_two_pools([[], []], "b")
    offers = [NodeOffer(["a"], node, (1, 0)), NodeOffer(["b"], elsewhere, (1, 1))]
    assert isinstance(foresee(both[:1], offers[:1], rules, StepBudget(1000)), Foreseen)
    assert isinstance(foresee(both, offers, rules, StepBudget(1000)), NoPlacement)


@pytest.mark.parametrize(("version", "is_known"), [("1.34", False), ("1.35", True)])
def test_1_34_allocates_from_parts_of_pools(version: str, is_known: bool) -> None:
    part = slice_of([device("part")], "a", name="part", of=2)
    whole = replace(slice_of([device("whole")], "a"), driver=f"other.{DRIVER}")
    found = foreseen([ClaimGroup((claim(exactly()),), 1)], node_devices(part, whole), version)
    assert isinstance(found, Foreseen) if is_known else found == Unsupported(PARTS_OF_POOLS)


def test_a_part_of_a_pool_may_be_enough_on_1_34() -> None:
    """A no would be wrong there: kube-scheduler may allocate what it has."""
    part = node_devices(slice_of([device("part")], "a", name="part", of=2))
    asked = [ClaimGroup((claim(exactly()),), 1)]
    assert foreseen(asked, part, "1.34") == Unsupported(PARTS_OF_POOLS)
    assert isinstance(foreseen(asked, part, "1.35"), NoPlacement)


def test_a_refusal_that_ends_the_search_in_one_order_is_none() -> None:
    """All of X are of one NUMA node; the Y of the same one may be met first, or the other Y."""
    asked = claim(exactly("type=Y", name="r0"), every("type=X", name="r1"), match="numa")
    node = in_two_pools([["Y0"], ["Y1", "X1"]])
    assert foreseen([ClaimGroup((asked,), 1)], node, "1.35") == Unsupported(UNFORESEEN)


def test_a_node_whose_devices_consume_counters_is_not_like_others_without_the_gate() -> None:
    """They were written while the gate was on; kube-scheduler allocates none of them now."""
    plain = node_devices(slice_of([device("gpu")], "a"), features=OLDER.features)
    part = node_devices(slice_of([partition("gpu", memory=5)], "a"), features=OLDER.features)
    asked, steps = [((claim(exactly()),))], StepBudget(1000)
    assert plain.pattern(asked, OLDER, steps) != part.pattern(asked, OLDER, steps)
    assert not isinstance(foreseen([ClaimGroup(asked[0], 1)], part, "1.35"), Foreseen)


def test_1_34_may_see_an_older_generation_of_a_pool() -> None:
    """It looks at no slices of other nodes, where a newer one may be."""
    old = replace(slice_of([device("old")], "a", name="old", of=2), pool="p")
    new = replace(slice_of([device("new")], "b", name="new", of=2, generation=2), pool="p")
    slices, on_a = SliceIndex([old, new]), Node("a", {}, (), False, {})
    asked = [ClaimGroup((claim(exactly()),), 1)]
    for version, verdict in (("1.34", Unsupported), ("1.35", NoPlacement)):
        pools = gather_pools(on_a, slices, features_of(version_of(version)))
        node = NodeDevices.of(pools, frozenset())
        assert isinstance(foreseen(asked, node, version), verdict)


def test_the_extender_lets_no_pod_pass_where_counting_does_not_decide() -> None:
    node, steps = in_two_pools([["X0", "X1"], ["Y0"]]), StepBudget(100_000)
    one, either = (claim(exactly()),), (EITHER,)
    assert leaves_enough(one, OnTheWay((((one, 2),),)), node, OLDER, steps)
    assert not leaves_enough(either, OnTheWay((((one, 1),),)), node, OLDER, steps)
