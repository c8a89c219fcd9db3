"""Writes the objects of a soak."""

from __future__ import annotations

from appwrapper.spec.retries import PREFIX
from kube.objects import names
from testbed.api import Json
from tests.controlplane.rayclusters import (
    cluster_spec,
    group,
    head,
    ray_cluster,
    ray_job,
    ray_service,
    requests,
    template,
)
from tests.soak import plan as p
from tests.soak.amounts import GPU
from tests.soak.plan import Order
from tests.soak.stage import PRIORITY

_EVICTED_SOON = [
    {
        "key": f"node.kubernetes.io/{what}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 8,
    }
    for what in ("not-ready", "unreachable")
]


def manifest(order: Order) -> Json:
    """The Ray object of an order."""
    asked = requests(cpu="4", memory="8Gi", **{GPU: str(order.gpus)})
    more: Json = {"tolerations": _EVICTED_SOON}
    if order.priority:
        more["priorityClassName"] = PRIORITY
    workers = group(replicas=order.workers, most=order.workers + 10, resources=asked, **more)
    if order.kind == p.RAY_CLUSTER:
        marks = {names.MIN_REPLICAS: f"workers={order.least}"}
        made = ray_cluster(order.name, workers, annotations=marks, head_group=head(**more))
    elif order.kind == p.RAY_JOB:
        made = ray_job(order.name, workers, submissionMode="HTTPMode", backoffLimit=1)
        made["spec"]["rayClusterSpec"] = cluster_spec(workers, head_group=head(**more))
        made["spec"].pop("submitterPodTemplate")
        made["spec"]["shutdownAfterJobFinishes"] = True
    elif order.kind == p.APP_WRAPPER:
        made = _app_wrapper(order, workers, head(**more), {**more, "resources": asked})
    else:
        made = ray_service(order.name, workers)
        made["spec"]["rayClusterConfig"] = cluster_spec(workers, head_group=head(**more))
    return made


def _app_wrapper(order: Order, workers: Json, head_group: Json, pods: Json) -> Json:
    """One of CodeFlare's generation that tries again soon."""
    wrapped = {
        p.RAY_CLUSTER: lambda: ray_cluster(order.name, workers, head_group=head_group),
        "Job": lambda: _pod_maker("batch/v1", "Job", order, pods),
        "Deployment": lambda: _pod_maker("apps/v1", "Deployment", order, pods),
    }[order.wraps]()
    waits = ("failureGracePeriodDuration", "retryPausePeriodDuration")
    marks = {f"{PREFIX}{each}": "5s" for each in waits} | {f"{PREFIX}retryLimit": "1000"}
    return {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": p.APP_WRAPPER,
        "metadata": {"name": order.name, "annotations": marks},
        "spec": {"components": [{"template": wrapped}]},
    }


def _pod_maker(api_version: str, kind: str, order: Order, pods: Json) -> Json:
    """A Job or a Deployment of as many pods as the order has workers."""
    labels = {"app": order.name}
    made = template("main", **pods)
    made["metadata"] = {"labels": labels}
    spec: Json = {"template": made}
    if kind == "Job":
        made["spec"]["restartPolicy"] = "Never"
        spec |= {"parallelism": order.workers, "completions": order.workers, "backoffLimit": 1000}
    else:
        spec |= {"replicas": order.workers, "selector": {"matchLabels": labels}}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": order.name}, "spec": spec}
