"""Whether pods fit on the nodes as they are, by the plainest rule: first fit, the largest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from testbed.api import Json
from tests.soak.amounts import RESOURCES, Amounts, amounts
from tests.soak.record import Pod

_CLOSED = ("NoSchedule", "NoExecute")


def free_room(nodes: Mapping[str, Json], pods: Iterable[Pod]) -> dict[str, Counter[str]]:
    """What is free on each node that takes pods."""
    free = {
        name: Counter(amounts(node.get("status", {}).get("allocatable") or {}))
        for name, node in nodes.items()
        if _is_open(node)
    }
    for pod in pods:
        if pod.target in free:
            free[pod.target].subtract(pod.takes)
    return free


def _is_open(node: Json) -> bool:
    taints = node["spec"].get("taints") or ()
    closed = any(taint["effect"] in _CLOSED for taint in taints)
    ready = any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in node.get("status", {}).get("conditions") or ()
    )
    return ready and not closed and not node["spec"].get("unschedulable")


def fits(wanted: Iterable[Amounts], free: Mapping[str, Counter[str]]) -> bool:
    """Whether all of them find a node, each the first that takes it; `free` stays as it is."""
    left = {name: Counter(room) for name, room in free.items()}
    largest = sorted(wanted, key=lambda each: [each[name] for name in reversed(RESOURCES)])
    for each in reversed(largest):
        found = next((room for room in left.values() if _takes(room, each)), None)
        if found is None:
            return False
        found.subtract(each)
    return True


def _takes(room: Counter[str], wanted: Amounts) -> bool:
    return all(room[name] >= wanted[name] for name in RESOURCES)
