"""Which units of a surplus are placed, and why the others wait."""

from collections.abc import Hashable, Sequence
from dataclasses import replace

import pytest

from scheduling.admission.surplus import Stopped, Unit, place_surplus
from scheduling.cycle import NodeFacts, Settings, next_cycle, run_cycle
from scheduling.diagnosis.causes import AwaitsBinding, Cause
from scheduling.diagnosis.explain import explain
from scheduling.model.gang import PendingGang, Topology
from scheduling.model.holder import Holder
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.queueing.queues import one_queue
from scheduling.state.holder_index import HolderIndex, Holders
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import NodeTable
from tests.builders import GPU, columns, gang, group, node, shape
from tests.scheduling.admission.test_gang_topology import WORKER, ZONE, required, zoned
from tests.scheduling.admission.test_interdependent import HOST, ZONES, asking, constrained, term
from tests.scheduling.admission.test_replica_topology import RACKED, racked, replicas
from tests.scheduling.placement.test_independent import PAIRED, PAIRING

CPU = shape(cpu=1)


# ---- the loop


class Slots:
    """Places units of each pod set as long as it has slots, `most` at once; notes the attempts."""

    def __init__(self, most: int, **slots: int) -> None:
        self.most, self.left = most, slots
        self.attempts: list[tuple[str, int]] = []

    def kind(self, unit: Unit) -> Hashable:
        return unit[0].pod_set

    def at_once(self, _: Unit, most: int) -> int:
        return min(most, self.most)

    def place(self, units: Sequence[Unit]) -> Cause | None:
        name = units[0][0].pod_set
        self.attempts.append((name, len(units)))
        if self.left[name] < len(units):
            return AwaitsBinding()
        self.left[name] -= len(units)
        return None


def units(names: str) -> tuple[Unit, ...]:
    return tuple((group(name, 1, CPU),) for name in names)


def test_equal_neighbours_are_placed_at_once_and_else_half_as_many() -> None:
    slots = Slots(8, a=3, b=1)
    found = place_surplus(units("aaaab"), slots)
    assert found.units == (0, 1, 2, 4)
    assert found.stopped == Stopped(units("a")[0], AwaitsBinding())
    assert slots.attempts == [("a", 4), ("a", 2), ("a", 2), ("a", 1), ("a", 1), ("b", 1)]


def test_a_kind_of_which_one_does_not_fit_is_not_tried_again() -> None:
    slots = Slots(1, a=1, b=2)
    found = place_surplus(units("aabab"), slots)
    assert found.units == (0, 2, 4)
    assert slots.attempts == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]


def test_nothing_is_said_of_a_surplus_that_is_placed_whole() -> None:
    assert place_surplus(units("ab"), Slots(1, a=1, b=1)) == ((0, 1), None)
    assert place_surplus((), Slots(1)) == ((), None)


# ---- why units wait


def grows(units: int, of: PodShape = CPU, name: str = "g") -> PendingGang:
    """A gang that runs and asks for more workers."""
    return gang(name, surplus=((group("w", 1, of),),) * units)


def left_out(
    asked: PendingGang, on: NodeSnapshot, settings: Settings | None = None
) -> Refusal | None:
    [decision] = run_cycle([asked], on, settings)
    assert isinstance(decision.verdict, Admitted)
    return decision.verdict.left_out


def refusal(asked: PendingGang, on: NodeSnapshot) -> Refusal:
    found = left_out(asked, on)
    assert found is not None
    return found


def test_what_has_its_place_needs_no_reason() -> None:
    assert left_out(grows(4), columns(node("a", cpu=4))) is None
    assert left_out(gang("g", group("w", 1, CPU)), columns(node("a", cpu=4))) is None


def test_what_waits_is_counted_beside_what_was_placed() -> None:
    found = refusal(grows(5), columns(node("a", cpu=2), node("b", cpu=64, unschedulable=True)))
    assert found.reason is Reason.INSUFFICIENT_RESOURCES
    assert found.message.startswith("0 of 3 w fit: each needs 1 cpu on one node")
    assert "1 is cordoned" in found.message
    assert [(each.pod_set, each.fit, each.wanted) for each in found.pod_sets] == [("w", 0, 3)]
    nowhere = refusal(grows(1, shape(selector={"pool": "x"})), columns(node("a")))
    assert nowhere.reason is Reason.NO_FEASIBLE_NODE


def test_surplus_of_which_the_search_was_given_up_is_undecided() -> None:
    asked = gang("g", surplus=(tuple(PAIRED),))
    found = left_out(asked, columns(*PAIRING), Settings(search_steps=0))
    assert found is not None
    assert found.reason is Reason.UNDECIDED


def test_surplus_that_keeps_apart_says_so() -> None:
    apart = constrained(anti_affinity=[term("w", HOST)])
    asked = asking(group("w", 3, apart), surplus=((group("w", 1, apart),),) * 4)
    found = refusal(asked, ZONES)
    assert found.reason is Reason.NO_FEASIBLE_NODE
    assert found.message.startswith("0 of 1 w fits: required affinity or anti-affinity between")


def test_surplus_that_is_held_to_a_domain_names_it() -> None:
    nodes = columns(*zoned("a", 8, 8), *zoned("b", 8, 8, 8))
    asked = grows(3, WORKER)
    unit = (group("workers", 1, WORKER),)
    asked = replace(asked, surplus=(unit,) * 3, topology=required("rack"))
    assert refusal(asked, nodes).message.startswith("no node has the label rack")
    asked = replace(asked, topology=required(ZONE, "a-0"))
    found = refusal(asked, nodes)
    assert found.message.startswith(f"the workers must be in {ZONE} a: 0 of 1 workers fit")
    full = columns(*zoned("a", 8), *zoned("b", 8, 8, 8), used={"a-0": {GPU: 8}})
    found = refusal(asked, full)
    assert found.message.startswith(f"the workers must be in {ZONE} a: 0 of 3 workers fit")


def test_replicas_that_no_domain_holds_say_so() -> None:
    nodes = columns(*racked("a", 8, 8), *racked("b", 8), *racked("c", 8))
    units = tuple((each,) for each in replicas(3))
    asked = replace(gang("g", surplus=units), topology=RACKED)
    assert refusal(asked, nodes).message == (
        "no single rack has room for any of 2 more replicas of workers"
    )


# ---- across cycles


def test_a_reason_is_kept_while_gang_and_nodes_are_the_same() -> None:
    """Many gangs could always grow: they are explained once, not in each cycle."""
    table = NodeTable()
    table.put_node(node("a", cpu=4))
    asked, memory = grows(9), None
    found = []
    for use in (3_000, 0, 0):
        table.use("a", (("cpu", use),), +1)
        decisions, memory = next_cycle(one_queue([asked]), table.snapshot(), memory)
        found.append(decisions[0].verdict)
    _, second, third = found
    assert all(isinstance(each, Admitted) for each in found)
    assert second.left_out is third.left_out  # type: ignore[union-attr]
    assert memory is not None
    assert memory.kept == 1

    table.put_node(node("b", cpu=1))
    decisions, memory = next_cycle(one_queue([asked]), table.snapshot(), memory)
    assert isinstance(decisions[0].verdict, Admitted)
    assert decisions[0].verdict.units == (0, 1)
    assert decisions[0].verdict.left_out is not second.left_out  # type: ignore[union-attr]
    assert memory.kept == 0
    more, _ = next_cycle(one_queue([grows(2, name="g")]), table.snapshot(), memory)
    assert isinstance(more[0].verdict, Admitted)
    assert more[0].verdict.left_out is None


@pytest.mark.parametrize("topology", [None, required(ZONE), Topology(("workers",), replica=ZONE)])
def test_surplus_that_waits_is_explained_once_and_not_in_each_cycle(
    topology: Topology | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(cause: Cause) -> Refusal:
        asked.append(type(cause).__name__)
        return explain(cause)

    monkeypatch.setattr("scheduling.decision.reasons.explain", counted)
    table = NodeTable()
    for each in zoned("a", 8):
        table.put_node(each)
    unit = (group("workers", 1, shape(gpu=9)),)
    gangs = [replace(gang(f"g{at}", surplus=(unit,)), topology=topology) for at in range(3)]
    _, memory = next_cycle(one_queue(gangs), table.snapshot(), None)
    assert len(asked) == 3
    decisions, _ = next_cycle(one_queue(gangs), table.snapshot(), memory)
    assert len(asked) == 3
    assert all(isinstance(each.verdict, Admitted) for each in decisions)


def test_the_holders_of_the_room_are_named() -> None:
    world: list[Node] = [node("a", cpu=4)]
    table, holders = NodeTable(), HolderIndex()
    for each in world:
        table.put_node(each)
    table.use("a", CPU.requests, +4)
    holders.use(Holder("Job", "team", "train"), "a", CPU.requests, +4)
    [decision], _ = next_cycle(
        one_queue([grows(2)]), table.snapshot(), None, facts=NodeFacts(Holders(holders))
    )
    assert isinstance(decision.verdict, Admitted)
    assert decision.verdict.left_out is not None
    assert decision.verdict.left_out.message.endswith("4 of 4 cpu are held by Job team/train")


def test_surplus_with_nowhere_to_be_together_is_no_reason_to_refuse_the_gang() -> None:
    asked = replace(grows(1), topology=Topology(("w",), required="rack"))
    assert refusal(asked, columns(node("a"))).reason is Reason.NO_FEASIBLE_NODE
