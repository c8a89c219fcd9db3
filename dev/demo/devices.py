"""The scene of two Ray clusters whose workers claim devices, on devices for one of them."""

from __future__ import annotations

import re

from demo.claims import Claim
from demo.manifests import as_gang, ray_cluster, with_worker_claims
from demo.stage import Stage
from testbed.api import Json
from testbed.history import Gang
from testbed.nodes import NodeSpec

SINCE = 34
"""The minor version of Kubernetes from which on devices by claim are judged (docs/gpus.md)."""

_WORKERS, _SIZE = 3, 4
_NODE, _DRIVER, _TEMPLATE = "accelerated", "gpu.example.com", "one-gpu"
_DEVICES = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")
_GROUP = "/apis/resource.k8s.io/v1"
_NUMBERS = re.compile(
    r"1 of 3 .* by their claims: each claims 1 of gpu\.example\.com, of which nodes have 4, 3 are"
)


def claimed_devices(stage: Stage) -> list[Claim]:
    """Play two gangs of which the second waits in numbers until the first gives its devices up."""
    minor = int(stage.cluster.api.get("/version")["minor"])
    if minor < SINCE:
        stage.display.say(f"left out: this is Kubernetes 1.{minor}, and it takes 1.{SINCE}")
        return []
    stage.set_up("scene-9", [NodeSpec(_NODE, cpus=16)])
    _publish(stage)
    first = stage.create_ray_cluster(as_gang(_cluster(stage, "first")))
    stage.wait_whole(first, _SIZE)
    has = _allocated(stage)
    stage.display.say(f"first runs, with {', '.join(has)}; second claims as many:")
    second = stage.create_ray_cluster(as_gang(_cluster(stage, "second")))
    said = stage.wait_refused(second)
    stage.display.say(f"second waits: {said}")
    stage.display.pause()
    freed = stage.delete_ray_cluster(first)
    whole = stage.wait_whole(second, _SIZE)
    return [
        Claim(f"first got {len(has)} of {len(_DEVICES)} devices", holds=len(has) == _WORKERS),
        *_waited(stage, second, said, freed),
        Claim(f"second fully Running {whole - freed:.2f} s after first was deleted"),
        Claim(f"by then it has {len(_allocated(stage))} devices"),
        stage.never_partial({first: _SIZE, second: _SIZE}),
        stage.never_together({first: _SIZE, second: _SIZE}),
    ]


def _waited(stage: Stage, second: Gang, said: str, freed: float) -> list[Claim]:
    held = stage.bound_before(second, freed)
    return [
        Claim(f"second held nothing while it waited: {held} pods bound", holds=held == 0),
        Claim(f"second said why: {said}", holds=bool(_NUMBERS.search(said))),
    ]


def _publish(stage: Stage) -> None:
    """Write what a driver publishes, and what admins and users write to claim its devices."""
    selector = {"cel": {"expression": f'device.driver == "{_DRIVER}"'}}
    stage.create(f"{_GROUP}/deviceclasses", _named(_DRIVER, {"selectors": [selector]}))
    pool = {"name": _NODE, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": each} for each in _DEVICES]
    spec = {"driver": _DRIVER, "pool": pool, "nodeName": _NODE, "devices": devices}
    stage.create(f"{_GROUP}/resourceslices", _named(_NODE, spec))
    asked = {"name": "gpu", "exactly": {"deviceClassName": _DRIVER}}
    template = _named(_TEMPLATE, {"spec": {"devices": {"requests": [asked]}}})
    stage.create(f"{_GROUP}/namespaces/{stage.namespace}/resourceclaimtemplates", template)


def _named(name: str, spec: Json) -> Json:
    return {"metadata": {"name": name}, "spec": spec}


def _cluster(stage: Stage, name: str) -> Json:
    return with_worker_claims(ray_cluster(stage.cluster.samples, name, _WORKERS), _TEMPLATE)


def _allocated(stage: Stage) -> list[str]:
    """The devices that the claims of this scene were given."""
    claims = stage.cluster.api.get(f"{_GROUP}/namespaces/{stage.namespace}/resourceclaims")["items"]
    statuses = (each.get("status", {}).get("allocation", {}) for each in claims)
    given = (each.get("devices", {}).get("results", ()) for each in statuses)
    return sorted(str(device["device"]) for results in given for device in results)
