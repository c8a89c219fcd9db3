"""Gangs that start together, on random worlds: a part of them never does."""

from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from scheduling.admission.together import join, split
from scheduling.cycle import run_cycle
from scheduling.model.gang import GangKey, Group, PendingGang, Topology
from scheduling.model.node import Node
from scheduling.model.verdict import Admitted
from scheduling.state.node_table import node_snapshot_of
from tests.examples import examples
from tests.properties.strategies import USED, groups, nodes, possible
from tests.properties.test_independent import check

ZONE = "zone"

Used = dict[str, dict[str, int]]
PARTS = st.lists(groups(most=2, pods=2), min_size=2, max_size=2)

SMALL = st.lists(groups(most=1, pods=2), min_size=2, max_size=2)


def members(wanted: list[list[Group]], name: str) -> list[PendingGang]:
    return [
        PendingGang(GangKey("team", f"{name}{at}"), 0, float(at), tuple(each))
        for at, each in enumerate(wanted)
    ]


@examples(100)
@given(SMALL, SMALL, nodes(plain=True))
def test_of_gangs_together_all_start_or_none(
    wanted: list[list[Group]], others: list[list[Group]], on: list[Node]
) -> None:
    """Two sets of gangs in one cycle: each is placed whole or not at all, in room that is there."""
    sets = [members(wanted, "a"), members(others, "b")]
    asked = [each for each in map(join, sets) if isinstance(each, PendingGang)]
    found = {each.key: each.verdict for each in run_cycle(asked, node_snapshot_of(on))}
    taken: Used = {}
    for question, gangs in zip(asked, sets, strict=True):
        answers = split(found[question.key], gangs)
        assert answers.keys() == {each.key for each in gangs}
        assert len({type(each) for each in answers.values()}) == 1
        for gang in gangs:
            take(gang, answers[gang.key], on, taken)


def take(gang: PendingGang, verdict: object, on: list[Node], taken: Used) -> None:
    """Require the placement of a gang to be its own pods, and take its room."""
    if not isinstance(verdict, Admitted):
        return
    check(verdict.placement, list(gang.minimum), on, taken)
    for assignment in verdict.placement.assignments:
        for name, pods in assignment.nodes:
            sums = taken.setdefault(name, {})
            for resource, amount in assignment.requests:
                sums[resource] = sums.get(resource, 0) + amount * pods


@examples(60)
@given(PARTS, nodes(plain=True), USED)
def test_gangs_together_start_exactly_where_all_of_them_fit(
    wanted: list[list[Group]], on: list[Node], used: Used
) -> None:
    """The set is admitted if and only if trying everything finds room for all its pods."""
    gangs = members(wanted, "a")
    question = join(gangs)
    assert isinstance(question, PendingGang)
    [decision] = run_cycle([question], node_snapshot_of(on, used))
    every = [group for each in wanted for group in each]
    assert isinstance(decision.verdict, Admitted) is possible(every, on, used)


@examples(60)
@given(SMALL, st.lists(st.sampled_from("xyz"), min_size=4, max_size=4), nodes(plain=True), USED)
def test_gangs_together_start_exactly_where_each_finds_a_domain_of_its_own(
    wanted: list[list[Group]], zones: list[str], on: list[Node], used: Used
) -> None:
    """The judge tries all pairs of domains, and in each of them all ways to place the pods."""
    there = [
        replace(each, labels={**each.labels, ZONE: zone})
        for each, zone in zip(on, zones, strict=False)
    ]
    own = Topology(tuple(sorted({g.pod_set for each in wanted for g in each})), ZONE, is_own=True)
    gangs = [replace(each, topology=own) for each in members(wanted, "a")]
    question = join(gangs)
    assert isinstance(question, PendingGang)
    [decision] = run_cycle([question], node_snapshot_of(there, used))
    pairs = product(set(zones[: len(there)]), repeat=2)
    assert isinstance(decision.verdict, Admitted) is any(
        possible([*held(wanted[0], one), *held(wanted[1], other)], there, used)
        for one, other in pairs
    )
    for key, verdict in split(decision.verdict, gangs).items():
        assert len(zones_of(verdict, there)) == isinstance(verdict, Admitted), key


def held(groups: list[Group], zone: str) -> list[Group]:
    """Hold pods to a zone as their own node selectors would."""
    said = (ZONE, zone)
    shapes = [replace(g.shape, node_selector=(*g.shape.node_selector, said)) for g in groups]
    return [replace(g, shape=shape) for g, shape in zip(groups, shapes, strict=True)]


def zones_of(verdict: object, on: list[Node]) -> set[str]:
    zone = {each.name: each.labels[ZONE] for each in on}
    assigned = verdict.placement.assignments if isinstance(verdict, Admitted) else ()
    return {zone[node] for each in assigned for node, _ in each.nodes}
