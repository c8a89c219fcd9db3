"""The label that no node has is named, with what nodes have instead."""

import pytest

from scheduling.cycle import run_cycle
from scheduling.diagnosis.unmatched_labels import unmatched
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import MESSAGE_LIMIT, Refusal
from scheduling.state.node_snapshot import NodeSnapshot
from tests.builders import columns, gang, group, node, require, shape, taint

NODES = [node(name, labels={"pool": name, "size": "4"}) for name in ("blue", "green")]


def said(asked: PodShape, nodes: list[Node] = NODES) -> str:
    return unmatched(asked, columns(*nodes).traits)


def affine(*terms: NodeTerm) -> PodShape:
    return shape(node_affinity=terms)


def term(*labels: Requirement) -> NodeTerm:
    return NodeTerm(labels)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (shape(selector={"pool": "blu"}), "no node has pool=blu (existing values: blue, green)"),
        (shape(selector={"pol": "blue"}), "no node has pol=blue (no node has this label)"),
        (
            shape(selector={"pool": "red", "size": "8"}),
            "no node has pool=red (existing values: blue, green), size=8 (existing values: 4)",
        ),
        (shape(selector={"pool": "blue", "size": "4"}), ""),
        (
            affine(term(require("pool", "In", "red", "black"))),
            "no node has pool in (red, black) (existing values: blue, green)",
        ),
        (
            affine(term(require("gpu", "Exists"))),
            "no node has a label gpu (no node has this label)",
        ),
        (
            affine(term(require("size", "DoesNotExist"))),
            "no node has size unset (existing values: 4)",
        ),
        (affine(term(require("size", "Gt", "4"))), "no node has size above 4 (existing values: 4)"),
        (
            affine(term(require("pool", "NotIn", "blue", "green"))),
            "no node has pool not in (blue, green) (existing values: blue, green)",
        ),
        (
            affine(term(require("pool", "In", "blue"), require("size", "In", "4", "5"))),
            "",
        ),
        (
            affine(NodeTerm(fields=(require("metadata.name", "In", "gone"),))),
            "no node has metadata.name=gone",
        ),
        (
            affine(term(require("size", "Near", "4"))),
            "no node has size Near (4) (existing values: 4)",
        ),
        (affine(NodeTerm()), "a term of the node affinity is empty, which matches no node"),
        (
            affine(term(require("pool", "In", "red")), term(require("pool", "In", "blue"))),
            "",  # one alternative is enough
        ),
        (
            affine(term(require("pool", "In", "x")), term(require("pool", "In", "y"))),
            (
                "no node has pool=x (existing values: blue, green); "
                "no node has pool=y (existing values: blue, green)"
            ),
        ),
    ],
)
def test_what_no_node_has_is_named(asked: PodShape, message: str) -> None:
    assert said(asked) == message


def test_what_no_single_node_has_together_is_named() -> None:
    nodes = [node("a", labels={"pool": "x"}), node("b", labels={"zone": "y"})]
    both = {"pool": "x", "zone": "y"}
    assert said(shape(selector=both), nodes) == "no node has all of pool=x, zone=y"


def test_a_waiting_gang_is_told_also_where_taints_speak_first() -> None:
    world = columns(node("a", labels={"pool": "gpu"}, taints=(taint("x"),)), node("b"))
    assert message(world, {"pool": "gpuu"}) == (
        "0 of 2 w fit: no node is feasible for them (2 nodes: 1 has an untolerated taint, "
        "1 does not match the node selector); no node has pool=gpuu (existing values: gpu)"
    )
    assert "no node has" not in message(world, {"pool": "gpu"})


def message(world: NodeSnapshot, selector: dict[str, str]) -> str:
    [decision] = run_cycle([gang("g", group("w", 2, shape(selector=selector)))], world)
    assert isinstance(decision.verdict, Refusal)
    return decision.verdict.message


def test_what_is_named_is_bounded() -> None:
    """Tenants write selectors, and a cluster has thousands of host names."""
    nodes = [node(f"n{at:04}", labels={"host": f"n{at:04}"}) for at in range(1000)]
    assert said(shape(selector={"host": "x"}), nodes) == (
        "no node has host=x (existing values: n0000, n0001, n0002 and 997 more)"
    )
    long = affine(*(term(require(f"{'k' * 300}{at}", "In", *["v" * 63] * 50)) for at in range(50)))
    assert len(said(long, nodes)) < MESSAGE_LIMIT
