"""Pools as a node sees them: what the tables of the real allocator do not ask of ours."""

from dataclasses import replace

from scheduling.devices.allocator import MAX_CLAIMS, TOO_MANY_CLAIMS, allocate
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import Allocated, NotAllocated, Outcome, Refusal, Unsupported
from scheduling.devices.pools import COUNTERS, SLICE_COUNTS
from scheduling.devices.steps import StepBudget
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.devices.resource_claim import ClaimSpec
from scheduling.model.devices.resource_slice import NodeAccess, ResourceSlice
from tests.scheduling.devices.builders import (
    RULES,
    claim,
    device,
    every,
    exactly,
    node_devices,
    on_node,
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


def counters(node: str) -> ResourceSlice:
    return replace(slice_of([], node, name=f"counters-{node}"), shared_counters=True)


def test_counters_of_another_node_leave_mode_all_open() -> None:
    """To 1.36 their pool is there on every node, and may be incomplete or invalid."""
    node = node_devices(slice_of([device("gpu")], "a"), counters("b"))
    assert names(outcome(node, ONE)) == ["gpu"]
    assert outcome(node, ALL) == Unsupported(COUNTERS)


def test_a_device_of_a_pool_with_counters_is_passed_over_never_taken() -> None:
    part = slice_of([device("part", type="X")], "a", of=2)
    node = node_devices(part, replace(counters("a"), slice_count=2))
    assert outcome(node, claim(exactly("type=X"))) == Unsupported(COUNTERS)
    assert outcome(node, claim(exactly("type=Y"))) == REFUSED
    assert outcome(node, claim(exactly("error"))) == Unsupported(COUNTERS), "it may be invalid"


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
