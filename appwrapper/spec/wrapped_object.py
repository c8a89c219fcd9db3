"""Reads one wrapped object of an AppWrapper, and all faults in it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from appwrapper.spec.declared import Said, compare, pods_of_unknown
from appwrapper.spec.faults import (
    Fault,
    shown,
)
from appwrapper.spec.kinds import (
    PodsOfKind,
    Reading,
    group_of,
    pods_of_kind,
)
from appwrapper.spec.paths import Json, Path, at, parse, written
from appwrapper.spec.pod_set_infos import with_infos
from appwrapper.spec.pod_set_names import PodSetNames
from appwrapper.spec.reserved_fields import reserved_fields
from appwrapper.spec.scopes import refusal
from appwrapper.spec.wrapped import Item, WrappedPodSet
from kube.objects.app_wrapper import (
    Component,
    DeclaredPodSet,
    GenericItem,
)
from kube.objects.pod_templates import PodTemplate
from kube.ray.known_keys import PREFIX

_NAME_ALLOWED = "a name of 1 to 253 characters"


_LONGEST_NAME = 253


_NO_COMPONENT, _NO_ITEM = Component(), GenericItem()


@dataclass(slots=True)
class Found:
    """What was found so far in one AppWrapper."""

    namespace: str
    faults: list[Fault] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    names: PodSetNames = field(default_factory=PodSetNames)


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands around a wrapped object: an entry of components or GenericItems."""

    where: str
    field: str
    template: Any
    declared: tuple[DeclaredPodSet, ...] | None = None
    component: Component = _NO_COMPONENT
    item: GenericItem = _NO_ITEM


def read_entry(entry: Entry, found: Found) -> None:
    """Read a wrapped object; one with a fault in what it is called is left out."""
    template = entry.template
    if not isinstance(template, dict):
        fault = Fault(entry.where, entry.field, shown(template), "a Kubernetes object")
        found.faults.append(fault)
        return
    faults = [*_identity_faults(entry.where, template, found.namespace)]
    found.faults += [*faults, *reserved_fields(entry.where, template)]
    if any(fault.field != "template.metadata.namespace" for fault in faults):
        return
    _read_object(entry, template, found)


def _identity_faults(where: str, template: Json, namespace: str) -> Iterator[Fault]:
    version, kind = template.get("apiVersion"), template.get("kind")
    if not isinstance(version, str) or not _is_version(version):
        yield Fault(where, "template.apiVersion", shown(version), "VERSION, or GROUP/VERSION")
    if not isinstance(kind, str) or not kind:
        yield Fault(where, "template.kind", shown(kind), "the kind of an object")
    elif isinstance(version, str) and (instead := refusal(group_of(version), kind)):
        yield Fault(where, "template.kind", kind, instead)
    name = at(template, ("metadata", "name"))
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
        yield Fault(where, "template.metadata.name", shown(name), _NAME_ALLOWED)
    own = at(template, ("metadata", "namespace"))
    if own not in (None, "", namespace):
        allowed = f"{namespace}, where the AppWrapper is, or none"
        yield Fault(where, "template.metadata.namespace", shown(own), allowed)


def _is_version(text: str) -> bool:
    parts = text.split("/")
    return len(parts) <= 2 and all(parts)


def _read_object(entry: Entry, template: Json, found: Found) -> None:
    reading = Reading(entry.where, template)
    version, kind, name = template["apiVersion"], template["kind"], template["metadata"]["name"]
    said = Said(entry.declared, entry.item.custom_pod_resources)
    known = pods_of_kind(reading, version, kind)
    pods = pods_of_unknown(said, reading, found.notices) if known is None else known
    if entry.declared and known is not None:
        compare(said, known, reading, found.notices)
    paths = [each.path for each in pods if each.path is not None]
    reading.faults += _template_faults(reading, paths)
    declared = [path for each in entry.declared or () if (path := parse(each.path)) in paths]
    infos = entry.component.pod_set_infos
    if reading.faults:
        infos = ()
    whole, conflicts = with_infos(entry.where, template, declared or paths, infos)
    found.faults += [*reading.faults, *conflicts, *_reserved_infos(entry)]
    sets = tuple(_named(each, found.names, kind, name) for each in pods)
    found.notices += _in_order(entry.where, sets)
    item = entry.item
    found.items.append(
        Item(
            where=entry.where,
            api_version=version,
            kind=kind,
            name=name,
            found=whole,
            pod_sets=sets,
            custom=item.custom_pod_resources,
            completion=item.completion_status or "",
        )
    )


def _in_order(where: str, sets: Iterable[WrappedPodSet]) -> Iterator[str]:
    for each in sets:
        if each.in_order and each.minimum < each.count:
            pods = f"{each.count} pods of {each.name}"
            said = f"{each.minimum} of the {pods} can start at once: the others wait for them"
            yield f"{where}: {said if each.minimum else f'the {pods} wait for those of others'}"


def _named(pods: PodsOfKind, given: PodSetNames, kind: str, name: str) -> WrappedPodSet:
    return WrappedPodSet(
        given.name(kind, name, pods.part),
        pods.path,
        pods.count,
        pods.minimum,
        pods.hosts,
        pods.ray,
        in_order=pods.in_order,
        completions=pods.completions,
        later=pods.later,
    )


def _reserved_infos(entry: Entry) -> Iterator[Fault]:
    for index, info in enumerate(entry.component.pod_set_infos):
        gates = [each.name for each in info.scheduling_gates]
        for key in (*info.annotations, *info.labels, *info.node_selector, *gates):
            if key.startswith(PREFIX):
                yield Fault(entry.where, f"podSetInfos[{index}]", key, f"no key of {PREFIX}")


def _template_faults(reading: Reading, paths: Iterable[Path]) -> Iterator[Fault]:
    """Check that what pods are made of can be read."""
    for path in paths:
        found = reading.at(*path)
        if fault := _template_fault(found):
            allowed = f"a pod template ({fault})"
            yield Fault(reading.where, written(path), shown(found), allowed)


def _template_fault(found: Any) -> str:
    """Say why nothing can be made of a template; empty where pods can."""
    try:
        made_of = msgspec.convert(found, PodTemplate)
    except msgspec.ValidationError as error:
        return str(error)
    return "" if made_of.spec.containers else "it has no spec.containers"
