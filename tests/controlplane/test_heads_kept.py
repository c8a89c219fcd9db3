"""Heads with state in Redis over what KubeRay does to them, and over the loss of Redis for good."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from headstate.users import user_of
from kube.objects import names
from testbed.components import KUBERAY
from tests.controlplane.dashboards import Dashboards
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, group, ray_cluster, ray_job, ray_service
from tests.controlplane.redis_users import (
    LABELLED,
    events,
    options_of,
    secret,
    uid,
    wait_no_user,
    wait_secret,
)
from tests.controlplane.test_lives import ACTIVE, version
from tests.headstate.resp import FakeRedis

pytestmark = pytest.mark.long

KUBERAY_VERSION = "ray.io/kuberay-version"
LEAST, MOST = 61, 300
"""Seconds that a deletion takes without Redis: a clean-up Job gives up, or KubeRay does."""


def test_a_new_kuberay_and_an_upgrade_leave_each_raycluster_its_own_options(
    plot: Plot, dashboards: Dashboards, users: Path, redis: FakeRedis
) -> None:
    dashboards.open(plot)
    plot.add_node(8)
    plot.create(ray_service("serve", group(replicas=1), labels=LABELLED))
    first = plot.wait(lambda: version(plot, "serve", ACTIVE), "the first version")
    before, gone = options_of(plot, first), uid(plot, first)
    assert before is not None
    wait_secret(plot, first)

    # As an older KubeRay leaves it: a newer one writes the whole spec anew.
    now = plot.get("RayCluster", first)["metadata"]["annotations"][KUBERAY_VERSION]
    older = {"metadata": {"annotations": {KUBERAY_VERSION: "v1.0.0"}}}
    kuberay = plot.cluster.process(KUBERAY)
    with kuberay.paused():
        plot.patch("RayCluster", first, older)
    kuberay.restart()

    def renewed() -> bool:
        found: Json = plot.get("RayCluster", first)["metadata"]["annotations"]
        return bool(found[KUBERAY_VERSION] == now)

    plot.wait(renewed, "KubeRay to write the RayCluster anew")
    assert options_of(plot, first) == before

    def upgrade(found: Json) -> None:
        workers = found["spec"]["rayClusterConfig"]["workerGroupSpecs"][0]
        workers["template"]["spec"]["containers"][0]["image"] = "ray:next"

    plot.replace("RayService", "serve", upgrade)
    second = plot.wait(
        lambda: version(plot, "serve", ACTIVE).replace(first, ""), "the second version to serve"
    )
    assert wait_secret(plot, second) != secret_name(before)
    plot.wait_gone("RayCluster", first)
    wait_no_user(plot, redis, gone)


def secret_name(options: Json) -> str:
    return str(options["redisPassword"]["valueFrom"]["secretKeyRef"]["name"])


def test_each_try_of_a_rayjob_has_a_user_of_its_own(
    plot: Plot, dashboards: Dashboards, users: Path, redis: FakeRedis
) -> None:
    dashboards.open(plot)
    plot.add_node(4)
    more = {"submissionMode": "HTTPMode", "backoffLimit": 1}
    plot.create(ray_job("tries", group(replicas=1), labels=LABELLED, **more))

    def status() -> Json:
        found: Json = plot.get("RayJob", "tries").get("status", {})
        return found

    plot.wait(lambda: status().get("jobStatus") == "RUNNING", "the job to run")
    first, job_id = status()["rayClusterName"], status()["jobId"]
    name, gone = wait_secret(plot, first), uid(plot, first)
    dashboards.fail(plot, first, job_id)
    second = plot.wait(
        lambda: status().get("rayClusterName", "").replace(first, ""), "the second try"
    )
    plot.wait(lambda: plot.cluster.api.exists(plot.path("RayCluster", second)), "its RayCluster")
    assert wait_secret(plot, second) != name
    plot.wait_gone("RayCluster", first)
    wait_no_user(plot, redis, gone)
    assert secret(plot, second) in {each["metadata"]["name"] for each in plot.all("Secret")}


@pytest.mark.timeout(900)
def test_a_deletion_without_redis_ends_and_says_so_and_what_is_left_goes_later(
    plot: Plot, users: Path, redis: FakeRedis
) -> None:
    """One clean-up Job fails, as Ray's does after a minute; the other one's pod never ends."""
    plot.add_node(4)
    for name in ("fails", "hangs"):
        plot.create(ray_cluster(name, group(replicas=1), labels=LABELLED))
        wait_secret(plot, name)
        plot.wait_ready(name, 2)
    uids = {name: uid(plot, name) for name in ("fails", "hangs")}
    redis.keys |= {f"RAY{each}@KV" for each in uids.values()}
    plot.patch_node("node", {"spec": {"unschedulable": True}})
    redis.gone = True
    began = time.monotonic()
    for name in uids:
        plot.delete("RayCluster", name)
    for name in uids:
        plot.wait_event(name, "RedisUnavailable", "within 5 minutes")
    pod = plot.wait(lambda: cleaning(plot, "fails"), "the pod that cleans up")
    plot.patch_status("Pod", pod, {"phase": "Failed"})
    plot.wait_gone("RayCluster", "fails")
    path = plot.path("RayCluster", "hangs")
    plot.wait(lambda: not plot.cluster.api.exists(path), "KubeRay to give up", MOST + 60)
    assert LEAST < time.monotonic() - began < MOST + 60
    assert "ForceDeletedStuckCluster" in events(plot, "hangs")
    assert all(user_of(each) in redis.users[redis.servers[0]] for each in uids.values())
    redis.gone = False
    for each in uids.values():
        wait_no_user(plot, redis, each)
    assert redis.keys == set()


def cleaning(plot: Plot, cluster: str) -> str:
    """The pod of the clean-up Job of a RayCluster; empty while there is none."""
    found = (
        each["metadata"]
        for each in plot.all("Pod")
        if each["metadata"]["labels"].get(names.RAY_NODE_TYPE) == names.RAY_REDIS_CLEANUP
    )
    return next((str(each["name"]) for each in found if each["name"].startswith(cluster)), "")
