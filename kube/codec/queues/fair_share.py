"""Reads the fair sharing of a GangQueue and the usage in its status, and writes that usage."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from kube.codec.fields import AFTER_ALL, InvalidObject, moment_of
from kube.objects.queues.fair_share import (
    LEAST_HALF_LIFE,
    MOST_HALF_LIFE,
    MOST_RESOURCES,
    MOST_WEIGHT,
    FairShare,
)
from kube.objects.queues.queue import GangQueue
from scheduling.model.amounts import CPU
from scheduling.model.queue import FairSharing
from scheduling.queueing.average_usage import Average
from scheduling.queueing.quota_tree import MOST

_WEIGHTS = f"a whole number from 1 to {MOST_WEIGHT}"
_HALF_LIVES = f"whole seconds from {LEAST_HALF_LIFE} (an hour) to {MOST_HALF_LIFE} (90 days)"
_AMOUNTS = f"a decimal number such as 12.5, at most {MOST}; it counts as 0"
_TIMES = "a time such as 2026-01-01T00:00:00Z; the usage counts as of now"
_AMOUNT = re.compile(r"[0-9]{1,20}(\.[0-9]{1,9})?")


class Recorded(NamedTuple):
    """The usage in a status, as it was at a time in seconds since 1970; None where that is unsaid.

    `fault` says what of it could not be read.
    """

    at: float | None
    namespaces: Mapping[str, Average]
    rest: Average
    fault: str = ""


def read_fair_sharing(found: GangQueue) -> FairSharing | None:
    """Return how usage counts in a queue; raises InvalidObject where a value is not allowed."""
    spec = found.spec.fair_sharing
    if spec is None:
        return None
    if not LEAST_HALF_LIFE <= spec.half_life_seconds <= MOST_HALF_LIFE:
        field = "spec.fairSharing.halfLifeSeconds"
        raise InvalidObject(field, spec.half_life_seconds, _HALF_LIVES)
    _checked("spec.fairSharing.weight", spec.weight)
    for name, weight in spec.namespace_weights.items():
        _checked(f"spec.fairSharing.namespaceWeights[{name}]", weight)
    return FairSharing(spec.half_life_seconds, spec.weight, dict(spec.namespace_weights))


def _checked(field: str, weight: int) -> None:
    if not 1 <= weight <= MOST_WEIGHT:
        raise InvalidObject(field, weight, _WEIGHTS)


def read_usage(status: FairShare | None) -> Recorded:
    """Return what a status tells; what cannot be read counts as nothing."""
    if status is None:
        return Recorded(None, {}, {})
    faults: list[str] = []
    at: float | None = moment_of(status.at)
    if not 0 < (at or 0) < AFTER_ALL:
        at = None
        faults.append(str(InvalidObject("status.fairShare.at", status.at, _TIMES)))
    found: dict[str, Average] = {}
    for each in status.namespaces:
        field = f"status.fairShare.namespaces[{each.name}].usage"
        found[each.name] = _average(each.usage, field, faults)
    rest = _average(status.rest, "status.fairShare.rest", faults)
    return Recorded(at, found, rest, next(iter(faults), ""))


def _average(usage: Mapping[str, str], field: str, faults: list[str]) -> Average:
    found = {}
    for resource, text in usage.items():
        amount = float(text) if _AMOUNT.fullmatch(text) else -1.0
        if 0 <= amount <= MOST:
            found[resource] = min(amount * _units(resource), float(MOST))
        else:
            faults.append(str(InvalidObject(f"{field}[{resource}]", text, _AMOUNTS)))
    return found


def written_usage(average: Average) -> dict[str, str]:
    """Spell an average as decimal numbers, CPU in cores, to the sixth place; without zeros."""
    found = {each: _decimal(amount / _units(each)) for each, amount in sorted(average.items())}
    return dict([(each, text) for each, text in found.items() if text != "0"][:MOST_RESOURCES])


def _decimal(value: float) -> str:
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _units(resource: str) -> int:
    """Return how many units of the core are one."""
    return 1000 if resource == CPU else 1


def written_share(millionths: float) -> str:
    """Spell a share for people: 12.34%."""
    return f"{millionths / 1e4:.2f}%"
