"""Adds up the requests of a pod: containers, init containers, pod level, overhead."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduling.model.amounts import CPU, MEMORY
from scheduling.model.quantity import MAX_AMOUNT, BadQuantity


@dataclass(frozen=True, slots=True)
class ContainerRequests:
    """What one container asks for; `restartable` marks an init container that keeps running."""

    requests: Mapping[str, int]
    restartable: bool = False


def pod_requests(
    containers: Sequence[ContainerRequests],
    init_containers: Sequence[ContainerRequests],
    overhead: Mapping[str, int],
    pod_level: Mapping[str, int],
) -> dict[str, int]:
    """Add up what the scheduler counts for a pod, without its pod slot.

    The formula is PodRequests of k8s.io/component-helpers/resource/helpers.go: the larger of what
    runs together in the end and of the worst moment of the start, then pod-level requests
    instead of the sums where they are given, then the overhead.
    """
    side_cars = [each for each in init_containers if each.restartable]
    total = _sum([*containers, *side_cars]) | _start_peak(init_containers)
    for name, amount in pod_level.items():  # an override, even where it is less than the sum
        if _is_pod_level(name):
            total[name] = amount
    total.update(overhead)
    return {name: _checked_sum(name, amount) for name, amount in total.items()}


def _start_peak(init_containers: Sequence[ContainerRequests]) -> Counter[str]:
    """Return the most that init containers hold at once: each beside the side-cars before it."""
    peak: Counter[str] = Counter()
    running: Counter[str] = Counter()
    for each in init_containers:
        together = running + Counter(each.requests)
        peak |= together
        if each.restartable:
            running = together
    return peak


def _sum(containers: Sequence[ContainerRequests]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in containers:
        total.update(each.requests)
    return total


def _is_pod_level(resource: str) -> bool:
    return resource in (CPU, MEMORY) or resource.startswith("hugepages-")


def _checked_sum(resource: str, amount: int) -> int:
    if amount > MAX_AMOUNT:
        raise BadQuantity(resource, str(amount), "is too large as the sum of a pod's requests")
    return amount
