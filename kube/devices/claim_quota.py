"""Computes what ResourceQuotas charge for a ResourceClaim, by the names that they use.

As pkg/quota/v1/evaluator/core/resource_claims.go of Kubernetes 1.36 and 1.37 counts it: what the
claim may be given at most, whatever it is given.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from scheduling.model.amounts import OF_CLASS
from scheduling.model.devices.resource_claim import (
    MAX_DEVICES,
    AllocationMode,
    ClaimSpec,
    Classes,
    DeviceRequest,
    Request,
)

CLAIMS: Final = "count/resourceclaims.resource.k8s.io"
DEVICES_OF_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
REQUESTS: Final = "requests."
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


def charges_of_claim(
    spec: ClaimSpec, classes: Classes, of_pod: Mapping[str, int] = _NOTHING
) -> Counter[str]:
    """Return what quotas count of one claim.

    `of_pod` is what they count of the pod for whose extended resources kube-scheduler makes the
    claim: that is not counted twice. Of a claim that users ask for it is empty.
    """
    devices = _devices_by_class(spec.requests)
    charges = Counter({f"{name}{DEVICES_OF_CLASS}": count for name, count in devices.items()})
    charges[CLAIMS] = 1
    for name, count in _as_extended_resources(devices, classes).items():
        if count > of_pod.get(name, 0):
            charges[name] = count - of_pod.get(name, 0)
    return charges


def _devices_by_class(requests: Iterable[Request]) -> Counter[str]:
    found: Counter[str] = Counter()
    for request in requests:
        most: Counter[str] = Counter()
        for each in request.alternatives:
            most |= Counter({each.device_class: _devices(each)})
        found += most
    return found


def _devices(wanted: DeviceRequest) -> int:
    return MAX_DEVICES if wanted.mode is AllocationMode.ALL else wanted.count


def _as_extended_resources(devices: Mapping[str, int], classes: Classes) -> Counter[str]:
    """Return the same as resources; a class that names none counts under no name.

    Of two classes with one name Kubernetes counts either: here the greater.
    """
    found: Counter[str] = Counter()
    for name, count in devices.items():
        known = classes.get(name)
        if known is not None and known.extended_resource_name:
            found[f"{REQUESTS}{OF_CLASS}{name}"] = count
            found |= Counter({f"{REQUESTS}{known.extended_resource_name}": count})
    return found
