"""Says which RayClusters are held: suspended by Muster until their gang is admitted.

KubeRay creates no pods for a suspended RayCluster. Not every one can be held: a RayService resumes
its RayClusters within seconds, and the deadlines of a RayJob run while its RayCluster is suspended.
"""

from kube.objects import names
from kube.objects.base import Labels
from kube.objects.ray import RayCluster, RayJob, RayOwner
from kube.ray.ray_cluster import is_of_kuberay
from kube.ray.ray_owner import controller_of, is_the

HELD = "true"  # the value of the annotation


def asks_to_be_held(annotations: Labels, *, queue_holds: bool) -> bool:
    """Say whether the pods of a gang are to be created only when it is admitted.

    Those of a gang that starts with others would hold ResourceQuota while these are absent.
    """
    said = annotations.get(names.CREATE_PODS)
    if said is None:
        return queue_holds or names.TOGETHER in annotations
    return said == names.CREATE_WHEN_ADMITTED


def never_held(cluster: RayCluster, owner: RayOwner | None) -> str:
    """Say why a RayCluster cannot be held, whatever it asks for; empty where it can.

    `owner` is the RayJob or RayService that made it, None where that is not known.
    """
    stays, reference = never_suspended(cluster), controller_of(cluster.metadata)
    if stays or reference is None:
        return stays
    if not isinstance(owner, RayJob) or not is_the(owner, reference):
        return f"RayJob {reference.name}, which made it, is not known"
    return _deadline_of(owner)


def never_suspended(cluster: RayCluster) -> str:
    """Say why a RayCluster that waits cannot be suspended; empty where it can."""
    if not is_of_kuberay(cluster):
        return f"it is managed by {cluster.spec.managed_by}"
    reference = controller_of(cluster.metadata)
    if reference is not None and reference.kind == "RayService":
        return f"RayService {reference.name} made it, and would resume it within seconds"
    return ""


def is_held(cluster: RayCluster) -> bool:
    """Say whether Muster suspended a RayCluster, by what it says itself.

    What a Gang records counts more: the annotation may be overwritten.
    """
    said = cluster.metadata.annotations.get(names.HELD)
    return bool(cluster.spec.suspend) and said == HELD


def _deadline_of(job: RayJob) -> str:
    deadlines = {
        "activeDeadlineSeconds": job.spec.active_deadline_seconds,
        "preRunningDeadlineSeconds": job.spec.pre_running_deadline_seconds,
    }
    for field, seconds in deadlines.items():
        if seconds is not None:
            return f"{field} of RayJob {job.metadata.name} runs while it is held"
    return ""
