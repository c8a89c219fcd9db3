"""Pools as a node sees them: what the tables of the real allocator do not ask of ours."""

from collections.abc import Hashable
from dataclasses import replace

from scheduling.devices.allocator import MAX_CLAIMS, TOO_MANY_CLAIMS, allocate
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import Allocated, NotAllocated, Outcome, Refusal, Unsupported
from scheduling.devices.pools import (
    COUNTERS,
    COUNTERS_OF_ONE_NAME,
    DEVICES_BESIDE_COUNTERS,
    SLICE_COUNTS,
    SliceIndex,
    gather_pools,
)
from scheduling.devices.steps import StepBudget
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.devices.features import DEFAULT_FEATURES
from scheduling.model.devices.in_use import NOTHING
from scheduling.model.devices.resource_claim import ClaimSpec
from scheduling.model.devices.resource_slice import NodeAccess
from scheduling.model.node import Node
from tests.scheduling.devices.builders import (
    RULES,
    claim,
    counters,
    device,
    every,
    exactly,
    node_devices,
    on_node,
    partition,
    slice_of,
)

ONE = claim(exactly())
ALL = claim(every())
REFUSED = NotAllocated(Refusal.NO_DEVICES)


def outcome(node: NodeDevices, *claims: ClaimSpec) -> Outcome:
    return allocate(claims, node.pools, node.in_use, RULES, StepBudget(100_000))


def names(found: Outcome) -> list[str]:
    assert isinstance(found, Allocated)
    return [each.device.device for one in found.claims for each in one]


def test_slices_are_tried_by_name_and_devices_as_they_lie() -> None:
    late = slice_of([device("d"), device("c")], "a", name="2", of=2)
    early = slice_of([device("b"), device("a")], "a", name="1", of=2)
    assert names(outcome(node_devices(late, early), ALL)) == ["b", "a", "d", "c"]


def test_a_generation_without_devices_for_the_node_hides_the_older_one() -> None:
    old = slice_of([device("old")], "a", name="old", of=2)
    elsewhere = replace(
        slice_of([device("new")], "a", name="new", generation=2), access=NodeAccess(node_name="b")
    )
    assert outcome(node_devices(old, elsewhere), ALL) == REFUSED


def test_an_incomplete_pool_is_passed_over_and_refuses_all() -> None:
    part = node_devices(slice_of([device("part")], "a", of=2))
    assert outcome(part, ONE) == REFUSED
    assert outcome(part, ALL) == NotAllocated(Refusal.POOL_INCOMPLETE, "gpu.example.com/a")


def test_slices_that_differ_in_their_number_are_unsupported() -> None:
    """kube-scheduler takes the number of the one that it happens to see first."""
    one, two = slice_of([device("a")], "a", name="1", of=1), slice_of([], "a", name="2", of=2)
    assert outcome(node_devices(one, two), ONE) == Unsupported(SLICE_COUNTS)


def test_counters_of_another_node_matter_to_mode_all_where_their_pool_is_broken() -> None:
    """To 1.36 such a pool is there on every node, to 1.37 on its own."""
    gpu = slice_of([device("gpu")], "a")
    assert names(outcome(node_devices(gpu, counters("b", gpu_0=40)), ALL)) == ["gpu"]
    node = node_devices(gpu, counters("b", gpu_0=40, of=2))
    assert names(outcome(node, ONE)) == ["gpu"]
    assert outcome(node, ALL) == Unsupported(COUNTERS)


HALVES = [partition(name, memory=20, type="half") for name in ("half-0", "half-1")]
PARTS = [partition("whole", memory=40, type="whole"), *HALVES]
HALF, WHOLE = claim(exactly("type=half")), claim(exactly("type=whole"))


def gpu(*in_use: str, memory: int = 40) -> NodeDevices:
    return node_devices(
        slice_of(PARTS, "a", of=2), counters("a", gpu_0=memory, of=2), in_use=in_use
    )


def test_partitions_take_room_of_each_other() -> None:
    assert names(outcome(gpu(), WHOLE)) == ["whole"]
    assert names(outcome(gpu(), HALF, HALF)) == ["half-0", "half-1"]
    assert outcome(gpu(), HALF, WHOLE) == outcome(gpu("half-1"), WHOLE) == REFUSED
    assert names(outcome(gpu("half-0"), HALF)) == ["half-1"]
    assert outcome(gpu("whole"), HALF) == REFUSED


def test_a_choice_that_is_undone_gives_its_counters_back() -> None:
    assert names(outcome(gpu(), ONE, ONE)) == ["half-0", "half-1"], "the whole came first"


def test_counters_that_devices_in_use_exceed_leave_nothing() -> None:
    assert outcome(gpu("whole", memory=30), HALF) == REFUSED


def test_devices_that_consume_unknown_counters_make_the_pool_invalid() -> None:
    for known in ({}, {"gpu_1": 40}):
        node = node_devices(slice_of(PARTS, "a", of=2), counters("a", of=2, **known))
        assert outcome(node, HALF) == NotAllocated(Refusal.POOL_INVALID, "gpu.example.com/a")


def test_a_set_of_counters_that_is_there_twice_makes_the_pool_invalid() -> None:
    sets = [replace(counters("a", gpu_0=40, of=3), name=name) for name in "xy"]
    node = node_devices(slice_of(PARTS, "a", of=3), *sets)
    assert outcome(node, HALF) == NotAllocated(Refusal.POOL_INVALID, "gpu.example.com/a")


def test_counters_that_several_nodes_share_are_not_judged() -> None:
    mine = slice_of([partition("part", memory=20, type="X")], "a", of=3)
    others = replace(mine, name="b", access=NodeAccess(node_name="b"))
    node = node_devices(mine, others, counters("a", gpu_0=40, of=3))
    assert outcome(node, claim(exactly("type=X"))) == Unsupported(COUNTERS)
    assert outcome(node, claim(exactly("type=Y"))) == REFUSED
    assert outcome(node, claim(exactly("error"))) == Unsupported(COUNTERS), "it may be invalid"


def test_counters_of_two_drivers_in_pools_of_one_name_are_not_judged() -> None:
    """1.36 keeps them by the name of the pool alone."""
    mine = [slice_of(PARTS, "a", of=2), counters("a", gpu_0=40, of=2)]
    theirs = [replace(each, driver="nic.example.com") for each in mine]
    assert outcome(node_devices(*mine, *theirs), HALF) == Unsupported(COUNTERS_OF_ONE_NAME)


def test_without_the_gate_no_device_with_counters_is_allocated() -> None:
    off = replace(DEFAULT_FEATURES, partitionable_devices=False)
    slices = SliceIndex([slice_of(PARTS, "a")])
    pools = gather_pools(Node("a", {}, (), False, {}), slices, off)
    rules = replace(RULES, features=off)
    assert allocate([HALF], pools, NOTHING, rules, StepBudget(1000)) == REFUSED


def test_nodes_with_other_partitions_are_not_alike() -> None:
    def pattern(memory: int, part: int) -> Hashable:
        parts = slice_of([partition("part", memory=part, type="half")], "a", of=2)
        node = node_devices(parts, counters("a", gpu_0=memory, of=2))
        return node.pattern([(HALF,)], RULES, StepBudget(1000))

    assert pattern(40, 20) == pattern(40, 20)
    assert len({pattern(40, 20), pattern(10, 20), pattern(40, 10)}) == 3


def test_nodes_whose_partitions_are_of_other_pools_are_not_alike() -> None:
    """Of two pools with room for one partition each a node holds two pods, of one pool one."""

    def split(at: int) -> NodeDevices:
        parts = [partition(f"part-{each}", memory=10, type="half") for each in range(3)]
        pools = ((parts[:at], "one"), (parts[at:], "two"))
        slices = [
            replace(each, pool=name, name=f"{name}-{each.name}")
            for of, name in pools
            for each in (slice_of(of, "a", of=2), counters("a", gpu_0=10, of=2))
        ]
        return node_devices(*slices)

    patterns = {split(at).pattern([(HALF,)], RULES, StepBudget(1000)) for at in (1, 3)}
    assert len(patterns) == 2


def test_devices_beside_counters_in_one_slice_are_not_judged() -> None:
    """1.34 allowed that behind a gate; later versions pass over such devices."""
    both = replace(counters("a", gpu_0=40), devices=tuple(HALVES))
    assert outcome(node_devices(both), HALF) == Unsupported(DEVICES_BESIDE_COUNTERS)


def test_nodes_are_selected_by_label_and_by_name() -> None:
    def reached(term: NodeTerm) -> bool:
        access = NodeAccess(node_selector=(term,))
        node = node_devices(replace(slice_of([device("far")]), access=access))
        return bool(node.usable)

    assert reached(NodeTerm(fields=(Requirement("metadata.name", "In", ("a",)),)))
    assert not reached(NodeTerm(fields=(Requirement("metadata.name", "NotIn", ("a",)),)))
    assert reached(NodeTerm((Requirement("zone", "DoesNotExist", ()),)))
    assert not reached(NodeTerm((Requirement("zone", "Exists", ()),)))
    assert not reached(NodeTerm())


def test_as_many_claims_are_judged_as_the_search_is_deep() -> None:
    node = on_node(*(device(f"gpu-{at}") for at in range(32 * MAX_CLAIMS)))
    largest = claim(*(exactly() for _ in range(32)))
    assert len(names(outcome(node, *[largest] * MAX_CLAIMS))) == 32 * MAX_CLAIMS
    assert outcome(node, *[ONE] * (MAX_CLAIMS + 1)) == Unsupported(TOO_MANY_CLAIMS)
