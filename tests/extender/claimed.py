"""Small worlds with devices by claim: one class of GPUs, of which each node has some."""

from __future__ import annotations

from typing import Any

from extender.ledger import Ledger
from kube.devices.device_classes import device_class
from kube.devices.device_facts import DEVICE_WATCHES
from kube.devices.resource_claims import resource_claim
from kube.devices.resource_slices import resource_slice
from kube.objects import names
from tests.extender.worlds import GPU as PLUGIN_GPU
from tests.extender.worlds import (
    TEAM,
    Json,
    as_gang,
    as_node,
    as_watched_pod,
    gang,
    member,
    node,
    pinned,
    pod,
)
from tests.kube.devices.objects import GPU, claim_spec, decoded, request

ONE = claim_spec(request())


def put_slice(known: Ledger, on: str, *devices: str | Json, generation: int = 1) -> None:
    """What a driver publishes of a node."""
    pool = {"name": on, "generation": generation, "resourceSliceCount": 1}
    found = [{"name": each} if isinstance(each, str) else each for each in devices]
    spec = {"driver": GPU, "pool": pool, "nodeName": on, "devices": found}
    known.devices.put(resource_slice(decoded(f"of-{on}", spec)))


def put_claim(known: Ledger, pod_name: str, spec: Json = ONE, *devices: str, on: str = "") -> None:
    """The claim of a pod, with the devices of a node that it was given."""
    owner = {"kind": "Pod", "name": pod_name, "uid": f"uid-{pod_name}", "controller": True}
    results = [{"request": "gpu", "driver": GPU, "pool": on, "device": d} for d in devices]
    status = {"allocation": {"devices": {"results": results}}} if devices else {}
    meta = {"namespace": TEAM, "ownerReferences": [owner]}
    known.devices.put(resource_claim(decoded(f"of-{pod_name}", spec, status, **meta)))


def claiming(name: str, **more: Any) -> Json:
    """A pod with a claim of its own, which was made."""
    asked = {"name": "gpu", "resourceClaimTemplateName": "one"}
    found = pod(name, resourceClaims=[asked], **more)
    made = [{"name": "gpu", "resourceClaimName": f"of-{name}"}]
    return {**found, "status": {**found["status"], "resourceClaimStatuses": made}}


def worker(name: str, *, to: str = "", on: str = "", gang: str = "train") -> Json:
    """A claiming pod of a gang, gated unless it was released to a node."""
    found = member(claiming(name, on=on), gang)
    if to or on:
        return pinned(found, to or on)
    gates = {"schedulingGates": [{"name": names.GATE}]}
    return {**found, "spec": {**found["spec"], **gates}}


def name_resource(known: Ledger) -> None:
    """Pods may ask for devices of the class by the name of GPUs."""
    known.devices.put(device_class(decoded(GPU, {"extendedResourceName": PLUGIN_GPU})))


def see_all(known: Ledger) -> None:
    """All kinds of facts are listed."""
    for each in DEVICE_WATCHES:
        known.devices.see(each.fact)


def a_gang_and_its_devices(
    *devices: str | Json, slots: int = 1, on: str = "a", gpu: int = 8
) -> Ledger:
    """Nodes `a` and `b` with such devices each, and on one of them a gang that is to get some.

    `gpu` are those that a device plugin lists beside them.
    """
    known = Ledger()
    for each in (node("a", gpu=gpu), node("b", gpu=gpu)):
        known.put_node(as_node(each))
        put_slice(known, each["metadata"]["name"], *devices)
    known.devices.put(device_class(decoded(GPU, {})))
    known.put_gang(as_gang(gang(slots={on: slots}, gpu=0)))
    for at in range(slots):
        known.put_pod(as_watched_pod(worker(f"w{at}")))
        put_claim(known, f"w{at}")
    see_all(known)
    return known
