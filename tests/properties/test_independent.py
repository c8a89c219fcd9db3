"""Whole-gang placement against trying everything."""

from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scheduling.cycle import run_cycle
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node
from scheduling.model.placement import Placement
from scheduling.model.pod import PodShape
from scheduling.model.verdict import MESSAGE_LIMIT, Admitted, Verdict
from scheduling.placement.exact_search import Found, Nothing, search
from scheduling.placement.independent import NoFit, Placed, Undecided, demand_of, place
from scheduling.state.node_table import node_snapshot_of
from tests.examples import examples
from tests.properties.strategies import USED, allowed, free_of, groups, nodes, possible

MANY_STEPS = 10**9
Used = dict[str, dict[str, int]]


def check(placement: Placement, wanted: list[Group], on: list[Node], used: Used) -> None:
    """Require a placement to be whole, and every pod to have room on a node that takes it."""
    by_name = {node.name: node for node in on}
    free = free_of(on, used)
    counts: dict[tuple[str, str, str], int] = {}
    for group in wanted:
        key = group.pod_set, group.replica, group.shape.key
        counts[key] = counts.get(key, 0) + group.count
    shapes = {group.shape.key: group.shape for group in wanted}
    for assignment in placement.assignments:
        key = assignment.pod_set, assignment.replica, assignment.shape
        assert counts.pop(key) == sum(pods for _, pods in assignment.nodes)
        for name, pods in assignment.nodes:
            assert pods > 0
            assert allowed(shapes[assignment.shape], by_name[name])
            for resource, amount in assignment.requests:
                free[name][resource] = free[name].get(resource, 0) - amount * pods
                assert free[name][resource] >= 0
    assert not counts


def gang(wanted: list[Group], surplus: tuple[tuple[Group, ...], ...] = ()) -> PendingGang:
    return PendingGang(GangKey("team", "a"), 0, 0.0, tuple(wanted), surplus)


def decide(wanted: list[Group], on: list[Node], used: Used) -> Verdict:
    [decision] = run_cycle([gang(wanted)], node_snapshot_of(on, used))
    return decision.verdict


@examples(400)
@given(groups(), nodes(plain=True), USED)
def test_a_gang_is_admitted_exactly_when_it_fits(
    wanted: list[Group], on: list[Node], used: Used
) -> None:
    """Up to three groups: yes if and only if trying everything says yes, and soundly so."""
    verdict = decide(wanted, on, used)
    if isinstance(verdict, Admitted):
        check(verdict.placement, wanted, on, used)
    else:
        assert 0 < len(verdict.message) <= MESSAGE_LIMIT
    assert isinstance(verdict, Admitted) is possible(wanted, on, used)


def needs(**amounts: int) -> PodShape:
    return PodShape(tuple(sorted({**amounts, "pods": 1}.items())))


def has(name: str, **amounts: int) -> Node:
    return Node(name, {}, (), False, {**amounts, "pods": 99})


@examples(200)
@given(groups(pods=3), nodes(plain=True), USED)
@example(
    [Group("x", "", needs(cpu=2), 2), Group("y", "", needs(cpu=3), 2)],
    [has("n0", cpu=5), has("n1", cpu=5)],
    {},
)
def test_the_search_alone_is_exact(wanted: list[Group], on: list[Node], used: Used) -> None:
    """Without the greedy fill before it, the search answers as trying everything does."""
    demand = demand_of(wanted)
    room = FreeCapacity.of(node_snapshot_of(on, used))
    assume(len(demand) > 1)
    answer = search(demand, room, MANY_STEPS)
    assert isinstance(answer, Found if possible(wanted, on, used) else Nothing)
    if isinstance(answer, Found):
        for (shape, count), spread in zip(demand, answer.distributions, strict=True):
            assert spread.pods.sum() == count
            room = room.without(shape, spread)
            assert all(allowed(shape, on[at]) for at in spread.nodes)
            used_rows = [room.columns.row[name] for name, _ in shape.requests]
            assert (room.free[used_rows][:, spread.nodes] >= 0).all()


@given(groups(most=4, pods=3), nodes(plain=True), USED, st.sampled_from([0, 1500, 5000]))
def test_a_bounded_search_never_errs(
    wanted: list[Group], on: list[Node], used: Used, steps: int
) -> None:
    """Running out of steps turns an answer into Undecided, never into a wrong one."""
    outcome = place(demand_of(wanted), FreeCapacity.of(node_snapshot_of(on, used)), steps)
    match outcome:
        case Placed():
            assert possible(wanted, on, used)
        case NoFit():
            assert not possible(wanted, on, used)
        case Undecided(spent):
            assert spent >= 0


def reason(verdict: Verdict) -> str:
    return "Admitted" if isinstance(verdict, Admitted) else verdict.reason


@given(groups(most=4), nodes(plain=True), USED, st.randoms(), st.booleans())
def test_order_and_names_do_not_matter(
    wanted: list[Group], on: list[Node], used: Used, random: object, renamed: bool
) -> None:
    """Permuting nodes and groups changes nothing; renaming nodes, not the answer."""
    before = decide(wanted, on, used)
    names = {node.name: node.name for node in on}
    if renamed:
        names = {name: f"m{9 - at}" for at, name in enumerate(names)}
    moved = [replace(node, name=names[node.name]) for node in on]
    shuffled = list(wanted)
    for each in (moved, shuffled):
        random.shuffle(each)  # type: ignore[attr-defined]
    known = {names[name]: amounts for name, amounts in used.items() if name in names}
    after = decide(shuffled, moved, known)
    if not renamed:
        assert before == after
    assert reason(before) == reason(after)


@given(groups(), nodes(most=3, plain=True), USED)
def test_an_unusable_node_changes_no_answer(
    wanted: list[Group], on: list[Node], used: Used
) -> None:
    """A cordoned node is as good as none, whatever its name."""
    before = decide(wanted, on, used)
    for name in ("a", "n1x", "z"):
        plenty = dict.fromkeys(("cpu", "memory", "nvidia.com/gpu", "pods"), 99)
        after = decide(wanted, [*on, Node(name, {"a": "1"}, (), True, plenty)], used)
        assert type(before) is type(after)
        if isinstance(before, Admitted):
            assert before == after


@given(groups(), nodes(plain=True), USED, st.integers(0, 3))
def test_less_load_never_turns_yes_into_no(
    wanted: list[Group], on: list[Node], used: Used, at: int
) -> None:
    """Where the answer is exact, more room cannot hurt."""
    relieved = {name: amounts for name, amounts in used.items() if name != f"n{at}"}
    if isinstance(decide(wanted, on, used), Admitted):
        assert isinstance(decide(wanted, on, relieved), Admitted)


@given(groups(most=2, pods=2), st.lists(groups(most=2, pods=1), max_size=5), nodes(plain=True))
def test_surplus_comes_whole_and_never_at_the_cost_of_the_minimum(
    wanted: list[Group], units: list[list[Group]], on: list[Node]
) -> None:
    """What is placed is the minimum and exactly the units that are named."""
    surplus = tuple(tuple(unit) for unit in units)
    [decision] = run_cycle([gang(wanted, surplus)], node_snapshot_of(on))
    assert isinstance(decision.verdict, Admitted) is possible(wanted, on, {})
    if isinstance(decision.verdict, Admitted):
        placed = [group for at in decision.verdict.units for group in surplus[at]]
        check(decision.verdict.placement, [*wanted, *placed], on, {})
        assert decision.verdict.surplus == len(decision.verdict.units)


@given(st.lists(groups(most=2, pods=3), max_size=6), nodes(plain=True), USED)
def test_gangs_of_one_cycle_do_not_get_into_each_others_way(
    gangs: list[list[Group]], on: list[Node], used: Used
) -> None:
    """Each verdict is the one the gang gets alone once the gangs before it hold their room."""
    pending = [
        PendingGang(GangKey("team", f"g{at}"), 0, float(at), tuple(wanted))
        for at, wanted in enumerate(gangs)
    ]
    taken = {name: dict(amounts) for name, amounts in used.items()}
    for decision, waiting in zip(
        run_cycle(pending, node_snapshot_of(on, used)), pending, strict=True
    ):
        [alone] = run_cycle([waiting], node_snapshot_of(on, taken))
        assert alone == decision
        if isinstance(decision.verdict, Admitted):
            check(decision.verdict.placement, list(waiting.minimum), on, taken)
            for assignment in decision.verdict.placement.assignments:
                for name, pods in assignment.nodes:
                    sums = taken.setdefault(name, {})
                    for resource, amount in assignment.requests:
                        sums[resource] = sums.get(resource, 0) + amount * pods


@pytest.mark.parametrize("renamed", [False, True], ids=["in place", "renamed"])
def test_a_tie_goes_to_the_first_name(renamed: bool) -> None:
    """Of equal nodes the first by name is filled, however it came in."""
    names = ["n2", "n1"] if renamed else ["n1", "n2"]
    verdict = decide(
        [Group("workers", "", needs(cpu=1), 1)], [has(name, cpu=9) for name in names], {}
    )
    assert isinstance(verdict, Admitted)
    assert verdict.placement.assignments[0].nodes == (("n1", 1),)
