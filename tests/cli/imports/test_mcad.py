"""QuotaSubtrees become GangQueues with the same quota."""

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cli.imports.mcad import read
from cli.imports.outcome import Fault, Outcome
from tests.cli.checks import Json, fields, queues_of, sources, specs, tree_of, tried

GPU = "nvidia.com/gpu"


def child(name: str, *, is_hard: bool = False, **requests: Any) -> Json:
    amounts = {GPU if key == "gpu" else key: value for key, value in requests.items()}
    return {"name": name, "quotas": {"hardLimit": is_hard, "requests": amounts}}


def subtree(name: str, *children: Json, parent: str = "", tree: str = "context") -> Json:
    return {
        "apiVersion": "quota.codeflare.dev/v1alpha1",
        "kind": "QuotaSubtree",
        "metadata": {"name": name, "namespace": "kube-system", "labels": {"tree": tree}},
        "spec": {"children": list(children), **({"parent": parent} if parent else {})},
    }


def imported(*subtrees: Json) -> Outcome:
    return read(sources(*subtrees))


def test_a_tree_keeps_its_quota_at_every_level() -> None:
    """What the nodes below have is taken off the quota of the one above, in its own unit."""
    outcome = imported(
        subtree("root", child("company", cpu="1950m", memory="1500Mi", gpu=16)),
        subtree(
            "teams",
            child("gold", cpu="1075m", memory="450Mi", gpu=8),
            child("bronze", is_hard=True, cpu="0.5", memory="300Mi"),
            parent="company",
        ),
    )
    found = specs(outcome)
    assert found["company"] == {"quota": {"cpu": "375m", "memory": "750Mi", GPU: 8}}
    assert found["gold"]["quota"] == {"cpu": "1075m", "memory": "450Mi", GPU: 8}
    assert found["bronze"]["quota"] == {"cpu": "0.5", "memory": "300Mi"}
    assert outcome.left_out == []
    tree = tree_of(outcome)
    whole = {name: int(tree.subtree[0, tree.column[name]]) for name in tree.resources}
    assert whole == {"cpu": 1950, "memory": 1500 * 2**20, GPU: 16}


def test_a_hard_node_borrows_nothing_of_any_resource_and_a_soft_one_everything() -> None:
    outcome = imported(
        subtree("root", child("company", cpu=10, gpu=4)),
        subtree(
            "teams", child("hard", is_hard=True, cpu=2), child("soft", cpu=2), parent="company"
        ),
    )
    found = specs(outcome)
    assert found["hard"]["borrowingLimit"] == {"cpu": 0, GPU: 0}
    assert "borrowingLimit" not in found["soft"]
    tree = tree_of(outcome)
    most = {
        name: tree.most[tree.index[name], tree.column["cpu"]].item() for name in ("hard", "soft")
    }
    assert most == {"hard": 2000, "soft": 10_000}


def test_queues_take_back_what_is_lent_and_stop_lower_priorities_as_in_mcad() -> None:
    found = specs(imported(subtree("root", child("only", cpu=1))))
    assert found["only"]["preemption"] == {"withinQueue": "LowerPriority", "reclaim": "Any"}
    assert found["only"]["namespaceSelector"] == {}


def test_only_leaves_take_gangs() -> None:
    found = specs(
        imported(subtree("root", child("top", cpu=2)), subtree("a", child("leaf"), parent="top"))
    )
    assert "namespaceSelector" not in found["top"]
    assert found["leaf"]["namespaceSelector"] == {}


def test_quotas_that_are_more_than_the_one_above_are_kept_and_the_bound_is_named() -> None:
    outcome = imported(
        subtree("root", child("top", cpu="1075m")),
        subtree("a", child("gold", cpu="1075m"), child("silver", cpu=1), parent="top"),
    )
    found = specs(outcome)
    assert found["top"]["quota"] == {"cpu": 0}
    assert (found["gold"]["quota"], found["silver"]["quota"]) == ({"cpu": "1075m"}, {"cpu": 1})
    (lost,) = outcome.left_out
    assert lost.subject == "QuotaSubtree kube-system/root"
    assert lost.field == "spec.children[0].quotas.requests[cpu]"
    assert lost.value == "1075m"
    assert "(gold, silver) are 2075m together" in lost.advice


def test_of_a_forest_all_trees_are_there_and_names_stay_apart() -> None:
    """A gang uses quota in one tree, so the others are named as lost."""
    outcome = imported(
        subtree("context", child("c-root", cpu=4), tree="quota_context"),
        subtree("c", child("gold"), child("silver"), parent="c-root", tree="quota_context"),
        subtree("service", child("s-root", cpu=4), tree="quota_service"),
        subtree("s", child("gold", cpu=1), parent="s-root", tree="quota_service"),
    )
    found = specs(outcome)
    assert set(found) == {"c-root", "quota-context-gold", "silver", "s-root", "quota-service-gold"}
    assert found["quota-service-gold"]["parent"] == "s-root"
    assert ("tree quota_service", "metadata.labels[tree]", "quota_service") in fields(
        outcome.left_out
    )


def test_names_become_valid_and_stay_unique() -> None:
    outcome = imported(
        subtree("root", child("Top_Node", cpu=1)),
        subtree("a", child("A b"), child("a-b"), child("a.b"), parent="Top_Node"),
    )
    found = specs(outcome)
    assert set(found) == {"top-node", "a-b", "context-a-b", "a.b"}
    assert {each["parent"] for name, each in found.items() if name != "top-node"} == {"top-node"}
    assert any("its queue is called top-node" in each.advice for each in outcome.advice)


def test_what_does_not_lead_to_the_root_is_left_out_as_in_mcad() -> None:
    outcome = imported(
        subtree("root", child("a-root", cpu=1), child("b-root", cpu=1)),
        subtree("lost", child("lost", cpu=1), parent="nowhere"),
        subtree("circle", child("x"), parent="y"),
        subtree("circle-2", child("y"), parent="x"),
    )
    assert set(specs(outcome)) == {"a-root"}
    assert {each.value for each in outcome.left_out} == {"b-root", "lost", "x", "y"}


def test_a_subtree_without_the_label_of_a_tree_is_named() -> None:
    bare = subtree("bare", child("n", cpu=1))
    bare["metadata"]["labels"] = None
    outcome = imported(bare)
    assert outcome.queues == []
    assert fields(outcome.left_out) == {
        ("QuotaSubtree kube-system/bare", "metadata.labels[tree]", "")
    }


@pytest.mark.parametrize(
    ("children", "said"),
    [
        (
            [child("a", cpu="1x")],
            "QuotaSubtree kube-system/root: spec.children[0].quotas.requests[cpu]: '1x' is not",
        ),
        ([child("a", cpu=-1)], "requests[cpu]: '-1' is not valid; allowed: a quantity"),
        ([child("a", cpu=float("inf"))], "requests[cpu]: 'inf' is not valid"),
        ([child("a", cpu="1" * 33)], "is not valid; allowed: a quantity"),
        ([child("a"), child("a")], "spec.children[1].name: node 'a' is there twice, see"),
        ([child("")], "spec.children[0].name: empty or missing"),
        ([{"name": "a", "quotas": 5}], "spec.children[0].quotas: Expected `object | null`"),
        (
            [{"name": "a", "quotas": {"requests": {f"r{n}": 1 for n in range(65)}}}],
            "65 resources; ",
        ),
    ],
)
def test_a_bad_value_is_named_with_its_place(children: list[Json], said: str) -> None:
    with pytest.raises(Fault) as caught:
        imported(subtree("root", *children))
    assert said in str(caught.value)


def test_an_object_that_is_there_twice_is_refused() -> None:
    with pytest.raises(Fault, match="QuotaSubtree kube-system/root is there twice"):
        imported(subtree("root", child("a")), subtree("root", child("b")))


def test_the_order_of_the_objects_does_not_matter() -> None:
    parts = [
        subtree("root", child("top", cpu=9)),
        subtree("a", child("x", cpu=1), parent="top"),
        subtree("b", child("y", cpu=1), parent="top"),
        subtree("c", child("top", cpu=3), tree="other"),
    ]
    assert imported(*parts) == imported(*reversed(parts))


Part = tuple[str, str, list[Json]]

AMOUNTS = st.one_of(
    st.integers(-1, 50),
    st.sampled_from(
        ["500m", "1.5", "2Gi", "0", "1e3", "100u", "3k", "1E", "x", ".5", "7.", "1e-3"]
    ),
    st.floats(0, 9, allow_nan=False).map(lambda each: round(each, 3)),
)
REQUESTS = st.dictionaries(st.sampled_from(["cpu", "memory", GPU]), AMOUNTS, max_size=3)
NODES = st.sampled_from(["a", "b", "c", "A", "a.", "-", "default", "é", "x" * 260])
CHILDREN = st.builds(
    lambda name, hard, requests: {
        "name": name,
        "quotas": {"hardLimit": hard, "requests": requests},
    },
    NODES,
    st.booleans(),
    REQUESTS,
)
SUBTREES = st.builds(
    lambda *part: part,
    st.sampled_from(["t", "T_2"]),
    st.sampled_from(["", "a", "b", "c", "nil", "zz"]),
    st.lists(CHILDREN, max_size=4),
)


@given(st.lists(SUBTREES, max_size=5))
def test_any_trees_give_queues_that_work_or_a_fault_with_a_name(parts: list[Part]) -> None:
    bodies = [
        subtree(f"s{at}", *children, parent=parent, tree=tree)
        for at, (tree, parent, children) in enumerate(parts)
    ]
    outcome, fault = tried(imported, *bodies)
    event("queues" if outcome.queues else "none")
    if fault:
        event("a fault")
        assert fault.startswith("QuotaSubtree kube-system/s")
    queues = queues_of(outcome)
    assert {each.parent for each in queues.values()} - {""} <= set(queues)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.booleans()), max_size=6))
def test_a_root_holds_its_quota_or_what_was_promised_below_it(
    nodes: list[tuple[int, int, bool]],
) -> None:
    """Each node's parent is one of those before it; each subtree holds the more of both."""
    whole = [("n0", None, 30, False)] + [
        (f"n{at}", min(above, at - 1), quota, is_hard)
        for at, (above, quota, is_hard) in enumerate(nodes, start=1)
    ]
    outcome = imported(
        *(
            subtree(f"s-{name}", child(name, is_hard=is_hard, cpu=quota), parent=parent_of(above))
            for name, above, quota, is_hard in whole
        )
    )
    tree = tree_of(outcome)
    held: dict[int, int] = {}
    for at in reversed(range(len(whole))):
        name, _, quota, _ = whole[at]
        below = sum(held[each] for each in held if whole[each][1] == at)
        held[at] = max(quota, below)
        found = int(tree.subtree[tree.index[name], tree.column["cpu"]])
        assert found == 1000 * held[at]


def parent_of(above: int | None) -> str:
    return "" if above is None else f"n{above}"
