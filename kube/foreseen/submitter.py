"""Works out the pod that submits a RayJob in K8sJobMode, which KubeRay makes last.

KubeRay 1.4, 1.5 and 1.6 make a Job of the RayJob's name, with its `submitterPodTemplate` or one of
their own (`GetSubmitterTemplate` in common/job.go); command, environment and token volume, which
they add, decide nothing. In the other modes no pod is made, nor is a gang where the RayJob
selects a RayCluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kube.codec.fields import InvalidObject
from kube.codec.pod import pod_shape
from kube.codec.pod_shapes import SHAPES
from kube.codec.profiles.scheduler_profiles import Profiles
from kube.foreseen.admission import Admission, NotAdmitted, admitted
from kube.objects.base import Labels, ObjectMeta
from kube.objects.pod_templates import (
    PodTemplate,
    TemplateContainer,
    TemplatePod,
    TemplateResources,
    TemplateSpec,
)
from kube.objects.ray import RayJob
from kube.ray.pod_templates import UnreadableTemplate, submitter_template
from scheduling.model.amounts import CPU, MEMORY, PODS
from scheduling.model.pod import PodShape
from scheduling.model.shape.host_ports import is_port

MODE = "K8sJobMode"
"""The mode of a RayJob that names none."""

TO_COME = ("", "Initializing")
"""The states of a RayJob whose Job was not made yet; it is made as the state becomes Running."""

RUNNING = "Running"

USUAL: Mapping[str, int] = {CPU: 500, MEMORY: 200 * 2**20, PODS: 1}
"""What the submitter asks for that has no template of its own."""

_REQUESTS = {CPU: "500m", MEMORY: "200Mi"}
_LIMITS = {CPU: "1", MEMORY: "1Gi"}
_CONTAINER = TemplateContainer(
    name="ray-job-submitter", resources=TemplateResources(requests=_REQUESTS, limits=_LIMITS)
)
_OF_KUBERAY = PodTemplate(spec=TemplateSpec(containers=(_CONTAINER,)))


@dataclass(frozen=True, slots=True)
class Submitter:
    """The submitter as it will be: its shape, and the labels of its template, sorted."""

    shape: PodShape
    labels: tuple[tuple[str, str], ...]


def is_submitted_by_pod(job: RayJob) -> bool:
    """Say whether a pod of its own submits a RayJob."""
    return (job.spec.submission_mode or MODE) == MODE and not job.spec.cluster_selector


def submitter_of(job: RayJob, admission: Admission, profiles: Profiles) -> Submitter | None:
    """Work out the submitter that is to come; None where none is, or it cannot be judged.

    It is no pod of the gang, which is not to wait for what is not known: a template that cannot be
    read or is not admitted, or one that says more than what it needs of a node by itself.
    """
    if not is_submitted_by_pod(job) or job.status.job_deployment_status not in TO_COME:
        return None
    try:
        found = _made(job)
        shape = pod_shape(admitted(found, admission), profiles)
    except (NotAdmitted, InvalidObject, UnreadableTemplate):
        return None
    spec = found.spec
    if (
        spec.node_name
        or spec.scheduling_gates
        or spec.resource_claims
        or not _is_judged_alone(shape)
    ):
        return None
    return Submitter(SHAPES(shape), tuple(sorted(found.metadata.labels.items())))


def _made(job: RayJob) -> TemplatePod:
    template = submitter_template(job.spec) or _OF_KUBERAY
    labels: Labels = template.metadata.labels if template.metadata else {}
    meta = ObjectMeta(namespace=job.metadata.namespace, labels=labels)
    return TemplatePod(metadata=meta, spec=template.spec)


def _is_judged_alone(shape: PodShape) -> bool:
    """Say whether a shape has neither claims, host ports nor terms about other pods."""
    about_others = shape.affinity or shape.anti_affinity or shape.spread
    ports = any(is_port(resource) for resource, _ in shape.requests)
    return not (shape.unsupported or shape.volumes or about_others or ports)
