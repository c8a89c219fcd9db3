"""Exactly the pods of gangs are gated, once, and malformed reviews are answered with a 4xx."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.names import GATE, OPT_IN, RAY_NODE_TYPE
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
from webhook.admission_review import ALLOW, Allow, BadReview, Deny
from webhook.owners import GONE, Lookup, Marks, NamespaceKey
from webhook.review import (
    Ask,
    Decision,
    Gate,
    Review,
    answer,
    decide,
    read_review,
    without_field_owners,
)

GANG = Known(labelled())


def _read(review: Json) -> Review:
    read = read_review(orjson.dumps(review))
    assert isinstance(read, Review), read
    return read


def _decided(review: Json, lookup: Lookup = GANG) -> Decision:
    return decide(_read(review), lookup)


def _answered(review: Json, lookup: Lookup = GANG) -> Json:
    decision = _decided(review, lookup)
    assert not isinstance(decision, Ask)
    answered: Json = orjson.loads(answer(_read(review), decision))
    return answered


def _refusal(body: bytes) -> str:
    read = read_review(body)
    assert isinstance(read, BadReview), read
    assert 400 <= read.status < 500
    return read.message


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
    assert gates_after(review, _answered(review)) == gates


def test_every_recorded_review_is_judged() -> None:
    """A review that is added to the folder is read without a change here."""
    for path in FOLDER.glob("*.json"):
        assert _answered(orjson.loads(path.read_bytes()))["response"]["allowed"], path.name


def test_an_untouched_pod_gets_no_warning_and_no_patch() -> None:
    response = _answered(recorded("plain"))["response"]
    assert response == {"uid": recorded("plain")["request"]["uid"], "allowed": True}


@pytest.mark.parametrize("node_type", ["redis-cleanup", "", "Head", None])
def test_only_heads_and_workers_are_gated_even_with_a_selector_set_wrong(
    node_type: str | None,
) -> None:
    review = worker()
    pod_of(review)["metadata"]["labels"][RAY_NODE_TYPE] = node_type
    if node_type is None:
        del pod_of(review)["metadata"]["labels"][RAY_NODE_TYPE]
    assert _decided(review) is ALLOW


def test_labels_do_not_make_a_pod_a_member() -> None:
    review = worker()
    del pod_of(review)["metadata"]["ownerReferences"]
    pod_of(review)["metadata"]["labels"][OPT_IN] = "true"
    assert _decided(review) is ALLOW


def test_a_label_on_the_pod_does_not_opt_it_out() -> None:
    review = worker()
    pod_of(review)["metadata"]["labels"][OPT_IN] = "false"
    assert isinstance(_decided(review), Gate)


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
    assert _decided(review) is ALLOW


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/../../secrets/b", "a?b", "a b", "A", "a" * 254, "-a", "a\n"]
)
def test_a_name_that_no_object_has_is_never_looked_up(name: str) -> None:
    review = worker()
    pod_of(review)["metadata"]["ownerReferences"][0]["name"] = name
    assert _decided(review, Known(None)) is ALLOW


def test_a_pod_with_a_node_is_left_alone() -> None:
    assert _decided(worker(nodeName="node-1")) is ALLOW


@pytest.mark.parametrize("operation", ["UPDATE", "DELETE", "CONNECT", ""])
def test_only_a_create_is_looked_at(operation: str) -> None:
    review = worker()
    review["request"]["operation"] = operation
    if operation in ("DELETE", "CONNECT"):
        review["request"]["object"] = None
    assert _decided(review) is ALLOW


@pytest.mark.parametrize(
    ("group", "kind"), [("apps", "Deployment"), ("", "ConfigMap"), ("apps", "Pod")]
)
def test_another_kind_is_allowed_whatever_is_in_it(group: str, kind: str) -> None:
    review = worker(schedulingGates="of another type")
    review["request"]["kind"] = {"group": group, "version": "v1", "kind": kind}
    assert _decided(review) is ALLOW


def test_a_subresource_is_allowed() -> None:
    review = worker()
    review["request"]["subResource"] = "ephemeralcontainers"
    assert _decided(review) is ALLOW


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
    decision = _decided(worker(), Known(cluster, namespace))
    assert isinstance(decision, Gate if gated else Allow)


@pytest.mark.parametrize("namespace", [NOTHING, labelled(), labelled("false"), None])
def test_a_pod_of_a_ray_cluster_that_is_gone_is_refused(namespace: Marks | None) -> None:
    """Whether it was a gang is known no more, and its pods are garbage either way."""
    refused = _decided(worker(), Known(GONE, namespace))
    assert isinstance(refused, Deny)
    assert refused.code == 403
    assert refused.message == (
        f"RayCluster demo/raycluster-kuberay (uid {CLUSTER.uid}), for which the pod is made, is "
        "gone; allowed: a pod of one that exists"
    )


def test_an_unknown_cluster_is_asked_for() -> None:
    assert _decided(worker(), Known(None)) == Ask(CLUSTER)


def test_the_namespace_of_the_request_counts() -> None:
    review = worker()
    review["request"]["namespace"] = "elsewhere"
    decision = _decided(review, Known(None))
    assert isinstance(decision, Ask)
    assert str(decision.key) == "RayCluster elsewhere/raycluster-kuberay"


def test_an_unknown_namespace_is_asked_for_when_it_matters() -> None:
    assert _decided(worker(), Known(NOTHING, None)) == Ask(NAMESPACE)


@pytest.mark.parametrize("cluster", [labelled(), labelled("false"), annotated(), labelled("x")])
def test_a_cluster_that_speaks_for_itself_needs_no_namespace(cluster: Marks) -> None:
    assert not isinstance(_decided(worker(), Known(cluster, None)), Ask)


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
    assert gates_after(review, _answered(review)) == expected


def test_ten_thousand_gates_of_others_stay() -> None:
    gates = [{"name": f"example.org/{number}"} for number in range(10_000)]
    review = worker(schedulingGates=gates)
    after = gates_after(review, _answered(review))
    assert after == [*(gate["name"] for gate in gates), GATE]


def test_a_second_call_changes_nothing() -> None:
    """The API server calls again when a webhook after this one changed the pod."""
    assert _decided(worker(schedulingGates=[OURS])) is ALLOW


def test_a_dry_run_gets_the_same_answer() -> None:
    review = worker()
    review["request"]["dryRun"] = True
    assert _answered(review) == _answered(worker())


def test_null_lists_and_maps_are_empty_ones() -> None:
    review = worker(schedulingGates=None, nodeName=None)
    assert isinstance(_decided(review), Gate)
    pod_of(review)["metadata"].update(annotations=None, ownerReferences=None, labels=None)
    assert _decided(review) is ALLOW
    pod_of(review)["spec"] = None
    assert _decided(review) is ALLOW


REMOVED = {"op": "remove", "path": "/metadata/managedFields"}


def _untracked(review: Json, lookup: Lookup = GANG) -> Decision:
    decision = _decided(review, lookup)
    assert not isinstance(decision, Ask)
    return without_field_owners(_read(review), decision)


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


def test_the_answer_is_of_version_1_and_names_the_review() -> None:
    answered = _answered(worker())
    assert answered["apiVersion"] == "admission.k8s.io/v1"
    assert answered["kind"] == "AdmissionReview"
    assert answered["response"]["uid"] == worker()["request"]["uid"]


def test_a_uid_is_not_pasted_into_the_answer() -> None:
    review = worker()
    review["request"]["uid"] = '","allowed":false,"x":"ü\n'
    assert _answered(review)["response"]["uid"] == review["request"]["uid"]


def test_a_refusal_says_why_with_a_code() -> None:
    answered = orjson.loads(answer(_read(worker()), Deny(503, "no answer")))
    assert answered["response"] == {
        "uid": worker()["request"]["uid"],
        "allowed": False,
        "status": {"code": 503, "message": "no answer"},
    }


# ---- what is not a review


@pytest.mark.parametrize(
    "body",
    [b"", b"x", b"{", b"\xff", b'"', b'{"kind":"\xff"}', b"{} {}", b'{"a":NaN}', b"\xef\xbb\xbf{}"],
)
def test_what_is_not_json_is_named_so(body: bytes) -> None:
    assert _refusal(body).startswith("not JSON")


@pytest.mark.parametrize("body", [b"[]", b"null", b"1", b'"x"'])
def test_json_of_another_form_is_no_review(body: bytes) -> None:
    assert _refusal(body).startswith("not an AdmissionReview")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"kind": "Pod"}, "kind is 'Pod', allowed is AdmissionReview"),
        ({"kind": None}, "$.kind"),
        (
            {"apiVersion": "admission.k8s.io/v1beta1"},
            "apiVersion is 'admission.k8s.io/v1beta1', allowed is admission.k8s.io/v1",
        ),
        ({"request": None}, "request is None, allowed is an object"),
        ({"request": []}, "$.request"),
        ({"request": {}}, "request.uid is '', allowed is the uid"),
    ],
)
def test_a_wrong_envelope_is_refused_by_field_value_and_what_is_allowed(
    change: Json, named: str
) -> None:
    assert named in _refusal(orjson.dumps({**worker(), **change}))


@pytest.mark.parametrize(
    ("field", "value", "named"),
    [
        ("object", None, "request.object is None"),
        ("object", [], "Expected `object`, got `array`"),
        ("object", {"spec": {"schedulingGates": {}}}, "$.spec.schedulingGates"),
        ("object", {"metadata": {"labels": {"a": 1}}}, "$.metadata.labels"),
        ("namespace", "", "request.namespace is ''"),
        ("namespace", "../../secrets", "request.namespace is '../../secrets'"),
        ("namespace", 7, "$.request.namespace"),
        ("uid", 7, "$.request.uid"),
    ],
)
def test_a_wrong_request_is_refused_by_field(field: str, value: Any, named: str) -> None:
    review = worker()
    review["request"][field] = value
    assert named in _refusal(orjson.dumps(review))


def test_a_missing_pod_is_refused() -> None:
    review = worker()
    del review["request"]["object"]
    assert "request.object is None" in _refusal(orjson.dumps(review))


def test_a_long_value_is_not_repeated_in_full() -> None:
    assert len(_refusal(orjson.dumps({"kind": "x" * 100_000}))) < 300


@pytest.mark.parametrize("depth", [1_500, 100_000])
@pytest.mark.parametrize("place", ["envelope", "object", "spec"])
def test_deep_nesting_is_refused_not_fatal(depth: int, place: str) -> None:
    deep = b"[" * depth + b"]" * depth
    review = worker()
    if place == "envelope":
        review["deep"] = "HERE"
    elif place == "object":
        pod_of(review)["deep"] = "HERE"
    else:
        pod_of(review)["spec"]["deep"] = "HERE"
    body = orjson.dumps(review).replace(b'"HERE"', deep)
    read = read_review(body)
    # How deep is too deep is the interpreter's: an answer either way.
    assert isinstance(read, Review | BadReview)
    if depth == 100_000:
        assert "nested" in _refusal(body)


# ---- anything at all

LOOKUPS = [GANG, Known(None), Known(NOTHING, None), Known(GONE), Known(NOTHING)]
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


def _never_raises(body: bytes) -> None:
    read = read_review(body)
    if isinstance(read, BadReview):
        assert 400 <= read.status < 500
        return
    for lookup in LOOKUPS:
        decision = decide(read, lookup)
        if not isinstance(decision, Ask):
            assert orjson.loads(answer(read, decision))["response"]["uid"] == read.uid


@given(st.binary())
def test_any_bytes_are_answered(body: bytes) -> None:
    _never_raises(body)


@given(JSON)
def test_any_json_is_answered(value: Any) -> None:
    _never_raises(orjson.dumps(value))


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner: list[tuple[Any, ...]] = [at]
    if isinstance(value, dict):
        inner += [path for key in value for path in _paths(value[key], (*at, key))]
    if isinstance(value, list):
        inner += [path for key, each in enumerate(value) for path in _paths(each, (*at, key))]
    return inner


WORKER = worker()
PATHS = [path for path in _paths(WORKER) if path]


def _changed(path: tuple[Any, ...], value: Any) -> Json:
    review = copy.deepcopy(WORKER)
    place: Any = review
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return review


@given(st.sampled_from(PATHS), JSON)
def test_a_review_with_anything_anywhere_is_answered(path: tuple[Any, ...], value: Any) -> None:
    _never_raises(orjson.dumps(_changed(path, value)))


@given(st.integers(0), st.integers(0, 255))
def test_a_review_with_a_flipped_byte_is_answered(place: int, byte: int) -> None:
    body = bytearray(orjson.dumps(WORKER))
    body[place % len(body)] = byte
    _never_raises(bytes(body))


NAMES = st.text("abcdefghij", min_size=1, max_size=3) | st.just(GATE)


@given(st.none() | st.lists(NAMES, unique=True))
def test_afterwards_our_gate_is_there_once_and_the_others_as_before(
    gates: list[str] | None,
) -> None:
    review = worker(schedulingGates=None if gates is None else [{"name": name} for name in gates])
    after = gates_after(review, _answered(review))
    assert after.count(GATE) == 1
    assert [name for name in after if name != GATE] == [
        name for name in gates or [] if name != GATE
    ]


def test_keys_read_well_in_messages() -> None:
    assert str(CLUSTER) == "RayCluster demo/raycluster-kuberay"
    assert str(NamespaceKey("demo")) == "Namespace demo"
