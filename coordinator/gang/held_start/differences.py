"""Describes how the pods of a gang differ from those foreseen from its templates."""

from collections.abc import Iterable, Sequence

from coordinator.gang.held_start.learned_pods import by_pod_set
from kube.codec.observed_pod import ObservedPod
from scheduling.diagnosis.amount_texts import written
from scheduling.model.pod import PodShape

SETS_NAMED = 3
RESOURCES_NAMED = 3

_FIELDS = {
    "node_selector": "nodeSelector",
    "node_affinity": "node affinity",
    "tolerations": "list of tolerations",
    "affinity": "pod affinity",
    "anti_affinity": "pod anti-affinity",
    "spread": "list of topology spread constraints",
    "volumes": "list of volume claims",
}


def difference(foreseen: Iterable[ObservedPod], seen: Iterable[ObservedPod]) -> str:
    """Say in what pods came otherwise than their templates told; empty where they did not."""
    told, came = by_pod_set(foreseen), by_pod_set(seen)
    said = [_of_set(name, told[name], came[name]) for name in sorted(told.keys() & came.keys())]
    return "; ".join([each for each in said if each][:SETS_NAMED])


def _of_set(name: str, told: Sequence[ObservedPod], came: Sequence[ObservedPod]) -> str:
    before = list(_shapes(told))
    known = {shape.key for shape in before}
    other = next((shape for shape in _shapes(came) if shape.key not in known), None)
    return f"pods of {name} came with {_fields(before[0], other)}" if other is not None else ""


def _shapes(pods: Iterable[ObservedPod]) -> Iterable[PodShape]:
    found = (pod.member.shape for pod in pods if pod.member is not None)
    return (shape for shape in found if shape is not None)


def _fields(told: PodShape, came: PodShape) -> str:
    """Name the amounts in which shapes differ; where there are none, what else it is."""
    before, now = dict(told.own_requests), dict(came.own_requests)
    moved = [name for name in sorted(before | now) if before.get(name) != now.get(name)]
    amounts = [
        f"{_amount(name, now)} {name} instead of {_amount(name, before)}"
        for name in moved[:RESOURCES_NAMED]
    ]
    others = (word for name, word in _FIELDS.items() if getattr(told, name) != getattr(came, name))
    return ", ".join(amounts) or f"another {next(others, 'constraint')}"


def _amount(resource: str, amounts: dict[str, int]) -> str:
    return written(resource, amounts.get(resource, 0), up=0)
