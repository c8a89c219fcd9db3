"""Heads with state in Redis on the real control plane: what they get, keep, leave and are refused.

The servers are ones of the tests' own that speak as much of Redis as the program asks for; what
Redis itself does is judged in tests/headstate/real.
"""

from __future__ import annotations

import http
import json
from dataclasses import replace
from pathlib import Path

import pytest

from headstate.options import FIELD, secret_of
from headstate.users import password_of, user_of
from kube.objects import names
from testbed.errors import TestbedError
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, group, head, ray_cluster, ray_job, ray_service
from tests.controlplane.redis_users import (
    ADDRESS,
    KEY,
    LABELLED,
    events,
    has_user,
    options_of,
    password,
    secret,
    wait_no_user,
    wait_secret,
)
from tests.headstate.resp import FakeRedis

LONGEST_CLUSTER, LONGEST_MAKER = 53, 47
"""Characters of the names that KubeRay takes: of a RayCluster, and of a RayJob or RayService."""
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/muster-webhook"


def refused(plot: Plot, manifest: Json) -> str:
    with pytest.raises(TestbedError) as error:
        plot.create(manifest)
    return str(error.value)


# ---- the whole way


def test_a_labelled_cluster_gets_a_user_then_a_secret_and_leaves_nothing(
    plot: Plot, users: Path, redis: FakeRedis
) -> None:
    plot.add_node(4)
    plot.create(ray_cluster("plain", group(replicas=1)))
    plot.create(ray_cluster("safe", group(replicas=1), labels=LABELLED))
    name, uid = secret(plot, "safe"), plot.get("RayCluster", "safe")["metadata"]["uid"]
    assert options_of(plot, "plain") is None
    path = plot.path("Secret", name)
    plot.wait(lambda: plot.cluster.api.exists(path), "the Secret")
    assert has_user(redis, uid) == [True] * 3
    written = password(plot, name)
    assert written == password_of(KEY.encode(), uid)
    plot.wait(lambda: "RedisUserReady" in events(plot, "safe"), "the Event")
    plot.wait(lambda: bool(plot.pods("safe", "head")), "the head")
    (container,) = plot.pods("safe", "head")[0]["spec"]["containers"]
    variables = {each["name"]: each for each in container["env"]}
    for variable, key in (("REDIS_USERNAME", "username"), ("REDIS_PASSWORD", "password")):
        reference = variables[variable]["valueFrom"]["secretKeyRef"]
        assert (reference["name"], reference["key"]) == (name, key)
    assert variables["RAY_external_storage_namespace"]["value"] == uid

    (users / "key.next").write_text("3" * 64)
    after = password_of(b"3" * 64, uid)
    plot.wait(lambda: password(plot, name) == after, "the Secret to be of the second key")
    (users / "key.next").unlink()
    plot.wait(lambda: password(plot, name) == written, "the Secret to be of the first key again")

    redis.keys.add(f"RAY{uid}@KV")
    redis.users[redis.servers[1]].pop(user_of(uid))
    plot.wait(lambda: has_user(redis, uid) == [True] * 3, "the user to be back")
    plot.wait_ready("safe", 2)
    plot.delete("RayCluster", "safe")
    plot.wait_gone("RayCluster", "safe")
    wait_no_user(plot, redis, uid)
    assert redis.keys == set()
    plot.wait(lambda: not plot.cluster.api.exists(path), "the Secret to be gone")
    report = plot.cluster.api.get(
        "/api/v1/namespaces/muster-system/configmaps/muster-redis-report"
    )["data"]["report.json"]
    assert json.loads(report)["primary"] == redis.servers[0]


@pytest.mark.variant
def test_rayjobs_and_rayservices_hand_the_label_on_and_stay_as_they_are(plot: Plot) -> None:
    plot.add_node(4)  # for what cleans Redis up at its end
    job = plot.create(ray_job("job", group(replicas=1), labels=LABELLED, backoffLimit=2))
    service = plot.create(ray_service("service", group(replicas=1), labels=LABELLED))
    assert FIELD not in job["spec"]["rayClusterSpec"]
    assert FIELD not in service["spec"]["rayClusterConfig"]
    plot.wait(lambda: len(plot.all("RayCluster")) == 2, "both RayClusters")
    named = {secret(plot, each["metadata"]["name"]) for each in plot.all("RayCluster")}
    assert len(named) == 2

    def append(found: Json) -> None:
        more = group(replicas=1)
        found["spec"]["rayClusterConfig"]["workerGroupSpecs"].append({**more, "groupName": "more"})

    plot.replace("RayService", "service", append)

    def grown() -> list[Json]:
        every = plot.all("RayCluster")
        return [each for each in every if len(each["spec"]["workerGroupSpecs"]) == 2]

    (changed,) = plot.wait(grown, "KubeRay to replace the spec of the RayCluster")
    assert secret_of(changed["spec"].get(FIELD), ADDRESS) in named


@pytest.mark.variant
def test_names_as_long_as_kuberay_takes_them_get_users_and_go(
    plot: Plot, users: Path, redis: FakeRedis
) -> None:
    """Nothing of a name goes into that of a user or a Secret."""
    plot.add_node(8)
    plot.create(ray_cluster("c" * LONGEST_CLUSTER, group(replicas=1), labels=LABELLED))
    plot.create(ray_job("j" * LONGEST_MAKER, group(replicas=1), labels=LABELLED))
    plot.create(ray_service("s" * LONGEST_MAKER, group(replicas=1), labels=LABELLED))
    plot.wait(lambda: len(plot.all("RayCluster")) == 3, "three RayClusters")
    made = {each["metadata"]["name"]: each["metadata"]["uid"] for each in plot.all("RayCluster")}
    for name in made:
        wait_secret(plot, name)
        plot.wait_event(name, "RedisUserReady")
    plot.delete("RayCluster", "c" * LONGEST_CLUSTER)
    plot.wait_gone("RayCluster", "c" * LONGEST_CLUSTER)
    wait_no_user(plot, redis, made["c" * LONGEST_CLUSTER])


# ---- what stays and what is refused


@pytest.mark.variant
def test_options_stay_whatever_a_change_says(plot: Plot) -> None:
    plot.add_node(4)  # for what cleans Redis up at its end
    plot.create(ray_cluster("safe", group(replicas=1), labels=LABELLED))
    before = options_of(plot, "safe")
    plot.patch("RayCluster", "safe", {"spec": {FIELD: None}})  # as KubeRay does it
    assert options_of(plot, "safe") == before
    plot.scale("safe", replicas=2)
    assert options_of(plot, "safe") == before
    for labels, said in (
        ({names.HEAD_FAULT_TOLERANCE: None}, "it is taken off"),
        ({names.HEAD_FAULT_TOLERANCE: "redis"}, "is not valid; allowed: "),
    ):
        with pytest.raises(TestbedError, match=said):
            plot.patch("RayCluster", "safe", {"metadata": {"labels": labels}})
    copied = plot.get("RayCluster", "safe")
    copied["metadata"] = {"name": "copy", "labels": LABELLED}
    plot.create(copied)
    assert secret(plot, "copy") != secret(plot, "safe")


def test_what_cannot_work_is_refused_before_it_is_stored(plot: Plot) -> None:
    assert "spec.rayVersion" in refused(
        plot, ray_cluster("old", group(), labels=LABELLED, rayVersion="2.9.0")
    )
    wrong = head()
    wrong["rayStartParams"] = {"redis-password": "secret"}
    job = ray_job("job", group(), labels=LABELLED)
    job["spec"]["rayClusterSpec"]["headGroupSpec"] = wrong
    assert "spec.rayClusterSpec.headGroupSpec.rayStartParams" in refused(plot, job)
    service = ray_service("service", group(), labels={names.HEAD_FAULT_TOLERANCE: "mine"})
    assert "allowed: built-in" in refused(plot, service)
    plot.create(ray_cluster("plain", group()))
    with pytest.raises(TestbedError, match="no such label"):
        plot.patch("RayCluster", "plain", {"metadata": {"labels": LABELLED}})


# ---- the policies


def sent(
    plot: Plot, user: str, method: str, path: str, body: Json | None = None
) -> tuple[int, str]:
    """A dry run in the name of another: the status of the answer, and what it says."""
    api = replace(plot.cluster.api, impersonated=user)
    with api.session() as session:
        content = None if body is None else json.dumps(body).encode()
        status, answer = session.request(method, f"{path}?dryRun=All", content)
    return status, str(json.loads(answer).get("message", ""))


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("muster-redis-user-x", "Opaque", ""),
        ("team-password", "Opaque", "names that begin with muster-redis-user-"),
        ("muster-redis-keys", "Opaque", "names that begin with muster-redis-user-"),
        ("muster-redis-user-x", "kubernetes.io/service-account-token", "allowed: Opaque"),
    ],
)
def test_the_token_of_the_program_makes_secrets_of_its_own_names_alone(
    plot: Plot, name: str, kind: str, said: str
) -> None:
    user = "system:serviceaccount:muster-system:muster-redis"
    note = {"kubernetes.io/service-account.name": "default"}
    body = {"metadata": {"name": name, "annotations": note}, "type": kind}
    status, message = sent(plot, user, "POST", plot.path("Secret"), body)
    assert (status, said in message) == (
        http.HTTPStatus.FORBIDDEN if said else http.HTTPStatus.CREATED,
        True,
    ), message


def test_it_deletes_none_but_those(plot: Plot) -> None:
    user = "system:serviceaccount:muster-system:muster-redis"
    plot.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "team-password"}})
    status, message = sent(plot, user, "DELETE", plot.path("Secret", "team-password"))
    assert status == http.HTTPStatus.FORBIDDEN, message
    status, _ = sent(plot, user, "DELETE", plot.path("Secret", "muster-redis-user-x"))
    assert status == http.HTTPStatus.NOT_FOUND


def test_others_make_no_secret_of_its_names(plot: Plot) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "muster-redis-user-x"}}
    assert "are of Muster; allowed: another name" in refused(plot, body)


@pytest.mark.variant
def test_without_the_webhook_the_policy_keeps_the_options(plot: Plot) -> None:
    plot.add_node(4)  # for what cleans Redis up at its end
    plot.create(ray_cluster("safe", group(replicas=1), labels=LABELLED))
    api = plot.cluster.api
    found = api.get(CONFIGURATION)
    kept = [each for each in found["webhooks"] if each["name"] != "protect.muster.dev"]
    assert len(kept) < len(found["webhooks"])
    change = json.dumps({"webhooks": kept}).encode()
    back = json.dumps({"webhooks": found["webhooks"]}).encode()
    with api.session() as session:
        session.call("PATCH", CONFIGURATION, change, "application/merge-patch+json")
    try:
        removed = json.dumps({"spec": {FIELD: None}}).encode()

        def said() -> str:
            path = f"{plot.path('RayCluster', 'safe')}?dryRun=All"
            with api.session() as session:
                _, answer = session.request("PATCH", path, removed, "application/merge-patch+json")
            return answer.decode()

        wait_until(lambda: "its deletion would hang" in said(), "the policy to refuse", seen=said)
    finally:
        with api.session() as session:
            session.call("PATCH", CONFIGURATION, back, "application/merge-patch+json")
