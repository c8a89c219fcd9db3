"""The objects that the scenes create.

The Ray clusters are KubeRay's own sample with as little changed as a scene needs.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path

import yaml

from testbed.api import Json
from testbed.nodes import GPU

OPT_IN = {"muster.dev/gang": "true"}
"""The one label that makes a Ray cluster a gang."""

_SAMPLE = "ray-cluster.sample.yaml"
_AUTOSCALED = "ray-cluster.autoscaler.yaml"
_BYTE_SIZED = "1Mi"


def ray_cluster(samples: Path, name: str, workers: int) -> Json:
    """KubeRay's sample with another name and number of workers: a CPU for each pod."""
    cluster: Json = yaml.safe_load((samples / _SAMPLE).read_text())
    cluster["metadata"]["name"] = name
    group = cluster["spec"]["workerGroupSpecs"][0]
    group["replicas"] = workers
    group["maxReplicas"] = max(workers, group["maxReplicas"])
    return cluster


def as_gang(cluster: Json) -> Json:
    """Opt a Ray cluster in."""
    labelled = copy.deepcopy(cluster)
    labelled["metadata"]["labels"] = dict(OPT_IN)
    return labelled


def lasting(cluster: Json, duration: str) -> Json:
    """Say how long it is going to run."""
    changed = copy.deepcopy(cluster)
    changed["metadata"].setdefault("annotations", {})["muster.dev/expected-duration"] = duration
    return changed


def held(cluster: Json) -> Json:
    """Have no pod of it created before the whole gang is admitted."""
    changed = copy.deepcopy(cluster)
    annotations = changed["metadata"].setdefault("annotations", {})
    annotations["muster.dev/create-pods"] = "when-admitted"
    return changed


def with_worker_gpus(cluster: Json, gpus: int) -> Json:
    """Ask for GPUs for each worker; the head stays without."""
    changed = copy.deepcopy(cluster)
    for group in changed["spec"]["workerGroupSpecs"]:
        _ask(group["template"], GPU, str(gpus))
    return changed


def with_worker_claims(cluster: Json, template: str) -> Json:
    """Have each worker claim devices by a template; Ray is told, for claims are no limits."""
    changed = copy.deepcopy(cluster)
    for group in changed["spec"]["workerGroupSpecs"]:
        group.setdefault("rayStartParams", {})["num-gpus"] = "1"
        spec = group["template"]["spec"]
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
        for container in spec["containers"]:
            container["resources"]["claims"] = [{"name": "gpu"}]
    return changed


def with_cpus(cluster: Json, cpus: int) -> Json:
    """Ask for more CPUs for every pod."""
    changed = copy.deepcopy(cluster)
    spec = changed["spec"]
    for part in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        _ask(part["template"], "cpu", str(cpus))
    return changed


def with_priority(cluster: Json, priority_class: str) -> Json:
    """Give every pod a priority class."""
    changed = copy.deepcopy(cluster)
    spec = changed["spec"]
    for part in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        part["template"]["spec"]["priorityClassName"] = priority_class
    return changed


def with_minimum(cluster: Json, workers: int) -> Json:
    """Let a Ray cluster start with so many workers; the others are surplus."""
    changed = copy.deepcopy(cluster)
    group = changed["spec"]["workerGroupSpecs"][0]["groupName"]
    annotations = changed["metadata"].setdefault("annotations", {})
    annotations["muster.dev/min-replicas"] = f"{group}={workers}"
    return changed


def gang_queue(name: str, namespace: str, **spec: object) -> Json:
    """A GangQueue that one namespace uses, and that may be deleted while gangs are in it."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "GangQueue",
        "metadata": {"name": name, "annotations": {"muster.dev/allow-deletion": "true"}},
        "spec": {"namespaceSelector": selector, **spec},
    }


def filler(name: str, node: str, amounts: Mapping[str, str]) -> Json:
    """A plain pod, none of a Ray cluster, that takes room of one node."""
    limits = {"memory": _BYTE_SIZED, **amounts}
    container = {"name": "main", "image": "filler", "resources": {"limits": limits}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def autoscaled_ray_cluster(samples: Path, name: str, config_map: str) -> Json:
    """KubeRay's sample that scales itself: a head of 1 CPU, its autoscaler, a worker of 2."""
    cluster: Json = next(yaml.safe_load_all((samples / _AUTOSCALED).read_text()))
    cluster["metadata"]["name"] = name
    head, (group,) = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    head["template"]["spec"]["volumes"][0]["configMap"]["name"] = config_map
    group |= {"replicas": 1, "minReplicas": 1, "maxReplicas": 1}
    _ask(group["template"], "cpu", "2")
    return cluster


def mcad_app_wrapper(name: str, *objects: Json) -> Json:
    """An AppWrapper as users of MCAD write it."""
    items = [{"replicas": 1, "generictemplate": each} for each in objects]
    return {
        "apiVersion": "workload.codeflare.dev/v1beta1",
        "kind": "AppWrapper",
        "metadata": {"name": name},
        "spec": {"resources": {"GenericItems": items}},
    }


def named(kind: str, name: str) -> Json:
    """A ConfigMap, or a Secret, with nothing in it."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def _ask(template: Json, resource: str, amount: str) -> None:
    for container in template["spec"]["containers"]:
        for kind in ("requests", "limits"):
            container["resources"][kind][resource] = amount
