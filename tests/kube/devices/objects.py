"""Objects of dynamic resource allocation, as the API server sends them."""

from typing import Any

import msgspec

from kube.objects.core import DeviceObject

GPU = "gpu.example.com"
NODE_IN_A = {
    "nodeSelectorTerms": [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    ]
}


def decoded(name: str, spec: Any, status: Any = None, **meta: Any) -> DeviceObject:
    """Send an object through JSON, as a watch does."""
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", **meta}
    body = {"kind": "Any", "metadata": metadata, "spec": spec, "status": status}
    return msgspec.json.decode(msgspec.json.encode(body), type=DeviceObject)


def gpu(name: str, **more: Any) -> dict[str, Any]:
    """A device."""
    attributes = {
        "model": {"string": "H100"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "570.86.15"},
    }
    capacity = {"memory": {"value": "80Gi"}}
    return {"name": name, "attributes": attributes, "capacity": capacity, **more}


def slice_spec(*devices: Any, **more: Any) -> dict[str, Any]:
    """The spec of a slice of node-1."""
    pool = {"name": "node-1", "generation": 2, "resourceSliceCount": 1}
    spec = {"driver": GPU, "pool": pool, "nodeName": "node-1", "devices": list(devices)}
    return {**spec, **more}


def request(name: str = "gpu", **exactly: Any) -> dict[str, Any]:
    """A request of a claim, as the API server has completed it."""
    whole = {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": 1, **exactly}
    return {"name": name, "exactly": whole}


def claim_spec(*requests: Any, **more: Any) -> dict[str, Any]:
    """The spec of a claim."""
    return {"devices": {"requests": list(requests), **more}}


def given(*devices: str, **more: Any) -> dict[str, Any]:
    """The status of a claim that was given devices of node-1."""
    results = [{"request": "gpu", "driver": GPU, "pool": "node-1", "device": d} for d in devices]
    dated = {"allocationTimestamp": "2026-01-01T00:00:00Z"}
    return {"allocation": {"devices": {"results": results}, **dated, **more}}
