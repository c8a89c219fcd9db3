"""Selectors: the answers of CEL texts about devices, and who gives them."""

from collections.abc import Hashable, Sequence
from enum import Enum, auto
from typing import Protocol

from scheduling.model.devices.resource_slice import DeviceContent


class Answer(Enum):
    """What a selector says of a device."""

    MATCHES = auto()
    DOES_NOT_MATCH = auto()
    ERROR = auto()
    """The text does not compile, or fails on this device: kube-scheduler refuses the node."""
    UNSUPPORTED = auto()
    """kube-scheduler can evaluate it, and we cannot."""


class Selectors(Protocol):
    """Evaluates selectors: the same answer for the same text and content, at any time."""

    def evaluate(self, selector: str, device: DeviceContent) -> Answer:
        """Return what the selector says of the device; it never raises."""
        ...

    def seen(
        self, selectors: tuple[str, ...], devices: Sequence[DeviceContent]
    ) -> Sequence[Hashable]:
        """Return all that selectors see of each device: where that is equal, so is each answer.

        None where the device is to be asked about.
        """
        ...
