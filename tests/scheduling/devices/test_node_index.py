"""What is kept of the devices of nodes is what would be worked out anew."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.features import DEFAULT_FEATURES
from scheduling.model.devices.resource_claim import (
    ClaimSpec,
    DeviceClass,
    DeviceRequest,
    Request,
)
from scheduling.model.devices.resource_slice import DeviceID, ResourceSlice
from scheduling.model.node import Node
from tests.scheduling.devices.builders import DRIVER, TextSelectors, device, slice_of

NODES = tuple(Node(name, {}, (), False, {}) for name in "abc")
CLASSES = {"gpu": DeviceClass("gpu"), "big": DeviceClass("big", ("size=big",))}
KINDS = tuple(
    (ClaimSpec((Request("r", DeviceRequest("r", of_class, selectors)),)),)
    for of_class in CLASSES
    for selectors in ((), ("zone=x",))
)
RULES = Rules(CLASSES, TextSelectors(), DEFAULT_FEATURES)
OTHER_RULES = Rules({"gpu": CLASSES["gpu"]}, TextSelectors(), DEFAULT_FEATURES)

VERSIONS: dict[str, list[ResourceSlice]] = {
    node.name: [
        slice_of([device("d0", size="big"), device("d1", zone="x")], node.name),
        slice_of([device("d0", size="big"), device("d1", tainted=True)], node.name),
        slice_of([device("d0")], node.name, generation=2, of=2),
    ]
    for node in NODES
}
SHARED = slice_of([device("s0", size="big")])

moments = st.lists(
    st.tuples(
        st.tuples(*(st.sampled_from([None, 0, 1, 2]) for _ in NODES)),
        st.booleans(),
        st.sets(st.sampled_from([(n.name, d) for n in NODES for d in ("d0", "d1")])),
        st.sampled_from([RULES, OTHER_RULES]),
    ),
    min_size=2,
    max_size=5,
)


def facts_of(moment: tuple[object, ...], edition: int) -> DeviceFacts:
    versions, shared, taken, rules = moment
    slices = [
        VERSIONS[node.name][at]
        for node, at in zip(NODES, versions, strict=True)  # type: ignore[call-overload]
        if at is not None
    ]
    ids = [DeviceID(DRIVER, *each) for each in sorted(taken)]  # type: ignore[call-overload]
    assert isinstance(rules, Rules)
    return DeviceFacts([*slices, *([SHARED] if shared else [])], ids, rules, edition)


def looked_at(index: NodeDevicesIndex) -> list[object]:
    """All that is told of each node, and which nodes are alike to each kind of pods."""
    steps, at = StepBudget(10_000), np.arange(len(NODES))
    told: list[object] = []
    for node in NODES:
        found = index.of(node)
        patterns = [found.pattern((kind,), index.rules, steps) for kind in KINDS]
        most = [found.most(kind, index.rules) for kind in KINDS]
        told.append((found.pools, found.in_use, patterns, most, found.by_class(index.rules)))
    for kind in KINDS:
        numbers = index.alike((kind,), NODES, at, steps).tolist()
        told.append([numbers.index(each) for each in numbers])
    return told


@given(moments)
def test_what_is_kept_is_what_would_be_worked_out_anew(found: list[tuple[object, ...]]) -> None:
    """Slices come, go and change, devices are taken and freed, classes go."""
    index: NodeDevicesIndex | None = None
    for edition, moment in enumerate(found):
        facts = facts_of(moment, edition)
        index = NodeDevicesIndex(facts) if index is None else index.renewed(facts)
        assert looked_at(index) == looked_at(NodeDevicesIndex(facts))


@given(moments, st.sets(st.sampled_from([(n.name, d) for n in NODES for d in ("d0", "d1")])))
def test_devices_that_are_given_back_are_free_as_if_they_had_never_been_taken(
    found: list[tuple[object, ...]], freed: set[tuple[str, str]]
) -> None:
    names = {node.name: at for at, node in enumerate(NODES)}
    ids = frozenset(DeviceID(DRIVER, *each) for each in freed)
    for at, moment in enumerate(found):
        facts = facts_of(moment, at)
        index = NodeDevicesIndex(facts)
        before = looked_at(index), index.numbers_on(NODES, names).tolist()
        given_back = index.without_taken(ids)
        anew = NodeDevicesIndex(replace(facts, taken=[e for e in facts.taken if e not in ids]))
        assert looked_at(given_back) == looked_at(anew)
        assert (
            given_back.numbers_on(NODES, names).tolist() == anew.numbers_on(NODES, names).tolist()
        )
        assert (looked_at(index), index.numbers_on(NODES, names).tolist()) == before
