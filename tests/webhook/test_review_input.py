"""Whatever is asked is answered, and what is wrong is named."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects.names import GATE
from tests.webhook.answers import GANG, answer_to, read
from tests.webhook.samples import (
    CLUSTER,
    NOTHING,
    Json,
    Known,
    gates_after,
    pod_of,
    worker,
)
from webhook.admission_review import BadReview, Deny
from webhook.owners import GONE, NamespaceKey
from webhook.review import (
    Ask,
    Review,
    answer,
    decide,
    read_review,
)


def _refusal(body: bytes) -> str:
    read = read_review(body)
    assert isinstance(read, BadReview), read
    assert 400 <= read.status < 500
    return read.message


def test_the_answer_is_of_version_1_and_names_the_review() -> None:
    answered = answer_to(worker())
    assert answered["apiVersion"] == "admission.k8s.io/v1"
    assert answered["kind"] == "AdmissionReview"
    assert answered["response"]["uid"] == worker()["request"]["uid"]


def test_a_uid_is_not_pasted_into_the_answer() -> None:
    review = worker()
    review["request"]["uid"] = '","allowed":false,"x":"ü\n'
    assert answer_to(review)["response"]["uid"] == review["request"]["uid"]


def test_a_refusal_says_why_with_a_code() -> None:
    answered = orjson.loads(answer(read(worker()), Deny(503, "no answer")))
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
    after = gates_after(review, answer_to(review))
    assert after.count(GATE) == 1
    assert [name for name in after if name != GATE] == [
        name for name in gates or [] if name != GATE
    ]


def test_keys_read_well_in_messages() -> None:
    assert str(CLUSTER) == "RayCluster demo/raycluster-kuberay"
    assert str(NamespaceKey("demo")) == "Namespace demo"
