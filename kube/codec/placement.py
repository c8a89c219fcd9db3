"""Writes a placement and a shortage into Gang.status, and reads a placement from there."""

from typing import Any

from kube.codec.fields import InvalidObject, quantity, read_amounts
from kube.objects import gang as gang_objects
from scheduling.model.holder import Held
from scheduling.model.placement import Assignment, Placement
from scheduling.model.verdict import PodSetRefusal

_MOST_PODS = 2**20  # on a node, of one kind; what they take together must fit 64 bits
_MOST_WAVES = 2**31  # what comes later counts on, and must fit the schema


def placement_to_status(placement: Placement, epoch: int) -> dict[str, Any]:
    """Write a placement down as JSON; `placement_from_status` reads the same one back."""
    by_pod_set: dict[str, list[dict[str, Any]]] = {}
    for each in placement.assignments:
        by_pod_set.setdefault(each.pod_set, []).append(_written(each))
    pod_sets = [{"name": name, "assignments": each} for name, each in by_pod_set.items()]
    return {"epoch": epoch, "podSets": pod_sets}


def shortage_to_status(refusal: PodSetRefusal) -> dict[str, Any]:
    """Write down what a pod set lacks; empty where no node is feasible at all."""
    if not refusal.resource:
        return {}

    def spelled(amount: int) -> str:
        return quantity(refusal.resource, amount)

    held = refusal.held or Held(0)
    holders = [
        {**{k: v for k, v in share.holder._asdict().items() if v}, "amount": spelled(share.amount)}
        for share in held.shares
    ]
    return {
        "resource": refusal.resource,
        "each": spelled(refusal.each),
        "needed": spelled(refusal.needed),
        "free": spelled(refusal.free),
        "left": spelled(refusal.left),
        "largest": spelled(refusal.largest),
        **({"total": spelled(held.total), "holders": holders} if holders else {}),
    }


def placement_from_status(written: gang_objects.GangPlacement) -> Placement:
    """Read a placement. Amounts and nodes come sorted, because JSON maps have no order.

    Raises InvalidObject where it cannot be read (edited by hand, or of a later release).
    """
    return Placement(
        tuple(
            _read(pod_set.name, each)
            for pod_set in written.pod_sets
            for each in pod_set.assignments
        )
    )


def _written(assignment: Assignment) -> dict[str, Any]:
    return {
        "shape": assignment.shape,
        "replica": assignment.replica,
        "requests": {name: quantity(name, amount) for name, amount in assignment.requests},
        "nodes": dict(assignment.nodes),
        **({"wave": assignment.wave} if assignment.wave else {}),
    }


def _read(pod_set: str, written: gang_objects.PlacedShape) -> Assignment:
    field = f"status.placement of {pod_set}"
    requests = read_amounts(written.requests, f"{field} requests")
    most = min(_MOST_PODS, (2**63 - 1) // max((1, *requests.values())))
    for name, count in written.nodes.items():
        if not 1 <= count <= most:
            allowed = f"a number of pods from 1 to {most}"
            raise InvalidObject(f"{field} nodes[{name}]", count, allowed)
    if not 0 <= written.wave <= _MOST_WAVES:
        raise InvalidObject(f"{field} wave", written.wave, f"a number from 0 to {_MOST_WAVES}")
    return Assignment(
        pod_set=pod_set,
        replica=written.replica,
        shape=written.shape,
        requests=tuple(sorted(requests.items())),
        nodes=tuple(sorted(written.nodes.items())),
        wave=written.wave,
    )
