"""What kube-scheduler does about devices by its feature gates and its version; it tells neither."""

from dataclasses import dataclass

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
    device_binding_conditions: bool = True
    consumable_capacity: bool = True
    extended_resources: bool = True
    pools_in_order: bool = True
    passes_over_pools: bool = True
    dates_allocations: bool = True


DEFAULT_FEATURES = Features()


def features_of(version: Version) -> Features:
    """Return what a kube-scheduler of this version does with gates as shipped."""
    if version >= (1, 36):
        return DEFAULT_FEATURES
    return Features(
        partitionable_devices=False,
        device_taints=False,
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
