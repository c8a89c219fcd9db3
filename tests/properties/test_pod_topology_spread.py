"""Gangs with topology spread constraints, against trying everything pod by pod."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from hypothesis import event, given
from hypothesis import strategies as st

from scheduling.cycle import Settings, run_cycle
from scheduling.model.constraints import PodTerm, Requirement, SpreadConstraint, Toleration
from scheduling.model.gang import GangKey, Group, Member, PendingGang
from scheduling.model.node import Node, Taint
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason
from scheduling.state.node_table import node_snapshot_of
from scheduling.state.pod_index import AssumedPods, ExistingPods, PodIndex, Presence
from tests.examples import examples
from tests.properties.strategies import tolerated

ANYTHING = Toleration("", "Exists", "", "")


@dataclass(frozen=True)
class Pod:
    """A pod with its spread constraints."""

    namespace: str
    app: str
    shape: PodShape


@st.composite
def constraints(draw: st.DrawFn, key: str) -> SpreadConstraint:
    apps = draw(st.lists(st.sampled_from(["h", "w"]), min_size=1, max_size=2, unique=True))
    return SpreadConstraint(
        PodTerm(key, (Requirement("app", "In", tuple(apps)),), ("team",)),
        max_skew=draw(st.integers(1, 2)),
        min_domains=draw(st.sampled_from([1, 1, 1, 2, 3])),
        honors_affinity=draw(st.sampled_from([True, True, False])),
        honors_taints=draw(st.booleans()),
    )


@st.composite
def pods(draw: st.DrawFn, namespaces: Sequence[str] = ("team",)) -> Pod:
    keys = draw(st.lists(st.sampled_from(["zone", "host"]), max_size=2, unique=True))
    shape = PodShape(
        (("cpu", draw(st.sampled_from([1, 1, 2]))), ("pods", 1)),
        node_selector=draw(st.sampled_from([(), (), (), (), (("zone", "a"),)])),
        tolerations=draw(st.sampled_from([(), (ANYTHING,)])),
        spread=tuple(draw(constraints(key)) for key in keys),
    )
    return Pod(draw(st.sampled_from(namespaces)), draw(st.sampled_from(["h", "w"])), shape)


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    names = [f"n{at}" for at in range(draw(st.sampled_from([1, 2, 3, 3, 4, 4])))]
    zones = st.sampled_from([*({"zone": zone} for zone in "abcab"), {}])
    return [
        Node(
            name,
            {"host": name, **draw(zones)},
            draw(st.sampled_from([(), (), (), (), (Taint("busy", "", "NoSchedule"),)])),
            draw(st.sampled_from([False] * 5 + [True])),
            {"cpu": draw(st.sampled_from([1, 2, 3, 4, 6])), "pods": 9},
        )
        for name in names
    ]


GANGS = st.lists(st.tuples(pods(), st.integers(1, 3)), min_size=1, max_size=2) | st.lists(
    st.tuples(pods(), st.integers(2, 5)), min_size=1, max_size=1
)
RESIDENTS = st.lists(
    st.tuples(
        pods(("team", "others")),
        st.integers(0, 3),
        st.sampled_from(["bound", "bound", "leaving", "assumed", "nominated"]),
    ),
    max_size=3,
)


# ---- the slow and obvious way

Bound = tuple[Pod, Node]


@dataclass(frozen=True)
class World:
    """All nodes, what fills them without being counted, and what may come at any time."""

    nodes: Sequence[Node]
    filling: Sequence[Bound]
    coming: Sequence[Bound]

    def accepts(self, pod: Pod, node: Node, bound: Sequence[Bound]) -> bool:
        """Say whether kube-scheduler takes the pod as it came."""
        return self._suits(pod, node, bound) and all(
            self.is_even(pod, each, node, bound) for each in pod.shape.spread
        )

    def spreads_pinned(self, pod: Pod, node: Node, bound: Sequence[Bound]) -> bool:
        """Say whether its constraints let the pod through once it is pinned to the node."""
        return all(self.is_even(pod, each, node, bound, pin=node) for each in pod.shape.spread)

    def _suits(self, pod: Pod, node: Node, bound: Sequence[Bound]) -> bool:
        there = [each for each, where in (*bound, *self.filling) if where is node]
        used = sum(dict(each.shape.requests)["cpu"] for each in there)
        cordon = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
        taints = [*node.taints, *([cordon] if node.unschedulable else [])]
        return (
            used + dict(pod.shape.requests)["cpu"] <= node.allocatable["cpu"]
            and all(tolerated(pod.shape, taint) for taint in taints)
            and all(node.labels.get(key) == value for key, value in pod.shape.node_selector)
        )

    def is_even(
        self,
        pod: Pod,
        constraint: SpreadConstraint,
        node: Node,
        bound: Sequence[Bound],
        pin: Node | None = None,
    ) -> bool:
        keys = [each.counted.key for each in pod.shape.spread]
        key = constraint.counted.key
        if key not in node.labels:
            return False
        found = dict[str, int]()
        for other in self.nodes:
            if any(each not in other.labels for each in keys):
                continue
            if constraint.honors_affinity:
                selector = pod.shape.node_selector
                if any(other.labels.get(name) != value for name, value in selector):
                    continue
                if pin is not None and other is not pin:
                    continue
            if constraint.honors_taints and not all(tolerated(pod.shape, t) for t in other.taints):
                continue
            count = sum(is_counted(constraint, each) for each, where in bound if where is other)
            found[other.labels[key]] = found.get(other.labels[key], 0) + count
        least = 0 if len(found) < constraint.min_domains else min(found.values())
        own = is_counted(constraint, pod)
        return found.get(node.labels[key], 0) + own - least <= constraint.max_skew


def is_counted(constraint: SpreadConstraint, pod: Pod) -> bool:
    [requirement] = constraint.counted.selector
    return pod.namespace == "team" and pod.app in requirement.values


def possible(world: World, left: Sequence[Pod], bound: list[Bound]) -> bool:
    """Try every pod next, on every node."""
    seen: set[tuple[object, ...]] = set()

    def search(left: Sequence[Pod], on: tuple[Bound, ...]) -> bool:
        state = tuple(sorted((pod.app, repr(pod.shape), node.name) for pod, node in on))
        if not left:
            return True
        if state in seen:
            return False
        seen.add(state)
        for pod in dict.fromkeys(left):
            rest = list(left)
            rest.remove(pod)
            for node in world.nodes:
                if world.accepts(pod, node, [*bound, *on]) and search(rest, (*on, (pod, node))):
                    return True
        return False

    return search(left, ())


def has_order(world: World, pairs: Sequence[Bound], bound: list[Bound]) -> bool:
    """Say whether some order binds all pods as they came, each on its node."""
    return (
        any(
            world.accepts(*pair, bound)
            and has_order(world, [*pairs[:at], *pairs[at + 1 :]], [*bound, pair])
            for at, pair in enumerate(pairs)
        )
        or not pairs
    )


def holds_in_any_order(world: World, pairs: Sequence[Bound], bound: list[Bound]) -> bool:
    """Say whether pinned pods are never refused, whichever of the others are bound already."""
    return all(
        world.spreads_pinned(*pair, [*bound, *some])
        for at, pair in enumerate(pairs)
        for some in subsets([*pairs[:at], *pairs[at + 1 :], *world.coming])
    )


def subsets(pairs: Sequence[Bound]) -> Iterator[list[Bound]]:
    for chosen in product([False, True], repeat=len(pairs)):
        yield [pair for pair, take in zip(pairs, chosen, strict=True) if take]


def possible_pinned(
    world: World, wanted: Sequence[Pod], bound: list[Bound], assumed: list[Bound]
) -> bool:
    """Try every node for every pod."""
    ways = (zip(wanted, nodes, strict=True) for nodes in product(world.nodes, repeat=len(wanted)))
    return any(
        has_order(world, pairs, [*bound, *assumed]) and holds_in_any_order(world, pairs, bound)
        for pairs in map(list, ways)
    )


@dataclass(frozen=True)
class Scene:
    """What the core is told, and what is so."""

    existing_pods: ExistingPods
    used: dict[str, dict[str, int]]
    world: World
    bound: list[Bound]
    assumed: list[Bound]


def scene(residents: list[tuple[Pod, int, str]], nodes: list[Node]) -> Scene:
    table, used, awaiting = PodIndex(), dict[str, dict[str, int]](), list[AssumedPods]()
    by = {how: list[Bound]() for how in ("bound", "leaving", "assumed", "nominated")}
    stays = {"bound": Presence.BOUND, "leaving": Presence.LEAVING, "nominated": Presence.NOMINATED}
    for pod, at, how in residents:
        node = nodes[at % len(nodes)]
        kind = (pod.namespace, (("app", pod.app),))
        if how in stays:
            table.use(kind, (), node.name, +1, stays[how])
        else:
            awaiting.append(AssumedPods(frozenset([kind]), node.name))
        sums = used.setdefault(node.name, {})
        for name, amount in pod.shape.requests:
            sums[name] = sums.get(name, 0) + amount
        by[how].append((pod, node))
    coming = [*by["assumed"], *by["nominated"]]
    world = World(nodes, [*by["leaving"], *by["nominated"]], coming)
    return Scene(ExistingPods(table, awaiting), used, world, by["bound"], by["assumed"])


@examples(200)
@given(GANGS, RESIDENTS, clusters())
def test_a_yes_can_be_bound_and_a_no_cannot(
    gang: list[tuple[Pod, int]], residents: list[tuple[Pod, int, str]], nodes: list[Node]
) -> None:
    """As the pods came in some order, pinned in any; and small gangs are decided for certain."""
    it = scene(residents, nodes)
    groups = tuple(Group(f"s{at}", "", pod.shape, n) for at, (pod, n) in enumerate(gang))
    members = tuple(
        Member(f"s{at}", pod.shape, (("app", pod.app),))
        for at, (pod, n) in enumerate(gang)
        for _ in range(n)
    )
    asked = PendingGang(GangKey("team", "g"), 0, 0.0, groups, (), members)
    plenty = Settings(search_steps=10**9, cycle_search_steps=10**9)
    [decision] = run_cycle([asked], node_snapshot_of(nodes, it.used), plenty, it.existing_pods)
    wanted = [pod for pod, n in gang for _ in range(n)]
    if isinstance(decision.verdict, Admitted):
        event("yes")
        pairs = pairs_of(decision.verdict, gang, nodes)
        assert len(pairs) == len(wanted)
        assert has_order(it.world, pairs, [*it.bound, *it.assumed])
        assert holds_in_any_order(it.world, pairs, it.bound)
        return
    event(str(decision.verdict.reason))
    if decision.verdict.reason is Reason.UNSUPPORTED:
        assert any(each.binds_pinned for pod, _ in gang for each in pod.shape.spread)
        assert possible(it.world, wanted, [*it.bound, *it.assumed])
        assert not possible_pinned(it.world, wanted, it.bound, it.assumed)
    elif decision.verdict.reason is Reason.UNDECIDED:
        assert any(how == "nominated" for _, _, how in residents)
    else:
        assert not possible(it.world, wanted, [*it.bound, *it.assumed])


def pairs_of(verdict: Admitted, gang: list[tuple[Pod, int]], nodes: Sequence[Node]) -> list[Bound]:
    by_name = {node.name: node for node in nodes}
    return [
        (gang[int(each.pod_set[1:])][0], by_name[name])
        for each in verdict.placement.assignments
        for name, count in each.nodes
        for _ in range(count)
    ]
