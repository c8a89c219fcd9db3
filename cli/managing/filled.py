"""Fills forms with the current values of an object, for a person to change."""

from collections.abc import Mapping
from typing import Any

from cli.managing.cluster import ANNOTATIONS, LABELS, autoscales, container_of
from cli.managing.forms import ClusterForm, GroupForm, QueueForm
from cli.managing.queue import NAMESPACE
from cli.managing.values import part
from kube.objects import names

Json = Mapping[str, Any]


def cluster_form(cluster: Json) -> ClusterForm:
    """Return the form of a RayCluster as it is."""
    spec, labels = cluster["spec"], part(cluster, "metadata", "labels")
    marks = {**part(cluster, "metadata", "annotations"), **labels}
    options = part(spec, "autoscalerOptions")
    gang = marks.get(names.OPT_IN)
    said: dict[str, Any] = {field: marks.get(key) for field, key in (LABELS | ANNOTATIONS).items()}
    return ClusterForm(
        **said,
        gang=None if gang is None else gang == "true",
        fault_tolerance=names.HEAD_FAULT_TOLERANCE in labels,
        autoscaler=autoscales(spec),
        idle_timeout_seconds=options.get("idleTimeoutSeconds"),
        upscaling_mode=options.get("upscalingMode"),
        ray_version=spec.get("rayVersion"),
        head=_pod_form(spec["headGroupSpec"], ""),
        groups=tuple(map(_group_form, spec.get("workerGroupSpecs") or ())),
    )


def _group_form(group: dict[str, Any]) -> GroupForm:
    return _pod_form(
        group,
        group["groupName"],
        replicas=group.get("replicas"),
        min=group.get("minReplicas"),
        max=group.get("maxReplicas"),
        hosts=group.get("numOfHosts"),
    )


def _pod_form(group: dict[str, Any], name: str, **counts: int | None) -> GroupForm:
    container = container_of(group)
    amounts = {**part(container, "resources", "requests"), **part(container, "resources", "limits")}
    devices = [each for each in amounts if "/" in each and str(amounts[each]).isdecimal()]
    device = devices[0] if devices else None
    return GroupForm(
        name=name,
        cpus=_text(amounts.get("cpu")),
        memory=_text(amounts.get("memory")),
        gpus=int(amounts[device]) if device else None,
        gpu=device,
        image=container.get("image"),
        **counts,
    )


def _text(amount: object) -> str | None:
    return None if amount is None else str(amount)


def queue_form(queue: Json) -> QueueForm:
    """Return the form of a GangQueue as it is."""
    spec = part(queue, "spec")
    selector, stops = part(spec, "namespaceSelector"), part(spec, "preemption")
    named = [
        each["values"]
        for each in selector.get("matchExpressions") or ()
        if each["key"] == NAMESPACE and each["operator"] == "In"
    ]
    return QueueForm(
        parent=spec.get("parent"),
        quota=_texts(part(spec, "quota")),
        borrowing_limit=_texts(part(spec, "borrowingLimit")),
        lending_limit=_texts(part(spec, "lendingLimit")),
        namespaces=tuple(named[0]) if named else None,
        namespace_labels=part(selector, "matchLabels"),
        node_labels=part(spec, "nodeSelector"),
        ordering=spec.get("ordering"),
        when_blocked=spec.get("whenBlocked"),
        stop=spec.get("stop"),
        within_queue=stops.get("withinQueue"),
        reclaim=stops.get("reclaim"),
        while_borrowing=stops.get("whileBorrowing"),
        create_pods=spec.get("createPods"),
    )


def _texts(amounts: Mapping[str, object]) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in amounts.items()}
