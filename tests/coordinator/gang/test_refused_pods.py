"""A gang says why KubeRay could not create all of its pods."""

import pytest

from coordinator.gang.demand import NotReady, demand
from coordinator.gang.pods.pod_sets import survey
from kube.objects.base import ObjectMeta
from kube.objects.ray import RayCluster, RayClusterCondition, RayClusterStatus
from kube.ray.gang_terms import GangTerms, PodSetTerms
from kube.ray.ray_cluster import refused_pods
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason
from tests.coordinator.api import key_of
from tests.coordinator.builders import gang_of, node
from tests.coordinator.world import World

QUOTA = 'pods "ray-head-x2v4q" is forbidden: exceeded quota: small, limited: pods=1'
TERMS = GangTerms(queue="default", priority_class="", pod_sets=(PodSetTerms("headgroup", 1, 1, 1),))


def cluster_that_says(kind: str, status: str, reason: str, message: str) -> RayCluster:
    conditions = (RayClusterCondition(kind, status, reason, message),)
    return RayCluster(ObjectMeta(name="ray"), status=RayClusterStatus(conditions))


def test_the_text_of_the_api_server_is_kept_without_kuberays_own_word_for_it() -> None:
    message = f"FailedCreateHeadPod\n{QUOTA}"
    said = cluster_that_says("ReplicaFailure", "True", "FailedCreateHeadPod", message)
    assert refused_pods(said) == QUOTA


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("HeadPodReady", "True", "FailedCreateHeadPod"),
        ("ReplicaFailure", "False", "FailedCreateHeadPod"),
        ("ReplicaFailure", "True", "FailedDeleteAllPods"),
    ],
)
def test_other_conditions_do_not_speak_of_pods_that_were_refused(
    kind: str, status: str, reason: str
) -> None:
    assert refused_pods(cluster_that_says(kind, status, reason, "text")) == ""


def test_a_failure_without_a_text_is_told_by_its_reason() -> None:
    said = cluster_that_says("ReplicaFailure", "True", "FailedCreateWorkerPod", "")
    assert refused_pods(said) == "FailedCreateWorkerPod"


def test_a_gang_that_lacks_pods_says_what_was_refused_beside_what_is_missing() -> None:
    asked = demand(GangKey("team", "ray"), 0, 0.0, survey(TERMS, [], None, {}), QUOTA)
    text = f"the head pod does not exist yet; KubeRay could not create more: {QUOTA}"
    assert asked == NotReady(Reason.PODS_REFUSED, text)


def test_a_running_gang_says_that_the_replacement_of_a_lost_pod_is_refused() -> None:
    """Its slot is kept, so it asks for nothing; the user must know where to ask."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    said = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod"}
    with world.kuberay_refuses(said | {"message": f"FailedCreateWorkerPod\n{QUOTA}"}):
        world.api.remove(key_of(world.pods("a")[2]))
        world.settle(seconds=60)
        status = world.status("a")
        assert (status["phase"], status["reason"]) == ("Running", "PodsRefused")
        missing = "group workers: 1 of 2 pods exist"
        kept = "1 slot is kept for a lost pod until 2026-01-01T00:11:00Z"
        assert status["message"] == f"{missing}; KubeRay could not create more: {QUOTA}; {kept}"
        told = [(each.reason, each.warning) for each in world.leader.emitted]
        assert told == [("PodsRefused", True)]
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "Running"
    assert world.bound("a") == {"n1": 3}


def test_a_gang_that_merely_lacks_pods_is_incomplete() -> None:
    asked = demand(GangKey("team", "ray"), 0, 0.0, survey(TERMS, [], None, {}))
    assert isinstance(asked, NotReady)
    assert asked.reason == Reason.GANG_INCOMPLETE
