"""Cycles that know what the one before found, against cycles from scratch."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import Settings, next_cycle, run_cycle
from scheduling.model.gang import GangKey, Group, Member, PendingGang
from scheduling.model.node import Node
from scheduling.model.verdict import Admitted, Decision, Reason, Refusal
from scheduling.queueing.queues import one_queue
from scheduling.state.node_table import NodeTable
from scheduling.state.pod_index import ExistingPods, PodIndex
from tests.examples import examples
from tests.properties.strategies import RESOURCES, groups, nodes
from tests.properties.test_interdependent import Pod, clusters, pods

FEW_STEPS = Settings(search_steps=3_000, cycle_search_steps=6_000)
"""Few enough for some searches to run out."""

CHANGES = st.tuples(
    st.sampled_from([f"n{at}" for at in range(4)]),
    st.dictionaries(st.sampled_from([*RESOURCES, "pods"]), st.integers(1, 4), min_size=1),
    st.sampled_from([+1, -1]),
)
Held = tuple[str, dict[str, int]]
GANGS = st.lists(groups(), min_size=1, max_size=4)


@st.composite
def company_gangs(draw: st.DrawFn) -> PendingGang:
    """Draw a gang of one or two pod sets whose pods have affinity."""
    drawn = draw(st.lists(st.tuples(pods(), st.integers(1, 2)), min_size=1, max_size=2))
    wanted = [Group(f"set{at}", "", pod.shape, n) for at, (pod, n) in enumerate(drawn)]
    members = [Member(f"set{at}", pod.shape, pod.kind[1]) for at, (pod, _) in enumerate(drawn)]
    key = GangKey("team", "g")
    return PendingGang(key, 0, 0.0, tuple(wanted), members=tuple(members))


def gang(at: int, wanted: list[Group]) -> PendingGang:
    return PendingGang(GangKey("team", f"g{at}"), 0, float(at), tuple(wanted))


def told(decision: Decision) -> object:
    """What must be the same: the whole of a yes, the reason of a no."""
    verdict = decision.verdict
    return decision.key, verdict if isinstance(verdict, Admitted) else verdict.reason


@examples(300)
@given(nodes(plain=True), GANGS, st.lists(CHANGES | nodes(plain=True) | GANGS, max_size=6))
def test_a_memory_changes_no_decision(
    on: list[Node], waiting: list[list[Group]], history: list[object]
) -> None:
    """Room comes and goes, nodes come, go and change, gangs are replaced; nobody is decided
    differently where no search runs out."""
    table, memory, held = NodeTable(), None, list[Held]()
    for node in on:
        table.put_node(node)
    pending = [gang(at, wanted) for at, wanted in enumerate(waiting)]
    for change in [None, *history]:
        pending = _changed(table, held, pending, change)
        fresh = run_cycle(pending, table.snapshot())
        decisions, memory = next_cycle(one_queue(pending), table.snapshot(), memory)
        assert [told(each) for each in decisions] == [told(each) for each in fresh]
        pending = _settled(table, pending, decisions)


@examples(100)
@given(
    nodes(plain=True),
    GANGS,
    st.lists(CHANGES | nodes(plain=True) | GANGS | st.none(), max_size=6),
    st.sets(st.integers(0, 3)),
)
def test_numbers_that_are_renewed_or_not_old_are_those_of_a_fresh_cycle(
    on: list[Node], waiting: list[list[Group]], history: list[object], renewed: set[int]
) -> None:
    """Word for word; and to renew some changes no decision on the others."""
    table, memory, held = NodeTable(), None, list[Held]()
    for node in on:
        table.put_node(node)
    pending = [gang(at, wanted) for at, wanted in enumerate(waiting)]
    anew = {GangKey("team", f"g{at}") for at in renewed}
    for change in [None, *history]:
        pending = _changed(table, held, pending, change)
        fresh = run_cycle(pending, table.snapshot())
        memory = memory and memory.without(anew)
        decisions, memory = next_cycle(one_queue(pending), table.snapshot(), memory)
        assert [told(each) for each in decisions] == [told(each) for each in fresh]
        for ours, theirs in zip(decisions, fresh, strict=True):
            assert ours == theirs or ours.key in memory.old - anew
        pending = _settled(table, pending, decisions)


@examples(300)
@given(nodes(plain=True), GANGS, st.lists(CHANGES | nodes(plain=True) | GANGS, max_size=6))
def test_what_is_kept_is_true_where_searches_run_out(
    on: list[Node], waiting: list[list[Group]], history: list[object]
) -> None:
    """A gang that is said not to fit does not, in the room at its turn; and what is placed fits."""
    table, memory, held = NodeTable(), None, list[Held]()
    for node in on:
        table.put_node(node)
    pending = [gang(at, wanted) for at, wanted in enumerate(waiting)]
    for change in [None, *history]:
        pending = _changed(table, held, pending, change)
        decisions, memory = next_cycle(one_queue(pending), table.snapshot(), memory, FEW_STEPS)
        gangs = {each.key: each for each in pending}
        for decision in decisions:
            [alone] = run_cycle([gangs[decision.key]], table.snapshot())
            if isinstance(decision.verdict, Admitted):
                assert isinstance(alone.verdict, Admitted)
            elif decision.verdict.reason != Reason.UNDECIDED:
                assert told(decision) == told(alone)
            pending = _settled(table, pending, [decision])


@examples(300)
@given(
    clusters(),
    st.lists(company_gangs(), min_size=1, max_size=3),
    st.lists(st.tuples(pods(("team", "others")), st.integers(0, 3)), min_size=1, max_size=6),
)
def test_a_memory_follows_pods_that_come_and_go(
    on: list[Node], waiting: list[PendingGang], visits: list[tuple[Pod, int]]
) -> None:
    """Pods come, and go in the same order: gangs are decided as without a memory."""
    table, index, memory = NodeTable(), PodIndex(), None
    pending = [replace(each, key=GangKey("team", f"g{at}")) for at, each in enumerate(waiting)]
    for node in on:
        table.put_node(node)
    for sign in (+1, -1):
        for pod, at in visits:
            name = on[at % len(on)].name
            table.use(name, pod.shape.requests, sign)
            index.use(pod.kind, pod.shape.anti_affinity, name, sign)
            fresh = run_cycle(pending, table.snapshot(), existing=ExistingPods(index))
            decisions, memory = next_cycle(
                one_queue(pending), table.snapshot(), memory, existing=ExistingPods(index)
            )
            for ours, theirs in zip(decisions, fresh, strict=True):
                assert told(ours) == told(theirs) or _both_wait(ours, theirs)


def _both_wait(ours: Decision, theirs: Decision) -> bool:
    """Say whether only the reasons differ, which are of another time: for a search that was given
    up there may be an end with less room, and what no node can take for two reasons has one left.
    """
    verdicts = ours.verdict, theirs.verdict
    return not any(isinstance(each, Admitted) for each in verdicts)


def _settled(
    table: NodeTable, pending: list[PendingGang], decisions: Iterable[Decision]
) -> list[PendingGang]:
    """Let admitted gangs take the room and wait no more."""
    admitted = set()
    for decision in decisions:
        if isinstance(decision.verdict, Admitted):
            admitted.add(decision.key)
            for each in decision.verdict.placement.assignments:
                for node, pods in each.nodes:
                    table.use(node, each.requests, pods)
    return [each for each in pending if each.key not in admitted]


def _changed(
    table: NodeTable, held: list[Held], pending: list[PendingGang], change: Any
) -> list[PendingGang]:
    """Let something happen; what is taken back is what was used last."""
    match change:
        case (str(name), dict(amounts), 1):
            held.append((name, amounts))
            table.use(name, amounts.items(), +1)
        case (str(), dict(), -1):
            for name, amounts in held[-1:]:
                held.pop()
                table.use(name, amounts.items(), -1)
        case [Node(), *_]:
            for name in {f"n{at}" for at in range(4)} - {node.name for node in change}:
                table.remove_node(name)
            for node in change:
                table.put_node(node)
        case [[Group(), *_], *_]:
            return [gang(at, wanted) for at, wanted in enumerate(change)]
        case _:
            pass
    return pending


@examples(200)
@given(nodes(plain=True), GANGS)
def test_where_nothing_changed_a_refusal_is_the_same_word_for_word(
    on: list[Node], waiting: list[list[Group]]
) -> None:
    """Equal gangs made anew are as good as the same."""
    table = NodeTable()
    for node in on:
        table.put_node(node)
    pending = [gang(at, wanted) for at, wanted in enumerate(waiting)]
    first, memory = next_cycle(one_queue(pending), table.snapshot(), None)
    again = [replace(each) for each in _settled(table, pending, first)]
    second, later = next_cycle(one_queue(again), table.snapshot(), memory)
    assert [each for each in first if isinstance(each.verdict, Refusal)] == list(second)
    assert isinstance(later, Memory)
    assert later.kept == len(memory.refused)
