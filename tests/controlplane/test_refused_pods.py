"""A gang that KubeRay cannot complete says what was refused."""

import pytest

from testbed.muster import Muster
from tests.controlplane.plot import Plot, condition, is_held
from tests.controlplane.quotas import add_quota, add_quota_of_defaults
from tests.controlplane.rayclusters import Json, gang, group, pod
from tests.controlplane.test_running import most_workers


def with_pods(most: int) -> Json:
    """What a ResourceQuota says that counts pods."""
    return {"spec": {"hard": {"pods": str(most)}}}


def test_a_resource_quota_that_refuses_pods_is_the_reason_until_it_is_lifted(plot: Plot) -> None:
    """Gated pods count in the quota; the gang says in KubeRay's words what could not be made."""
    plot.add_node(4)
    add_quota_of_defaults(plot, "small", pods=3)
    plot.create(pod("stranger"))
    plot.create(gang("cut", group(replicas=2)))
    missing = "group workers: 1 of 2 pods exist"
    said = f"{missing}; KubeRay could not create more: "
    status = plot.wait_phase("cut", "Gathering", "PodsRefused", said)
    assert "exceeded quota: small" in status["message"]
    assert condition(status, "Gathered")["status"] == "False"
    plot.wait_event("cut", "PodsRefused", "exceeded quota: small")
    plot.wait_message("cut", "of limits.cpu in it cut has 2000m, other pods have 1000m")
    assert all(is_held(pod) for pod in plot.wait_pods("cut", 2))
    plot.delete("ResourceQuota", "small")
    plot.wait_running("cut", 3)


@pytest.mark.variant
def test_a_gang_that_no_quota_ever_holds_is_suspended_until_that_is_raised(plot: Plot) -> None:
    plot.add_node(3)
    add_quota(plot, "small", {"pods": 2})
    plot.create(gang("cut", group(replicas=2)))
    plot.wait_message("cut", "a ResourceQuota never admits all of it")
    plot.wait(lambda: not plot.pods("cut"), "its pods to be gone")
    plot.patch("ResourceQuota", "small", with_pods(3))
    plot.wait_running("cut", 3)


@pytest.mark.variant
def test_a_running_gang_says_that_the_replacement_of_a_lost_worker_is_refused(
    plot: Plot, muster: Muster
) -> None:
    """It keeps the slot and goes on; once the quota is lifted it is whole again."""
    plot.add_node(3)
    plot.create(gang("cut", group(replicas=2)))
    plot.wait_running("cut", 3)
    add_quota(plot, "small", {"pods": 2})
    plot.delete("Pod", plot.pods("cut", "worker")[0]["metadata"]["name"])
    missing = "group workers: 1 of 2 pods exist"
    status = plot.wait_phase("cut", "Running", "PodsRefused", missing)
    assert "exceeded quota: small" in status["message"]
    plot.wait_message("cut", "; 1 slot is kept for a lost pod until 20")
    assert [each.get("kept", 0) for each in plot.status("cut")["podSets"]] == [0, 1]
    assert "\nmuster_kept_slots 0.0" not in muster.metrics()
    plot.wait_event("cut", "PodsRefused", "exceeded quota: small")
    plot.delete("ResourceQuota", "small")
    plot.wait_phase("cut", "Running", "Running")
    plot.wait(lambda: "\nmuster_kept_slots 0.0" in muster.metrics(), "no slot to be kept")


@pytest.mark.variant
def test_slots_of_pods_that_cannot_be_made_go_to_the_next(plot: Plot) -> None:
    """A mistake in the template beside lost workers: KubeRay says that no pod of it is valid."""
    plot.add_node(5)
    plot.create(gang("broken", group(replicas=4)))
    plot.wait_running("broken", 5)
    plot.create(gang("next", group(replicas=3)))
    plot.wait_phase("next", "Queued", "InsufficientResources")
    plot.scale("broken", template=with_policy("Nope"), maxReplicas=11)
    plot.wait(lambda: most_workers(plot, "broken") == 11, "KubeRay to have read the template")
    for lost in plot.pods("broken", "worker"):
        plot.delete("Pod", lost["metadata"]["name"])
    plot.wait_running("next", 4)
    status = plot.wait_phase("broken", "Running", "PodsRefused", "is invalid: ")
    assert [each.get("kept", 0) for each in status["podSets"]] == [0, 0]


def with_policy(policy: str) -> Json:
    """A template of workers with this imagePullPolicy, which KubeRay passes on as it is."""
    template: Json = group()["template"]
    template["spec"]["containers"][0]["imagePullPolicy"] = policy
    return template


@pytest.mark.variant
def test_a_gang_whose_surplus_is_refused_runs_with_its_minimum(plot: Plot) -> None:
    """Surplus pods need not exist."""
    plot.add_node(4)
    add_quota(plot, "small", {"pods": 2})
    minimum = {"muster.dev/min-replicas": "workers=1"}
    plot.create(gang("cut", group(replicas=3), annotations=minimum))
    plot.wait_running("cut", 2)


BACKED_OFF = 10
"""After so many refusals KubeRay waits for 2.5 s or more."""


def times_refused(plot: Plot, cluster: str) -> int:
    """How often KubeRay told on a RayCluster that a pod of it was refused."""
    events = (each for each in plot.all("Event") if each["regarding"]["name"] == cluster)
    return sum(
        each.get("deprecatedCount", 1) for each in events if "exceeded quota" in each["note"]
    )


def test_of_two_gangs_that_share_a_quota_the_first_starts_and_then_the_second(plot: Plot) -> None:
    """KubeRay tries the first one again late by then, and the second one at once."""
    plot.add_node(14)
    add_quota_of_defaults(plot, "small", pods=8)
    strangers = [f"stranger-{at}" for at in range(4)]
    for each in strangers:
        plot.create(pod(each))
    plot.create(gang("first", group(replicas=4)))
    plot.wait(lambda: times_refused(plot, "first") >= BACKED_OFF, "KubeRay to try seldom")
    plot.create(gang("second", group(replicas=4)))
    plot.wait_phase("second", "Queued", "PodsRefused")
    for each in strangers:
        plot.delete("Pod", each)
    plot.wait(lambda: len(plot.bound("first")) == 5, "the first to start")
    plot.delete("RayCluster", "first")
    plot.wait_running("second", 5)
