"""Writes RayClusters: new ones, copies, and existing ones with what a form asks for."""

import copy
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from cli.endings import Unusable
from cli.managing.forms import GPU, ClusterForm, GroupForm
from cli.managing.values import (
    check_amount,
    check_count,
    check_name,
    check_one_of,
    check_queue,
    part,
)
from kube.objects import names

Json = dict[str, Any]

UPSCALING: Final = ("Default", "Aggressive", "Conservative")
CREATING: Final = (names.CREATE_ALWAYS, names.CREATE_WHEN_ADMITTED)

RAY_VERSION: Final = "2.52.0"
IMAGE: Final = "rayproject/ray"
_HEAD: Final = GroupForm(cpus="2", memory="8Gi")
_WORKER: Final = GroupForm(cpus="4", memory="16Gi")
_VERSION: Final = re.compile(r":([0-9]+\.[0-9]+\.[0-9]+)(?![0-9.])")

LABELS: Final = {"queue": names.QUEUE, "priority_class": names.PRIORITY_CLASS}
ANNOTATIONS: Final = {
    "topology_required": names.TOPOLOGY_REQUIRED,
    "topology_preferred": names.TOPOLOGY_PREFERRED,
    "replica_topology_required": names.REPLICA_TOPOLOGY_REQUIRED,
    "expected_duration": names.EXPECTED_DURATION,
    "create_pods": names.CREATE_PODS,
}
_CHECKED: Final = {"queue": check_queue}


def new_cluster(name: str, namespace: str, form: ClusterForm) -> Json:
    """Return a RayCluster that has nothing but what a form asks for, and the usual; a gang."""
    image = form.image or f"{IMAGE}:{form.ray_version or RAY_VERSION}"
    bare: Json = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "metadata": {
            "name": check_name("NAME", name),
            "namespace": namespace,
            "labels": {names.OPT_IN: "true"},
        },
        "spec": {
            "rayVersion": _version_of(image) or RAY_VERSION,
            "headGroupSpec": {"rayStartParams": {}, "template": _template("ray-head", image)},
            "workerGroupSpecs": [],
        },
    }
    _set_resources(bare["spec"]["headGroupSpec"], _HEAD)
    return changed(bare, form)


def _version_of(image: str) -> str:
    found = _VERSION.search(image)
    return found[1] if found else ""


def _template(container: str, image: str) -> Json:
    return {"spec": {"containers": [{"name": container, "image": image}]}}


def changed(
    cluster: Json, form: ClusterForm, workers: Mapping[str, str] = MappingProxyType({})
) -> Json:
    """Return a RayCluster with what a form asks for; raises Unusable for what cannot be.

    `workers` are the pods of its worker groups by name, with their group.
    """
    found = copy.deepcopy(cluster)
    _mark(found["metadata"], form)
    spec = found["spec"]
    _autoscale(spec, form)
    if form.image is not None:
        _set_image(spec, form.image)
    if form.ray_version is not None:
        spec["rayVersion"] = form.ray_version
    groups = _groups(spec, form)
    if form.head is not None:
        _set_pod(spec["headGroupSpec"], form.head)
    if groups or "workerGroupSpecs" in spec:
        spec["workerGroupSpecs"] = groups
    _delete_workers(groups, form.workers_to_delete, workers)
    return found


def _mark(metadata: Json, form: ClusterForm) -> None:
    """Write the labels and annotations; an empty text takes one away."""
    for field, keys, key in (
        *((field, "labels", key) for field, key in LABELS.items()),
        *((field, "annotations", key) for field, key in ANNOTATIONS.items()),
    ):
        said = getattr(form, field)
        if said:
            _check_mark(field, said)
            metadata.setdefault(keys, {})[key] = said
        elif said is not None:
            part(metadata, keys).pop(key, None)
    labels = metadata.setdefault("labels", {})
    if form.gang is not None:
        labels[names.OPT_IN] = "true" if form.gang else "false"
    if form.fault_tolerance:
        labels[names.HEAD_FAULT_TOLERANCE] = names.BUILT_IN
    elif form.fault_tolerance is not None:
        labels.pop(names.HEAD_FAULT_TOLERANCE, None)


def _check_mark(field: str, said: str) -> None:
    if field == "create_pods":
        check_one_of("create-pods", said, CREATING)
    elif field in _CHECKED:
        _CHECKED[field](field, said)


def _autoscale(spec: Json, form: ClusterForm) -> None:
    if form.autoscaler is not None:
        spec["enableInTreeAutoscaling"] = form.autoscaler
    said: Json = {}
    if form.idle_timeout_seconds is not None:
        said["idleTimeoutSeconds"] = check_count("idle-timeout", form.idle_timeout_seconds)
    if form.upscaling_mode is not None:
        said["upscalingMode"] = check_one_of("upscaling", form.upscaling_mode, UPSCALING)
    if said and not autoscales(spec):
        raise Unusable("idle-timeout and upscaling: Ray's autoscaler is off; allowed with it alone")
    if said:
        spec["autoscalerOptions"] = {**part(spec, "autoscalerOptions"), **said}


def autoscales(spec: Json) -> bool:
    """Say whether Ray's autoscaler decides how many workers there are."""
    return bool(spec.get("enableInTreeAutoscaling"))


def _groups(spec: Json, form: ClusterForm) -> list[Json]:
    """Return the worker groups as asked for: some changed, some left out, some new."""
    groups: list[Json] = list(spec.get("workerGroupSpecs") or ())
    known = [each["groupName"] for each in groups]
    for name in form.without_groups:
        if name not in known:
            raise Unusable(f"{name}: no worker group; there are: {', '.join(known) or 'none'}")
    kept = [each for each in groups if each["groupName"] not in form.without_groups]
    by_name = {each["groupName"]: each for each in kept}
    for asked in form.groups:
        if asked.name in by_name:
            _change_group(by_name[asked.name], asked, autoscaler=autoscales(spec))
        else:
            kept.append(_new_group(spec, asked))
    return kept


def _new_group(spec: Json, asked: GroupForm) -> Json:
    """Return a new worker group; its image is that of the head so far where it names none."""
    head = container_of(spec["headGroupSpec"])
    group = {
        "groupName": check_name("group", asked.name),
        "rayStartParams": {},
        "template": _template("ray-worker", asked.image or head.get("image", "")),
    }
    _set_resources(group, _WORKER)
    _count_new(group, asked, autoscaler=autoscales(spec))
    _set_pod(group, asked)
    return group


def _count_new(group: Json, asked: GroupForm, *, autoscaler: bool) -> None:
    name = asked.name
    if autoscaler and asked.max is None:
        raise Unusable(f"group {name}: max: absent; allowed with Ray's autoscaler: a number")
    least = asked.min if asked.min is not None else 0
    usual = least if autoscaler else max(least, 1)
    count = asked.replicas if asked.replicas is not None else usual
    most = asked.max if asked.max is not None else max(count, least)
    group |= {"replicas": count, "minReplicas": least, "maxReplicas": most}
    if asked.hosts is not None:
        group["numOfHosts"] = check_count(f"group {name}: hosts", asked.hosts, 1)
    check_numbers(group)


def _change_group(group: Json, asked: GroupForm, *, autoscaler: bool) -> None:
    """Set what is asked for; without an autoscaler the bounds make way for the replicas."""
    for field, value in (
        ("replicas", asked.replicas),
        ("minReplicas", asked.min),
        ("maxReplicas", asked.max),
        ("numOfHosts", asked.hosts),
    ):
        if value is not None:
            group[field] = value
    if not autoscaler and asked.replicas is not None:
        widen(group, asked)
    _set_pod(group, asked)
    check_numbers(group)


def widen(group: Json, asked: GroupForm) -> None:
    """Move a bound that nothing was said of so far that the replicas lie within."""
    count = group["replicas"]
    if asked.min is None and group.get("minReplicas") is not None:
        group["minReplicas"] = min(group["minReplicas"], count)
    if asked.max is None and group.get("maxReplicas") is not None:
        group["maxReplicas"] = max(group["maxReplicas"], count)


def check_numbers(group: Json) -> None:
    """Refuse numbers of a group that KubeRay would refuse, or would not keep to."""
    name = f"group {group.get('groupName')}"
    least, most = group.get("minReplicas"), group.get("maxReplicas")
    count = group.get("replicas")
    for field, value in (("replicas", count), ("min", least), ("max", most)):
        if value is not None:
            check_count(f"{name}: {field}", value)
    if least is not None and most is not None and least > most:
        raise Unusable(f"{name}: min {least} is above max {most}; allowed: at most max")
    if count is not None and not (least or 0) <= count <= (count if most is None else most):
        raise Unusable(f"{name}: replicas {count}; allowed: from min {least or 0} to max {most}")


def container_of(group: Json) -> Json:
    """Return the container that runs Ray: KubeRay takes the first."""
    containers = part(group, "template", "spec").get("containers") or [{}]
    found: Json = containers[0]
    return found


def _set_pod(group: Json, asked: GroupForm) -> None:
    _set_resources(group, asked)
    if asked.image is not None:
        container_of(group)["image"] = asked.image


def _set_resources(group: Json, asked: GroupForm) -> None:
    """Ask for amounts, and limit to them: what Ray counts with is what the pod may use."""
    amounts: Json = {}
    if asked.cpus is not None:
        amounts["cpu"] = check_amount("cpus", "cpu", asked.cpus)
    if asked.memory is not None:
        amounts["memory"] = check_amount("memory", "memory", asked.memory)
    if asked.gpus is not None:
        amounts[asked.gpu or GPU] = str(check_count("gpus", asked.gpus))
    elif asked.gpu is not None:
        raise Unusable(f"gpu={asked.gpu}: allowed with gpus=N alone")
    if amounts:
        container = container_of(group)
        resources = container.setdefault("resources", {})
        for key in ("requests", "limits"):
            resources[key] = {**part(resources, key), **amounts}


def _set_image(spec: Json, image: str) -> None:
    """Have all Ray containers run an image, and say its version where its tag tells it."""
    for group in (spec["headGroupSpec"], *(spec.get("workerGroupSpecs") or ())):
        container_of(group)["image"] = image
    if _version_of(image):
        spec["rayVersion"] = _version_of(image)


def _delete_workers(
    groups: Iterable[Json], pods: tuple[str, ...], workers: Mapping[str, str]
) -> None:
    """Name the pods that KubeRay is to delete: it would delete any of the namespace."""
    by_name = {each["groupName"]: each for each in groups}
    for pod in pods:
        group = by_name.get(workers.get(pod, ""))
        if group is None:
            some = ", ".join(sorted(workers)[:5]) or "none"
            raise Unusable(f"{pod}: no worker pod of this RayCluster; there are: {some}")
        named = part(group, "scaleStrategy").get("workersToDelete") or ()
        group["scaleStrategy"] = {"workersToDelete": [*named, pod]}
