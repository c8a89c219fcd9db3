"""Gangs whose pods have affinity or anti-affinity, against trying everything pod by pod."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.cycle import Settings, run_cycle
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.filters.inter_pod_affinity import (
    PartlySelectedError,
    WaitForBindingError,
    gang_constraints,
)
from scheduling.model.constraints import PodTerm, Requirement
from scheduling.model.gang import GangKey, Group, Member, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason
from scheduling.placement.interdependent.partial_placement import PartialPlacement
from scheduling.placement.interdependent.search import Ordered, place_interdependent
from scheduling.placement.interdependent.upper_bounds import is_impossible
from scheduling.placement.release_waves import MOST_WAVES, plan_release_waves
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import node_snapshot_of
from scheduling.state.pod_index import ExistingPods, PodIndex, PodKind
from tests.examples import examples

APPS = st.sampled_from(["h", "w"])
TERMS = st.builds(
    PodTerm,
    st.sampled_from(["zone", "host"]),
    st.one_of(
        st.just(()), APPS.map(lambda app: (Requirement("app", "In", (app,)),)),
        APPS.map(lambda app: (Requirement("app", "NotIn", (app,)),)),
    ),
    st.sampled_from([("team",), ("team", "others"), ("others",)]),
)  # fmt: skip
FEW_TERMS = st.lists(TERMS, max_size=1).map(tuple) | st.lists(TERMS, max_size=2).map(tuple)


@dataclass(frozen=True)
class Pod:
    """A pod with its affinity and anti-affinity."""

    kind: PodKind
    shape: PodShape


@st.composite
def pods(draw: st.DrawFn, namespaces: Sequence[str] = ("team",)) -> Pod:
    asked = (("cpu", draw(st.integers(1, 2))), ("pods", 1))
    shape = PodShape(asked, affinity=draw(FEW_TERMS), anti_affinity=draw(FEW_TERMS))
    return Pod((draw(st.sampled_from(namespaces)), (("app", draw(APPS)),)), shape)


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    names = [f"n{at}" for at in range(draw(st.integers(1, 4)))]
    return [
        Node(
            name,
            {"host": name, **draw(st.sampled_from([{"zone": "a"}, {"zone": "b"}, {}]))},
            (),
            False,
            {"cpu": draw(st.integers(1, 4)), "pods": 9},
        )
        for name in names
    ]


FEW = st.lists(st.tuples(pods(), st.integers(1, 3)), min_size=1, max_size=2)
GANGS = FEW | st.lists(st.tuples(pods(), st.integers(1, 2)), min_size=3, max_size=3)
RESIDENTS = st.lists(st.tuples(pods(("team", "others")), st.integers(0, 3)), max_size=3)


# ---- the slow and obvious way

Bound = tuple[Pod, Node]


def picks(term: PodTerm, other: Pod) -> bool:
    namespace, labels = other.kind
    app = dict(labels)["app"]
    right = all((app in each.values) is (each.operator == "In") for each in term.selector)
    return namespace in term.namespaces and right


def share(term: PodTerm, one: Node, other: Node) -> bool:
    value = one.labels.get(term.key)
    return value is not None and value == other.labels.get(term.key)


def accepted(pod: Pod, node: Node, bound: Sequence[Bound]) -> bool:
    used = sum(dict(each.shape.requests)["cpu"] for each, where in bound if where is node)
    if used + dict(pod.shape.requests)["cpu"] > node.allocatable["cpu"]:
        return False
    for other, where in bound:
        if any(picks(t, other) and share(t, node, where) for t in pod.shape.anti_affinity):
            return False
        if any(picks(t, pod) and share(t, node, where) for t in other.shape.anti_affinity):
            return False
    near = pod.shape.affinity
    if any(term.key not in node.labels for term in near):
        return False
    wanted = [where for other, where in bound if all(picks(term, other) for term in near)]
    if all(any(share(term, node, where) for where in wanted) for term in near):
        return True
    is_first = not any(term.key in where.labels for where in wanted for term in near)
    return is_first and all(picks(term, pod) for term in near)


def possible(left: Sequence[Pod], nodes: Sequence[Node], bound: list[Bound]) -> bool:
    """Try every pod next, on every node."""
    if not left:
        return True
    for pod in dict.fromkeys(left):
        rest = list(left)
        rest.remove(pod)
        for node in nodes:
            if accepted(pod, node, bound) and possible(rest, nodes, [*bound, (pod, node)]):
                return True
    return False


def follows(waves: Sequence[Sequence[Bound]], bound: list[Bound]) -> bool:
    """Say whether pinned pods are all bound in the end, each wave once those before it are."""
    for at, placed in enumerate(waves):
        if not in_any_order(placed, [*bound, *(pair for wave in waves[:at] for pair in wave)]):
            return False
    return True


def in_any_order(placed: Sequence[Bound], bound: list[Bound]) -> bool:
    """Say whether pinned pods are all bound in the end, whichever of those that can goes first."""
    known: dict[frozenset[int], bool] = {}

    def ends_well(done: frozenset[int]) -> bool:
        if len(done) == len(placed):
            return True
        if done not in known:
            now = [*bound, *(placed[at] for at in done)]
            rest = set(range(len(placed))) - done
            ready = [at for at in rest if accepted(*placed[at], now)]
            known[done] = bool(ready) and all(ends_well(done | {at}) for at in ready)
        return known[done]

    return ends_well(frozenset())


@dataclass(frozen=True)
class Scene:
    """A gang among existing pods."""

    gang: PendingGang
    columns: NodeSnapshot
    table: PodIndex
    bound: list[Bound]

    @classmethod
    def of(
        cls, gang: list[tuple[Pod, int]], residents: list[tuple[Pod, int]], nodes: list[Node]
    ) -> "Scene":
        table, used, bound = PodIndex(), dict[str, dict[str, int]](), list[Bound]()
        for pod, at in residents:
            node = nodes[at % len(nodes)]
            table.use(pod.kind, pod.shape.anti_affinity, node.name, +1)
            sums = used.setdefault(node.name, {})
            for name, amount in pod.shape.requests:
                sums[name] = sums.get(name, 0) + amount
            bound.append((pod, node))
        groups = tuple(Group(f"s{at}", "", pod.shape, n) for at, (pod, n) in enumerate(gang))
        members = tuple(
            Member(f"s{at}", pod.shape, pod.kind[1])
            for at, (pod, n) in enumerate(gang)
            for _ in range(n)
        )
        asked = PendingGang(GangKey("team", "g"), 0, 0.0, groups, (), members)
        return cls(asked, node_snapshot_of(nodes, used), table, bound)


@examples(300)
@given(GANGS, RESIDENTS, clusters())
def test_a_yes_can_be_bound_and_a_no_cannot(
    gang: list[tuple[Pod, int]], residents: list[tuple[Pod, int]], nodes: list[Node]
) -> None:
    """Small gangs are decided for certain, whatever order of binding they need."""
    scene = Scene.of(gang, residents, nodes)
    settings = Settings(search_steps=10**8, cycle_search_steps=10**8)
    [decision] = run_cycle([scene.gang], scene.columns, settings, ExistingPods(scene.table))
    wanted = [pod for pod, n in gang for _ in range(n)]
    event(type(decision.verdict).__name__)
    if isinstance(decision.verdict, Admitted):
        by_name = {node.name: node for node in nodes}
        waves: list[list[Bound]] = [[] for _ in range(MOST_WAVES)]
        for each in decision.verdict.placement.assignments:
            pod = gang[int(each.pod_set[1:])][0]
            assert each.shape == pod.shape.key
            waves[each.wave] += [(pod, by_name[name]) for name, n in each.nodes for _ in range(n)]
        all_pods = [pair for wave in waves for pair in wave]
        assert len(all_pods) == len(wanted)
        assert follows(waves, scene.bound)
        assert not waves[1] or not in_any_order(all_pods, scene.bound)
    else:
        assert decision.verdict.reason is not Reason.UNDECIDED
        assert not possible(wanted, nodes, scene.bound)


@examples(600)
@given(GANGS, RESIDENTS, clusters())
def test_what_finds_its_place_was_not_impossible(
    gang: list[tuple[Pod, int]], residents: list[tuple[Pod, int]], nodes: list[Node]
) -> None:
    """The sums that say no before a search agree with every search that says yes."""
    scene = Scene.of(gang, residents, nodes)
    try:
        found = gang_constraints(scene.gang, ExistingPods(scene.table), scene.columns)
    except (WaitForBindingError, PartlySelectedError) as problem:
        event(type(problem).__name__)
        return
    counts = {(group.pod_set, group.shape): group.count for group in scene.gang.minimum}
    wanted = [counts[group] for group in found.groups]
    room = FreeCapacity.of(scene.columns)
    earlier = np.zeros((len(wanted), len(nodes)), dtype=np.int64)
    asked = found.shapes, wanted, found.internal_constraints, room, earlier
    outcome = place_interdependent(*asked, 10**6, plan_release_waves)
    impossible = is_impossible(PartialPlacement(*asked))
    event(f"{type(outcome).__name__}, impossible by sums: {impossible}")
    assert not (impossible and isinstance(outcome, Ordered))
