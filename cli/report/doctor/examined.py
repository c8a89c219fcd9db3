"""Holds the objects that `muster doctor` judges; `Unread` stands for those not read."""

from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec

from cli.report.snapshot import Unread
from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim
from kube.objects.core import Namespace
from kube.objects.crds.definition import Definition
from kube.objects.queues.queue import GangQueue

T = TypeVar("T")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
NAMESPACE_NAME = "kubernetes.io/metadata.name"
Looked: TypeAlias = tuple[T, ...] | Unread


class ServerVersion(Slim, frozen=True):
    """What the API server says of itself."""

    major: str = ""
    minor: str = ""
    git_version: str = ""


class _ServiceReference(Slim, frozen=True):
    name: str = ""
    namespace: str = ""


class _ClientConfig(Slim, frozen=True):
    ca_bundle: str = ""
    url: str = ""
    service: _ServiceReference | None = None


class _Expression(Part, frozen=True):
    key: str = ""
    operator: str = ""
    values: OrNull[tuple[str, ...]] = ()


class _NamespaceSelector(Part, frozen=True):
    match_expressions: OrNull[tuple[_Expression, ...]] = ()


class Webhook(Slim, frozen=True):
    """One webhook of a configuration."""

    name: str = ""
    client_config: _ClientConfig = _ClientConfig()
    failure_policy: str = "Fail"
    namespace_selector: _NamespaceSelector = _NamespaceSelector()

    def leaves_alone(self, namespace: str) -> bool:
        """Say whether the API server never asks it about a namespace, by its name."""
        return any(
            each.key == NAMESPACE_NAME and each.operator == "NotIn" and namespace in each.values
            for each in self.namespace_selector.match_expressions
        )


class WebhookConfiguration(Part, frozen=True):
    """A MutatingWebhookConfiguration."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: OrNull[tuple[Webhook, ...]] = ()

    @property
    def is_on_loopback(self) -> bool:
        """Whether the API server asks a process on its own machine, and no Service."""
        hosts = [urlsplit(each.client_config.url).hostname for each in self.webhooks]
        return bool(hosts) and all(host in LOOPBACK for host in hosts)


class _PolicyBindingSpec(Slim, frozen=True):
    policy_name: str = ""


class PolicyBinding(Slim, frozen=True):
    """A MutatingAdmissionPolicyBinding."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _PolicyBindingSpec = _PolicyBindingSpec()


class _EndpointConditions(Slim, frozen=True):
    ready: bool | None = None


class _Endpoint(Slim, frozen=True):
    conditions: _EndpointConditions = _EndpointConditions()


class EndpointSlice(Part, frozen=True):
    """Where the pods of a service are; one that does not say is ready."""

    metadata: ObjectMeta = ObjectMeta()
    endpoints: OrNull[tuple[_Endpoint, ...]] = ()

    @property
    def ready(self) -> int:
        """Count the pods that answer."""
        return sum(each.conditions.ready is not False for each in self.endpoints)


class TlsSecret(Part, frozen=True):
    """A Secret; only its certificate is read."""

    metadata: ObjectMeta = ObjectMeta()
    data: OrNull[dict[str, str]] = msgspec.field(default_factory=dict)


class _LeaseSpec(Slim, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class Lease(Slim, frozen=True):
    """The holder of the Lease, and when it last renewed it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _LeaseSpec = _LeaseSpec()


class Variable(Slim, frozen=True):
    """A variable of a container; None where its value stands in another object."""

    name: str = ""
    value: str | None = None


class Container(Part, frozen=True):
    """A container, by its image and what it is started with."""

    name: str = ""
    image: str = ""
    command: OrNull[tuple[str, ...]] = ()
    args: OrNull[tuple[str, ...]] = ()
    env: OrNull[tuple[Variable, ...]] = ()
    env_from: OrNull[tuple[dict[str, Any], ...]] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Its command line, but for what the image says itself."""
        return (*self.command, *self.args)


class _PodSpec(Part, frozen=True):
    containers: OrNull[tuple[Container, ...]] = ()


class SchedulerPod(Slim, frozen=True):
    """A pod of the control plane."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()


class _Template(Slim, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DeploymentSpec(Slim, frozen=True):
    replicas: int | None = None
    template: _Template = _Template()


class _DeploymentStatus(Slim, frozen=True):
    available_replicas: int = 0


class Deployment(Slim, frozen=True):
    """A Deployment: images, and how many of its pods are available."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()

    @property
    def images(self) -> tuple[str, ...]:
        """The images of its containers."""
        return tuple(each.image for each in self.spec.template.spec.containers)

    @property
    def arguments(self) -> tuple[str, ...]:
        """What its containers are started with."""
        return tuple(word for each in self.spec.template.spec.containers for word in each.words)


class ConfigMap(Part, frozen=True):
    """A ConfigMap, which may hold kube-scheduler's configuration."""

    metadata: ObjectMeta = ObjectMeta()
    data: OrNull[Labels] = msgspec.field(default_factory=dict)


class RayObject(Slim, frozen=True):
    """A RayCluster, by what it says of itself."""

    metadata: ObjectMeta = ObjectMeta()


@dataclass(frozen=True, slots=True)
class Examined:
    """The objects of one moment; `now` is in seconds since 1970.

    `configurations` are the webhooks of all systems, `bindings` those of policies that change
    objects, `deployments` those of all namespaces, `endpoints`, `secrets` and `leases` those of
    Muster's namespace, `schedulers` the pods of kube-scheduler and `config_maps` those of
    kube-system. `pod_groups` says that the native API of gangs is served.
    """

    now: float
    release: str
    namespace: str
    version: Looked[ServerVersion]
    definitions: Looked[Definition]
    configurations: Looked[WebhookConfiguration]
    bindings: Looked[PolicyBinding]
    endpoints: Looked[EndpointSlice]
    secrets: Looked[TlsSecret]
    leases: Looked[Lease]
    deployments: Looked[Deployment]
    schedulers: Looked[SchedulerPod]
    config_maps: Looked[ConfigMap]
    queues: Looked[GangQueue]
    namespaces: Looked[Namespace]
    ray_clusters: Looked[RayObject]
    pod_groups: bool
