"""Reads ResourceSlices; keeps devices that it cannot fully read, and marks them as unsupported."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from kube.devices.capacity import plain_capacities, shared_capacities
from kube.devices.cel.faults import CelError, NotReadable
from kube.devices.cel.values import version
from kube.devices.common import nodes, taint
from kube.devices.counters import consumed_counters, shared_counters
from kube.devices.json_fields import Fields, Problems
from kube.devices.selectors import UNREAD
from kube.objects.core import DeviceObject
from scheduling.model.devices.resource_slice import (
    Attribute,
    AttributeKind,
    Device,
    DeviceContent,
    NodeAccess,
    ResourceSlice,
)

Attributes = tuple[tuple[str, Attribute], ...]

_KINDS: Final = {kind.value: kind for kind in AttributeKind}
_TYPES: Final[dict[str, type]] = {"string": str, "int": int, "bool": bool, "version": str}
_LISTS: Final = ("strings", "ints", "bools", "versions")
GROUPS: Final = "compatibilityGroups"
_ACCESS: Final = ("nodeName", "nodeSelector", "allNodes")


@dataclass(frozen=True, slots=True)
class ReadSlice:
    """A slice, and what is said of it where not all was read."""

    resource_slice: ResourceSlice
    problems: tuple[str, ...] = ()


def resource_slice(found: DeviceObject) -> ReadSlice:
    """Read a slice. Where the slice itself is not understood, none of its devices is."""
    problems = Problems()
    fields = Fields(found.spec, "spec", problems)
    fields.unknown(
        *("driver", "pool", *_ACCESS, "devices", "perDeviceNodeSelection", "sharedCounters"),
        *("partitionTypeAttribute", "skipNodeOperations"),  # the allocator asks for neither
    )
    driver, pool = sys.intern(fields.text("driver")), fields.part("pool")
    access = None if fields.flag("perDeviceNodeSelection") else _access(fields)
    shared = shared_counters(fields)
    name, generation = sys.intern(pool.text("name")), pool.number("generation", 1)
    count, parts = pool.number("resourceSliceCount", 1), list(fields.parts("devices"))
    of_slice = problems.all
    return ReadSlice(
        ResourceSlice(
            name=found.metadata.name,
            driver=driver,
            pool=name,
            devices=tuple(_device(each, driver, of_slice) for each in parts),
            generation=generation,
            slice_count=count,
            access=access,
            shared_counters=shared,
            unsupported=(*(of_slice if shared else ()), *_beside_pool(parts)),
        ),
        of_slice,
    )


def _beside_pool(devices: Iterable[Fields]) -> tuple[str, ...]:
    """Name what makes kube-scheduler 1.37 leave the slice out: the pool is incomplete then."""
    consumed = (each for device in devices for each in device.parts("consumesCounters"))
    return (GROUPS,) if any(GROUPS in each for each in consumed) else ()


def _access(fields: Fields) -> NodeAccess:
    return NodeAccess(
        node_name=fields.text("nodeName"),
        all_nodes=fields.flag("allNodes"),
        node_selector=nodes(fields, "nodeSelector"),
    )


def _device(found: Fields, driver: str, of_slice: tuple[str, ...]) -> Device:
    """Read a device, with problems of its own."""
    problems = Problems()
    fields = Fields(found.whole, found.path, problems)
    fields.unknown(
        *("name", "attributes", "capacity", "taints", *_ACCESS, "consumesCounters"),
        *("bindsToNode", "bindingConditions", "bindingFailureConditions"),
        *("allowMultipleAllocations", "nodeAllocatableResources"),
    )
    shared = fields.flag("allowMultipleAllocations")
    for key, wanted in _not_modelled(fields):
        if wanted:
            problems.note(key)
    content = _content(fields, driver, shared=shared)
    capacities = shared_capacities(fields) if shared else plain_capacities(content.capacity)
    return Device(
        name=fields.text("name"),
        content=content,
        taints=tuple(map(taint, fields.parts("taints"))),
        access=_access(fields),
        consumes_counters=consumed_counters(fields) if "consumesCounters" in fields else (),
        binding_conditions=bool(fields.plain("bindingConditions")),
        unsupported=tuple(sorted({*of_slice, *problems.all})),
        capacities=capacities,
    )


def _content(fields: Fields, driver: str, *, shared: bool) -> DeviceContent:
    """Read what selectors see; where not all of it is read, they are told by name."""
    own = Fields(fields.whole, fields.path, Problems())
    attributes, unread = _attributes(own)
    capacity = tuple(_capacity(own))
    for each in own.problems.all:
        fields.problems.note(each)
    if own.problems:
        attributes = ((UNREAD, Attribute(AttributeKind.STRING, own.problems.all[0])), *attributes)
    return DeviceContent(driver, attributes, capacity, shared, unread)


def _not_modelled(fields: Fields) -> Iterator[tuple[str, bool]]:
    yield "nodeAllocatableResources", bool(fields.plain("nodeAllocatableResources"))
    found = [each for _, each in fields.named("capacity") if isinstance(each, dict)]
    alone = not fields.flag("allowMultipleAllocations")
    yield "requestPolicy of a capacity", alone and any("requestPolicy" in each for each in found)
    yield "negative capacity", any(str(each.get("value", ""))[:1] == "-" for each in found)


def _attributes(fields: Fields) -> tuple[Attributes, tuple[str, ...]]:
    """Read the attributes; return the names of those that are not read as well."""
    found, unread = list[tuple[str, Attribute]](), list[str]()
    for name, value in fields.named("attributes"):
        attribute = _usual(value) or _noted(name, value, fields)
        if attribute is None:
            unread.append(sys.intern(name))
        else:
            found.append((sys.intern(name), attribute))
    return tuple(found), tuple(unread)


def _noted(name: str, value: Any, fields: Fields) -> Attribute | None:
    """Read an attribute; None where not all of it is understood, which is noted."""
    own = Fields(value, f"attributes[{name}]", Problems())
    found = _attribute(own)
    for each in own.problems.all:
        fields.problems.note(each)
    return None if own.problems else found


def _usual(value: Any) -> Attribute | None:
    """Read an attribute of one value that needs no check: nearly all are such."""
    if type(value) is not dict or len(value) != 1:
        return None
    ((key, single),) = value.items()
    if key in ("string", "bool") and type(single) is _TYPES[key]:
        return _shared(_KINDS[key], single)
    return None


def _attribute(fields: Fields) -> Attribute | None:
    fields.unknown(*_KINDS, *_LISTS)
    for key, kind in _KINDS.items():
        value = fields.plain(key)
        if value is not None:
            return _checked(fields, key, kind, value)
    said = "is a list" if any(key in fields for key in _LISTS) else "has no value that is known"
    fields.problems.note(f"{fields.path} {said}")
    return None


def _checked(fields: Fields, key: str, kind: AttributeKind, value: Any) -> Attribute | None:
    if type(value) is not _TYPES[key] or (type(value) is int and abs(value) >= 2**63):
        fields.problems.note(f"{fields.path}.{key} is of another type")
        return None
    if key == "version" and not _is_version(value):
        fields.problems.note(f"{fields.path} is no semantic version")
        return None
    return _shared(kind, value)


@lru_cache(maxsize=4096)
def _is_version(text: str) -> bool:
    try:
        version(text)
    except (CelError, NotReadable):
        return False
    return True


@lru_cache(maxsize=8192, typed=True)
def _shared(kind: AttributeKind, value: str | int) -> Attribute:
    """Return one object for equal values: thousands of devices say the same."""
    return Attribute(kind, int(value) if kind is AttributeKind.BOOLEAN else value)


def _capacity(fields: Fields) -> Iterator[tuple[str, str]]:
    for name, value in fields.named("capacity"):
        part = Fields(value, f"capacity[{name}]", fields.problems)
        part.unknown("value", "requestPolicy")
        amount = part.plain("value")
        if isinstance(amount, str | int | float) and not isinstance(amount, bool):
            yield sys.intern(name), sys.intern(str(amount))
        else:
            fields.problems.note(f"{part.path} has no value")
