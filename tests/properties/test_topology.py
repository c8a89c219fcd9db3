"""A gang with a topology is placed if and only if some placement keeps it. Every one is tried.

The oracle puts pod after pod on node after node and looks only at the result.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from scheduling.cycle import run_cycle
from scheduling.model.gang import GangKey, Group, Occupied, PendingGang, Topology
from scheduling.model.node import Node, Taint
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Admitted, Reason, Refusal, Verdict
from scheduling.state.node_table import node_snapshot_of
from tests.examples import examples

Pod = tuple[str, str, PodShape]
ZONES = st.sampled_from(["a", "b", None])
RACKS = st.sampled_from(["1", "2", "3", None])


def _shape(cpu: int, gpu: int) -> PodShape:
    amounts = {"cpu": cpu, "gpu": gpu, "pods": 1}
    return PodShape(tuple((name, amount) for name, amount in sorted(amounts.items()) if amount))


SHAPES = st.builds(_shape, st.integers(0, 3), st.integers(0, 3))


@st.composite
def nodes(draw: st.DrawFn, most: int) -> list[Node]:
    found = []
    for at in range(draw(st.integers(1, most))):
        labels = {"zone": draw(ZONES), "rack": draw(RACKS)}
        allocatable = {"cpu": draw(st.integers(0, 5)), "gpu": draw(st.integers(0, 4)), "pods": 4}
        said = {key: value for key, value in labels.items() if value is not None}
        found.append(Node(f"n{at}", said, (), False, allocatable))
    return found


@st.composite
def topologies(draw: st.DrawFn, names: Sequence[str]) -> Topology:
    keys = st.sampled_from(["", "zone"])
    occupied = draw(st.lists(st.sampled_from(names), max_size=1))
    places = tuple(Occupied("workers", "gone", name) for name in occupied)
    required, replica = draw(keys), draw(st.sampled_from(["", "rack"]))
    assume(required or replica)
    return Topology(("workers", "others"), required, "", replica, places)


def _minimum(
    draw: st.DrawFn, heads: int, replicas: int, hosts: int, others: int
) -> tuple[Group, ...]:
    worker = draw(SHAPES)
    found = [Group("headgroup", "", draw(SHAPES), heads), Group("others", "", draw(SHAPES), others)]
    found += [Group("workers", f"r{at}" * (hosts > 1), worker, hosts) for at in range(replicas)]
    return tuple(group for group in found if group.count)


@st.composite
def simple_gangs(draw: st.DrawFn) -> tuple[Group, ...]:
    """At most a head, and one group of one shape: here the answer must be exact."""
    hosts = draw(st.integers(1, 2))
    return _minimum(draw, draw(st.integers(0, 1)), draw(st.integers(1, 4 // hosts)), hosts, 0)


@st.composite
def any_gangs(draw: st.DrawFn) -> tuple[Group, ...]:
    return _minimum(draw, 1, draw(st.integers(1, 2)), 2, draw(st.integers(0, 2)))


def _pods(groups: Sequence[Group]) -> list[Pod]:
    each = ((g.pod_set, g.replica, g.shape) for g in groups for _ in range(g.count))
    return sorted(each, key=lambda pod: (pod[0], pod[1], pod[2].key))


def _ways(pods: Sequence[Pod], cluster: Sequence[Node]) -> Iterator[list[Node]]:
    """Every way to put the pods on nodes that have the room."""
    if not pods:
        yield []
        return
    asked = dict(pods[0][2].requests)
    for at, node in enumerate(cluster):
        if all(node.allocatable[name] >= amount for name, amount in asked.items()):
            left = {name: n - asked.get(name, 0) for name, n in node.allocatable.items()}
            rest = [*cluster[:at], replace(node, allocatable=left), *cluster[at + 1 :]]
            for way in _ways(pods[1:], rest):
                yield [node, *way]


def _is_kept(
    topology: Topology, pods: Sequence[Pod], on: Sequence[Node], cluster: list[Node]
) -> bool:
    """Say whether pods on these nodes are together as they are to be."""
    there = {node.name: node for node in cluster}
    labels: dict[tuple[str, ...], set[str | None]] = {}
    bound = [(pod, node) for pod, node in zip(pods, on, strict=True) if pod[0] in topology.pod_sets]
    for (pod_set, replica, _), node in bound:
        if topology.required:
            labels.setdefault(("all",), set()).add(node.labels.get(topology.required))
        if topology.replica and replica:
            labels.setdefault((pod_set, replica), set()).add(node.labels.get(topology.replica))
    for each in topology.occupied:
        if topology.required and bound:
            labels[("all",)].add(there[each.node].labels.get(topology.required))
    return all(len(values) == 1 and None not in values for values in labels.values())


def _can_be_placed(topology: Topology, groups: Sequence[Group], cluster: list[Node]) -> bool:
    pods = _pods(groups)
    return any(_is_kept(topology, pods, way, cluster) for way in _ways(pods, cluster))


def _verdict(groups: tuple[Group, ...], topology: Topology, cluster: Sequence[Node]) -> Verdict:
    asked = PendingGang(GangKey("team", "a"), 0, 0.0, groups, topology=topology)
    return run_cycle([asked], node_snapshot_of(cluster))[0].verdict


def _is_sound(
    found: Admitted, groups: Sequence[Group], topology: Topology, cluster: list[Node]
) -> bool:
    there = {node.name: node for node in cluster}
    shapes = {(g.pod_set, g.shape.key): g.shape for g in groups}
    pods: list[Pod] = []
    on: list[Node] = []
    taken: Counter[tuple[str, str]] = Counter()
    for each in found.placement.assignments:
        for name, count in each.nodes:
            pods += [(each.pod_set, each.replica, shapes[each.pod_set, each.shape])] * count
            on += [there[name]] * count
            for resource, amount in each.requests:
                taken[name, resource] += amount * count
    fits = all(there[name].allocatable[what] >= amount for (name, what), amount in taken.items())
    complete = Counter(pods) == Counter(_pods(groups))
    return fits and complete and _is_kept(topology, pods, on, cluster)


@given(st.data())
@examples(200)
def test_one_group_beside_a_head_is_placed_if_and_only_if_there_is_a_way(
    data: st.DataObject,
) -> None:
    cluster = data.draw(nodes(5))
    topology = data.draw(topologies([node.name for node in cluster]))
    groups = data.draw(simple_gangs())
    found = _verdict(groups, topology, cluster)
    possible = _can_be_placed(topology, groups, cluster)
    assert isinstance(found, Admitted) == possible, found
    assert not isinstance(found, Admitted) or _is_sound(found, groups, topology, cluster)


@given(st.data())
@examples(100)
def test_several_groups_are_never_placed_wrongly_nor_refused_for_certain_where_there_is_a_way(
    data: st.DataObject,
) -> None:
    cluster = data.draw(nodes(4))
    topology = data.draw(topologies([node.name for node in cluster]))
    groups = data.draw(any_gangs())
    found = _verdict(groups, topology, cluster)
    possible = _can_be_placed(topology, groups, cluster)
    if isinstance(found, Admitted):
        assert _is_sound(found, groups, topology, cluster)
    else:
        assert found.reason == Reason.UNDECIDED or not possible, found


@given(st.data())
@examples(100)
def test_the_domain_is_the_tightest_that_holds_the_workers(data: st.DataObject) -> None:
    """Counted here one node at a time."""
    cluster = data.draw(nodes(5))
    worker, count = data.draw(SHAPES), data.draw(st.integers(1, 3))
    groups = (Group("workers", "", worker, count),)
    found = _verdict(groups, Topology(("workers",), required="zone"), cluster)
    held = Counter[str]()
    for node in cluster:
        fits = min(node.allocatable[name] // amount for name, amount in worker.requests)
        held[node.labels.get("zone", "")] += fits
    enough = {zone: pods for zone, pods in held.items() if zone and pods >= count}
    assert isinstance(found, Admitted) == bool(enough)
    if isinstance(found, Admitted):
        [assignment] = found.placement.assignments
        labels = {node.name: node.labels["zone"] for node in cluster if "zone" in node.labels}
        best = min(enough, key=lambda zone: (enough[zone], zone))
        assert {labels[name] for name, _ in assignment.nodes} == {best}


@given(st.data())
@examples(100)
def test_names_order_and_useless_nodes_make_no_difference(data: st.DataObject) -> None:
    cluster = data.draw(nodes(5))
    topology = data.draw(topologies([node.name for node in cluster]))
    groups = data.draw(any_gangs())
    found = _verdict(groups, topology, cluster)
    labels = data.draw(st.sampled_from(cluster)).labels  # another domain would be news
    useless = Node("zz", labels, (RESERVED,), False, {"cpu": 9, "gpu": 9, "pods": 9})
    shuffled = data.draw(st.permutations([*cluster, useless]))
    again = _verdict(tuple(data.draw(st.permutations(groups))), topology, shuffled)
    assert _without_counts(again) == _without_counts(found)
    renamed = [replace(node, name=f"x{node.name}") for node in cluster]
    places = tuple(each._replace(node=f"x{each.node}") for each in topology.occupied)
    other = _verdict(groups, replace(topology, occupied=places), renamed)
    assert _spelled(other, "x") == _spelled(found, "")


@st.composite
def plain_gangs(draw: st.DrawFn) -> tuple[Group, ...]:
    """A head and two groups whose pods are no replicas of several."""
    return _minimum(draw, 1, draw(st.integers(1, 4)), 1, draw(st.integers(0, 2)))


@given(plain_gangs(), nodes(5))
@examples(150)
def test_a_gang_of_the_size_that_is_told_starts_in_one_domain(
    groups: tuple[Group, ...], cluster: list[Node]
) -> None:
    topology = Topology(("workers", "others"), "zone")
    found = _verdict(groups, topology, cluster)
    assume(isinstance(found, Refusal) and found.pod_sets)
    assert isinstance(found, Refusal)
    fit = Counter({each.pod_set: each.fit for each in found.pod_sets})
    asked = [(name, shape, n) for (name, shape), n in _sets(groups).items()]
    fewer = tuple(Group(name, "", shape, fit[name]) for name, shape, _ in asked if fit[name])
    assert isinstance(_verdict(fewer, topology, cluster), Admitted)


def _sets(groups: tuple[Group, ...]) -> Counter[tuple[str, PodShape]]:
    counts: Counter[tuple[str, PodShape]] = Counter()
    for group in groups:
        counts[group.pod_set, group.shape] += group.count
    return counts


RESERVED = Taint("reserved", "", "NoSchedule")


def _without_counts(found: Verdict) -> object:
    """What is said of nodes that are left out counts the useless one too."""
    return found if isinstance(found, Admitted) else found.reason


def _spelled(found: Verdict, prefix: str) -> Mapping[object, object] | Refusal:
    """Return what is said but for the names of nodes, of which one is named that is too small."""
    if isinstance(found, Refusal):
        return replace(found, message="") if found.reason is Reason.NEVER_FITS else found
    return {
        (each.pod_set, each.replica): [(name.removeprefix(prefix), n) for name, n in each.nodes]
        for each in found.placement.assignments
    }
