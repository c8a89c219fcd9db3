"""Queues of Volcano become GangQueues below one root; PodGroups get advice."""

from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cli.imports.outcome import Fault, Outcome
from cli.imports.volcano import read
from tests.cli.checks import Json, fields, queues_of, sources, specs, tree_of, tried

VERSION = "scheduling.volcano.sh/v1beta1"


def queue(name: str, **spec: Any) -> Json:
    guarantee = spec.pop("guarantee", None)
    said = {**spec, **({"guarantee": {"resource": guarantee}} if guarantee else {})}
    return {"apiVersion": VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": said}


def pod_group(name: str, owner: Json | None = None, **spec: Any) -> Json:
    owners = {"ownerReferences": [owner]} if owner else {}
    metadata = {"name": name, "namespace": "ns", **owners}
    return {"apiVersion": VERSION, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def imported(*bodies: Json) -> Outcome:
    return read(sources(*bodies))


def most(outcome: Outcome, resource: str = "cpu") -> dict[str, int]:
    """What each queue can hold while the others hold nothing."""
    tree = tree_of(outcome)
    return {name: int(tree.most[at, tree.column[resource]]) for name, at in tree.index.items()}


def test_deserved_is_quota_guarantee_is_kept_and_capability_is_the_most() -> None:
    outcome = imported(
        queue("a", deserved={"cpu": 8}, guarantee={"cpu": 2}, capability={"cpu": 12}),
        queue("b", deserved={"cpu": 8}),
    )
    assert specs(outcome)["a"] == {
        "parent": "root",
        "quota": {"cpu": 8},
        "borrowingLimit": {"cpu": 4},
        "lendingLimit": {"cpu": 6},
        "namespaceSelector": {},
    }
    assert outcome.left_out == []
    assert most(outcome) == {"root": 14_000, "a": 12_000, "b": 14_000}


def test_a_guarantee_alone_is_quota_that_is_not_lent() -> None:
    found = specs(imported(queue("a", guarantee={"cpu": "1500m"})))
    assert (found["a"]["quota"], found["a"]["lendingLimit"]) == ({"cpu": "1500m"}, {"cpu": 0})


def test_capabilities_where_nothing_is_deserved_are_bounds() -> None:
    outcome = imported(
        queue("team", capability={"cpu": 10}),
        queue("x", parent="team", capability={"cpu": 8}),
        queue("y", parent="team"),
    )
    assert most(outcome) == {"root": 0, "team": 10_000, "x": 8000, "y": 10_000}
    assert outcome.left_out == []


def test_a_parent_gets_what_those_below_it_leave() -> None:
    outcome = imported(
        queue("root", capability={"cpu": 20}),
        queue("team", deserved={"cpu": 10}),
        queue("x", parent="team", deserved={"cpu": 6}),
    )
    found = {name: spec.get("quota") for name, spec in specs(outcome).items()}
    assert found == {"root": {"cpu": 10}, "team": {"cpu": 4}, "x": {"cpu": 6}}
    assert most(outcome)["x"] == 20_000


def test_more_below_than_above_is_named() -> None:
    outcome = imported(
        queue("team", deserved={"cpu": 4}), queue("x", parent="team", deserved={"cpu": 6})
    )
    assert specs(outcome)["team"]["quota"] == {"cpu": 0}
    assert fields(outcome.left_out) == {("Queue team", "spec.deserved[cpu]", "4")}


def test_a_root_counts_what_is_promised_at_every_level_below_it() -> None:
    outcome = imported(
        queue("root", capability={"cpu": 20}),
        queue("team", deserved={"cpu": 4}),
        queue("x", parent="team", deserved={"cpu": 6}),
    )
    assert most(outcome)["root"] == 20_000


def test_a_parent_keeps_what_the_queues_below_it_have() -> None:
    outcome = imported(
        queue("team", deserved={"cpu": 10}, guarantee={"cpu": 2}),
        queue("x", parent="team", deserved={"cpu": 6}),
    )
    assert specs(outcome)["team"]["lendingLimit"] == {"cpu": 8}
    assert outcome.left_out == []
    assert queues_of(outcome)


def test_a_queue_that_deserves_nothing_beside_one_that_does_is_named() -> None:
    outcome = imported(queue("a", deserved={"cpu": 8}), queue("b", capability={"cpu": 3}))
    assert most(outcome)["b"] == 3000
    assert fields(outcome.left_out) == {("Queue b", "spec.capability[cpu]", "3")}


def test_fifo_blocks_and_a_closed_queue_takes_no_gangs() -> None:
    closed = queue("closed") | {"status": {"state": "Closed"}}
    found = specs(imported(queue("f", dequeueStrategy="fifo"), closed))
    assert found["f"]["whenBlocked"] == "Strict"
    assert found["closed"] == {"parent": "root"}


def test_a_required_group_of_nodes_is_a_node_selector() -> None:
    one = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["gold"]}}
    two = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["a", "b"]}}
    outcome = imported(queue("one", affinity=one), queue("two", affinity=two))
    found = specs(outcome)
    assert found["one"]["nodeSelector"] == {"volcano.sh/nodegroup-name": "gold"}
    assert found["one"]["nodeSelectorScope"] == "All"
    assert "nodeSelector" not in found["two"]
    assert [each.value for each in outcome.left_out] == ["a, b"]


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        ({"weight": 4}, "spec.weight", "4"),
        ({"reclaimable": False}, "spec.reclaimable", "false"),
        ({"priority": 7}, "spec.priority", "7"),
        ({"extendClusters": [{"name": "c"}]}, "spec.extendClusters", '[{"name": "c"}]'),
        ({"dra": {"capability": {}}}, "spec.dra", '{"capability": {}}'),
        ({"affinity": {"nodeGroupAntiAffinity": {}}}, "spec.affinity.nodeGroupAntiAffinity", "set"),
        (
            {
                "affinity": {
                    "nodeGroupAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["p"]}
                }
            },
            "spec.affinity.nodeGroupAffinity.preferred...",
            "p",
        ),
    ],
)
def test_what_has_no_counterpart_is_named(spec: Json, field: str, value: str) -> None:
    assert fields(imported(queue("q", **spec)).left_out) == {("Queue q", field, value)}


def test_of_a_ray_clusters_pod_group_it_is_said_what_the_cluster_says_instead() -> None:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": "u"}
    group = pod_group(
        "ray-c-pg",
        owner,
        minMember=5,
        queue="q",
        minTaskMember={"w": 4},
        minResources={"cpu": "5"},
        priorityClassName="high",
    )
    outcome = imported(queue("q"), group)
    assert outcome.left_out == []
    said = {each.field: each.advice for each in outcome.advice if each.subject.startswith("Pod")}
    assert said["spec.queue"] == (
        'label RayCluster c: muster.dev/gang: "true" and muster.dev/queue: q'
    )
    assert "muster.dev/min-replicas: GROUP=COUNT" in said["spec.minMember"]
    assert said["spec.minTaskMember"].endswith("w=4")
    assert "muster.dev/priority-class" in said["spec.priorityClassName"]
    assert "read from the pods" in said["spec.minResources"]


def test_pod_groups_of_others_and_topologies_are_named() -> None:
    owner = {"kind": "RayCluster", "name": "c"}
    topology = {"mode": "hard"}
    outcome = imported(
        pod_group("job", minMember=1), pod_group("ray", owner, networkTopology=topology)
    )
    assert fields(outcome.left_out) == {
        ("PodGroup ns/job", "metadata.ownerReferences", "no Ray object"),
        ("PodGroup ns/ray", "spec.networkTopology", '{"mode": "hard"}'),
    }
    assert outcome.queues == []


@pytest.mark.parametrize(
    ("bodies", "said"),
    [
        ([queue("a", parent="b")], "Queue a: spec.parent: 'b' is not in the input"),
        ([queue("a", parent="a")], "the parents form a circle: a -> a"),
        (
            [queue("a", parent="b"), queue("b", parent="a")],
            "the parents form a circle: a -> b -> a",
        ),
        ([queue("a", deserved={"cpu": "x"})], "Queue a: spec.deserved[cpu]: 'x' is not valid"),
        ([queue("a", dequeueStrategy="lifo")], "spec.dequeueStrategy: 'lifo' is not known"),
        ([queue("a", weight="4")], "spec.weight: Expected `int`"),
    ],
)
def test_a_bad_value_is_named_with_its_place(bodies: list[Json], said: str) -> None:
    with pytest.raises(Fault) as caught:
        imported(*bodies)
    assert said in str(caught.value)


AMOUNTS = st.dictionaries(
    st.sampled_from(["cpu", "memory"]), st.sampled_from([0, 2, 5, "1500m", "1Gi"]), max_size=2
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "q0", "q1", "q2"]), AMOUNTS, AMOUNTS, AMOUNTS), max_size=4
    )
)
def test_any_queues_give_queues_that_work_or_a_fault(parts: list[tuple[Any, ...]]) -> None:
    bodies = [
        queue(f"q{at}", parent=parent, deserved=deserved, guarantee=kept, capability=most_of)
        for at, (parent, deserved, kept, most_of) in enumerate(parts)
    ]
    outcome, fault = tried(imported, *bodies)
    event("a fault" if fault else "queues")
    assert fault.startswith("Queue q") or not fault
    found = queues_of(outcome)
    assert {each.parent for each in found.values()} - {""} <= set(found)
