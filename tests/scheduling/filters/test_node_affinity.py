"""Node selector terms: every operator, and what kube-scheduler cannot parse."""

from dataclasses import replace

import pytest

from scheduling.filters.feasibility import feasible, rejections
from scheduling.model.constraints import NODE_NAME, NodeTerm, Requirement
from scheduling.model.node_terms import matches
from scheduling.model.predicates import Predicate
from tests.builders import columns, node, require, shape


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
        pytest.param(require("metadata.name", "In", "x"), [False, False], id="In picks no node"),
        pytest.param(
            require("metadata.name", "NotIn", "b"), [True, False], id="NotIn leaves the node out"
        ),
        pytest.param(
            require("metadata.name", "NotIn", "x"), [True, True], id="NotIn of no node leaves all"
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
