"""Asks which devices a request selects: the selectors of its class, then its own."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduling.devices.outcome import NotAllocated, Refusal, Unsupported
from scheduling.devices.pools import PoolDevice
from scheduling.model.devices.features import DEFAULT_FEATURES, Features
from scheduling.model.devices.resource_claim import Classes, DeviceRequest
from scheduling.model.devices.selectors import Answer, Selectors
from scheduling.model.tolerations import tolerates

REQUESTS_KEPT = 256
"""Requests of which it is remembered what they select."""

SEEN_KEPT = 10_000
"""Answers kept for a request: its selectors read few attributes, so few devices are distinct."""

_PREVENTING = ("NoSchedule", "NoExecute")
"""Device taints with another effect prevent nothing."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What judges devices: classes by name, selectors, the gates of kube-scheduler.

    `answers` remembers by request what it selects, by all that its selectors see of a device.
    """

    classes: Classes
    selectors: Selectors
    features: Features = DEFAULT_FEATURES
    answers: dict[DeviceRequest, dict[Hashable, bool]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def texts(self, asked: DeviceRequest) -> tuple[str, ...]:
        """Return the selectors of a request in order; its class is known."""
        return (*self.classes[asked.device_class].selectors, *asked.selectors)


Selected = bool | NotAllocated | Unsupported


class Selections(NamedTuple):
    """Of each device whether a request selects it; for so many of them selectors were asked."""

    answers: tuple[Selected, ...]
    evaluated: int = 0


def selected(asked: DeviceRequest, found: PoolDevice, rules: Rules) -> Selected:
    """Say whether the request selects a device; its class is known.

    kube-scheduler asks no further selector after one that does not match, and gives the node up
    where one fails. Where the pool may be invalid to it, it asks none.
    """
    for text in rules.texts(asked):
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


def selections(asked: DeviceRequest, devices: Sequence[PoolDevice], rules: Rules) -> Selections:
    """Say of each device whether a request selects it; of an unknown class it selects none.

    Devices in which the selectors see the same are asked about once, whatever their nodes.
    """
    if asked.device_class not in rules.classes:
        return Selections((False,) * len(devices))
    if len(rules.answers) >= REQUESTS_KEPT and asked not in rules.answers:
        rules.answers.clear()
    known: dict[Hashable, bool] = rules.answers.setdefault(asked, {})
    if len(known) >= SEEN_KEPT:
        known.clear()
    contents = [each.device.content for each in devices]
    found, evaluated = list[Selected](), 0
    for each, seen in zip(devices, rules.selectors.seen(rules.texts(asked), contents), strict=True):
        key = seen, each.reached, each.unsupported
        answer: Selected | None = known.get(key) if seen is not None else None
        if answer is None:
            answer, evaluated = selected(asked, each, rules), evaluated + 1
            if seen is not None and isinstance(answer, bool):
                known[key] = answer  # an error may be for the sake of what none of them sees
        found.append(answer)
    return Selections(tuple(found), evaluated)


def tolerated(asked: DeviceRequest, found: PoolDevice, features: Features) -> bool:
    """Say whether no taint of the device keeps the request from it."""
    taints = found.device.taints
    return not (taints and features.device_taints) or all(
        tolerates(asked.tolerations, taint) for taint in taints if taint.effect in _PREVENTING
    )
