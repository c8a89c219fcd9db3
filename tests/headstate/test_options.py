"""A labelled Ray object is told where its head's state is, or what of it cannot be beside that."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from headstate.options import (
    FIELD,
    UNTOUCHED,
    Judgement,
    RayObject,
    Refused,
    Written,
    judge,
    options_for,
    read_object,
    secret_of,
)
from kube.objects import names

ADDRESS = "redis://muster-redis.muster-system.svc:6379"
LABELLED = {names.HEAD_FAULT_TOLERANCE: names.BUILT_IN}
OURS = options_for(ADDRESS, "muster-redis-user-aa")

Json = dict[str, Any]


def ray_object(labels: Json | None = None, annotations: Json | None = None, **spec: Any) -> Json:
    meta: Json = {"name": "a", "labels": LABELLED if labels is None else labels}
    meta |= {"annotations": annotations} if annotations is not None else {}
    return {"metadata": meta, "spec": spec}


def head(env: str | None = None, **params: str) -> Json:
    container: Json = {"name": "ray", "env": [] if env is None else [{"name": env, "value": "s3"}]}
    start = {key.replace("_", "-"): value for key, value in params.items()}
    return {"rayStartParams": start, "template": {"spec": {"containers": [container]}}}


def read(found: Json) -> RayObject:
    return read_object(orjson.dumps(found))


def judged(new: Json, old: Json | None = None, kind: str = "RayCluster") -> Judgement:
    return judge(kind, read(new), None if old is None else read(old), ADDRESS, "token")


def test_a_new_raycluster_gets_options_with_a_secret_of_its_own() -> None:
    found = judged(ray_object(headGroupSpec=head()))
    assert isinstance(found, Written)
    assert found.options["redisAddress"] == ADDRESS
    for field, key in (("redisUsername", "username"), ("redisPassword", "password")):
        reference = {"name": "muster-redis-user-token", "key": key}
        assert found.options[field] == {"valueFrom": {"secretKeyRef": reference}}
    assert {*found.options} == {"redisAddress", "redisUsername", "redisPassword"}
    assert secret_of(found.options, ADDRESS) == "muster-redis-user-token"


def test_a_copy_does_not_share_the_secret_of_what_it_was_copied_from() -> None:
    found = judged(ray_object(**{FIELD: OURS}))
    assert isinstance(found, Written)
    assert secret_of(found.options, ADDRESS) == "muster-redis-user-token"


@pytest.mark.parametrize("given", [None, {"redisAddress": "redis:6379"}, OURS | {"backend": "x"}])
def test_a_change_keeps_the_options_whatever_it_says(given: Json | None) -> None:
    """KubeRay replaces the spec of a RayService's RayCluster by one that has none."""
    new = ray_object(**({} if given is None else {FIELD: given}))
    found = judged(new, ray_object(**{FIELD: OURS}))
    if given is None:
        assert found == Written(OURS)
    else:
        assert isinstance(found, Refused)
    assert judged(ray_object(**{FIELD: OURS}), ray_object(**{FIELD: OURS})) == UNTOUCHED


def test_one_that_was_labelled_without_the_webhook_stays_without() -> None:
    assert judged(ray_object(), ray_object()) == UNTOUCHED


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, LABELLED, '"built-in" is not valid; allowed: no such label'),
        (LABELLED, {}, 'it is taken off; allowed: "built-in"'),
        (LABELLED, {names.HEAD_FAULT_TOLERANCE: "x"}, '"x" is not valid; allowed: "built-in"'),
    ],
)
def test_the_label_stays_as_it_was_at_the_creation(
    kind: str, before: Json, after: Json, said: str
) -> None:
    found = judged(ray_object(labels=after), ray_object(labels=before), kind)
    assert isinstance(found, Refused)
    assert f"metadata.labels[{names.HEAD_FAULT_TOLERANCE}]: {said}" in found.message


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("metadata.annotations[ray.io/ft-enabled]", {"annotations": {"ray.io/ft-enabled": "true"}}),
        (
            'metadata.annotations[ray.io/external-storage-namespace]: "mine"',
            {"annotations": {"ray.io/external-storage-namespace": "mine"}},
        ),
        (
            "spec.headGroupSpec.rayStartParams[redis-password]:",
            {"headGroupSpec": head(redis_password="s3")},
        ),
        (
            "spec.headGroupSpec.rayStartParams[redis-username]:",
            {"headGroupSpec": head(redis_username="s3")},
        ),
        *(
            (
                f"spec.headGroupSpec.template.spec.containers[0].env[{name}]:",
                {"headGroupSpec": head(name)},
            )
            for name in (
                *("REDIS_PASSWORD", "REDIS_USERNAME", "RAY_REDIS_ADDRESS"),
                "RAY_external_storage_namespace",
            )
        ),
        (
            f'spec.{FIELD}.externalStorageNamespace: "mine"',
            {FIELD: {"redisAddress": ADDRESS, "externalStorageNamespace": "mine"}},
        ),
        (f'spec.{FIELD}.backend: "rocksdb"', {FIELD: {"backend": "rocksdb"}}),
        (f"spec.{FIELD}.storage:", {FIELD: {"storage": {"size": "1Gi"}}}),
        (f'spec.{FIELD}.redisAddress: "redis:6379"', {FIELD: {"redisAddress": "redis:6379"}}),
        (
            'spec.rayVersion: "2.40.1" is not valid; allowed: 2.41 or newer',
            {"rayVersion": "2.40.1"},
        ),
        ('spec.submissionMode: "SidecarMode"', {"submissionMode": "SidecarMode"}),
        (
            f'labels[{names.HEAD_FAULT_TOLERANCE}]: "redis" is not valid; allowed: built-in',
            {"labels": {names.HEAD_FAULT_TOLERANCE: "redis"}},
        ),
    ],
)
def test_what_cannot_be_beside_it_is_refused_by_its_field(said: str, given: Json) -> None:
    found = judged(ray_object(**given))
    assert isinstance(found, Refused)
    assert said in found.message
    assert "allowed: " in found.message
    assert "s3" not in found.message  # it may be a password


@pytest.mark.parametrize("version", ["2.41.0", "2.52.0", "3.0", "nightly", "", None, "v2.41"])
def test_versions_that_know_users_and_those_that_are_none_pass(version: str | None) -> None:
    assert isinstance(judged(ray_object(rayVersion=version)), Written)


@pytest.mark.parametrize("version", ["2.9.0", "1.13", "v2.40", "2.4"])
def test_versions_before_that_are_refused(version: str) -> None:
    assert isinstance(judged(ray_object(rayVersion=version)), Refused)


@pytest.mark.parametrize(
    ("kind", "field"), [("RayJob", "rayClusterSpec"), ("RayService", "rayClusterConfig")]
)
def test_what_makes_rayclusters_is_checked_and_never_changed(kind: str, field: str) -> None:
    assert judged(ray_object(**{field: {"headGroupSpec": head()}}), kind=kind) == UNTOUCHED
    assert judged(ray_object(), kind=kind) == UNTOUCHED  # with a clusterSelector
    wrong = ray_object(**{field: {"headGroupSpec": head("REDIS_PASSWORD")}})
    found = judged(wrong, kind=kind)
    assert isinstance(found, Refused)
    assert found.message.startswith(f"spec.{field}.headGroupSpec.template.spec.containers[0].env")
    assert isinstance(judged(wrong, ray_object(), kind), Refused)


def test_all_faults_are_said_at_once() -> None:
    found = judged(ray_object(rayVersion="2.9", headGroupSpec=head("REDIS_PASSWORD")))
    assert isinstance(found, Refused)
    assert found.message.count("allowed: ") == 2


@pytest.mark.parametrize(
    "options",
    [
        None,
        {},
        {"redisPassword": {"value": "x"}},
        {"redisPassword": None},
        OURS | {"redisAddress": "redis:6379"},
        OURS | {"externalStorageNamespace": "mine"},
        options_for(ADDRESS, "team-secret"),
    ],
)
def test_the_program_takes_no_options_for_its_own_that_are_not(options: Json | None) -> None:
    assert secret_of(options, ADDRESS) is None
