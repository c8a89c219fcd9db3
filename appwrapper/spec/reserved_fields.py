"""Rejects wrapped objects that set fields reserved for Muster.

The coordinator creates the object and would vouch for what is in it: a placement, the gate or its
removal, the labels that name a gang, another owner. All of these are Muster's to write.
"""

from collections.abc import Iterator
from typing import Any

from appwrapper.spec.faults import Fault, shown
from appwrapper.spec.paths import Json, Path, Place, at, walk, written
from kube.objects import names

_OURS = f"{names.GROUP}/"
_ALLOWED = f"no key of {_OURS} in an item; keys for the whole gang are written on the AppWrapper"
_NODE = "none: Muster places the pods; use nodeSelector or affinity"


def reserved_fields(where: str, found: Json) -> Iterator[Fault]:
    """Yield a fault for each thing that only Muster may write; `where` is the item."""
    owners = at(found, ("metadata", "ownerReferences"))
    if owners:
        allowed = "none: the AppWrapper owns its items"
        yield Fault(where, "template.metadata.ownerReferences", shown(owners), allowed)
    nominated = at(found, ("status", "nominatedNodeName"))
    if nominated:
        yield Fault(where, "template.status.nominatedNodeName", shown(nominated), _NODE)
    for place, each in walk(found):
        if isinstance(each, dict):
            yield from _in_map(where, place, each)


def _in_map(where: str, place: Place, found: Json) -> Iterator[Fault]:
    for key in found:
        if key.startswith(_OURS):
            yield Fault(where, written(place.path), shown(key), _ALLOWED)
    if isinstance(found.get("containers"), list):
        yield from _in_pod_spec(where, place.path, found)


def _in_pod_spec(where: str, path: Path, spec: Json) -> Iterator[Fault]:
    if spec.get("nodeName"):
        yield Fault(where, written((*path, "nodeName")), shown(spec["nodeName"]), _NODE)
    for gate in _gates(spec):
        if gate.startswith(_OURS):
            allowed = f"no gate of {_OURS}: Muster's webhook sets it"
            yield Fault(where, written((*path, "schedulingGates")), gate, allowed)


def _gates(spec: Json) -> Iterator[str]:
    gates: Any = spec.get("schedulingGates")
    for each in gates if isinstance(gates, list) else ():
        name = at(each, ("name",))
        if isinstance(name, str):
            yield name
