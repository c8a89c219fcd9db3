"""Decodes the pod templates of a RayCluster, from which its pods are worked out.

They are those that a pod's shape and its usage of ResourceQuotas come from. What the API server
settles when it admits a pod (limits, label keys to match, the runtime class) is read here and not
of pods. Encoded again, a template holds nothing else, and no defaults.
"""

import msgspec

from kube.objects.base import Labels, OrNull, Part, Quantities, Slim
from kube.objects.core import (
    Affinity,
    Container,
    ContainerPort,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Toleration,
)


class TemplatePort(ContainerPort, frozen=True, omit_defaults=True):
    """A port; with hostNetwork the API server makes it a port of the host."""

    name: str = ""
    container_port: int = 0


class TemplateResources(ResourceRequirements, frozen=True, omit_defaults=True):
    """Requests and limits as written."""

    limits: OrNull[Quantities] = {}


class TemplateContainer(Container, frozen=True, omit_defaults=True):
    """A container or init container."""

    resources: OrNull[TemplateResources] = TemplateResources()
    ports: OrNull[tuple[TemplatePort, ...]] = ()

    def __post_init__(self) -> None:
        """Read null as no resources at all."""
        super().__post_init__()
        if self.resources is None:
            msgspec.structs.force_setattr(self, "resources", TemplateResources())


class TemplateToleration(Toleration, frozen=True, omit_defaults=True):
    """A toleration; for how long decides which of two is the wider one."""

    toleration_seconds: int | None = None


class TemplateAffinityTerm(PodAffinityTerm, frozen=True, omit_defaults=True):
    """A term about other pods, with the keys that the API server merges into its selector."""

    match_label_keys: OrNull[tuple[str, ...]] = ()
    mismatch_label_keys: OrNull[tuple[str, ...]] = ()


class TemplateWish(Part, frozen=True, omit_defaults=True):
    """A term that is preferred; ResourceQuotas ask for it, scheduling does not."""

    term: TemplateAffinityTerm = msgspec.field(
        default=TemplateAffinityTerm(), name="podAffinityTerm"
    )


class TemplatePodAffinity(PodAffinity, frozen=True, omit_defaults=True):
    """Affinity or anti-affinity between pods."""

    required: OrNull[tuple[TemplateAffinityTerm, ...]] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: OrNull[tuple[TemplateWish, ...]] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class TemplateAffinity(Affinity, frozen=True, omit_defaults=True):
    """All that a template says about nodes and other pods."""

    pod_affinity: TemplatePodAffinity | None = None
    pod_anti_affinity: TemplatePodAffinity | None = None


class TemplateSpec(PodSpec, frozen=True, omit_defaults=True):
    """The spec of a pod that does not exist yet."""

    affinity: TemplateAffinity | None = None
    tolerations: OrNull[tuple[TemplateToleration, ...]] = ()
    containers: OrNull[tuple[TemplateContainer, ...]] = ()
    init_containers: OrNull[tuple[TemplateContainer, ...]] = ()
    resources: TemplateResources | None = None
    runtime_class_name: str | None = None
    active_deadline_seconds: int | None = None


class TemplatePod(Pod, frozen=True):
    """A pod that does not exist yet."""

    spec: TemplateSpec = TemplateSpec()


class TemplateMeta(Part, frozen=True, omit_defaults=True):
    """What a template says about its pods."""

    labels: OrNull[Labels] = {}


class PodTemplate(Slim, frozen=True, omit_defaults=True):
    """A pod template."""

    metadata: TemplateMeta | None = None
    spec: TemplateSpec = TemplateSpec()


class GroupTemplate(Part, frozen=True, omit_defaults=True):
    """What of a head group or worker group its pods are made of.

    KubeRay knows `labels` beside the template since 1.5; before, the API server drops them.
    """

    template: PodTemplate = PodTemplate()
    labels: OrNull[Labels] = {}


class AutoscalerOptions(Slim, frozen=True, omit_defaults=True):
    """How the autoscaler's container is made; where it has resources they replace the default."""

    resources: TemplateResources | None = None
