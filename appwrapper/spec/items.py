"""Reads the items of an AppWrapper, whatever its generation, and all faults in them at once."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec

from appwrapper.spec.declared import COUNT, Said, compare, pods_of_unknown
from appwrapper.spec.decoding import decoded, fields_of
from appwrapper.spec.faults import (
    FAULTS_KEPT,
    MOST_ITEMS,
    MOST_POD_SETS,
    MOST_PODS,
    NOTICES_KEPT,
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
from appwrapper.spec.pod_set_names import LONGEST, PodSetNames
from appwrapper.spec.reserved_fields import reserved_fields
from appwrapper.spec.retries import patience
from appwrapper.spec.scopes import refusal
from kube.objects.app_wrapper import (
    AppWrapper,
    AppWrapperSpec,
    Component,
    CustomPodResources,
    DeclaredPodSet,
    GenericItem,
    SchedulingSpec,
)
from kube.objects.base import ObjectMeta
from kube.objects.pod_templates import PodTemplate
from kube.ray.known_keys import PREFIX, WRITTEN

_SECONDS = "a whole number from 0 on"
_NAME_ALLOWED = "a name of 1 to 253 characters"
_LONGEST_NAME = 253
_NO_COMPONENT, _NO_ITEM = Component(), GenericItem()


class Generation(StrEnum):
    """Whose AppWrapper it is, by the fields that it has."""

    MCAD = "MCAD"
    CODEFLARE = "CodeFlare"


@dataclass(frozen=True, slots=True)
class WrappedPodSet:
    """Pods of an item, all of one template; `name` fits a label value.

    `path` is where in the object the template is, empty where the object is itself the pod. It is
    None where only sizes are declared: such pods cannot be labelled, and come ungated. `in_order`,
    `ray`, `completions` and `later` are those of `kinds.PodsOfKind`.
    """

    name: str
    path: Path | None
    count: int
    minimum: int
    hosts: int = 1
    ray: Path | None = None
    in_order: bool = False
    completions: int | None = None
    later: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """One wrapped object, as it is to be created but for what Muster adds.

    `where` is how messages name it. `custom` are its custompodresources, `completion` its
    completionstatus.
    """

    where: str
    api_version: str
    kind: str
    name: str
    found: Json
    pod_sets: tuple[WrappedPodSet, ...] = ()
    custom: tuple[CustomPodResources, ...] = ()
    completion: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """Tell the object from all others of its namespace."""
        return group_of(self.api_version), self.kind, self.name


@dataclass(frozen=True, slots=True)
class Wrapped:
    """What an AppWrapper asks for; nothing of it is created while there is a fault."""

    generation: Generation
    spec: AppWrapperSpec
    items: tuple[Item, ...] = ()
    faults: tuple[Fault, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def scheduling(self) -> SchedulingSpec:
        """What schedulingSpec says."""
        return self.spec.scheduling_spec or SchedulingSpec()


@dataclass(slots=True)
class _Found:
    """What was found so far in one AppWrapper."""

    namespace: str
    faults: list[Fault] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    names: PodSetNames = field(default_factory=PodSetNames)


@dataclass(frozen=True, slots=True)
class _Entry:
    """What stands around a wrapped object: an entry of components or GenericItems."""

    where: str
    field: str
    template: Any
    declared: tuple[DeclaredPodSet, ...] | None = None
    component: Component = _NO_COMPONENT
    item: GenericItem = _NO_ITEM


def read(wrapper: AppWrapper) -> Wrapped:
    """Read an AppWrapper; what is wrong in it is told, and never raises."""
    spec = decoded(wrapper.spec)
    if isinstance(spec, Fault):
        return Wrapped(Generation.CODEFLARE, AppWrapperSpec(), faults=(spec,))
    found = _Found(wrapper.metadata.namespace)
    found.faults += _metadata_faults(wrapper.metadata)
    flat = {key: spec[key] for key in spec if key not in ("components", "resources")}
    terms, faults = fields_of(AppWrapperSpec, flat, "", "spec.")
    found.faults += [*faults, *_term_faults(terms)]
    generation, entries = _entries(spec, found)
    for entry in entries:
        _read_entry(entry, found)
    found.faults += _duplicates(found.items)
    found.faults += _total_faults(found.items)
    items = tuple(_with_minimum(found, terms))
    if generation is Generation.CODEFLARE:
        found.notices += [each.message for each in patience(wrapper.metadata.annotations)[1]]
    told = tuple(_as_spelt(generation, each) for each in found.faults[:FAULTS_KEPT])
    return Wrapped(generation, terms, items, told, tuple(found.notices[:NOTICES_KEPT]))


def _as_spelt(generation: Generation, fault: Fault) -> Fault:
    """Name the field of the wrapped object as its generation does."""
    if generation is Generation.MCAD and fault.item and fault.field.startswith("template"):
        return replace(fault, field=f"generic{fault.field}")
    return fault


# --- the AppWrapper as a whole ----------------------------------------------------------------


def _metadata_faults(meta: ObjectMeta) -> Iterator[Fault]:
    if len(meta.name) > LONGEST:
        allowed = f"at most {LONGEST} characters: it is written into labels"
        yield Fault("", "metadata.name", meta.name, allowed)
    for key in (*meta.labels, *meta.annotations):
        if key in WRITTEN:
            yield Fault("", "metadata", key, f"no key of {PREFIX} that Muster writes itself")


def _term_faults(spec: AppWrapperSpec) -> Iterator[Fault]:
    scheduling = spec.scheduling_spec or SchedulingSpec()
    requeuing, dispatch = scheduling.requeuing, scheduling.dispatch_duration
    at_least_0 = {"minAvailable": scheduling.min_available}
    for where, struct in (("requeuing", requeuing), ("dispatchDuration", dispatch)):
        if struct is not None:
            values = zip(
                struct.__struct_encode_fields__, msgspec.structs.astuple(struct), strict=True
            )
            at_least_0 |= {f"{where}.{name}": n for name, n in values if type(n) is int}
    for name, number in at_least_0.items():
        if number is not None and not 0 <= number < 2**31:
            yield Fault("", f"spec.schedulingSpec.{name}", str(number), _SECONDS)
    if spec.priority is not None and not -(2**31) <= spec.priority < 2**31:
        yield Fault("", "spec.priority", str(spec.priority), "a whole number of 32 bits")
    if spec.priority_slope is not None and not math.isfinite(spec.priority_slope):
        yield Fault("", "spec.priorityslope", str(spec.priority_slope), "a finite number")


def _entries(spec: Json, found: _Found) -> tuple[Generation, Iterator[_Entry]]:
    """List the entries of the generation that the spec is of."""
    components, items = spec.get("components"), at(spec, ("resources", "GenericItems"))
    if components is not None and items is not None:
        allowed = "spec.components, or spec.resources.GenericItems"
        found.faults.append(Fault("", "spec", "both of them", allowed))
    if items is not None:
        listed = _list("spec.resources.GenericItems", items, found)
        return Generation.MCAD, _generic_items(listed, found)
    if spec.get("resources") is not None and components is None:
        return Generation.MCAD, iter(())
    listed = _list("spec.components", components, found)
    return Generation.CODEFLARE, _components(listed, found)


def _list(where: str, value: Any, found: _Found) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        said = f"{len(value)} entries" if isinstance(value, list) else shown(value)
        found.faults.append(Fault("", where, said, f"a list of at most {MOST_ITEMS}"))
        return []
    return value


def _components(listed: list[Any], found: _Found) -> Iterator[_Entry]:
    for index, each in enumerate(listed):
        where = _where(f"spec.components[{index}]", at(each, ("template",)))
        component, faults = fields_of(Component, _map(where, each, found), where, "")
        found.faults += [*faults, *_too_many(where, "podSets", component.pod_sets)]
        template, declared = at(each, ("template",)), component.pod_sets[:MOST_POD_SETS]
        yield _Entry(where, "template", template, declared, component)


def _generic_items(listed: list[Any], found: _Found) -> Iterator[_Entry]:
    for index, each in enumerate(listed):
        template = at(each, ("generictemplate",))
        where = _where(f"spec.resources.GenericItems[{index}]", template)
        item, faults = fields_of(GenericItem, _map(where, each, found), where, "")
        found.faults += [*faults, *_item_faults(where, item)]
        found.faults += _too_many(where, "custompodresources", item.custom_pod_resources)
        if (item.replicas or 0) > 1:
            found.notices.append(f"{where}: replicas: {item.replicas}: one object is created")
        yield _Entry(where, "generictemplate", template, item=item)


def _too_many(where: str, field: str, entries: tuple[object, ...]) -> Iterator[Fault]:
    if len(entries) > MOST_POD_SETS:
        yield Fault(where, field, f"{len(entries)} entries", f"at most {MOST_POD_SETS}")


def _map(where: str, value: Any, found: _Found) -> Mapping[str, Any]:
    if isinstance(value, dict):
        return value
    found.faults.append(Fault(where, "it", shown(value), "a map"))
    return {}


def _where(path: str, template: Any) -> str:
    """Name an item by its place, and by what it is as far as it says so."""
    said = [at(template, ("kind",)), at(template, ("metadata", "name"))]
    named = " ".join(shown(each) for each in said if isinstance(each, str) and each)
    return f"{path} ({named})" if named else path


def _item_faults(where: str, item: GenericItem) -> Iterator[Fault]:
    numbers = {"replicas": item.replicas, "minavailable": item.min_available}
    entries = enumerate(item.custom_pod_resources)
    numbers |= {f"custompodresources[{n}].replicas": each.replicas for n, each in entries}
    for name, number in numbers.items():
        if number is not None and not 0 <= number <= MOST_PODS:
            yield Fault(where, name, str(number), COUNT)


def _duplicates(items: Iterable[Item]) -> Iterator[Fault]:
    seen: dict[tuple[str, str, str], str] = {}
    for each in items:
        if each.key in seen:
            allowed = f"a name that no other {each.kind} has; it is that of {seen[each.key]}"
            yield Fault(each.where, "template.metadata.name", each.name, allowed)
        seen.setdefault(each.key, each.where)


def _total_faults(items: list[Item]) -> Iterator[Fault]:
    sets = [each for item in items for each in item.pod_sets]
    pods = sum(each.count for each in sets)
    if len(sets) > MOST_POD_SETS:
        yield Fault("", "spec", f"{len(sets)} pod sets", f"at most {MOST_POD_SETS}")
    if pods > MOST_PODS:
        yield Fault("", "spec", f"{pods} pods", f"at most {MOST_PODS} of all items")


def _with_minimum(found: _Found, spec: AppWrapperSpec) -> Iterator[Item]:
    """Have minAvailable pods start at once, of the first items first; else what each kind needs."""
    asked = (spec.scheduling_spec or SchedulingSpec()).min_available
    total = sum(each.count for item in found.items for each in item.pod_sets)
    if asked and asked > total:
        found.notices.append(f"schedulingSpec.minAvailable: {asked}: the items have {total} pods")
    left = asked or 0
    for item in found.items:
        sets = []
        for each in item.pod_sets:
            most = each.minimum if each.in_order else each.count
            minimum = _whole_replicas(min(left, most), each) if asked else each.minimum
            left = max(left - minimum, 0)
            sets.append(replace(each, minimum=minimum))
        yield replace(item, pod_sets=tuple(sets))


def _whole_replicas(pods: int, pod_set: WrappedPodSet) -> int:
    hosts = max(pod_set.hosts, 1)
    return min(-(-pods // hosts) * hosts, pod_set.count)


# --- one item ---------------------------------------------------------------------------------


def _read_entry(entry: _Entry, found: _Found) -> None:
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


def _read_object(entry: _Entry, template: Json, found: _Found) -> None:
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


def _reserved_infos(entry: _Entry) -> Iterator[Fault]:
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
