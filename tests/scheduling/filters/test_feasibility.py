"""Which nodes a shape may use, predicate by predicate."""

import pytest

from scheduling.filters.feasibility import feasible, rejections
from scheduling.model.constraints import NodeTerm
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.predicates import Predicate
from tests.builders import columns, node, require, shape, taint, toleration

DRAIN = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("of", "on", "refused_by"),
    [
        pytest.param(shape(), node("n"), None, id="a plain node takes a plain pod"),
        pytest.param(
            shape(),
            node("n", unschedulable=True),
            Predicate.CORDON,
            id="a cordoned node takes no pod",
        ),
        pytest.param(
            shape(tolerations=(toleration(DRAIN, operator="Exists"),)),
            node("n", unschedulable=True),
            None,
            id="but a pod that tolerates the cordon",
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
