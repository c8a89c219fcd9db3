"""How kube-scheduler allocates devices, by its version and feature gates; it shows neither."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

Version = tuple[int, int]

OLDEST: Version = (1, 34)
"""The first version that allocates devices by default."""


@dataclass(frozen=True, slots=True)
class Features:
    """The gates of dynamic resource allocation, and how it allocates; as it is since 1.36.

    `pools_in_order`: pools come by name; else in the order of a map, which cannot be foreseen.
    `passes_over_pools`: the devices of an incomplete or invalid pool are passed over.
    `dates_allocations`: a claim without a time was allocated before, and takes no further pod.
    """

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_taint_rules: bool = True
    device_binding_conditions: bool = True
    consumable_capacity: bool = True
    extended_resources: bool = True
    pools_in_order: bool = True
    passes_over_pools: bool = True
    dates_allocations: bool = True


DEFAULT_FEATURES = Features()

_OFF: Final[Mapping[str, Mapping[str, bool]]] = MappingProxyType(
    {
        "DRAAdminAccess": {"admin_access": False},
        "DRAConsumableCapacity": {"consumable_capacity": False},
        "DRADeviceBindingConditions": {"device_binding_conditions": False},
        "DRADeviceTaintRules": {"device_taint_rules": False},
        "DRADeviceTaints": {"device_taints": False, "device_taint_rules": False},
        "DRAExtendedResource": {"extended_resources": False},
        "DRAPartitionableDevices": {"partitionable_devices": False},
        "DRAPrioritizedList": {"prioritized_list": False},
        # Binding conditions need both gates.
        "DRAResourceClaimDeviceStatus": {"device_binding_conditions": False},
    }
)
"""What is off without a gate, by its name."""

GATES: Final = tuple(_OFF)
"""Names of the gates of which an installation may say that they are off."""


def features_of(version: Version, gates_off: Collection[str] = ()) -> Features:
    """Return what a kube-scheduler of this version does.

    Its gates are as shipped but for `gates_off`, which are off; each is one of `GATES`.
    """
    found = _as_shipped(version)
    for each in gates_off:
        found = replace(found, **_OFF[each])
    return _with_its_allocator(found)


def _with_its_allocator(features: Features) -> Features:
    """Say how it allocates: without these gates by its oldest allocator, and it dates nothing."""
    if features.device_binding_conditions:
        return features
    return replace(
        features,
        pools_in_order=features.pools_in_order and features.consumable_capacity,
        dates_allocations=False,
    )


def _as_shipped(version: Version) -> Features:
    if version >= (1, 36):
        return DEFAULT_FEATURES
    return Features(
        partitionable_devices=False,
        device_taints=False,
        device_taint_rules=False,
        device_binding_conditions=False,
        consumable_capacity=False,
        extended_resources=False,
        pools_in_order=False,
        passes_over_pools=version >= (1, 35),
        dates_allocations=False,
    )


def version_of(text: str) -> Version:
    """Read a version such as 1.37; (0, 0) where it is none."""
    major, _, minor = text.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)
