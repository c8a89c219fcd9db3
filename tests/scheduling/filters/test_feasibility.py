"""Which nodes a shape may use, predicate by predicate."""

from dataclasses import replace

import pytest

from scheduling.filters.feasibility import feasible, rejections
from scheduling.filters.node_affinity import matches
from scheduling.filters.taint_toleration import tolerates
from scheduling.model.constraints import NODE_NAME, NodeTerm, Requirement, Toleration
from scheduling.model.node import Node, Taint
from scheduling.model.plugins import Predicate
from scheduling.model.pod import PodShape
from tests.builders import columns, node, require, shape, taint, toleration

DRAIN = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize("operator", ["In", "NotIn", "Exists", "DoesNotExist"])
def test_a_label_without_a_key_is_no_label_and_not_the_name_of_a_node(operator: str) -> None:
    """kube-scheduler cannot parse it, so the whole term matches nothing."""
    on = columns(node("a"), node("b"))
    values = ("a",) if operator.endswith("In") else ()
    asked = shape(node_affinity=(NodeTerm((Requirement("", operator, values),)),))
    assert not feasible(asked, on).any()
    assert not matches(NodeTerm((Requirement("", operator, values),)), on.nodes[0])
    assert on.traits.label("").values == (None,)
    assert on.traits.label(NODE_NAME).values == ("a", "b")


@pytest.mark.parametrize(
    ("given", "by", "expected"),
    [
        pytest.param(taint("gpu"), (), False, id="nothing tolerates nothing"),
        pytest.param(
            taint("gpu", "a"), (toleration("gpu", value="a"),), True, id="Equal compares the value"
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration("gpu", value="b"),),
            False,
            id="Equal refuses another value",
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration("gpu", operator="", value="a"),),
            True,
            id="no operator is Equal",
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration("gpu", operator="Exists"),),
            True,
            id="Exists takes any value",
        ),
        pytest.param(
            taint("gpu"), (toleration("cpu", operator="Exists"),), False, id="the key must match"
        ),
        pytest.param(
            taint("gpu"),
            (toleration(operator="Exists"),),
            True,
            id="no key with Exists takes everything",
        ),
        pytest.param(
            taint("gpu", "a"),
            (toleration(value="a"),),
            True,
            id="no key with Equal compares the value alone",
        ),
        pytest.param(
            taint("gpu", effect="NoExecute"),
            (toleration("gpu", effect="NoSchedule"),),
            False,
            id="the effect must match",
        ),
        pytest.param(
            taint("gpu", effect="NoExecute"),
            (toleration("gpu"),),
            True,
            id="no effect takes every effect",
        ),
        pytest.param(
            taint("n", "5"),
            (toleration("n", operator="Gt", value="3"),),
            False,
            id="Gt is off by default in 1.36",
        ),
        pytest.param(
            taint("n", "5"),
            (toleration("n", operator="Lt", value="9"),),
            False,
            id="Lt is off by default in 1.36",
        ),
    ],
)
def test_tolerates(given: Taint, by: tuple[Toleration, ...], expected: bool) -> None:
    """ToleratesTaint of k8s.io/api, with its feature gate as 1.36 ships it."""
    assert tolerates(by, given) is expected


@pytest.mark.parametrize(
    ("of", "on", "refused_by"),
    [
        pytest.param(shape(), node("n"), None, id="a plain node takes a plain pod"),
        pytest.param(
            shape(),
            node("n", unschedulable=True),
            Predicate.CORDON,
            id="a cordoned node takes nobody",
        ),
        pytest.param(
            shape(tolerations=(toleration(DRAIN, operator="Exists"),)),
            node("n", unschedulable=True),
            None,
            id="but who tolerates the cordon",
        ),
        pytest.param(
            shape(),
            node("n", unschedulable=True, taints=(taint(DRAIN),)),
            Predicate.CORDON,
            id="the cordon is said before its taint",
        ),
        pytest.param(
            shape(), node("n", taints=(taint("gpu"),)), Predicate.TAINT, id="a taint repels"
        ),
        pytest.param(
            shape(),
            node("n", taints=(taint("gpu", effect="NoExecute"),)),
            Predicate.TAINT,
            id="NoExecute repels as well",
        ),
        pytest.param(
            shape(),
            node("n", taints=(taint("gpu", effect="PreferNoSchedule"),)),
            None,
            id="PreferNoSchedule does not",
        ),
        pytest.param(
            shape(tolerations=(toleration("a"),)),
            node("n", taints=(taint("a"), taint("b"))),
            Predicate.TAINT,
            id="every taint must be tolerated",
        ),
        pytest.param(
            shape(selector={"pool": "a"}),
            node("n", labels={"pool": "b"}),
            Predicate.NODE_SELECTOR,
            id="the selector compares",
        ),
        pytest.param(
            shape(selector={"pool": "a"}),
            node("n"),
            Predicate.NODE_SELECTOR,
            id="the selector wants the label",
        ),
        pytest.param(
            shape(selector={"a": "1", "b": "2"}),
            node("n", labels={"a": "1", "b": "2"}),
            None,
            id="all of the selector matches",
        ),
        pytest.param(
            shape(selector={"a": "1", "b": "2"}),
            node("n", labels={"a": "1", "b": "3"}),
            Predicate.NODE_SELECTOR,
            id="half of the selector is not enough",
        ),
        pytest.param(
            shape(node_affinity=()),
            node("n"),
            Predicate.NODE_AFFINITY,
            id="no term matches nothing",
        ),
        pytest.param(
            shape(node_affinity=(NodeTerm(),)),
            node("n"),
            Predicate.NODE_AFFINITY,
            id="an empty term matches nothing",
        ),
        pytest.param(
            shape(node_affinity=(NodeTerm(), NodeTerm((require("a", "DoesNotExist"),)))),
            node("n"),
            None,
            id="an empty term beside another does no harm",
        ),
        pytest.param(shape(cpu=65), node("n"), Predicate.RESOURCES, id="room is asked last"),
        pytest.param(
            shape(cpu=65),
            node("n", taints=(taint("x"),)),
            Predicate.TAINT,
            id="only the first refusal counts",
        ),
    ],
)
def test_the_first_predicate_that_refuses(
    of: PodShape, on: Node, refused_by: Predicate | None
) -> None:
    """Each predicate in the scheduler's order; `feasible` is all of them but room."""
    world = columns(on)
    assert rejections(of, world) == ({refused_by: 1} if refused_by else {})
    assert feasible(of, world).tolist() == [refused_by in (None, Predicate.RESOURCES)]


@pytest.mark.parametrize(
    ("requirement", "value", "expected"),
    [
        pytest.param(require("k", "In", "a", "b"), "b", True, id="In takes one of the values"),
        pytest.param(require("k", "In", "a"), None, False, id="In wants the label"),
        pytest.param(require("k", "In"), "a", False, id="In without values does not parse"),
        pytest.param(require("k", "NotIn", "a"), "a", False, id="NotIn refuses the value"),
        pytest.param(require("k", "NotIn", "a"), "b", True, id="NotIn takes another value"),
        pytest.param(
            require("k", "NotIn", "a"), None, True, id="NotIn takes a node without the label"
        ),
        pytest.param(require("k", "NotIn"), "a", False, id="NotIn without values does not parse"),
        pytest.param(
            require("k", "NotIn", "not a label value"),
            "a",
            False,
            id="NotIn with an impossible value does not parse",
        ),
        pytest.param(require("k", "Exists"), "", True, id="Exists takes an empty value"),
        pytest.param(require("k", "Exists"), None, False, id="Exists wants the label"),
        pytest.param(
            require("k", "Exists", "a"), "a", False, id="Exists with a value does not parse"
        ),
        pytest.param(
            require("k", "DoesNotExist"), None, True, id="DoesNotExist takes a node without"
        ),
        pytest.param(require("k", "DoesNotExist"), "a", False, id="DoesNotExist refuses the label"),
        pytest.param(require("k", "Gt", "5"), "6", True, id="Gt compares as integers"),
        pytest.param(require("k", "Gt", "9"), "10", True, id="Gt does not compare as text"),
        pytest.param(require("k", "Gt", "5"), "5", False, id="Gt is strict"),
        pytest.param(require("k", "Lt", "5"), "-6", True, id="Lt takes negative values"),
        pytest.param(require("k", "Lt", "5"), "five", False, id="Lt on a text does not match"),
        pytest.param(require("k", "Lt", "5"), None, False, id="Lt wants the label"),
        pytest.param(require("k", "Lt", "5"), "1_0", False, id="Lt takes no underscores"),
        pytest.param(require("k", "Gt", "5", "6"), "9", False, id="Gt takes one bound"),
        pytest.param(require("k", "Gt", "x"), "9", False, id="Gt with a text does not parse"),
        pytest.param(require("k", "Gt", "1"), str(2**63), False, id="Gt knows 64 bits only"),
        pytest.param(
            require("k", "Near", "1"), "1", False, id="an unknown operator does not parse"
        ),
    ],
)
def test_a_label_requirement(requirement: Requirement, value: str | None, expected: bool) -> None:
    """All operators, and what the scheduler cannot parse."""
    on = node("n", labels={} if value is None else {"k": value})
    of = shape(node_affinity=(NodeTerm(labels=(requirement,)),))
    assert feasible(of, columns(on)).tolist() == [expected]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param(require("metadata.name", "In", "b"), [False, True], id="In picks the node"),
        pytest.param(require("metadata.name", "In", "x"), [False, False], id="In picks nobody"),
        pytest.param(
            require("metadata.name", "NotIn", "b"), [True, False], id="NotIn leaves the node out"
        ),
        pytest.param(
            require("metadata.name", "NotIn", "x"), [True, True], id="NotIn of nobody leaves all"
        ),
        pytest.param(
            require("metadata.name", "In", "a", "b"), [False, False], id="two names do not parse"
        ),
        pytest.param(
            require("metadata.name", "Exists"), [False, False], id="fields know In and NotIn only"
        ),
        pytest.param(require("spec.x", "NotIn", "b"), [False, False], id="there is one field"),
    ],
)
def test_a_field_requirement(field: Requirement, expected: list[bool]) -> None:
    """matchFields on metadata.name."""
    of = shape(node_affinity=(NodeTerm(fields=(field,)),))
    assert feasible(of, columns(node("a"), node("b"))).tolist() == expected


def test_requirements_of_a_term_all_hold_and_terms_are_alternatives() -> None:
    """AND inside a term, OR between terms."""
    both = NodeTerm((require("a", "Exists"), require("b", "Exists")))
    other = NodeTerm((require("c", "Exists"),), (require("metadata.name", "NotIn", "n4"),))
    world = columns(
        node("n1", labels={"a": "", "b": ""}),
        node("n2", labels={"a": ""}),
        node("n3", labels={"c": ""}),
        node("n4", labels={"c": ""}),
    )
    assert feasible(shape(node_affinity=(both, other)), world).tolist() == [
        True,
        False,
        True,
        False,
    ]


def test_rejections_add_up_to_the_nodes_that_refuse() -> None:
    """Every node that takes no pod is counted once."""
    world = columns(
        node("a", unschedulable=True), node("b", taints=(taint("x"),)), node("c"), node("d", cpu=1)
    )
    of = shape(cpu=2, node_affinity=(NodeTerm(fields=(require("metadata.name", "NotIn", "c"),)),))
    assert rejections(of, world) == {
        Predicate.CORDON: 1,
        Predicate.TAINT: 1,
        Predicate.NODE_AFFINITY: 1,
        Predicate.RESOURCES: 1,
    }


def test_a_mask_is_computed_once_per_set_of_nodes() -> None:
    """Equal constraints share one mask as long as no node changed."""
    world = columns(node("a"))
    assert feasible(shape(cpu=1), world) is feasible(shape(cpu=2), world)


def test_a_node_must_match_what_the_pod_asks_and_what_its_scheduler_adds() -> None:
    """Terms are ORed on each side, the sides are ANDed; the scheduler's is asked first."""
    asked, added = (NodeTerm((require(key, "Exists"),)) for key in "ab")
    world = columns(
        *(node(name, labels=dict.fromkeys(name, "")) for name in ("a", "ab", "b", "c")),
    )
    of = replace(shape(node_affinity=(asked,)), added_affinity=(added, NodeTerm()))
    assert feasible(of, world).tolist() == [False, True, False, False]
    assert rejections(of, world) == {Predicate.ADDED_AFFINITY: 2, Predicate.NODE_AFFINITY: 1}
    assert feasible(shape(node_affinity=(asked,)), world).tolist() == [True, True, False, False]


def test_a_node_must_declare_every_feature_that_a_pod_needs() -> None:
    able = {"none": (), "one": ("a",), "other": ("b", "c"), "two": ("a", "b", "c")}
    world = columns(*(replace(node(n), features=frozenset(f)) for n, f in able.items()))
    of = replace(shape(), features=("a", "b"))
    assert feasible(of, world).tolist() == [False, False, False, True]
    assert rejections(of, world) == {Predicate.FEATURES: 3}
    assert feasible(shape(), world).all()
