"""Chooses the pods, and the container of each, whose logs are asked for."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cli.endings import Absent, Unusable
from cli.report.ray.jobs import Job
from kube.objects import names
from kube.objects.core import Pod

SUBMITTER: Final = "ray-job-submitter"
"""The container that submits a job in SidecarMode, in the pod of the head."""

_WITHOUT_POD: Final = {
    "HTTPMode": "KubeRay submits it itself",
    "InteractiveMode": "its user submits it",
}


@dataclass(frozen=True, slots=True)
class LogSource:
    """The log of one container."""

    pod: str
    container: str
    has_node: bool = True
    """Without a node the API server answers with an empty log, followed or not."""


def of_cluster(
    pods: Iterable[Pod], cluster: str, group: str, container: str, *, every: bool
) -> list[LogSource]:
    """Choose the head of a RayCluster, the workers of a group, or all; raises Absent."""
    found = sorted(pods, key=_place)
    if group:
        chosen = [each for each in found if each.metadata.labels.get(names.RAY_GROUP) == group]
    else:
        chosen = [each for each in found if every or _is_head(each)]
    if not chosen:
        what = f"pods of group {group}" if group else "pods" if every else "head pod"
        groups = sorted({each.metadata.labels.get(names.RAY_GROUP, "") for each in found} - {""})
        there = f"; there are pods of: {', '.join(groups)}" if groups else ""
        raise Absent(f"RayCluster {cluster} has no {what}{there}; muster why {cluster} says why")
    return [_source(each, container) for each in chosen]


def _is_head(pod: Pod) -> bool:
    return pod.metadata.labels.get(names.RAY_NODE_TYPE) == "head"


def _place(pod: Pod) -> tuple[object, ...]:
    return not _is_head(pod), pod.metadata.name


def _source(pod: Pod, container: str) -> LogSource:
    """Name the container, the first one where none is named: that is where Ray runs."""
    there = [each.name for each in (*pod.spec.containers, *pod.spec.init_containers)]
    if container and container not in there:
        raise Unusable(
            f"--container: {container}; allowed of pod {pod.metadata.name}: {', '.join(there)}"
        )
    return LogSource(pod.metadata.name, container or there[0], bool(pod.spec.node_name))


def of_job(job: Job, submitters: Sequence[Pod], cluster: Iterable[Pod]) -> list[LogSource]:
    """Choose where the output of a job is: its latest submitter; raises Absent."""
    mode, name = job.spec.submission_mode, job.metadata.name
    if mode in _WITHOUT_POD:
        raise Absent(
            f"RayJob {name}: {_WITHOUT_POD[mode]}, so its output is in no pod's log: Ray's "
            "dashboard has it (kubectl ray session)"
        )
    if mode == "SidecarMode":
        heads = [each for each in cluster if _is_head(each)]
        found = [LogSource(each.metadata.name, SUBMITTER) for each in heads]
    else:
        latest = sorted(submitters, key=lambda each: each.metadata.creation_timestamp or "")[-1:]
        found = [_source(each, "") for each in latest]
    if not found:
        raise Absent(f"RayJob {name} {_state(job)}, and has no pod that submits it")
    return found


def _state(job: Job) -> str:
    said = job.status.job_status or job.status.job_deployment_status
    return f"is {said}" if said else "has not begun"


def is_over(job: Job) -> bool:
    """Say whether nothing more will come of a job."""
    over = ("Complete", "Failed", "ValidationFailed")
    return job.status.job_deployment_status in over


def named(sources: Sequence[LogSource]) -> Iterator[tuple[LogSource, str]]:
    """Yield the logs with what each line begins with, where there are several."""
    for each in sources:
        yield each, f"[{each.pod}] " if len(sources) > 1 else ""
