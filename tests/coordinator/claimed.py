"""Pods of a gang that ask for devices by claim, and what a coordinator knows of their claims."""

from typing import Any

import msgspec

from coordinator.cluster.devices import Devices
from coordinator.gang.pods.pod_sets import Standing, survey
from coordinator.messages.events import DeviceApiSeen
from kube.codec.observed_pod import ObservedPod, observe
from kube.devices.device_facts import DEVICE_WATCHES
from kube.devices.resource_claims import resource_claim, resource_claim_template
from kube.objects import names
from kube.objects.core import Pod
from kube.ray.gang_terms import GangTerms, PodSetTerms
from tests.coordinator.builders import TEAM, Json, pod_of, ray_cluster, template
from tests.kube.devices.objects import claim_spec, decoded, request

SPEC = claim_spec(request())
SERVED = DeviceApiSeen("1.37", served=True)


def worker(number: int, claim: str | None = "", *, shared: str = "", **spec: Any) -> ObservedPod:
    """A gated worker with a claim of this name, "" where it was not made, None where none is."""
    asked = {"name": "gpu", "resourceClaimTemplateName": "one"}
    if shared:
        asked = {"name": "gpu", "resourceClaimName": shared}
    claims: Json = {"resourceClaims": [asked]} if claim is not None else {}
    cluster = ray_cluster("a")
    cluster["metadata"]["uid"] = "u"
    made = template(**claims, **spec)
    raw = pod_of(cluster, "w", f"w-{number}", made, "", [names.GATE])
    raw["metadata"]["uid"] = f"uid-{number}"
    if claim:
        raw["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": claim}]
    return observe(msgspec.convert(raw, Pod))


def standing_of(*pods: ObservedPod) -> Standing:
    """A gang whose pods all wait."""
    return survey(GangTerms("", "", (PodSetTerms("w", len(pods), len(pods), 1),)), pods, None, {})


def put_claim(
    devices: Devices, name: str, owner: str = "", spec: Json = SPEC, status: Json | None = None
) -> None:
    """Have a claim be known, that a pod owns."""
    owners = [{"kind": "Pod", "name": "p", "uid": owner, "controller": True}] if owner else []
    meta = {"namespace": TEAM, "ownerReferences": owners}
    devices.index.put(resource_claim(decoded(name, spec, status, **meta)))


def known_devices(*pods: ObservedPod) -> Devices:
    """All kinds are seen, and these pods and the template `one` are known."""
    devices = Devices()
    devices.put_api(SERVED)
    for watch in DEVICE_WATCHES:
        devices.index.see(watch.fact)
    made = resource_claim_template(decoded("one", {"spec": SPEC}, namespace=TEAM))
    devices.index.put(made)
    for pod in pods:
        devices.count(pod, 1)
    return devices
