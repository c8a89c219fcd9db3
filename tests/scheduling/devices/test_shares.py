"""Devices of which several claims have shares."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.allocator import COUNTERS_OF_SHARES, allocate
from scheduling.devices.class_resources import Foreseeing
from scheduling.devices.gang import ClaimGroup, Foreseen, NodeOffer, NoPlacement, foresee
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import Allocated, NotAllocated, Outcome, Refusal, Unsupported
from scheduling.devices.search.constraints import DISTINCT
from scheduling.devices.steps import StepBudget
from scheduling.devices.wanted import FULL_SHARED, UNREAD_CAPACITY
from scheduling.model.devices.capacity import Capacity, RequestPolicy
from scheduling.model.devices.features import DEFAULT_FEATURES
from scheduling.model.devices.in_use import NOTHING, InUse
from scheduling.model.devices.resource_claim import ClaimSpec, MatchAttribute
from scheduling.model.devices.resource_slice import Device, DeviceID
from tests.scheduling.devices.builders import (
    DRIVER,
    RULES,
    claim,
    counters,
    device,
    every,
    exactly,
    node_devices,
    on_node,
    partition,
    share,
    shared,
    slice_of,
    some,
)

REFUSED = NotAllocated(Refusal.NO_DEVICES)
HALF = claim(some(memory=20))
OFF = replace(DEFAULT_FEATURES, consumable_capacity=False)


def outcome(node: NodeDevices, *claims: ClaimSpec) -> Outcome:
    return allocate(claims, node.pools, node.in_use, RULES, StepBudget(100_000))


def given_to(found: Outcome) -> list[tuple[str, dict[str, int] | None]]:
    """Return the devices, and how much of each, None where it is the whole."""
    assert isinstance(found, Allocated), found
    return [
        (e.device.device, None if e.consumed is None else dict(e.consumed)) for e in found.given
    ]


def test_claims_share_a_device_as_long_as_its_capacity_lasts() -> None:
    node = on_node(
        shared("a", memory=40), shared("b", memory=40), shares=[share("a", 0, memory=30)]
    )
    assert given_to(outcome(node, HALF)) == [("b", {"memory": 20})]
    assert given_to(outcome(node, claim(some(memory=10)))) == [("a", {"memory": 10})]
    assert given_to(outcome(node, HALF, HALF)) == [("b", {"memory": 20})] * 2
    assert outcome(node, HALF, HALF, HALF) == REFUSED


def test_a_request_for_two_devices_gets_two() -> None:
    twice = claim(replace(some(memory=10), count=2))
    assert outcome(on_node(shared("a", memory=40)), twice) == REFUSED
    both = on_node(shared("a", memory=40), shared("b", memory=40))
    assert given_to(outcome(both, twice)) == [("a", {"memory": 10}), ("b", {"memory": 10})]


def test_who_names_no_capacity_takes_all_of_it_or_the_default() -> None:
    node = on_node(shared("a", memory=40), shares=[share("a", 0, memory=1)])
    assert outcome(node, claim(exactly())) == REFUSED
    node = on_node(shared("a", memory=40, policy=RequestPolicy(default=8)))
    assert given_to(outcome(node, claim(exactly()))) == [("a", {"memory": 8})]
    assert given_to(outcome(on_node(shared("a")), *[claim(exactly())] * 8)) == [("a", {})] * 8


@pytest.mark.parametrize(
    ("policy", "asked", "taken"),
    [
        (RequestPolicy(default=8, values=(8, 16, 32)), 9, 16),
        (RequestPolicy(default=8, values=(8, 16, 32)), 33, None),
        (RequestPolicy(default=8, least=4, most=20), 1, 4),
        (RequestPolicy(default=8, least=4, most=20), 7, 7),
        (RequestPolicy(default=8, least=4, most=20), 21, None),
        (RequestPolicy(default=8, least=4, most=20, step=8), 5, 12),
        (RequestPolicy(default=8, least=4, most=20, step=8), 13, 20),
        (RequestPolicy(default=8, least=4, step=8), 37, None),  # 44 of 40
        (RequestPolicy(default=8), 9, 9),
        (None, 41, None),
    ],
)
def test_what_is_asked_for_is_rounded_as_the_policy_says(
    policy: RequestPolicy | None, asked: int, taken: int | None
) -> None:
    found = outcome(on_node(shared("a", memory=40, policy=policy)), claim(some(memory=asked)))
    assert (found == REFUSED) if taken is None else given_to(found) == [("a", {"memory": taken})]


def test_a_device_without_the_capacity_does_not_suit_whether_it_is_shared_or_not() -> None:
    small = replace(device("small"), capacities=(Capacity("memory", 10),))
    large = replace(device("large"), capacities=(Capacity("memory", 40),))
    node = on_node(device("none"), shared("other", cores=8), small, large)
    assert given_to(outcome(node, HALF)) == [("large", None)]
    assert outcome(node, HALF, HALF) == REFUSED


def test_capacity_that_is_not_counted_is_named() -> None:
    node = on_node(replace(device("a"), capacities=None))
    assert outcome(node, HALF) == Unsupported(UNREAD_CAPACITY)
    assert given_to(outcome(node, claim(exactly()))) == [("a", None)]


def test_a_share_of_a_device_that_is_not_shared_any_more_keeps_it() -> None:
    assert outcome(on_node(device("a"), shares=[share("a", 0)]), claim(exactly())) == REFUSED


def test_without_the_gate_a_device_is_given_whole_and_capacity_cannot_be_asked_for() -> None:
    node = node_devices(slice_of([shared("a", memory=40)], "a"), features=OFF)
    rules = replace(RULES, features=OFF)
    one = claim(exactly())
    found = allocate([one], node.pools, NOTHING, rules, StepBudget(100))
    assert given_to(found) == [("a", None)]
    found = allocate([HALF], node.pools, NOTHING, rules, StepBudget(100))
    assert found == NotAllocated(Refusal.FEATURE_OFF, "DRAConsumableCapacity")
    taken = node_devices(
        slice_of([shared("a")], "a"), features=OFF, shares=[share("a", 0), share("a", 1)]
    )
    assert taken.in_use == InUse(frozenset({DeviceID(DRIVER, "a", "a")}))


def test_counters_are_charged_for_the_first_share_of_a_device_alone() -> None:
    content = shared("part").content
    part = replace(
        partition("part", memory=30), content=content, capacities=(Capacity("cores", 8),)
    )
    slices = [
        slice_of([part, partition("rest", memory=10), partition("more", memory=1)], "a", of=2),
        counters("a", gpu_0=40, of=2),
    ]
    one = claim(some(cores=4))
    node = node_devices(*slices, shares=[share("part", 0, cores=1)])
    assert given_to(outcome(node, one)) == [("part", {"cores": 4})]
    found = outcome(node_devices(*slices), one, one, claim(exactly()))
    assert given_to(found)[:2] == [("part", {"cores": 4})] * 2
    assert given_to(found)[2] == ("rest", None)
    free = node_devices(*slices, shares=[share("part", 0)])
    assert outcome(free, one) == Unsupported(COUNTERS_OF_SHARES), "1.36 charges them anew"


def test_mode_all_beside_a_device_that_is_full_is_named() -> None:
    node = on_node(
        shared("a", memory=40), shared("b", memory=40), shares=[share("a", 0, memory=40)]
    )
    asked = claim(replace(every(), capacity=(("memory", 20),)))
    assert outcome(node, asked) == Unsupported(FULL_SHARED)
    free = on_node(shared("a", memory=40), shared("b", memory=10))
    assert given_to(outcome(free, asked)) == [("a", {"memory": 20})]


def on_numa(numa: str) -> Device:
    """Return a device that claims share, of such a NUMA node and of its name."""
    content = replace(device("", numa=numa).content, allow_multiple_allocations=True)
    return replace(shared(numa, memory=40), content=content)


def test_of_all_devices_constraints_are_asked_before_what_is_left() -> None:
    """A constraint that is not met refuses the node; capacity only has the next tried."""
    rest = replace(every(name="all"), capacity=(("memory", 30),)), some(memory=1)
    asked = claim(replace(some(memory=20), selectors=("numa=1",)), rest)
    match = MatchAttribute(f"{DRIVER}/numa", ("r1",))
    node = on_node(on_numa("0"), on_numa("1"))
    assert given_to(outcome(node, asked))[1] == ("0", {"memory": 1})
    refused = NotAllocated(Refusal.CONSTRAINT, f"{DRIVER}/a/1")
    assert outcome(node, replace(asked, constraints=(match,))) == refused


def test_distinct_attributes() -> None:
    node = on_node(device("a", numa="0"), device("b", numa="0"), device("c", numa="1"))
    two = claim(exactly(), exactly(), distinct="numa")
    assert [name for name, _ in given_to(outcome(node, two))] == ["a", "c"]
    assert outcome(node, claim(*[exactly()] * 3, distinct="numa")) == REFUSED
    pair = claim(exactly(count=2), distinct="numa")
    assert [name for name, _ in given_to(outcome(node, pair))] == ["a", "c"]
    lacks = on_node(device("x"), device("a", numa="0"))
    assert [n for n, _ in given_to(outcome(lacks, claim(exactly(), distinct="numa")))] == ["a"]
    three = claim(exactly(count=3), distinct="numa")
    again = on_node(*(device(f"d{at}", numa=numa) for at, numa in enumerate("010")))
    assert outcome(again, three) == Unsupported(DISTINCT), "1.36 forgets the first value"


# ---- gangs


def verdict(node: NodeDevices, *groups: ClaimGroup) -> object:
    most = tuple(each.count for each in groups)
    return foresee(groups, [NodeOffer(["a"], node, most)], RULES, StepBudget(1_000_000))


def test_a_gang_shares_the_devices_of_a_node() -> None:
    node = on_node(shared("a", memory=40), shared("b", memory=50), shares=[share("a", 0, memory=1)])
    assert verdict(node, ClaimGroup((HALF,), 3)) == Foreseen((("a", (3,)),), (0,))
    assert isinstance(verdict(node, ClaimGroup((HALF,), 4)), NoPlacement)


def test_pods_that_take_different_shares_come_in_waves_where_the_order_decides() -> None:
    node = on_node(shared("a", memory=30), shared("b", memory=20))
    small, large = claim(some(memory=20)), claim(some(memory=30))
    found = verdict(node, ClaimGroup((small,), 1), ClaimGroup((large,), 1))
    assert found == Foreseen((("a", (1, 1)),), (1, 0)), "the small one takes the large device first"


def test_shares_that_are_to_come_are_not_devices_to_be_shown() -> None:
    node = on_node(shared("a", memory=40))
    assert Foreseeing(RULES).promised(node, (((HALF,), 2),)) == frozenset()


def test_nodes_of_which_other_shares_are_taken_are_not_alike() -> None:
    def pattern(of: int, taken: int) -> object:
        node = on_node(shared("a", memory=of), shares=[share("a", 0, memory=taken)])
        return node.pattern([(HALF,)], RULES, StepBudget(100))

    assert pattern(40, 20) == pattern(40, 20)
    assert len({pattern(40, 20), pattern(40, 21), pattern(41, 20)}) == 3


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    st.lists(st.integers(0, 9), min_size=1, max_size=6),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=3),
)
def test_pods_one_after_the_other_take_the_first_device_with_so_much_left(
    sizes: list[int], asked: list[int], before: list[tuple[int, int]]
) -> None:
    names = [f"d{at}" for at in range(len(sizes))]
    taken = [(at % len(sizes), amount) for at, amount in before]
    left = [size - sum(a for at, a in taken if at == own) for own, size in enumerate(sizes)]
    node = on_node(
        *(shared(name, memory=size) for name, size in zip(names, sizes, strict=True)),
        shares=[share(names[at], number, memory=a) for number, (at, a) in enumerate(taken)],
    )
    in_use = node.in_use
    for amount in asked:
        found = allocate([claim(some(memory=amount))], node.pools, in_use, RULES, StepBudget(1000))
        first = next((at for at, rest in enumerate(left) if rest >= amount), None)
        if first is None:
            assert found == REFUSED
            continue
        assert given_to(found) == [(names[first], {"memory": amount})]
        left[first] -= amount
        assert isinstance(found, Allocated)
        in_use = in_use.plus(found.given)


@pytest.mark.parametrize("either", [False, True], ids=["requests", "alternatives"])
def test_requests_that_take_differing_shares_find_room_on_one_device(either: bool) -> None:
    """Each alone is enough for one device; together they are as well."""
    node = on_node(shared("a", memory=40, cores=40))
    much, little = some(memory=30, cores=10), some(memory=10, cores=30)
    both = claim(*[(replace(much, count=9), much), (little,)] if either else [much, little])
    assert verdict(node, ClaimGroup((both,), 1)) == Foreseen((("a", (1,)),), (0,))


AMOUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3))


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=3
    ),
    st.lists(st.lists(AMOUNTS, min_size=1, max_size=2), min_size=1, max_size=2),
)
def test_there_are_never_more_pods_than_the_bound_says(
    sizes: list[tuple[int, int, bool]], asked: list[list[tuple[int, int]]]
) -> None:
    node = on_node(
        *(
            shared(f"d{at}", memory=memory, cores=cores) if of_many else device(f"d{at}")
            for at, (memory, cores, of_many) in enumerate(sizes)
        ),
        shares=[share("d0", 0, memory=1)],
    )
    requests = (
        tuple(some(memory=m, cores=c) if m or c else exactly() for m, c in either)
        for either in asked
    )
    pod = (claim(*requests),)
    bound, count, in_use = node.most(pod, RULES), 0, node.in_use
    while count < 50:
        found = allocate(pod, node.pools, in_use, RULES, StepBudget(1000))
        if not isinstance(found, Allocated):
            break
        in_use, count = in_use.plus(found.given), count + 1
    assert count <= bound


def test_a_share_of_a_partition_needs_no_counters_where_another_share_has_them() -> None:
    whole = partition("p", memory=4)
    content = replace(whole.content, allow_multiple_allocations=True)
    part = replace(whole, content=content, capacities=(Capacity("memory", 3),))
    slices = slice_of([part, partition("other", memory=4)], "a", of=2), counters("a", gpu_0=4, of=2)
    pod = (claim(some(memory=1)),)
    node = node_devices(*slices, shares=[share("p", 0, memory=1)])
    assert node.most(pod, RULES) == 2
    assert node.equal_pods(pod, 9, RULES, StepBudget(1000)).number == 2
