"""Reduces the pod templates of suspended RayClusters and of RayJobs to the fields that matter."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from kube.objects.base import Labels
from kube.objects.pod_templates import (
    AutoscalerOptions,
    GroupTemplate,
    PodTemplate,
    TemplateMeta,
    TemplateSpec,
)
from kube.objects.ray import ABSENT, RayClusterSpec, RayJobSpec, WorkerGroup
from kube.ray.known_keys import WRAPPED

MOST_BYTES = 64 * 1024
"""Templates of one RayCluster, reduced to the fields that are read; a usual one has 1 KiB."""

MOST_BYTES_OF_A_SUBMITTER = 8 * 1024
"""The template of a RayJob's submitter, reduced as those; every RayJob there is may have one."""

TOO_LARGE = msgspec.Raw(b'"too large"')
"""Stands for a template of which nothing is kept: it cannot be read."""

T = TypeVar("T")
_Change: TypeAlias = Callable[[msgspec.Raw, Any], msgspec.Raw]
_encode = msgspec.json.Encoder().encode

_PRIVATE = frozenset(("env", "envFrom", "command", "args", "annotations"))
"""Fields that are never read, and in which secrets may be."""


class UnreadableTemplate(ValueError):  # noqa: N818 - the noun of what is at fault
    """A field of a template is of another type than Kubernetes gives it."""

    def __init__(self, field: str, fault: object) -> None:
        super().__init__(f"{field} cannot be read: {fault}")


def with_templates(spec: RayClusterSpec) -> RayClusterSpec:
    """Keep what pods are made of, without all that no shape depends on; nothing where too large."""
    kept = _map(spec, _reduced)
    return kept if _size(kept) <= MOST_BYTES else without_templates(spec)


def without_templates(spec: RayClusterSpec) -> RayClusterSpec:
    """Drop what pods are made of."""
    return _map(spec, lambda _raw, _kind: ABSENT)


def with_amounts_alone(spec: RayClusterSpec) -> RayClusterSpec:
    """Keep of what pods are made of how much they ask for, how urgently, and for which AppWrapper.

    Where the pods run elsewhere, nothing here says on which nodes they may be.
    """
    return _map(spec, _amounts_of)


def with_submitter(spec: RayJobSpec) -> RayJobSpec:
    """Keep what the submitter of a RayJob is made of, reduced in the same way."""
    kept = _reduced(spec.submitter_pod_template, PodTemplate)
    kept = kept if len(bytes(kept)) <= MOST_BYTES_OF_A_SUBMITTER else TOO_LARGE
    return replace(spec, submitter_pod_template=kept)


def submitter_template(spec: RayJobSpec) -> PodTemplate | None:
    """Read the template of the submitter; None where the RayJob has none of its own."""
    return _read(spec.submitter_pod_template, PodTemplate, "submitterPodTemplate")


def head_template(spec: RayClusterSpec) -> GroupTemplate | None:
    """Read the head group; None where it is not kept."""
    return _read(spec.head_group_spec, GroupTemplate, "headGroupSpec")


def worker_template(group: WorkerGroup) -> GroupTemplate | None:
    """Read a worker group; None where it is not kept."""
    where = f"workerGroupSpecs[{group.group_name}]"
    template = _read(group.template, PodTemplate, f"{where}.template")
    labels = _read(group.labels, dict[str, str], f"{where}.labels")
    return None if template is None else GroupTemplate(template, labels or {})


def autoscaler_options(spec: RayClusterSpec) -> AutoscalerOptions | None:
    """Read how the autoscaler's container is made; None where the RayCluster is silent."""
    return _read(spec.autoscaler_options, AutoscalerOptions, "autoscalerOptions")


def _map(spec: RayClusterSpec, change: _Change) -> RayClusterSpec:
    """Change each part that pods are made of."""
    groups = tuple(
        replace(
            each, template=change(each.template, PodTemplate), labels=change(each.labels, Labels)
        )
        for each in spec.worker_group_specs
    )
    return replace(
        spec,
        worker_group_specs=groups,
        head_group_spec=change(spec.head_group_spec, GroupTemplate),
        autoscaler_options=change(spec.autoscaler_options, AutoscalerOptions),
    )


def _reduced(raw: msgspec.Raw, kind: Any) -> msgspec.Raw:
    """Encode only the fields that are read; what cannot be read stays, for a message to name it."""
    if raw == ABSENT:
        return ABSENT
    try:
        return msgspec.Raw(_encode(msgspec.json.decode(raw, type=kind)))
    except msgspec.ValidationError:
        return _without_secrets(raw)


def _amounts_of(raw: msgspec.Raw, kind: Any) -> msgspec.Raw:
    """Encode the amounts of a template; what cannot be read stays, for a message to name it."""
    if raw == ABSENT or kind is AutoscalerOptions:
        return raw
    try:
        return msgspec.Raw(_encode(_bare(msgspec.json.decode(raw, type=kind))))
    except msgspec.ValidationError:
        return raw


def _bare(found: Any) -> Any:
    match found:
        case GroupTemplate(template=template):
            return GroupTemplate(_bare(template))
        case PodTemplate(metadata=metadata, spec=spec):
            labels = metadata.labels if metadata else {}
            kept = {key: said for key, said in labels.items() if key in WRAPPED}
            return PodTemplate(TemplateMeta(kept) if kept else None, _bare_spec(spec))
    return {}


def _bare_spec(spec: TemplateSpec) -> TemplateSpec:
    return TemplateSpec(
        containers=tuple(replace(each, ports=()) for each in spec.containers),
        init_containers=tuple(replace(each, ports=()) for each in spec.init_containers),
        resources=spec.resources,
        priority_class_name=spec.priority_class_name,
    )


def _without_secrets(raw: msgspec.Raw) -> msgspec.Raw:
    """Leave out what a recording must not have; nothing is kept of what is nested too deep."""
    try:
        return msgspec.Raw(_encode(_shown(msgspec.json.decode(raw))))
    except RecursionError:
        return ABSENT


def _shown(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _shown(each) for key, each in data.items() if key not in _PRIVATE}
    return [_shown(each) for each in data] if isinstance(data, list) else data


def _size(spec: RayClusterSpec) -> int:
    groups = (raw for each in spec.worker_group_specs for raw in (each.template, each.labels))
    return sum(len(bytes(raw)) for raw in (spec.head_group_spec, spec.autoscaler_options, *groups))


def _read(raw: msgspec.Raw, kind: type[T], field: str) -> T | None:
    try:
        return None if raw == ABSENT else msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as fault:
        raise UnreadableTemplate(field, fault) from None
