"""The sums of what passed pods take equal a count of each pod by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from extender.memory import in_flight_room
from extender.memory.in_flight_room import InFlightRoom, PassedPod
from scheduling.model.amounts import Amounts
from scheduling.model.node import Node
from scheduling.state.node_snapshot import NodeAttributes
from scheduling.state.node_table import node_snapshot_of

NAMES = tuple("abcdefghij")
RESOURCES = ("cpu", "gpu", "port")


def traits_of(names: frozenset[str]) -> NodeAttributes:
    return node_snapshot_of([Node(name, {}, (), False, {"cpu": 1}) for name in names]).traits


def everywhere(counted: InFlightRoom, resource: str, traits: NodeAttributes) -> Amounts | None:
    return counted.taken(resource, traits, np.arange(len(traits.names)))


@dataclass
class Plain:
    """The same, counted pod by pod and name by name."""

    pods: dict[str, tuple[Mapping[str, int], frozenset[str]]] = field(default_factory=dict)

    def taken(self, resource: str, node: str) -> int:
        return sum(
            amounts.get(resource, 0) for amounts, nodes in self.pods.values() if node in nodes
        )


class Counting(RuleBasedStateMachine):
    """Pods come and go, and so do nodes; a node that comes back still has its pods."""

    def __init__(self) -> None:
        super().__init__()
        self.traits = traits_of(frozenset(NAMES))
        self.room, self.plain = InFlightRoom(), Plain()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(in_flight_room, "FEW", 3)  # of ten nodes, one to three are few
        self.patch.setattr(in_flight_room, "LEAST_PLACES", 4)

    @rule(nodes=st.frozensets(st.sampled_from(NAMES)))
    def nodes_change(self, nodes: frozenset[str]) -> None:
        self.traits = traits_of(nodes)

    @rule(
        number=st.integers(0, 5),
        amounts=st.dictionaries(st.sampled_from(RESOURCES), st.integers(0, 3), max_size=3),
        nodes=st.frozensets(st.sampled_from(NAMES), min_size=1),
    )
    def pod_passes(self, number: int, amounts: dict[str, int], nodes: frozenset[str]) -> None:
        known = nodes & self.traits.index.keys()
        if known:
            uid = f"uid-{number}"
            at = np.array([self.traits.index[name] for name in known], dtype=np.intp)
            self.room.remove(uid)
            self.room.add(PassedPod(uid, tuple(amounts.items()), self.traits, at))
            self.plain.pods[uid] = amounts, known

    @rule(number=st.integers(0, 5))
    def pod_is_seen(self, number: int) -> None:
        self.room.remove(f"uid-{number}")
        self.plain.pods.pop(f"uid-{number}", None)

    @rule(resource=st.sampled_from(RESOURCES))
    def one_is_asked_for(self, resource: str) -> None:
        self.same(resource)

    @invariant()
    def all_pods_gone_leave_nothing(self) -> None:
        if not self.plain.pods:
            assert all(everywhere(self.room, each, self.traits) is None for each in RESOURCES)

    def same(self, resource: str) -> None:
        taken = everywhere(self.room, resource, self.traits)
        found = taken.tolist() if taken is not None else [0] * len(self.traits.names)
        assert found == [self.plain.taken(resource, name) for name in self.traits.names]

    def teardown(self) -> None:
        self.patch.undo()
        for resource in RESOURCES:
            self.same(resource)


TestCounting = Counting.TestCase


@given(st.integers(1, 3))
def test_sums_that_are_not_kept_are_made_again(kept: int) -> None:
    traits = traits_of(frozenset("a"))
    at = np.array([0], dtype=np.intp)
    amounts = tuple((f"resource-{i}", i + 1) for i in range(5))
    counted = InFlightRoom.of([PassedPod(f"uid-{i}", amounts, traits, at) for i in range(2)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_flight_room, "SUMS_KEPT", kept)
        for resource, amount in (*amounts, *reversed(amounts)):
            taken = everywhere(counted, resource, traits)
            assert taken is not None
            assert taken.tolist() == [2 * amount]


@pytest.mark.parametrize(("nodes", "least"), [(5000, 625), (1, 8)])
def test_what_a_pod_costs_is_a_bit_for_each_node_or_little(nodes: int, least: int) -> None:
    traits = traits_of(frozenset(f"node-{i:04}" for i in range(5000)))
    counted = InFlightRoom.of([PassedPod("uid", (("cpu", 1),), traits, np.arange(nodes))])
    (record,) = counted._records.values()
    assert sum(each.nbytes for each in (record.few, record.bits) if each is not None) == least
    taken = everywhere(counted, "cpu", traits)
    assert taken is not None
    assert taken.tolist() == [1] * nodes + [0] * (5000 - nodes)


def test_a_change_of_nodes_costs_no_look_at_the_pods_and_what_has_gone_is_given_up() -> None:
    names = [f"node-{i:04}" for i in range(1000)]
    first = traits_of(frozenset(names[:100]))
    counted = InFlightRoom.of([PassedPod("uid", (("cpu", 1),), first, np.arange(50, 100))])
    before = counted._records["uid"]
    for at in range(1, 901):
        traits = traits_of(frozenset(names[at : at + 100]))
        taken = everywhere(counted, "cpu", traits)
        assert taken is not None
        assert taken.tolist() == [50 <= number < 100 for number in range(at, at + 100)]
        assert at > 30 or counted._records["uid"] is before
        assert len(counted._places) <= 2 * (100 + 50) + 1
    back = everywhere(counted, "cpu", first)
    assert back is not None
    assert back.tolist() == [0] * 50 + [1] * 50
