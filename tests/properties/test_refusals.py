"""The numbers of a refusal are true: what would start, and what never will."""

import re
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from scheduling.cycle import run_cycle
from scheduling.diagnosis import partial_fit, refusals
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node, Taint
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.state.node_table import node_snapshot_of
from tests.examples import examples
from tests.properties.strategies import USED, allowed, groups, nodes, possible, shapes

Used = dict[str, dict[str, int]]
IN_NUMBERS = re.compile(r"([0-9]+) of ([0-9]+) (\w+)")


def decide(wanted: list[Group], on: list[Node], used: Used) -> Verdict:
    gang = PendingGang(GangKey("team", "a"), 0, 0.0, tuple(wanted))
    [decision] = run_cycle([gang], node_snapshot_of(on, used))
    return decision.verdict


def with_head(wanted: list[Group], head: PodShape) -> list[Group]:
    return [Group("head", "", head, 1), *wanted]


def fewer(wanted: list[Group], fit: dict[str, int]) -> list[Group]:
    """Return the groups with as many pods as are said to fit."""
    asked = [replace(group, count=fit[group.pod_set]) for group in wanted]
    return [group for group in asked if group.count]


GANGS = st.builds(with_head, groups(most=2), shapes(plain=True))


def too_many(wanted: list[Group]) -> list[Group]:
    """Ask for more pods than the nodes of a world hold, so that nearly all gangs are refused."""
    return [replace(group, count=group.count + 30) for group in wanted]


def needs(cpu: int) -> PodShape:
    return PodShape((("cpu", cpu), ("pods", 1)))


def has(name: str, cpu: int) -> Node:
    return Node(name, {}, (), False, {"cpu": cpu, "pods": 9})


@examples(150)
@given(GANGS, nodes(plain=True), USED)
@example(with_head([Group("w", "", needs(1), 4)], needs(1)), [has("a", 3)], {})
@example(with_head([Group("w", "", needs(3), 3)], needs(2)), [has("a", 3), has("b", 5)], {})
def test_a_gang_of_the_size_that_is_told_starts(
    wanted: list[Group], on: list[Node], used: Used
) -> None:
    """All numbers at once, and the message says what the fields beside it say."""
    verdict = decide(wanted, on, used)
    assume(isinstance(verdict, Refusal))
    assert isinstance(verdict, Refusal)
    fit = {each.pod_set: each.fit for each in verdict.pod_sets}
    assert isinstance(decide(fewer(wanted, fit), on, used), Admitted)
    assert any(fit[group.pod_set] < group.count for group in wanted)
    if verdict.reason is not Reason.NEVER_FITS:
        counts = {group.pod_set: group.count for group in wanted}
        for found, all_of_them, pod_set in IN_NUMBERS.findall(verdict.message):
            assert (int(found), int(all_of_them)) == (fit[pod_set], counts[pod_set])


@examples(400)
@given(groups(most=1).map(too_many), shapes(plain=True), nodes(plain=True), USED)
@example([Group("w", "", needs(1), 4)], needs(1), [has("a", 3)], {})
def test_beside_the_head_no_more_than_is_told_would_start(
    workers: list[Group], head: PodShape, on: list[Node], used: Used
) -> None:
    wanted = with_head(workers, head)
    verdict = decide(wanted, on, used)
    assume(isinstance(verdict, Refusal))
    assert isinstance(verdict, Refusal)
    fit = {each.pod_set: each.fit for each in verdict.pod_sets}
    if not fit["head"]:
        return
    more = {**fit, workers[0].pod_set: fit[workers[0].pod_set] + 1}
    assert not possible(fewer(wanted, more), on, used)


@examples(300)
@given(st.lists(GANGS, min_size=2, max_size=4), nodes(plain=True), USED)
@example(
    [
        with_head([Group("v", "", needs(3), 9), Group("w", "", needs(asked), 9)], needs(1))
        for asked in (8, 2)
    ],
    [has("a", 4), has("b", 9)],
    {},
)
def test_what_was_explained_before_in_the_same_room_changes_no_word(
    asked: list[list[Group]], on: list[Node], used: Used
) -> None:
    """What a room remembers is what is found in a new one, where nothing is."""
    columns = node_snapshot_of(on, used)
    refused = [each for each in asked if isinstance(decide(each, on, used), Refusal)]
    fresh = [refusals.no_fit(each, FreeCapacity.of(columns)) for each in refused]
    with patch.object(partial_fit, "PAIRED", 0):
        assert [refusals.no_fit(each, FreeCapacity.of(columns)) for each in refused] == fresh
    room = FreeCapacity.of(columns)
    with patch.object(partial_fit, "FEW", 0):
        assert [refusals.no_fit(each, room) for each in refused] == fresh
        assert [refusals.no_fit(each, room) for each in refused[::-1]] == fresh[::-1]


@examples(150)
@given(GANGS, nodes(), USED)
def test_the_amounts_add_up(wanted: list[Group], on: list[Node], used: Used) -> None:
    """What is needed is what is missing and what those that fit take; that is what is left less."""
    anywhere = [replace(each, unschedulable=False, taints=()) for each in on]
    asked = [replace(each, shape=replace(each.shape, node_selector=())) for each in wanted]
    verdict = decide(asked, anywhere, used)
    assume(isinstance(verdict, Refusal))
    assert isinstance(verdict, Refusal)
    amounts = {group.pod_set: dict(group.shape.requests) for group in asked}
    for short in (each for each in verdict.pod_sets if each.fit < each.wanted and each.resource):
        ask = {name: amounts[name].get(short.resource, 0) for name in amounts}
        taken = sum(ask[each.pod_set] * each.fit for each in verdict.pod_sets)
        missing = sum(ask[each.pod_set] * (each.wanted - each.fit) for each in verdict.pod_sets)
        assert (short.free - short.left, short.needed - taken) == (taken, missing)
        assert short.largest <= short.left


PASSING = Taint("node.kubernetes.io/not-ready", "", "NoExecute")


def emptied(on: list[Node]) -> list[Node]:
    """Return the nodes as they would be if all that passes had passed."""
    return [
        replace(
            node, unschedulable=False, taints=tuple(each for each in node.taints if each != PASSING)
        )
        for node in on
    ]


@st.composite
def passing(draw: st.DrawFn) -> list[Node]:
    """Draw plain nodes of which some are cordoned or not ready, and some kept for others."""
    lasting = Taint("reserved", "", "NoSchedule")
    return [
        replace(
            node,
            unschedulable=draw(st.booleans()),
            taints=draw(st.sampled_from([(), (), (PASSING,), (lasting,)])),
        )
        for node in draw(nodes(plain=True))
    ]


@st.composite
def unlike(draw: st.DrawFn) -> list[Group]:
    """Draw up to two groups whose pods may tolerate and select anything."""
    drawn = draw(st.lists(st.tuples(shapes(), st.integers(1, 4)), min_size=1, max_size=2))
    return [Group(f"set{at}", "", shape, count) for at, (shape, count) in enumerate(drawn)]


CORDONED = replace(has("b", 9), unschedulable=True)


@examples(150)
@given(groups(), passing(), USED)
@example([Group("w", "", needs(3), 1)], [has("a", 5)], {"a": {"cpu": 5}})
@example([Group("w", "", needs(7), 1)], [has("a", 5), CORDONED], {})
@example([Group("w", "", needs(5), 3)], [has("a", 5), CORDONED], {})
@example([Group("w", "", needs(7), 1)], [has("a", 5), replace(has("b", 9), taints=(PASSING,))], {})
def test_what_is_said_never_to_fit_does_not_fit_on_empty_nodes(
    wanted: list[Group], on: list[Node], used: Used
) -> None:
    """Nor when nodes are ready again and no longer cordoned. What one group alone never will is
    told so, unless there is no node for it at all."""
    check_never(wanted, on, used)


@examples(300)
@given(unlike(), nodes(), USED)
def test_so_it_is_whatever_pods_select_and_tolerate(
    wanted: list[Group], on: list[Node], used: Used
) -> None:
    check_never(wanted, on, used)


def check_never(wanted: list[Group], on: list[Node], used: Used) -> None:
    verdict = decide(wanted, on, used)
    if isinstance(verdict, Admitted):
        return
    could = possible(wanted, emptied(on), {})
    assert not (verdict.reason is Reason.NEVER_FITS and could)
    feasible = all(any(allowed(group.shape, node) for node in on) for group in wanted)
    if len(wanted) == 1 and feasible and not could:
        assert verdict.reason is Reason.NEVER_FITS


@pytest.mark.parametrize("busy", [0, 5])
def test_a_gang_that_only_waits_is_not_said_never_to_fit(busy: int) -> None:
    on, used = [has("a", 5)], {"a": {"cpu": busy}} if busy else {}
    verdict = decide([Group("w", "", needs(2), 2)], on, used)
    assert isinstance(verdict, Admitted) == (not busy)
    assert isinstance(verdict, Admitted) or verdict.reason is Reason.INSUFFICIENT_RESOURCES
