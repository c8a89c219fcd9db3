"""Feature gates of kube-scheduler that change what is allocated; they cannot be read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """The gates of dynamic resource allocation, as they are by default since Kubernetes 1.36."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_binding_conditions: bool = True
    consumable_capacity: bool = True


DEFAULT_FEATURES = Features()
