"""Asks which devices a request selects: the selectors of its class, then its own."""

from dataclasses import dataclass

from scheduling.devices.outcome import NotAllocated, Refusal, Unsupported
from scheduling.devices.pools import PoolDevice
from scheduling.model.devices.features import DEFAULT_FEATURES, Features
from scheduling.model.devices.resource_claim import Classes, DeviceRequest
from scheduling.model.devices.selectors import Answer, Selectors
from scheduling.model.tolerations import tolerates

_PREVENTING = ("NoSchedule", "NoExecute")
"""Device taints with another effect prevent nothing."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What judges devices: classes by name, selectors, the gates of kube-scheduler."""

    classes: Classes
    selectors: Selectors
    features: Features = DEFAULT_FEATURES


Selected = bool | NotAllocated | Unsupported


def selected(asked: DeviceRequest, found: PoolDevice, rules: Rules) -> Selected:
    """Say whether the request selects a device; its class is known.

    kube-scheduler asks no further selector after one that does not match, and gives the node up
    where one fails. Where the pool may be invalid to it, it asks none.
    """
    for text in (*rules.classes[asked.device_class].selectors, *asked.selectors):
        match rules.selectors.evaluate(text, found.device.content):
            case Answer.DOES_NOT_MATCH:
                return False
            case Answer.ERROR if found.unsupported:
                return Unsupported(found.unsupported)
            case Answer.ERROR:
                return NotAllocated(Refusal.SELECTOR_FAILS, text)
            case Answer.UNSUPPORTED:
                return Unsupported(f"selector {text}")
            case Answer.MATCHES:
                pass
    return found.reached


def tolerated(asked: DeviceRequest, found: PoolDevice, features: Features) -> bool:
    """Say whether no taint of the device keeps the request from it."""
    return not features.device_taints or all(
        tolerates(asked.tolerations, taint)
        for taint in found.device.taints
        if taint.effect in _PREVENTING
    )
