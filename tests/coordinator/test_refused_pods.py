"""Does a gang say why KubeRay could not create all of its pods?"""

import pytest

from coordinator.demand import NotReady, demand
from coordinator.standing import survey
from kube.objects import Condition, ObjectMeta, RayCluster, RayClusterStatus
from kube.ray import GangTerms, PodSetTerms, refused_pods
from scheduling.model import GangKey
from scheduling.verdict import Reason

QUOTA = 'pods "ray-head-x2v4q" is forbidden: exceeded quota: small, limited: pods=1'
TERMS = GangTerms(queue="default", priority_class="", pod_sets=(PodSetTerms("headgroup", 1, 1, 1),))


def cluster_that_says(kind: str, status: str, reason: str, message: str) -> RayCluster:
    conditions = (Condition(kind, status, reason, message),)
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
    text = f"0 of 1 pods exist; missing: headgroup 0 of 1; KubeRay could not create more: {QUOTA}"
    assert asked == NotReady(Reason.PODS_REFUSED, text)


def test_a_gang_that_merely_lacks_pods_is_incomplete() -> None:
    asked = demand(GangKey("team", "ray"), 0, 0.0, survey(TERMS, [], None, {}))
    assert isinstance(asked, NotReady)
    assert asked.reason == Reason.GANG_INCOMPLETE
