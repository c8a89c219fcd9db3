"""Amounts of resources: of a pod, and of a node over time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from testbed.api import Json

GPU = "nvidia.com/gpu"
Amounts = Mapping[str, int]
"""CPU in thousandths, memory in bytes, GPUs, pods."""
RESOURCES = ("cpu", "memory", GPU, "pods")
_UNITS = {"m": 1e-3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 1e3, "M": 1e6}


def amount(text: str | int, scale: int = 1) -> int:
    """Read a quantity, in units of one divided by `scale`."""
    written = str(text)
    unit = next(
        (unit for unit in ("Ki", "Mi", "Gi", "Ti", "m", "k", "M") if written.endswith(unit)), ""
    )
    number = float(written.removesuffix(unit)) * _UNITS.get(unit, 1.0)
    return round(number * scale)


def amounts(given: Mapping[str, str | int], pods: int | None = None) -> dict[str, int]:
    """Read those amounts that are judged; `pods` where they say nothing of it."""
    found = {
        "cpu": amount(given.get("cpu", 0), 1000),
        "memory": amount(given.get("memory", 0)),
        GPU: amount(given.get(GPU, 0)),
    }
    return {**found, "pods": amount(given.get("pods", 0)) if pods is None else pods}


def pod_amounts(pod: Json) -> dict[str, int]:
    """What a pod takes of its node; the pods of a soak have no init containers."""
    total: Counter[str] = Counter({"pods": 1})
    for container in pod["spec"]["containers"]:
        total.update(amounts(container.get("resources", {}).get("requests") or {}, pods=0))
    return dict(total)


@dataclass
class NodeRoom:
    """What a node offered over time, newest last, with fair seconds; None when it went."""

    offers: deque[tuple[float, dict[str, int] | None]] = field(
        default_factory=lambda: deque(maxlen=30)
    )

    def most(self, since: float) -> dict[str, int] | None:
        """The most that it offered at any time from then on; None where it was gone all along."""
        until = [each for _, each in self.offers]
        ends = [fair for fair, _ in list(self.offers)[1:]] + [float("inf")]
        found = [each for each, end in zip(until, ends, strict=True) if each and end >= since]
        return {name: max(each[name] for each in found) for name in RESOURCES} if found else None
