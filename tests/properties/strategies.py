"""Random small worlds, and answers worked out the slow and obvious way."""

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from scheduling.model.constraints import NodeTerm, Requirement, Toleration
from scheduling.model.gang import Group
from scheduling.model.node import Node, Taint
from scheduling.model.pod import PodShape

RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
AMOUNTS = st.fixed_dictionaries({name: st.integers(0, 9) for name in RESOURCES})
KEYS = st.sampled_from(["a", "b"])
VALUES = st.sampled_from(["", "1", "2", "10", "x"])
TAINTS = st.builds(
    Taint, KEYS, VALUES, st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
)
TOLERATIONS = st.builds(
    Toleration,
    KEYS | st.just(""),
    st.sampled_from(["Equal", "Exists"]),
    VALUES,
    st.sampled_from(["", "NoSchedule", "NoExecute"]),
)
OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
REQUIREMENTS = st.builds(
    Requirement, KEYS, OPERATORS, st.lists(VALUES, max_size=2, unique=True).map(tuple)
)
FIELDS = st.builds(
    Requirement,
    st.just("metadata.name"),
    st.sampled_from(["In", "NotIn"]),
    st.sampled_from(["n0", "n1", "n9"]).map(lambda name: (name,)),
)
TERMS = st.builds(
    NodeTerm,
    st.lists(REQUIREMENTS, max_size=2).map(tuple),
    st.lists(FIELDS, max_size=1).map(tuple),
)


def _node(name: str, allocatable: Mapping[str, int], **traits: object) -> Node:
    return Node(name=name, allocatable=allocatable, **traits)  # type: ignore[arg-type]


@st.composite
def nodes(draw: st.DrawFn, most: int = 4, *, plain: bool = False) -> list[Node]:
    """Draw up to `most` nodes; plain ones have neither labels but `a`, nor taints, nor cordon."""
    names = [f"n{at}" for at in range(draw(st.integers(0, most)))]
    return [
        _node(
            name,
            {**draw(AMOUNTS), "pods": draw(st.integers(1, 9))},
            labels={"a": draw(st.sampled_from("12"))}
            if plain
            else draw(st.dictionaries(KEYS, VALUES, max_size=2)),
            taints=() if plain else tuple(draw(st.lists(TAINTS, max_size=2))),
            unschedulable=False if plain else draw(st.booleans()),
        )
        for name in names
    ]


@st.composite
def shapes(draw: st.DrawFn, *, plain: bool = False) -> PodShape:
    """Draw a shape; a plain one selects at most by the label `a`."""
    small = st.fixed_dictionaries({name: st.integers(0, 5) for name in RESOURCES})
    asked = {name: amount for name, amount in draw(small).items() if amount} | {"pods": 1}
    selector = draw(st.sampled_from([(), (), (("a", "1"),)]))
    if plain:
        return PodShape(tuple(sorted(asked.items())), node_selector=selector)
    return PodShape(
        tuple(sorted(asked.items())),
        node_selector=selector,
        node_affinity=draw(st.none() | st.lists(TERMS, max_size=2).map(tuple)),
        added_affinity=draw(st.none() | st.lists(TERMS, max_size=2).map(tuple)),
        tolerations=tuple(draw(st.lists(TOLERATIONS, max_size=2))),
    )


@st.composite
def groups(draw: st.DrawFn, most: int = 3, *, pods: int = 4) -> list[Group]:
    """Draw up to `most` groups of plain shapes."""
    return [
        Group(f"set{at}", "", draw(shapes(plain=True)), draw(st.integers(1, pods)))
        for at in range(draw(st.integers(1, most)))
    ]


USED = st.dictionaries(
    st.sampled_from([f"n{at}" for at in range(4)]),
    st.fixed_dictionaries({name: st.integers(0, 4) for name in (*RESOURCES, "pods")}),
)


def tolerated(shape: PodShape, taint: Taint) -> bool:
    """Say whether a toleration of the shape covers the taint, rule by rule."""
    for toleration in shape.tolerations:
        if toleration.effect and toleration.effect != taint.effect:
            continue
        if toleration.key and toleration.key != taint.key:
            continue
        if toleration.operator == "Exists" or toleration.value == taint.value:
            return True
    return False


def matches(requirement: Requirement, found: str | None) -> bool:
    """Say whether a value (None: no such label) satisfies a requirement; unparsable: no."""
    operator, values = requirement.operator, requirement.values
    if operator in ("In", "NotIn"):
        return bool(values) and (found in values) is (operator == "In")
    if operator in ("Exists", "DoesNotExist"):
        return not values and (found is not None) is (operator == "Exists")
    if len(values) != 1 or not values[0].isdigit() or found is None or not found.isdigit():
        return False
    return int(found) > int(values[0]) if operator == "Gt" else int(found) < int(values[0])


def allowed(shape: PodShape, node: Node) -> bool:
    """Say whether a node takes pods of a shape, room aside: one node, one pod, no cleverness."""
    drain = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
    if node.unschedulable and not tolerated(shape, drain):
        return False
    hard = [taint for taint in node.taints if taint.effect != "PreferNoSchedule"]
    if not all(tolerated(shape, taint) for taint in hard):
        return False
    if any(node.labels.get(key) != value for key, value in shape.node_selector):
        return False
    return all(
        terms is None or any(attracts(term, node) for term in terms)
        for terms in (shape.node_affinity, shape.added_affinity)
    )


def attracts(term: NodeTerm, node: Node) -> bool:
    """Say whether a node satisfies all of a term, which is not empty."""
    return (
        bool(term.labels or term.fields)
        and all(matches(each, node.labels.get(each.key)) for each in term.labels)
        and all(matches(each, node.name) for each in term.fields)
    )


def free_of(
    nodes: Sequence[Node], used: Mapping[str, Mapping[str, int]]
) -> dict[str, dict[str, int]]:
    """Return what is free per node and resource."""
    return {
        node.name: {
            name: amount - used.get(node.name, {}).get(name, 0)
            for name, amount in node.allocatable.items()
        }
        for node in nodes
    }


def possible(
    groups: Sequence[Group], nodes: Sequence[Node], used: Mapping[str, Mapping[str, int]]
) -> bool:
    """Say whether the groups fit, by trying every node for every pod."""
    pods = [group.shape for group in groups for _ in range(group.count)]
    return _placeable(pods, 0, list(nodes), free_of(nodes, used), 0)


def _placeable(
    pods: Sequence[PodShape],
    at: int,
    nodes: Sequence[Node],
    free: dict[str, dict[str, int]],
    first: int,
) -> bool:
    if at == len(pods):
        return True
    shape = pods[at]
    for position in range(first, len(nodes)):
        room = free[nodes[position].name]
        if not allowed(shape, nodes[position]):
            continue
        if any(room.get(name, 0) < amount for name, amount in shape.requests):
            continue
        for name, amount in shape.requests:
            room[name] -= amount
        equal_next = at + 1 < len(pods) and pods[at + 1] is shape
        if _placeable(pods, at + 1, nodes, free, position if equal_next else 0):
            return True
        for name, amount in shape.requests:
            room[name] += amount
    return False
