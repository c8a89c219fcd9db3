"""Which pods are gated, and by which patch."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from kube.objects.names import GATE, OPT_IN, RAY_NODE_TYPE
from tests.webhook.answers import GANG, answer_to, decided, read
from tests.webhook.samples import (
    CLUSTER,
    FOLDER,
    NAMESPACE,
    NOTHING,
    OURS,
    Json,
    Known,
    annotated,
    gates_after,
    labelled,
    pod_of,
    recorded,
    worker,
)
from webhook.admission_review import ALLOW, Allow, Deny
from webhook.owners import GONE, Lookup, Marks
from webhook.review import (
    Ask,
    Decision,
    Gate,
    without_field_owners,
)

# ---- which pods


@pytest.mark.parametrize(
    ("name", "gates"),
    [
        ("head-with-autoscaler", [GATE]),
        ("worker", [GATE]),
        ("redis-cleanup", []),
        ("rayjob-submitter", []),
        ("plain", []),
    ],
)
def test_a_recorded_pod_is_gated_when_it_is_of_a_gang(name: str, gates: list[str]) -> None:
    review = recorded(name)
    assert gates_after(review, answer_to(review)) == gates


def test_every_recorded_review_is_judged() -> None:
    """A review that is added to the folder is read without a change here."""
    for path in FOLDER.glob("*.json"):
        assert answer_to(orjson.loads(path.read_bytes()))["response"]["allowed"], path.name


def test_an_untouched_pod_gets_no_warning_and_no_patch() -> None:
    response = answer_to(recorded("plain"))["response"]
    assert response == {"uid": recorded("plain")["request"]["uid"], "allowed": True}


@pytest.mark.parametrize("node_type", ["redis-cleanup", "", "Head", None])
def test_only_heads_and_workers_are_gated_even_with_a_selector_set_wrong(
    node_type: str | None,
) -> None:
    review = worker()
    pod_of(review)["metadata"]["labels"][RAY_NODE_TYPE] = node_type
    if node_type is None:
        del pod_of(review)["metadata"]["labels"][RAY_NODE_TYPE]
    assert decided(review) is ALLOW


def test_labels_do_not_make_a_pod_a_member() -> None:
    review = worker()
    del pod_of(review)["metadata"]["ownerReferences"]
    pod_of(review)["metadata"]["labels"][OPT_IN] = "true"
    assert decided(review) is ALLOW


def test_a_label_on_the_pod_does_not_opt_it_out() -> None:
    review = worker()
    pod_of(review)["metadata"]["labels"][OPT_IN] = "false"
    assert isinstance(decided(review), Gate)


@pytest.mark.parametrize(
    "change",
    [
        {"controller": False},
        {"controller": None},
        {"kind": "RayJob"},
        {"apiVersion": "ray.example.org/v1"},
    ],
)
def test_only_the_controlling_ray_cluster_is_the_owner(change: Json) -> None:
    review = worker()
    pod_of(review)["metadata"]["ownerReferences"][0].update(change)
    assert decided(review) is ALLOW


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/../../secrets/b", "a?b", "a b", "A", "a" * 254, "-a", "a\n"]
)
def test_a_name_that_no_object_has_is_never_looked_up(name: str) -> None:
    review = worker()
    pod_of(review)["metadata"]["ownerReferences"][0]["name"] = name
    assert decided(review, Known(None)) is ALLOW


def test_a_pod_with_a_node_is_left_alone() -> None:
    assert decided(worker(nodeName="node-1")) is ALLOW


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT", ""])
def test_only_a_create_is_looked_at(operation: str) -> None:
    review = worker()
    review["request"]["operation"] = operation
    if operation in ("DELETE", "CONNECT"):
        review["request"]["object"] = None
    assert decided(review) is ALLOW


@pytest.mark.parametrize(
    ("group", "kind"), [("apps", "Deployment"), ("", "ConfigMap"), ("apps", "Pod")]
)
def test_another_kind_is_allowed_whatever_is_in_it(group: str, kind: str) -> None:
    review = worker(schedulingGates="of another type")
    review["request"]["kind"] = {"group": group, "version": "v1", "kind": kind}
    assert decided(review) is ALLOW


def test_a_subresource_is_allowed() -> None:
    review = worker()
    review["request"]["subResource"] = "ephemeralcontainers"
    assert decided(review) is ALLOW


# ---- opting in


@pytest.mark.parametrize(
    ("cluster", "namespace", "gated"),
    [
        (NOTHING, NOTHING, False),
        (labelled(), NOTHING, True),
        (annotated(), NOTHING, True),
        (NOTHING, labelled(), True),
        (NOTHING, annotated(), False),
        (labelled("false"), labelled(), False),
        (annotated("false"), labelled(), False),
        (Marks({OPT_IN: "false"}, {OPT_IN: "true"}), NOTHING, False),
        (Marks({OPT_IN: "true"}, {OPT_IN: "false"}), labelled("false"), True),
        (labelled("yes"), NOTHING, True),
        (labelled("True"), NOTHING, True),
        (labelled(""), NOTHING, True),
        (annotated("1"), NOTHING, True),
        (NOTHING, labelled("on"), True),
        (NOTHING, labelled("false"), False),
        (labelled(), GONE, True),
        (NOTHING, GONE, False),
    ],
)
def test_a_pod_is_gated_when_its_cluster_or_namespace_says_so(
    cluster: Any, namespace: Any, gated: bool
) -> None:
    decision = decided(worker(), Known(cluster, namespace))
    assert isinstance(decision, Gate if gated else Allow)


@pytest.mark.parametrize("namespace", [NOTHING, labelled(), labelled("false"), None])
def test_a_pod_of_a_ray_cluster_that_is_gone_is_refused(namespace: Marks | None) -> None:
    """Whether it was a gang is known no more, and its pods are garbage either way."""
    refused = decided(worker(), Known(GONE, namespace))
    assert isinstance(refused, Deny)
    assert refused.code == 403
    assert refused.message == (
        f"RayCluster demo/raycluster-kuberay (uid {CLUSTER.uid}), for which the pod is made, is "
        "gone; allowed: a pod of one that exists"
    )


def test_an_unknown_cluster_is_asked_for() -> None:
    assert decided(worker(), Known(None)) == Ask(CLUSTER)


def test_the_namespace_of_the_request_counts() -> None:
    review = worker()
    review["request"]["namespace"] = "elsewhere"
    decision = decided(review, Known(None))
    assert isinstance(decision, Ask)
    assert str(decision.key) == "RayCluster elsewhere/raycluster-kuberay"


def test_an_unknown_namespace_is_asked_for_when_it_matters() -> None:
    assert decided(worker(), Known(NOTHING, None)) == Ask(NAMESPACE)


@pytest.mark.parametrize("cluster", [labelled(), labelled("false"), annotated(), labelled("x")])
def test_a_cluster_that_speaks_for_itself_needs_no_namespace(cluster: Marks) -> None:
    assert not isinstance(decided(worker(), Known(cluster, None)), Ask)


# ---- the patch


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        (None, [GATE]),
        ([], [GATE]),
        ([{"name": "other"}], ["other", GATE]),
        ([{"name": "a"}, {"name": "b"}], ["a", "b", GATE]),
        ([OURS], [GATE]),
        ([{"name": "a"}, OURS, {"name": "b"}], ["a", GATE, "b"]),
    ],
)
def test_our_gate_is_added_once_and_others_stay(gates: Any, expected: list[str]) -> None:
    review = worker(schedulingGates=gates)
    assert gates_after(review, answer_to(review)) == expected


def test_ten_thousand_gates_of_others_stay() -> None:
    gates = [{"name": f"example.org/{number}"} for number in range(10_000)]
    review = worker(schedulingGates=gates)
    after = gates_after(review, answer_to(review))
    assert after == [*(gate["name"] for gate in gates), GATE]


def test_a_second_call_changes_nothing() -> None:
    """The API server calls again when a webhook after this one changed the pod."""
    assert decided(worker(schedulingGates=[OURS])) is ALLOW


def test_a_dry_run_gets_the_same_answer() -> None:
    review = worker()
    review["request"]["dryRun"] = True
    assert answer_to(review) == answer_to(worker())


def test_null_lists_and_maps_are_empty_ones() -> None:
    review = worker(schedulingGates=None, nodeName=None)
    assert isinstance(decided(review), Gate)
    pod_of(review)["metadata"].update(annotations=None, ownerReferences=None, labels=None)
    assert decided(review) is ALLOW
    pod_of(review)["spec"] = None
    assert decided(review) is ALLOW


REMOVED = {"op": "remove", "path": "/metadata/managedFields"}


def _untracked(review: Json, lookup: Lookup = GANG) -> Decision:
    decision = decided(review, lookup)
    assert not isinstance(decision, Ask)
    return without_field_owners(read(review), decision)


def test_a_gated_pod_loses_its_field_owners_with_the_same_patch() -> None:
    decision = _untracked(recorded("worker"))
    assert isinstance(decision, Gate)
    assert decision.patch[-1] == REMOVED
    assert len(decision.patch) == 2


def test_a_pod_that_came_without_field_owners_is_not_asked_to_lose_them() -> None:
    """To remove what is not there fails, and the creation of the pod with it."""
    review = recorded("worker")
    del pod_of(review)["metadata"]["managedFields"]
    decision = _untracked(review)
    assert isinstance(decision, Gate)
    assert REMOVED not in decision.patch


def test_a_pod_that_is_not_gated_keeps_its_field_owners() -> None:
    assert _untracked(recorded("worker"), Known(NOTHING)) == ALLOW
    assert _untracked(recorded("plain")) == ALLOW
