"""Makes the pods of a RayCluster as KubeRay 1.4, 1.5 and 1.6 make them.

It adds to a pod what a shape, a label selector or a ResourceQuota sees: the autoscaler beside the
head, the init container in which workers wait for it, a port and labels. Commands, environment,
probes, emptyDir and token volumes decide nothing. The three versions differ in none of this; 1.6
also numbers replicas and hosts in labels.
"""

import string

from msgspec.structs import replace

from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OwnerReference
from kube.objects.pod_templates import (
    AutoscalerOptions,
    GroupTemplate,
    TemplateContainer,
    TemplatePod,
    TemplatePort,
    TemplateResources,
    TemplateSpec,
)
from kube.objects.ray import RayCluster

_METRICS = TemplatePort(name="metrics", container_port=8080)
_AUTOSCALER = {"cpu": "500m", "memory": "512Mi"}
_WAITING = {"cpu": "200m", "memory": "256Mi"}
_WAIT_FOR_HEAD = TemplateContainer(
    name="wait-gcs-ready", resources=TemplateResources(requests=_WAITING, limits=_WAITING)
)
_FIXED = (names.RAY_NODE_TYPE, names.RAY_GROUP, names.RAY_CLUSTER)  # no template overrides these
_LONGEST_VALUE = 63


def head_pod(
    cluster: RayCluster, group: GroupTemplate, options: AutoscalerOptions | None
) -> TemplatePod:
    """Make the head, with the autoscaler beside it where the RayCluster enables that."""
    spec = _with_metrics_port(group.template.spec)
    if cluster.spec.enable_in_tree_autoscaling:
        spec = replace(spec, containers=(*spec.containers, _autoscaler(options)))
    return _pod(cluster, _labels(cluster, "head", names.RAY_HEAD_GROUP, group), spec)


def worker_pod(cluster: RayCluster, name: str, group: GroupTemplate) -> TemplatePod:
    """Make a worker, which waits for the head in an init container behind those it has."""
    spec = _with_metrics_port(group.template.spec)
    spec = replace(spec, init_containers=(*spec.init_containers, _WAIT_FOR_HEAD))
    return _pod(cluster, _labels(cluster, "worker", name, group), spec)


def _with_metrics_port(spec: TemplateSpec) -> TemplateSpec:
    """Give the first container, which is Ray's, a port of that name where it has none."""
    ray, *others = spec.containers
    if any(port.name == _METRICS.name for port in ray.ports):
        return spec
    return replace(spec, containers=(replace(ray, ports=(*ray.ports, _METRICS)), *others))


def _autoscaler(options: AutoscalerOptions | None) -> TemplateContainer:
    usual = TemplateResources(requests=_AUTOSCALER, limits=_AUTOSCALER)
    chosen = options.resources if options is not None else None
    return TemplateContainer(name="autoscaler", resources=usual if chosen is None else chosen)


def _pod(cluster: RayCluster, labels: Labels, spec: TemplateSpec) -> TemplatePod:
    meta = cluster.metadata
    owner = OwnerReference(
        names.RAY_API_VERSION, "RayCluster", meta.name, meta.uid, controller=True
    )
    of_pod = ObjectMeta(namespace=meta.namespace, labels=labels, owner_references=(owner,))
    return TemplatePod(metadata=of_pod, spec=spec)


def _labels(cluster: RayCluster, node_type: str, name: str, group: GroupTemplate) -> Labels:
    """Label a pod: KubeRay's own labels, then the template's, then those of its group."""
    template = group.template.metadata
    written = {**(template.labels if template else {}), **group.labels}
    return {
        "ray.io/is-ray-node": "yes",
        names.RAY_CLUSTER: cluster.metadata.name,
        names.RAY_NODE_TYPE: node_type,
        names.RAY_GROUP: name,
        "ray.io/identifier": _label_value(f"{cluster.metadata.name}-{node_type}"),
        "app.kubernetes.io/name": "kuberay",
        "app.kubernetes.io/created-by": "kuberay-operator",
        **{key: value for key, value in written.items() if key not in _FIXED},
        **_serving(cluster, node_type),
    }


def _serving(cluster: RayCluster, node_type: str) -> Labels:
    """Say whether a pod of a RayService takes requests; its head does so later, if at all."""
    owners = cluster.metadata.owner_references
    if not any(each.controller and each.kind == "RayService" for each in owners):
        return {}
    return {"ray.io/serve": "true" if node_type == "worker" else "false"}


def _label_value(text: str) -> str:
    """Cut what is too long for a label at its front, as KubeRay does."""
    cut = text[-_LONGEST_VALUE:]
    return f"r{cut[1:]}" if cut[0] in string.punctuation else cut
