"""What is kept of the devices of nodes is what would be worked out anew."""

from dataclasses import fields, replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kube.devices.selectors import CelSelectors
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex
from scheduling.devices.node_sketch import TRAITS
from scheduling.devices.pools import by_pool
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.features import DEFAULT_FEATURES
from scheduling.model.devices.resource_claim import (
    ClaimSpec,
    DeviceClass,
    DeviceRequest,
    Request,
)
from scheduling.model.devices.resource_slice import Device, DeviceID, ResourceSlice
from scheduling.model.node import Node
from tests.scheduling.devices.builders import DRIVER, device, slice_of

NODES = tuple(Node(name, {}, (), False, {}) for name in "abc")
OF = f'device.attributes["{DRIVER}"]'
BIG, IN_ZONE = f'"size" in {OF} && {OF}.size == "big"', f'{OF}.zone == "x"'  # fails without a zone
CLASSES = {"gpu": DeviceClass("gpu"), "big": DeviceClass("big", (BIG,))}
KINDS = tuple(
    (ClaimSpec((Request("r", DeviceRequest("r", of_class, selectors)),)),)
    for of_class in CLASSES
    for selectors in ((), (IN_ZONE,))
)
RULES = Rules(CLASSES, CelSelectors(), DEFAULT_FEATURES)
OTHER_RULES = Rules({"gpu": CLASSES["gpu"]}, CelSelectors(), DEFAULT_FEATURES)

VERSIONS: dict[str, list[ResourceSlice]] = {
    node.name: [
        slice_of([device("d0", size="big", uuid=node.name), device("d1", zone="x")], node.name),
        slice_of([device("d0", size="big"), device("d1", tainted=True)], node.name),
        slice_of([device("d0")], node.name, generation=2, of=2),
    ]
    for node in NODES
}
SHARED = slice_of([device("s0", size="big")])

HANDED_OVER: dict[str, tuple[Node, ...]] = {
    "the same nodes": NODES,
    "in another tuple": (*NODES,),
    "read anew": tuple(map(replace, NODES)),
    "in another order": NODES[::-1],
    "one less": NODES[1:],
}

moments = st.lists(
    st.tuples(
        st.one_of(
            st.tuples(*(st.sampled_from([None, 0, 1, 2]) for _ in NODES)),
            st.sampled_from([(0, 0, 0), (0, 0, None), (0, 2, 1), (1, 0, 0)]),
        ),
        st.sampled_from([False, False, True]),
        st.sets(st.sampled_from([(n.name, d) for n in NODES for d in ("d0", "d1")])),
        st.sampled_from([RULES, RULES, OTHER_RULES]),
        st.sampled_from(["nothing", *HANDED_OVER]),
    ),
    min_size=2,
    max_size=5,
)


def facts_of(moment: tuple[object, ...], edition: int) -> DeviceFacts:
    versions, shared, taken, rules, _ = moment
    slices = [
        VERSIONS[node.name][at]
        for node, at in zip(NODES, versions, strict=True)  # type: ignore[call-overload]
        if at is not None
    ]
    ids = [DeviceID(DRIVER, *each) for each in sorted(taken)]  # type: ignore[call-overload]
    assert isinstance(rules, Rules)
    return DeviceFacts([*slices, *([SHARED] if shared else [])], by_pool(ids), rules, edition)


def looked_at(index: NodeDevicesIndex, nodes: tuple[Node, ...] = NODES) -> list[object]:
    """All that is told of each node, and which nodes are alike to each kind of pods."""
    steps, at = StepBudget(10_000), np.arange(len(nodes))
    told: list[object] = [index.numbers_on(nodes).tolist()]
    for node in nodes:
        found = index.of(node)
        patterns = [found.pattern((kind,), index.rules, steps) for kind in KINDS]
        most = [found.most(kind, index.rules) for kind in KINDS]
        told.append((found.pools, found.in_use, patterns, most, found.by_class(index.rules)))
    for kind in KINDS:
        numbers = index.alike((kind,), nodes, at, steps).tolist()
        told.append([numbers.index(each) for each in numbers])
        examples = [index.examples[each].pattern((kind,), index.rules, steps) for each in numbers]
        assert examples == [index.of(n).pattern((kind,), index.rules, steps) for n in nodes]
    return told


@given(moments)
def test_what_is_kept_is_what_would_be_worked_out_anew(found: list[tuple[object, ...]]) -> None:
    """Slices come, go and change, devices are taken and freed, classes go; not all is asked."""
    index: NodeDevicesIndex | None = None
    for edition, moment in enumerate(found):
        facts = facts_of(moment, edition)
        index = NodeDevicesIndex(facts) if index is None else index.renewed(facts)
        if moment[-1] != "nothing":
            nodes = HANDED_OVER[str(moment[-1])]
            assert looked_at(index, nodes) == looked_at(NodeDevicesIndex(facts), nodes)


@given(moments, st.sets(st.sampled_from([(n.name, d) for n in NODES for d in ("d0", "d1")])))
def test_devices_that_are_given_back_are_free_as_if_they_had_never_been_taken(
    found: list[tuple[object, ...]], freed: set[tuple[str, str]]
) -> None:
    ids = frozenset(DeviceID(DRIVER, *each) for each in freed)
    for at, moment in enumerate(found):
        facts = facts_of(moment, at)
        index = NodeDevicesIndex(facts)
        before = looked_at(index)
        given_back = index.without_taken(ids)
        left = {key: devices - ids for key, devices in facts.taken.items()}
        assert looked_at(given_back) == looked_at(NodeDevicesIndex(replace(facts, taken=left)))
        assert looked_at(index) == before


def test_a_sketch_has_all_of_a_device_but_what_selectors_see() -> None:
    """They see its content; of that only what they read matters."""
    of_device = {each.name for each in fields(Device)} - {"content"}
    assert {each for each in TRAITS if not each.startswith("content.")} == of_device
