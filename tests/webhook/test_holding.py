"""A RayCluster is held where its gang asks for it and can be held; all others are left alone."""

from __future__ import annotations

import base64
import copy
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.objects import names
from kube.objects.base import LabelSelector, ObjectMeta
from kube.objects.core import Namespace
from kube.objects.queues.queue import GangQueue, GangQueueSpec, QueueSelector
from kube.objects.ray import RayJob, RayJobSpec
from tests.webhook.samples import Json
from webhook.admission_review import BadReview, patched, untouched
from webhook.holding import (
    Hold,
    HoldReview,
    Leave,
    NamespaceRead,
    Queues,
    RayJobRead,
    Read,
    decide_hold,
    queues_of,
    read_hold_review,
    warnings_of,
)

GANG = {names.OPT_IN: "true"}
WHEN_ADMITTED = {names.CREATE_PODS: "when-admitted"}
NO_QUEUES = queues_of(())
PLACE = NamespaceRead("demo")


def cluster(
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
    owner: Json | None = None,
    **spec: Any,
) -> Json:
    """A RayCluster as it is created."""
    meta: Json = {"name": "a", "labels": GANG if labels is None else labels}
    meta |= {"annotations": annotations} if annotations is not None else {}
    meta |= {"ownerReferences": [owner]} if owner is not None else {}
    head = {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "ray"}]}}}
    return {"metadata": meta, "spec": {"headGroupSpec": head, "workerGroupSpecs": [], **spec}}


def made_by(kind: str, uid: str = "u") -> Json:
    return {
        "apiVersion": "ray.io/v1",
        "kind": kind,
        "name": "owner",
        "uid": uid,
        "controller": True,
    }


def review_of(created: Json, **changes: Any) -> Json:
    request = {
        "uid": "r",
        "kind": {"group": "ray.io", "version": "v1", "kind": "RayCluster"},
        "operation": "CREATE",
        "namespace": "demo",
        "object": created,
        **changes,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def read(review: Json) -> HoldReview:
    found = read_hold_review(orjson.dumps(review))
    assert isinstance(found, HoldReview), found
    return found


def decided(
    review: Json,
    queues: Queues = NO_QUEUES,
    job: RayJob | None = None,
    lacks_quota: bool = False,
    **namespace: str,
) -> Hold | Leave:
    found = {PLACE: Namespace(ObjectMeta(labels=namespace)), RayJobRead("demo", "owner"): job}
    was_read: dict[Read, Namespace | RayJob | None] = {}
    decision = decide_hold(read(review), queues, was_read, lacks_quota=lacks_quota)
    while not isinstance(decision, Hold | Leave):
        was_read[decision] = found[decision]
        decision = decide_hold(read(review), queues, was_read, lacks_quota=lacks_quota)
    return decision


def stored(review: Json, decision: Hold | Leave) -> Json:
    """The RayCluster as the API server stores it after the answer."""
    answer = patched("r", decision.patch) if decision.patch else untouched("r")
    response = orjson.loads(answer)["response"]
    assert (response["uid"], response["allowed"]) == ("r", True)
    created = copy.deepcopy(review["request"]["object"])
    if "patch" not in response:
        return dict(created)
    return dict(jsonpatch.apply_patch(created, base64.b64decode(response["patch"])))


def is_held(review: Json, *args: Any, **kwargs: Any) -> bool:
    """Whether it is suspended afterwards by Muster, as both say or none does."""
    after = stored(review, decided(review, *args, **kwargs))
    noted = bool(after["metadata"].get("annotations", {}).get(names.HELD) == "true")
    suspended = bool(after["spec"].get("suspend"))
    assert noted == (suspended and not review["request"]["object"]["spec"].get("suspend"))
    return noted


def queue(name: str, create_pods: str = "WhenAdmitted", **selects: str) -> GangQueue:
    selector = QueueSelector(match_labels=selects)
    assert isinstance(selector, LabelSelector)
    spec = GangQueueSpec(namespace_selector=selector, create_pods=create_pods)
    return GangQueue(metadata=ObjectMeta(name=name), spec=spec)  # type: ignore[arg-type]


def test_one_that_asks_is_suspended_and_says_that_it_was_muster() -> None:
    review = review_of(cluster(WHEN_ADMITTED))
    assert is_held(review)
    after = stored(review, decided(review))
    assert after["spec"]["suspend"] is True
    assert after["metadata"]["annotations"] == {**WHEN_ADMITTED, names.HELD: "true"}


@pytest.mark.parametrize("annotations", [None, {}, {names.CREATE_PODS: "always"}])
def test_one_that_does_not_ask_is_left_alone(annotations: dict[str, str] | None) -> None:
    assert decided(review_of(cluster(annotations))) == Leave([])


@pytest.mark.parametrize(
    ("labels", "namespace", "held"),
    [
        ({}, {}, False),
        ({names.OPT_IN: "false"}, {names.OPT_IN: "true"}, False),
        ({names.OPT_IN: "yes"}, {}, False),
        ({}, {names.OPT_IN: "true"}, True),
    ],
)
def test_only_gangs_are_held(labels: dict[str, str], namespace: dict[str, str], held: bool) -> None:
    assert is_held(review_of(cluster(WHEN_ADMITTED, labels)), **namespace) is held


def test_a_persons_own_suspension_gets_no_note() -> None:
    assert not is_held(review_of(cluster(WHEN_ADMITTED, suspend=True)))


def test_one_that_was_held_is_held_again_where_it_is_restored_from_its_copy() -> None:
    """Its note says that no person suspended it; without it, it would sleep for ever."""
    copied = review_of(cluster({**WHEN_ADMITTED, names.HELD: "true"}, suspend=True))
    assert isinstance(decided(copied), Hold)
    after = stored(copied, decided(copied))
    assert after["metadata"]["annotations"] == {**WHEN_ADMITTED, names.HELD: "true"}
    assert after["spec"]["suspend"] is True


def test_one_without_a_spec_is_left_to_the_api_server_to_refuse() -> None:
    """A patch of what is not there would fail, and hide its message."""
    review = review_of(cluster(WHEN_ADMITTED))
    del review["request"]["object"]["spec"]
    assert decided(review) == Leave([])


def test_a_note_goes_where_a_held_start_is_not_asked_for() -> None:
    copied = review_of(cluster({names.HELD: "true"}, suspend=True))
    after = stored(copied, decided(copied))
    assert after["metadata"]["annotations"] == {}
    assert after["spec"]["suspend"] is True


def test_a_note_that_was_copied_with_a_manifest_that_is_not_suspended_is_held_anew() -> None:
    assert is_held(review_of(cluster({**WHEN_ADMITTED, names.HELD: "true"}, suspend=False)))


def test_a_queue_has_its_gangs_held_unless_they_say_otherwise() -> None:
    queues = queues_of([queue("calm", team="a"), queue("usual", "Always", team="b")])
    assert is_held(review_of(cluster()), queues, team="a")
    assert not is_held(review_of(cluster()), queues, team="b")
    assert not is_held(review_of(cluster({names.CREATE_PODS: "always"})), queues, team="a")
    assert is_held(review_of(cluster(WHEN_ADMITTED)), queues, team="b")
    named = {**GANG, names.QUEUE: "usual"}
    assert not is_held(review_of(cluster(None, named)), queues, team="a")  # not open to it


def test_what_starts_together_with_others_is_held_whatever_its_queue_says() -> None:
    pair = {names.TOGETHER: "pair", names.TOGETHER_SIZE: "2"}
    assert isinstance(decided(review_of(cluster(pair))), Hold)
    assert isinstance(decided(review_of(cluster(pair, owner=made_by("RayService")))), Leave)


def test_whoever_creates_what_cannot_be_a_member_is_warned_with_what_is_allowed() -> None:
    said = {names.TOGETHER: "pair", names.TOGETHER_SIZE: "1", names.TOGETHER_END: "Both"}
    assert warnings_of(read(review_of(cluster(said)))) == [
        'muster.dev/together-size: "1" is not valid; allowed: a whole number from 2 to 16',
        'muster.dev/together-end: "Both" is not valid; allowed: "Keep" or "All"',
    ]
    assert not warnings_of(read(review_of(cluster())))


def test_nothing_is_read_where_nothing_asks_for_it() -> None:
    assert isinstance(decide_hold(read(review_of(cluster())), NO_QUEUES, {}), Leave)
    asks = decide_hold(read(review_of(cluster(WHEN_ADMITTED))), NO_QUEUES, {})
    assert asks == PLACE


def job(uid: str = "u", **spec: int) -> RayJob:
    return RayJob(ObjectMeta(name="owner", uid=uid), RayJobSpec(**spec))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "held"),
    [
        (job(), True),
        (job(active_deadline_seconds=600), False),
        (job(pre_running_deadline_seconds=600), False),
        (job(uid="another"), False),
        (None, False),
    ],
)
def test_of_rayjobs_those_are_held_that_no_clock_runs_for(found: RayJob | None, held: bool) -> None:
    review = review_of(cluster(WHEN_ADMITTED, owner=made_by("RayJob")))
    assert is_held(review, job=found) is held


def test_the_ray_cluster_of_a_rayservice_is_not_held() -> None:
    assert not is_held(review_of(cluster(WHEN_ADMITTED, owner=made_by("RayService"))))


def test_what_another_controller_manages_is_not_held() -> None:
    managed = cluster(WHEN_ADMITTED, managedBy="kueue.x-k8s.io/multikueue")
    assert not is_held(review_of(managed))


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "UPDATE"},
        {"subResource": "status"},
        {"kind": {"group": "ray.io", "version": "v1", "kind": "RayJob"}},
    ],
)
def test_nothing_but_the_creation_of_a_raycluster_is_judged(changes: Json) -> None:
    assert decided(review_of(cluster(WHEN_ADMITTED), **changes)) == Leave([])


def test_what_is_no_raycluster_is_refused_as_a_review() -> None:
    bad = read_hold_review(orjson.dumps(review_of({"spec": {"suspend": "yes"}})))
    assert isinstance(bad, BadReview)
    assert "request.object" in bad.message


@given(body=st.binary(max_size=40))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    assert isinstance(read_hold_review(body), HoldReview | BadReview)


FLIPPED = orjson.dumps(review_of(cluster(WHEN_ADMITTED, owner=made_by("RayJob"))))


@given(place=st.integers(0, len(FLIPPED) - 1), byte=st.integers(0, 255))
def test_a_review_with_a_flipped_byte_is_read_or_refused(place: int, byte: int) -> None:
    body = bytearray(FLIPPED)
    body[place] = byte
    assert isinstance(read_hold_review(body), HoldReview | BadReview)


def test_a_wrapped_raycluster_is_left_to_its_appwrapper() -> None:
    wrapped = {**GANG, names.APP_WRAPPER: "aw", names.APP_WRAPPER_UID: "w-1"}
    assert is_held(review_of(cluster(WHEN_ADMITTED)))
    owned = cluster(WHEN_ADMITTED, labels=wrapped, owner=made_by("AppWrapper", "w-1"))
    assert not is_held(review_of(owned))
    assert is_held(review_of(cluster(WHEN_ADMITTED, labels=wrapped)))  # its user labelled it so


# --- where the ResourceQuotas of the namespace have no room for it --------------------------------


@pytest.mark.parametrize(
    ("annotations", "held"),
    [
        (None, True),
        (WHEN_ADMITTED, True),
        ({names.CREATE_PODS: "always"}, False),
        ({names.CREATE_PODS: "now"}, False),
    ],
)
def test_without_quota_it_is_held_unless_it_says_otherwise(
    annotations: dict[str, str] | None, held: bool
) -> None:
    assert is_held(review_of(cluster(annotations)), lacks_quota=True) is held


@pytest.mark.parametrize(
    ("labels", "namespace", "held"),
    [
        ({}, {}, False),
        ({names.OPT_IN: "false"}, {names.OPT_IN: "true"}, False),
        ({}, {names.OPT_IN: "true"}, True),
    ],
)
def test_without_quota_only_gangs_are_held(
    labels: dict[str, str], namespace: dict[str, str], held: bool
) -> None:
    assert is_held(review_of(cluster(None, labels)), lacks_quota=True, **namespace) is held


@pytest.mark.parametrize("deadline", [None, 600])
def test_without_quota_it_is_held_though_a_deadline_of_its_ray_job_runs(
    deadline: int | None,
) -> None:
    """Gated pods do not stop that clock either."""
    review = review_of(cluster(owner=made_by("RayJob")))
    of = job(active_deadline_seconds=deadline) if deadline else job()
    assert is_held(review, job=of, lacks_quota=True)


@pytest.mark.parametrize(
    "created",
    [
        cluster(owner=made_by("RayService")),
        cluster(managedBy="kueue.x-k8s.io/multikueue"),
        cluster(suspend=True),
        cluster(
            labels={**GANG, names.APP_WRAPPER: "aw", names.APP_WRAPPER_UID: "w-1"},
            owner=made_by("AppWrapper", "w-1"),
        ),
    ],
    ids=["service", "managed", "suspended", "wrapped"],
)
def test_without_quota_what_cannot_be_suspended_or_is_already_gets_no_note(created: Json) -> None:
    assert not is_held(review_of(created), lacks_quota=True)
