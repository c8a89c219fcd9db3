"""Says what is lost with a deleted Ray cluster or job, and what would block the deletion."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cli.managing.values import part

_OVER = ("Complete", "Failed", "ValidationFailed")


def goes_with(
    cluster: Mapping[str, Any], pods: int | None, jobs: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Say what is lost with a RayCluster; `pods` is None where they may not be listed."""
    many = "its pods" if pods is None else "1 pod" if pods == 1 else f"{pods} pods"
    yield f"{many}, with all that runs on them, its Services and its Gang"
    running = [each["metadata"]["name"] for each in jobs if is_on(each, cluster)]
    if running:
        yield f"jobs that are not over and run on it will fail: {', '.join(sorted(running))}"
    if part(cluster, "spec", "gcsFaultToleranceOptions"):
        yield "its state in Redis, which a Job of KubeRay deletes before it is gone"


def is_on(job: Mapping[str, Any], cluster: Mapping[str, Any]) -> bool:
    """Say whether a RayJob that is not over selected a RayCluster."""
    selected = part(job, "spec", "clusterSelector").get("ray.io/cluster")
    over = part(job, "status").get("jobDeploymentStatus") in _OVER
    return selected == cluster["metadata"]["name"] and not over


def goes_with_job(job: Mapping[str, Any]) -> Iterator[str]:
    """Say what is lost with a RayJob."""
    if part(job, "spec", "clusterSelector"):
        yield "its submitter; the job is stopped, and the RayCluster that it runs on stays"
        return
    made = part(job, "status").get("rayClusterName")
    yield f"its submitter, and RayCluster {made} with its pods" if made else "its submitter"


def hangs(cluster: Mapping[str, Any]) -> str:
    """Say why a deletion would never end; empty where it would."""
    held = cluster["metadata"].get("finalizers") or ()
    redis = part(cluster, "spec", "gcsFaultToleranceOptions")
    if "ray.io/gcs-ft-redis-cleanup-finalizer" in held and not redis:
        return (
            "gcsFaultToleranceOptions were taken out of it while it lived, so KubeRay never takes "
            "its finalizer off: once it is deleted, patch metadata.finalizers to []"
        )
    return ""
