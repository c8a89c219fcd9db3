"""Replaces template pods by the pods that the API server admitted in a dry run."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from cli.fitting.asked import Asked
from cli.fitting.manifests import HEAD_GROUP, Manifest
from kube.ray.pod_templates import with_templates

_OF_CLASSES: Final = ("priority", "overhead")
"""Worked out of the classes that were read, which may be stand-ins of those that may not be."""


def with_admitted(asked: Asked, pods: Mapping[str, Manifest]) -> Asked:
    """Return what is asked about, its templates as these pods were admitted, by pod set.

    Pods of an AppWrapper stay as they are: sizes that are declared beside the templates count too.
    """
    if asked.wrapped:
        return asked
    spec = asked.cluster.spec
    head = spec.head_group_spec
    if HEAD_GROUP in pods:
        group = msgspec.json.decode(head) or {}
        head = _raw({**group, "template": _as_admitted(group.get("template"), pods[HEAD_GROUP])})
    workers = tuple(
        replace(each, template=_worker(each.template, pods[each.group_name]))
        if each.group_name in pods
        else each
        for each in spec.worker_group_specs
    )
    changed = with_templates(replace(spec, head_group_spec=head, worker_group_specs=workers))
    return dataclasses.replace(asked, cluster=replace(asked.cluster, spec=changed))


def _worker(template: msgspec.Raw, pod: Manifest) -> msgspec.Raw:
    return _raw(_as_admitted(msgspec.json.decode(template), pod))


def _as_admitted(template: Any, pod: Manifest) -> dict[str, Any]:
    spec = {key: value for key, value in pod["spec"].items() if key not in _OF_CLASSES}
    labels = (pod.get("metadata") or {}).get("labels") or {}
    return {**(template or {}), "metadata": {"labels": labels}, "spec": spec}


def _raw(found: Mapping[str, Any]) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(found))
