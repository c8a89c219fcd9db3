"""Decodes ProvisioningRequests, which ask Cluster Autoscaler for nodes.

They are those of autoscaling.x-k8s.io/v1. Releases that serve v1beta1 alone have none of them.
"""

from kube.objects.base import Condition, ObjectMeta, OrNull, Part, Slim

GROUP = "autoscaling.x-k8s.io"
API_VERSION = "autoscaling.x-k8s.io/v1"
KIND = "ProvisioningRequest"
MOST_POD_SETS = 32
"""Pod sets that a request takes (MaxItems in its definition)."""


class DatedCondition(Condition, frozen=True):
    """A condition, with the time at which its status changed."""

    last_transition_time: str | None = None


class TemplateReference(Slim, frozen=True):
    """A PodTemplate of the same namespace."""

    name: str = ""


class RequestedPods(Slim, frozen=True):
    """So many pods of one template; only the template is read."""

    pod_template_ref: TemplateReference = TemplateReference()


class ProvisioningRequestSpec(Part, frozen=True):
    """What is asked for; it cannot be changed."""

    pod_sets: OrNull[tuple[RequestedPods, ...]] = ()


class ProvisioningRequestStatus(Part, frozen=True):
    """What Cluster Autoscaler says."""

    conditions: OrNull[tuple[DatedCondition, ...]] = ()


class ProvisioningRequest(Slim, frozen=True):
    """A request for nodes that take some pods together."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ProvisioningRequestSpec = ProvisioningRequestSpec()
    status: ProvisioningRequestStatus = ProvisioningRequestStatus()
