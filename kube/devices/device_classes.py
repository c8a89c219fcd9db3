"""Reads DeviceClasses, and maps each extended resource to the class that provides it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from kube.codec.fields import created_at
from kube.devices.common import selectors
from kube.devices.json_fields import Fields, Problems
from kube.objects.core import DeviceObject
from scheduling.model.amounts import OF_CLASS
from scheduling.model.devices.resource_claim import DeviceClass

_NOT_READ: Final = "this_class_has({})"
"""A selector that no evaluator has: what is behind it is then named."""


@dataclass(frozen=True, slots=True)
class ReadClass:
    """A class, and when it was created: of two with one name for a resource the newer counts."""

    device_class: DeviceClass
    created: float


def device_class(found: DeviceObject) -> ReadClass:
    """Read a class; where not all of it is understood, no device is taken for one of it."""
    problems = Problems()
    fields = Fields(found.spec, "spec", problems)
    fields.unknown("selectors", "config", "extendedResourceName", "managedBy", "suitableNodes")
    texts, resource = selectors(fields), fields.text("extendedResourceName")
    unread = tuple(_NOT_READ.format(repr(each)) for each in problems.all)
    name = found.metadata.name
    return ReadClass(DeviceClass(name, (*unread, *texts), resource), created_at(found.metadata))


def classes_of_resources(classes: Iterable[ReadClass]) -> Mapping[str, str]:
    """Return the class of each resource that pods may ask for in place of a claim.

    Each class has a resource of its own name as well, but a class whose other name a newer class
    has: kube-scheduler knows that only if it saw this class first (extendedresourcecache).
    """
    found: dict[str, str] = {}
    for each in sorted(classes, key=lambda c: (-c.created, c.device_class.name)):
        of, named = each.device_class, each.device_class.extended_resource_name
        if not named or found.setdefault(named, of.name) == of.name:
            found[f"{OF_CLASS}{of.name}"] = of.name
    return found
