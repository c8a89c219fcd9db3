"""Why does the surplus of a gang wait that was admitted, or runs already?"""

from dataclasses import replace

from scheduling.cycle import Settings, next_cycle, run_cycle
from scheduling.model.gang import PendingGang, Topology
from scheduling.model.holder import Holder
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.state.holder_index import HolderIndex, Holders
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import NodeTable
from tests.builders import GPU, columns, gang, group, node, shape
from tests.scheduling.admission.test_gang_topology import (
    RACKED,
    WORKER,
    ZONE,
    racked,
    replicas,
    required,
    zoned,
)
from tests.scheduling.admission.test_interdependent import HOST, ZONES, asking, minding, term
from tests.scheduling.placement.test_independent import PAIRED, PAIRING

CPU = shape(cpu=1)


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
    apart = minding(apart=[term("w", HOST)])
    asked = asking(group("w", 3, apart), surplus=((group("w", 1, apart),),) * 4)
    found = refusal(asked, ZONES)
    assert found.reason is Reason.NO_FEASIBLE_NODE
    assert found.message.startswith("0 of 1 w fits: required affinity between the gang's own pods")


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
        decisions, memory = next_cycle([asked], table.snapshot(), memory)
        found.append(decisions[0].verdict)
    _, second, third = found
    assert all(isinstance(each, Admitted) for each in found)
    assert second.left_out is third.left_out  # type: ignore[union-attr]
    assert memory is not None
    assert memory.kept == 1

    table.put_node(node("b", cpu=1))
    decisions, memory = next_cycle([asked], table.snapshot(), memory)
    assert isinstance(decisions[0].verdict, Admitted)
    assert decisions[0].verdict.units == (0, 1)
    assert decisions[0].verdict.left_out is not second.left_out  # type: ignore[union-attr]
    assert memory.kept == 0
    more, _ = next_cycle([grows(2, name="g")], table.snapshot(), memory)
    assert isinstance(more[0].verdict, Admitted)
    assert more[0].verdict.left_out is None


def test_those_who_hold_the_room_are_named() -> None:
    world: list[Node] = [node("a", cpu=4)]
    table, holders = NodeTable(), HolderIndex()
    for each in world:
        table.put_node(each)
    table.use("a", CPU.requests, +4)
    holders.use(Holder("Job", "team", "train"), "a", CPU.requests, +4)
    [decision], _ = next_cycle([grows(2)], table.snapshot(), None, holders=Holders(holders))
    assert isinstance(decision.verdict, Admitted)
    assert decision.verdict.left_out is not None
    assert decision.verdict.left_out.message.endswith("4 of 4 cpu are held by Job team/train")


def test_surplus_with_nowhere_to_be_together_is_no_reason_to_refuse_the_gang() -> None:
    asked = replace(grows(1), topology=Topology(("w",), required="rack"))
    assert refusal(asked, columns(node("a"))).reason is Reason.NO_FEASIBLE_NODE
