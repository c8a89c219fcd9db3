"""Lists the kinds of objects to watch for device claims, and reads each kind into a fact."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from kube.api.resources import Resource
from kube.devices.device_classes import ReadClass, device_class
from kube.devices.resource_claims import resource_claim, resource_claim_template
from kube.devices.resource_slices import ReadSlice, resource_slice
from kube.devices.taint_rules import DeviceTaintRule, device_taint_rule
from kube.objects.core import DeviceObject
from scheduling.model.devices.resource_claim import ResourceClaim, ResourceClaimTemplate

DeviceFact: TypeAlias = (
    ReadSlice | ReadClass | ResourceClaim | ResourceClaimTemplate | DeviceTaintRule
)

GROUP: Final = "resource.k8s.io"
RESOURCE_SLICES: Final = Resource(GROUP, "v1", "resourceslices", namespaced=False)
DEVICE_CLASSES: Final = Resource(GROUP, "v1", "deviceclasses", namespaced=False)
RESOURCE_CLAIMS: Final = Resource(GROUP, "v1", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES: Final = Resource(GROUP, "v1", "resourceclaimtemplates")
DEVICE_TAINT_RULES: Final = Resource(GROUP, "v1", "devicetaintrules", namespaced=False)


@dataclass(frozen=True, slots=True)
class ObservedDeviceFact:
    """A fact, and of its object what a reflector asks for."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    fact: DeviceFact

    @property
    def metadata(self) -> "ObservedDeviceFact":
        """Return its name, namespace, uid and resource version."""
        return self


class DeviceWatch(NamedTuple):
    """One kind of object, and how it is read; no object is unreadable."""

    resource: Resource
    fact: type[DeviceFact]
    read: Callable[[DeviceObject], DeviceFact]

    def observe(self, found: Any) -> ObservedDeviceFact:
        """Reduce an object."""
        meta = found.metadata
        fact = self.read(found)
        return ObservedDeviceFact(meta.namespace, meta.name, meta.uid, meta.resource_version, fact)


DEVICE_WATCHES: Final = (
    DeviceWatch(RESOURCE_SLICES, ReadSlice, resource_slice),
    DeviceWatch(DEVICE_CLASSES, ReadClass, device_class),
    DeviceWatch(RESOURCE_CLAIMS, ResourceClaim, resource_claim),
    DeviceWatch(RESOURCE_CLAIM_TEMPLATES, ResourceClaimTemplate, resource_claim_template),
    DeviceWatch(DEVICE_TAINT_RULES, DeviceTaintRule, device_taint_rule),
)
"""DeviceTaintRules of v1 are served since 1.37; where they are not, there are none."""
