"""Builds the core's picture of all devices at one moment."""

from collections.abc import Mapping

from kube.devices.device_index import DeviceIndex
from kube.devices.selectors import CelSelectors
from scheduling.devices.node_index import DeviceFacts, Pending
from scheduling.devices.selection import Rules

NO_PODS: Mapping[str, Pending] = {}


def known_devices(
    index: DeviceIndex, selectors: CelSelectors, pending: Mapping[str, Pending] = NO_PODS
) -> DeviceFacts:
    """Return all that is known; `pending` are by node the pods whose devices are not known yet."""
    selectors.trim()
    return DeviceFacts(
        slices=tuple(index.slices.values()),
        taken=index.taken_by_pool,
        rules=Rules(index.classes, selectors, index.features),
        edition=index.edition,
        pending=pending,
        resources=frozenset(index.classes_of_resources),
    )
