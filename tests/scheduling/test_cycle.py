"""One cycle over the waiting gangs."""

from dataclasses import replace

import pytest

from scheduling.cycle import Settings, next_cycle, run_cycle
from scheduling.model.gang import PendingGang
from scheduling.model.placement import Assignment
from scheduling.model.verdict import Admitted, Reason, Refusal
from scheduling.queueing.queues import one_queue
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import NodeTable
from tests.builders import columns, gang, group, node, shape
from tests.scheduling.placement.test_independent import PAIRED, PAIRING

CPU = shape(cpu=1)


def answers(world: NodeSnapshot, *gangs: PendingGang) -> dict[str, str]:
    """Return per gang, in the order decided, its reason or "Admitted"."""
    return {
        decision.key.name: decision.verdict.reason
        if isinstance(decision.verdict, Refusal)
        else "Admitted"
        for decision in run_cycle(gangs, world)
    }


def admitted(world: NodeSnapshot, one: PendingGang) -> Admitted:
    [decision] = run_cycle([one], world)
    assert isinstance(decision.verdict, Admitted)
    return decision.verdict


def test_two_clusters_that_do_not_both_fit_never_each_hold_half() -> None:
    """Head and four workers of one cpu, twice, on one node of eight."""
    pair = [
        gang(name, group("head", 1, CPU), group("workers", 4, CPU), created=at)
        for at, name in enumerate(("first", "second"))
    ]
    assert answers(columns(node("n", cpu=8)), *pair) == {
        "first": "Admitted",
        "second": Reason.INSUFFICIENT_RESOURCES,
    }


def test_a_refused_gang_does_not_block_those_behind_it() -> None:
    """The built-in queue is best effort."""
    large = gang("large", group("w", 9, CPU), created=1)
    small = gang("small", group("w", 2, CPU), created=2)
    assert answers(columns(node("n", cpu=8)), small, large) == {
        "large": Reason.NEVER_FITS,
        "small": "Admitted",
    }


def test_a_gang_without_pods_is_admitted() -> None:
    """A suspended cluster asks for nothing."""
    assert admitted(columns(), gang("empty")).placement.assignments == ()


def test_an_unsupported_shape_is_refused_by_the_name_of_its_constraint() -> None:
    """In the surplus as well; room makes no difference."""
    odd = shape(unsupported=("podAffinity", "volumes"))
    for one in (
        gang("a", group("head", 1, CPU), group("w", 1, odd)),
        gang("a", group("head", 1, CPU), surplus=((group("w", 1, odd),),)),
    ):
        [decision] = run_cycle([one], columns(node("n")))
        assert decision.verdict == Refusal(
            Reason.UNSUPPORTED, "not supported by Muster; w: podAffinity, volumes"
        )


def test_a_placement_names_pod_sets_replicas_shapes_and_nodes() -> None:
    """Replicas of equal pods are handed out in order of name, node after node."""
    host = shape(gpu=8)
    one = gang(
        "tpu", group("head", 1, CPU), *(group("w", 2, host, replica=f"r{at}") for at in (1, 0))
    )
    nodes = [node(f"n{at}", gpu=8) for at in range(4)]
    placement = admitted(columns(*nodes), one).placement
    assert placement.assignments == (
        Assignment("head", "", CPU.key, CPU.requests, (("n0", 1),)),
        Assignment("w", "r0", host.key, host.requests, (("n0", 1), ("n1", 1))),
        Assignment("w", "r1", host.key, host.requests, (("n2", 1), ("n3", 1))),
    )


def test_several_shapes_in_one_pod_set_are_placed_together() -> None:
    """A webhook that changed some of the pods makes two groups of one pod set."""
    one = gang("a", group("w", 1, CPU), group("w", 1, shape(cpu=2)))
    placement = admitted(columns(node("n", cpu=3)), one).placement
    assert [(a.pod_set, a.nodes) for a in placement.assignments] == [("w", (("n", 1),))] * 2


def test_surplus_fills_what_the_minimum_leaves() -> None:
    """Equal single pods are placed at once, into the same assignment as the minimum."""
    unit = (group("w", 1, CPU),)
    verdict = admitted(
        columns(node("n", cpu=5)), gang("a", group("w", 2, CPU), surplus=(unit,) * 9)
    )
    assert verdict.surplus == 3
    assert [a.nodes for a in verdict.placement.assignments] == [(("n", 5),)]


def test_a_unit_that_does_not_fit_lets_smaller_ones_pass() -> None:
    """Units are whole; which of them were placed is said by position."""
    units = tuple((group("w", n, CPU, replica=f"r{at}"),) for at, n in enumerate((2, 5, 1)))
    verdict = admitted(columns(node("n", cpu=4)), gang("a", group("head", 1, CPU), surplus=units))
    assert verdict.units == (0, 2)
    assert [a.replica for a in verdict.placement.assignments] == ["", "r0", "r2"]


def test_a_unit_of_two_shapes_is_whole_too() -> None:
    """One of its shapes fits twice, both together once."""
    unit = (group("w", 1, CPU, replica="r"), group("v", 1, shape(gpu=1), replica="r"))
    world = columns(node("n", cpu=8, gpu=1))
    verdict = admitted(world, gang("a", group("head", 1, CPU), surplus=(unit, unit)))
    assert verdict.units == (0,)


def test_a_search_that_runs_out_is_undecided() -> None:
    """The gang waits; nothing is claimed about it."""
    [decision] = run_cycle([gang("a", *PAIRED)], columns(*PAIRING), Settings(search_steps=0))
    assert isinstance(decision.verdict, Refusal)
    assert decision.verdict.reason == Reason.UNDECIDED
    assert "search limit" in decision.verdict.message


def paired(pool: str) -> PendingGang:
    """A gang that only the search can place, on nodes of its own."""
    of = {cpu: shape(cpu=cpu, selector={"pool": pool}) for cpu in (4, 3)}
    return gang(pool, group("x", 2, of[4]), group("y", 2, of[3]))


def test_the_steps_of_a_cycle_are_shared_by_its_gangs() -> None:
    """The first search leaves too few for the second, which is then Undecided, not refused."""
    world = columns(
        *(
            node(f"{pool}-{at}", cpu=cpu, labels={"pool": pool})
            for pool in "ab"
            for at, cpu in enumerate((8, 6))
        )
    )
    gangs = [paired("a"), paired("b")]
    assert answers(world, *gangs) == {"a": "Admitted", "b": "Admitted"}
    decisions = run_cycle(gangs, world, Settings(cycle_search_steps=4_000))
    assert [isinstance(each.verdict, Admitted) for each in decisions] == [True, False]
    assert isinstance(decisions[1].verdict, Refusal)
    assert decisions[1].verdict.reason == Reason.UNDECIDED


def test_equal_input_gives_equal_output() -> None:
    """Decisions are values; two runs agree word for word."""
    gangs = [gang(f"g{at}", group("h", 1, CPU), group("w", 3, shape(cpu=2))) for at in range(5)]
    world = columns(node("a", cpu=9), node("b", cpu=9, gpu=1))
    assert run_cycle(gangs, world) == run_cycle(gangs[::-1], world)


def test_numbers_are_old_once_nodes_changed_or_another_gang_took_room() -> None:
    """Who is decided anew has numbers of now."""
    table = NodeTable()
    table.put_node(node("n", cpu=8))
    table.use("n", (("cpu", 2_000),), +1)
    waits = [gang(name, group("w", 8, CPU), created=at) for at, name in enumerate("ab")]
    old, memory = [], None
    for pending in (waits, waits, [*waits, gang("c", group("w", 1, CPU), created=9)], waits):
        _, memory = next_cycle(one_queue(pending), table.snapshot(), memory)
        old.append({key.name for key in memory.old})
    assert old == [set(), set(), {"a", "b"}, {"a", "b"}]
    [first, _] = waits
    _, memory = next_cycle(
        one_queue(waits), table.snapshot(), memory.without({first.key}) if memory else None
    )
    assert {key.name for key in memory.old} == {"b"}
    _, memory = next_cycle(
        one_queue(waits), table.snapshot(), memory.without({each.key for each in waits})
    )
    assert not memory.old
    table.use("n", (("cpu", 1_000),), +1)
    _, memory = next_cycle(one_queue(waits), table.snapshot(), memory)
    assert {key.name for key in memory.old} == {"a", "b"}


def test_numbers_are_old_where_the_last_cycle_gave_room_to_a_gang_that_is_gone() -> None:
    """What the cycle gave was never taken: the nodes are as before, and more is free than told."""
    table = NodeTable()
    table.put_node(node("n", cpu=8))
    table.use("n", (("cpu", 1_000),), +1)
    given, waits = (
        gang(name, group("w", count, CPU), created=at)
        for at, (name, count) in enumerate((("c", 2), ("a", 8)))
    )
    first, memory = next_cycle(one_queue([given, waits]), table.snapshot(), None)
    assert isinstance(first[0].verdict, Admitted)
    kept, memory = next_cycle(one_queue([waits]), table.snapshot(), memory)
    fresh = run_cycle([waits], table.snapshot())
    assert kept == first[1:]
    assert kept != fresh
    assert memory.old == {waits.key}
    renewed, memory = next_cycle(one_queue([waits]), table.snapshot(), memory.without({waits.key}))
    assert renewed == fresh
    assert not memory.old


def test_a_nomination_is_in_the_way_of_pods_up_to_its_priority() -> None:
    """The room it leaves to those above it is counted once, whoever comes before or after."""
    table = NodeTable()
    table.put_node(node("n", cpu=4))
    table.use("n", CPU.requests, +1)
    for priority, amount in ((5, 1), (9, 2)):
        held = shape(cpu=amount).requests
        table.use("n", held, +1)
        table.nominate("n", held, priority, +1)
    ask = gang("a", group("w", 1, CPU))
    fitting = {
        priority: explained(replace(ask, pod_priority=priority), table.snapshot())
        for priority in (4, 5, 6, 9, 10)
    }
    assert fitting == {4: 0, 5: 0, 6: 1, 9: 1, 10: 3}
    gangs = [replace(gang(name, group("w", 1, CPU)), pod_priority=10) for name in "abcd"]
    between = replace(gang("bb", group("w", 1, CPU)), pod_priority=5)
    found = answers(table.snapshot(), *gangs, between)
    short = Reason.INSUFFICIENT_RESOURCES
    assert found == dict.fromkeys("abc", "Admitted") | {"bb": short, "d": short}


def explained(one: PendingGang, world: NodeSnapshot) -> int:
    """Return how many of a hundred pods like those of the gang fit."""
    [many] = [replace(each, count=100) for each in one.minimum]
    [decision] = run_cycle([replace(one, minimum=(many,))], world)
    assert isinstance(decision.verdict, Refusal)
    return decision.verdict.pod_sets[0].fit


@pytest.mark.parametrize(
    ("cpus", "reason"), [(2, Reason.INSUFFICIENT_RESOURCES), (9, Reason.NEVER_FITS)]
)
def test_of_a_surplus_only_what_one_unit_needs_can_be_said_never_to_fit(
    cpus: int, reason: Reason
) -> None:
    """Units come one by one: that all of them are more than the nodes hold is no news."""
    units = tuple((group("w", 1, shape(cpu=cpus)),) for _ in range(9))
    asked = gang("a", group("head", 1, CPU), surplus=units)
    found = admitted(columns(node("n", cpu=8)), asked)
    assert found.left_out is not None
    assert found.left_out.reason is reason
