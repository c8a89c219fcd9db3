"""`muster fit` asks the API server too, and tells its four answers apart."""

import msgspec
import pytest

from cli.endings import FINE, NO
from cli.read.dry_created import Answer, DryCreated, refused_with
from kube.api.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    NotFound,
    ServerError,
    Timeout,
    error_from_status,
)
from kube.api.errors import Status as ErrorStatus
from tests.cli.fitting.reader import MemoryReader, answers, fit, reader_of
from tests.cli.fitting.test_fit_of_app_wrappers import mcad
from tests.coordinator.app_wrappers import app_wrapper, bare_pod, job
from tests.coordinator.builders import Json, gang_of, group, node, ray_cluster
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World

NO_ROLE = 'pods is forbidden: User "eve" cannot create resource "pods" in API group ""'
STRICT = error_from_status(
    ErrorStatus(message='strict decoding error: unknown field "spec.x"'), 400
)
NO_DRY_RUN = error_from_status(
    ErrorStatus(message="admission webhook x does not support dry run"), 400
)


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (STRICT, Answer.REFUSED),
        (Invalid(422, "Invalid", "spec.x: Required"), Answer.REFUSED),
        (Forbidden(403, "Forbidden", "violates PodSecurity restricted"), Answer.REFUSED),
        (Forbidden(403, "Forbidden", 'serviceaccount "x" not found'), Answer.REFUSED),
        (NotFound(404, "NotFound", 'namespaces "x" not found'), Answer.REFUSED),
        (Forbidden(403, "Forbidden", "pods x is forbidden: exceeded quota: q"), Answer.OVER_QUOTA),
        (Forbidden(403, "Forbidden", NO_ROLE), Answer.NO_RIGHT),
        (NO_DRY_RUN, Answer.NOT_ASKED),
        (NotFound(404, "", "404 page not found"), Answer.NOT_ASKED),
        (ServerError(500, "InternalError", "failed calling webhook"), Answer.NOT_ASKED),
        (Timeout("no answer"), Answer.NOT_ASKED),
        (Conflict(409, "AlreadyExists", 'rayclusters "x" already exists'), Answer.EXISTS),
        (Conflict(409, "Conflict", "the webhook is not sure"), Answer.NOT_ASKED),
    ],
)
def test_the_answers_of_the_api_server_are_told_apart(error: KubeError, answer: Answer) -> None:
    assert refused_with(error).answer is answer


def asked_with(**said: DryCreated) -> MemoryReader:
    reader = reader_of(World(node("a", cpu=32)))
    reader.answers = said
    return reader


@pytest.mark.parametrize(
    ("plural", "answer", "fits", "said"),
    [
        ("rayclusters", Answer.REFUSED, "No", "the API server refuses it: why"),
        ("pods", Answer.REFUSED, "No", "the API server refuses a pod of headgroup: why"),
        ("rayclusters", Answer.OVER_QUOTA, "No", "not now, for want of quota: why"),
        ("pods", Answer.OVER_QUOTA, "No", "not now, for want of quota: a pod of headgroup: why"),
    ],
)
def test_what_the_api_server_refuses_does_not_fit(
    plural: str, answer: Answer, fits: str, said: str
) -> None:
    result = fit(asked_with(**{plural: DryCreated(answer, "why")}), gang_of("train", 2))
    (found,) = answers(result)
    assert (result.exit_code, found["fits"], found["message"]) == (NO, fits, said)


@pytest.mark.parametrize(
    ("plural", "answer", "note"),
    [
        (
            "rayclusters",
            Answer.EXISTS,
            "RayCluster team/train exists: judged as another one beside it",
        ),
        ("rayclusters", Answer.NOT_ASKED, "the API server was not asked whether it takes it: why"),
        (
            "pods",
            Answer.NO_RIGHT,
            "you may not create pods in namespace team: whether they are admitted",
        ),
        (
            "pods",
            Answer.NOT_ASKED,
            "whether a pod of headgroup is admitted could not be asked: why",
        ),
    ],
)
def test_what_was_not_refused_is_judged_with_a_note(plural: str, answer: Answer, note: str) -> None:
    result = fit(asked_with(**{plural: DryCreated(answer, "why")}), gang_of("train", 2))
    (found,) = answers(result)
    assert (result.exit_code, found["fits"]) == (FINE, "Yes")
    assert [each for each in found["notes"] if each.startswith(note)] == found["notes"][:1]


def test_the_object_is_asked_about_as_new_and_a_pod_of_each_pod_set() -> None:
    cluster = ray_cluster("train", group("a", 3), group("b", 2))
    there = {"uid": "1", "resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    cluster = {
        **cluster,
        "metadata": {**cluster["metadata"], **there},
        "status": {"state": "ready"},
    }
    reader = asked_with()
    fit(reader, cluster)
    (own, *pods) = reader.dry_created
    assert own[:2] == ("rayclusters", "team")
    assert not {*there} & own[2]["metadata"].keys()
    assert own[2].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert [(each[0], each[2]["metadata"]["generateName"]) for each in pods] == [
        ("pods", "train-headgroup-"),
        ("pods", "train-a-"),
        ("pods", "train-b-"),
    ]
    template = cluster["spec"]["workerGroupSpecs"][0]["template"]
    assert pods[1][2]["spec"] == template["spec"]


def test_of_a_ray_job_the_pods_of_its_cluster_are_asked_about() -> None:
    reader = asked_with()
    fit(reader, ray_job("job", ray_cluster("x", group("w", 1))))
    assert [each[0] for each in reader.dry_created] == ["rayjobs", "pods", "pods"]


def account(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}


def test_of_an_app_wrapper_a_pod_of_each_object_is_asked_about() -> None:
    """But not where its own service account is to be created with it."""
    wrapped = (
        account("made"),
        job("plain", 3),
        job("with-account", 1, serviceAccountName="made"),
        bare_pod("alone"),
    )
    reader = asked_with()
    (found,) = answers(fit(reader, app_wrapper("w", *wrapped)))
    own, *pods = reader.dry_created
    assert (found["fits"], own[0]) == ("Yes", "appwrappers")
    assert [(each[0], each[2]["metadata"]["generateName"]) for each in pods] == [
        ("pods", "plain-"),
        ("pods", "alone-"),
    ]
    assert pods[0][2]["spec"] == job("plain", 3)["spec"]["template"]["spec"]
    refusing = asked_with(pods=DryCreated(Answer.REFUSED, "why"))
    (found,) = answers(fit(refusing, app_wrapper("w", job("work", 1))))
    said = ("No", "the API server refuses a pod of work: why")
    assert (found["fits"], found["message"]) == said


def test_pods_of_an_app_wrapper_count_as_declared_also_where_they_were_admitted() -> None:
    pod = msgspec.json.encode({"metadata": {}, "spec": job("w", 1)["spec"]["template"]["spec"]})
    declared = {"replicas": 1, "requests": {"cpu": "40"}}
    reader = reader_of(World(node("a", cpu=32)))
    reader.answers = {"pods": DryCreated(Answer.TAKEN, admitted=pod)}
    wrapper = mcad("w", job("work", 1))
    wrapper["spec"]["resources"]["GenericItems"][0]["custompodresources"] = [declared]
    (found,) = answers(fit(reader, wrapper))
    assert (found["fits"], found["reason"]) == ("No", "NeverFits")


SCHEMA = {
    "components": {
        "schemas": {
            "RayCluster": {
                "x-kubernetes-group-version-kind": [
                    {"group": "ray.io", "version": "v1", "kind": "RayCluster"}
                ],
                "properties": {
                    "apiVersion": {},
                    "kind": {},
                    "metadata": {"type": "object"},
                    "spec": {"properties": {"headGroupSpec": {}, "workerGroupSpecs": {}}},
                },
            }
        }
    }
}


def test_who_may_not_create_it_is_answered_by_its_schema() -> None:
    reader = asked_with(rayclusters=DryCreated(Answer.NO_RIGHT, NO_ROLE))
    reader.schemas = {"ray.io/v1": SCHEMA}
    (found,) = answers(fit(reader, gang_of("train", 2)))
    assert found["fits"] == "Yes"
    typo = gang_of("train", 2)
    typo["spec"]["workerGroupSpec"] = []
    (found,) = answers(fit(reader, typo))
    said = 'the API server would refuse it: unknown field "spec.workerGroupSpec"'
    assert (found["fits"], found["message"]) == ("No", said)


POD_SCHEMA = {
    "components": {
        "schemas": {
            "Pod": {
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "Pod"}],
                "properties": {
                    "apiVersion": {},
                    "kind": {},
                    "metadata": {"type": "object"},
                    "spec": {"properties": {"containers": {"type": "array"}}},
                },
            }
        }
    }
}


def test_who_may_not_create_pods_is_answered_by_their_schema() -> None:
    """Templates in an AppWrapper are in no schema but that of pods."""
    reader = asked_with(pods=DryCreated(Answer.NO_RIGHT, NO_ROLE))
    reader.schemas = {"/v1": POD_SCHEMA}
    (found,) = answers(fit(reader, app_wrapper("w", job("work", 1))))
    assert found["fits"] == "Yes"
    (found,) = answers(fit(reader, app_wrapper("w", job("work", 1, restartPolcy="Never"))))
    said = 'the API server would refuse a pod of work: unknown field "spec.restartPolcy"'
    assert (found["fits"], found["message"]) == ("No", said)


def test_a_schema_that_cannot_be_read_is_a_note() -> None:
    reader = asked_with(rayclusters=DryCreated(Answer.NO_RIGHT, NO_ROLE))
    (found,) = answers(fit(reader, gang_of("train", 2)))
    said = "the API server was not asked whether it takes it: there is no schema of ray.io/v1"
    assert (found["fits"], found["notes"][:1]) == ("Yes", [said])


def test_without_dry_run_the_api_server_is_not_asked() -> None:
    reader = asked_with(rayclusters=DryCreated(Answer.REFUSED, "why"))
    (found,) = answers(fit(reader, gang_of("train", 2), more="--no-dry-run"))
    assert (found["fits"], reader.dry_created) == ("Yes", [])


def test_what_is_refused_takes_no_room_from_the_others() -> None:
    world = World(node("a", cpu=3))
    reader = reader_of(world)
    objects: list[Json] = [gang_of("one", 2), gang_of("two", 2)]

    async def only_the_second(_: object, __: str, manifest: Json) -> DryCreated:
        one = manifest["metadata"].get("name") == "one"
        return DryCreated(Answer.REFUSED, "why") if one else DryCreated(Answer.TAKEN)

    reader.would_create = only_the_second  # type: ignore[assignment, method-assign]
    assert [each["fits"] for each in answers(fit(reader, *objects))] == ["No", "Yes"]


def test_a_pod_counts_as_it_is_admitted() -> None:
    """A webhook of others, say, raises its requests; classes that may not be read are no fault."""
    spec = {
        "containers": [{"name": "ray", "resources": {"requests": {"cpu": "20"}}}],
        "priority": 1000,
        "priorityClassName": "high",
        "overhead": {"cpu": "1"},
        "runtimeClassName": "kata",
    }
    pod = msgspec.json.encode({"metadata": {"labels": {}}, "spec": spec})
    reader = reader_of(World(node("a", cpu=32)), forbidden=("priorityclasses", "runtimeclasses"))
    (before,) = answers(fit(reader, gang_of("train", 1)))
    reader.answers = {"pods": DryCreated(Answer.TAKEN, admitted=pod)}
    (found,) = answers(fit(reader, gang_of("train", 1)))
    assert (before["fits"], found["fits"], found["reason"]) == ("Yes", "No", "NeverFits")
    (alone,) = answers(fit(reader, gang_of("train", 0)))
    assert alone["fits"] == "Yes"
