"""Reads the items of an AppWrapper, whatever its generation, and all faults in them at once."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from appwrapper.spec.declared import COUNT
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
from appwrapper.spec.paths import Json, at
from appwrapper.spec.pod_set_names import LONGEST
from appwrapper.spec.retries import patience
from appwrapper.spec.wrapped import Generation, Item, Wrapped, WrappedPodSet
from appwrapper.spec.wrapped_object import Entry, Found, read_entry
from kube.objects.app_wrapper import (
    AppWrapper,
    AppWrapperSpec,
    Component,
    GenericItem,
    SchedulingSpec,
)
from kube.objects.base import ObjectMeta
from kube.ray.known_keys import OF_COPIES, PREFIX, WRITTEN

_SECONDS = "a whole number from 0 on"


def read(wrapper: AppWrapper) -> Wrapped:
    """Read an AppWrapper; what is wrong in it is told, and never raises."""
    spec = decoded(wrapper.spec)
    if isinstance(spec, Fault):
        return Wrapped(Generation.CODEFLARE, AppWrapperSpec(), faults=(spec,))
    found = Found(wrapper.metadata.namespace)
    found.faults += _metadata_faults(wrapper.metadata)
    flat = {key: spec[key] for key in spec if key not in ("components", "resources")}
    terms, faults = fields_of(AppWrapperSpec, flat, "", "spec.")
    found.faults += [*faults, *_term_faults(terms)]
    generation, entries = _entries(spec, found)
    for entry in entries:
        read_entry(entry, found)
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
        if key in WRITTEN - OF_COPIES:
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


def _entries(spec: Json, found: Found) -> tuple[Generation, Iterator[Entry]]:
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


def _list(where: str, value: Any, found: Found) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        said = f"{len(value)} entries" if isinstance(value, list) else shown(value)
        found.faults.append(Fault("", where, said, f"a list of at most {MOST_ITEMS}"))
        return []
    return value


def _components(listed: list[Any], found: Found) -> Iterator[Entry]:
    for index, each in enumerate(listed):
        where = _where(f"spec.components[{index}]", at(each, ("template",)))
        component, faults = fields_of(Component, _map(where, each, found), where, "")
        found.faults += [*faults, *_too_many(where, "podSets", component.pod_sets)]
        template, declared = at(each, ("template",)), component.pod_sets[:MOST_POD_SETS]
        yield Entry(where, "template", template, declared, component)


def _generic_items(listed: list[Any], found: Found) -> Iterator[Entry]:
    for index, each in enumerate(listed):
        template = at(each, ("generictemplate",))
        where = _where(f"spec.resources.GenericItems[{index}]", template)
        item, faults = fields_of(GenericItem, _map(where, each, found), where, "")
        found.faults += [*faults, *_item_faults(where, item)]
        found.faults += _too_many(where, "custompodresources", item.custom_pod_resources)
        if (item.replicas or 0) > 1:
            found.notices.append(f"{where}: replicas: {item.replicas}: one object is created")
        yield Entry(where, "generictemplate", template, item=item)


def _too_many(where: str, field: str, entries: tuple[object, ...]) -> Iterator[Fault]:
    if len(entries) > MOST_POD_SETS:
        yield Fault(where, field, f"{len(entries)} entries", f"at most {MOST_POD_SETS}")


def _map(where: str, value: Any, found: Found) -> Mapping[str, Any]:
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


def _with_minimum(found: Found, spec: AppWrapperSpec) -> Iterator[Item]:
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
