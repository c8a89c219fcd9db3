"""What the toy controllers do about claims of devices: they make, allocate and delete claims.

A class has the devices of the driver of its name, and that of any driver those of all.
"""

from collections.abc import Iterator
from functools import partial

import msgspec

from coordinator.messages.events import DeviceApiSeen, DeviceFactsSeen, Event
from coordinator.shell import sinks
from kube.api.watch.events import Changed, Deleted
from kube.devices.device_facts import DEVICE_WATCHES
from kube.objects.core import DeviceObject
from tests.coordinator.api import Api, Change, Json, Key, key_of
from tests.kube.devices.objects import GPU

WATCHED = {each.resource.plural: each for each in DEVICE_WATCHES}
ALL_SEEN: list[Event] = [
    DeviceApiSeen("1.37", served=True),
    *(DeviceFactsSeen(each.fact) for each in DEVICE_WATCHES),
]


ANY = "any.example.com"


def device_class(name: str = GPU, resource: str = "") -> Json:
    selectors = [] if name == ANY else [_of(name)]
    named = {"extendedResourceName": resource} if resource else {}
    spec = {"selectors": selectors, **named}
    return {"kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def _of(driver: str) -> Json:
    return {"cel": {"expression": f'device.driver == "{driver}"'}}


def device_slice(node: str, devices: int, driver: str = GPU) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    found = [{"name": f"d-{number}"} for number in range(devices)]
    spec = {"driver": driver, "pool": pool, "nodeName": node, "devices": found}
    name = f"{node}-{driver}"
    return {"kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def claim_template(name: str, count: int = 1, of_class: str = GPU, namespace: str = "team") -> Json:
    exactly = {"deviceClassName": of_class, "allocationMode": "ExactCount", "count": count}
    spec = {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}
    meta = {"name": name, "namespace": namespace}
    return {"kind": "ResourceClaimTemplate", "metadata": meta, "spec": spec}


def asking(*templates: str) -> Json:
    claims = [{"name": each, "resourceClaimTemplateName": each} for each in templates]
    return {"resourceClaims": claims}


# ---- kube-controller-manager


def make_claims(api: Api) -> None:
    """Make the claims of all pods, gated or not, and delete those whose pod is gone."""
    for pod in list(api.all("pods")):
        for each in pod["spec"].get("resourceClaims", ()):
            make_claim(api, pod, each)
    uids = {pod["metadata"]["uid"] for pod in api.all("pods")}
    for claim in list(api.all("resourceclaims")):
        owners = claim["metadata"].get("ownerReferences", ())
        if owners and owners[0]["uid"] not in uids:
            api.delete(key_of(claim))


def make_claim(api: Api, pod: Json, asked: Json) -> None:
    """Make one claim of a pod, if it is to have one of its own."""
    meta, name = pod["metadata"], asked["name"]
    if "resourceClaimName" in asked:
        return
    template = Key("resourceclaimtemplates", meta["namespace"], asked["resourceClaimTemplateName"])
    made = [each["name"] for each in _made(api, pod)]
    if name in made or template not in api.objects:
        return
    claim = f"{meta['name']}-{name}"
    owner = {"kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
    about = {"name": claim, "namespace": meta["namespace"], "ownerReferences": [owner]}
    spec = api.get(template)["spec"]["spec"]
    api.create({"kind": "ResourceClaim", "metadata": about, "spec": spec})
    status = [*_made(api, pod), {"name": name, "resourceClaimName": claim}]
    api.change(pod, lambda obj: obj["status"].update(resourceClaimStatuses=status))


def _made(api: Api, pod: Json) -> list[Json]:
    found: list[Json] = api.get(key_of(pod))["status"].get("resourceClaimStatuses", [])
    return found


# ---- kube-scheduler


def allocate(api: Api, pod: Json, node: str) -> bool:
    """Give a pod the first devices of a node that are free; nothing where they are too few.

    A claim that another pod was given something for is used as it is.
    """
    named = [each for each in pod["spec"].get("resourceClaims", ()) if "resourceClaimName" in each]
    claims = [
        api.get(Key("resourceclaims", pod["metadata"]["namespace"], each["resourceClaimName"]))
        for each in (*_made(api, pod), *named)
    ]
    if len(claims) < len(pod["spec"].get("resourceClaims", ())):
        return False
    claims += _claim_extended(api, pod, node)
    if any(_is_elsewhere(each, node) for each in claims):
        return False
    claims = [each for each in claims if not _results(each)]
    given: dict[str, list[Json]] = {}
    taken = set(_taken(api))
    for claim in claims:
        for request in claim["spec"]["devices"]["requests"]:
            wanted = request["exactly"]
            free = [each for each in _devices(api, node, wanted) if each not in taken]
            chosen = free[: wanted["count"]]
            if len(chosen) < wanted["count"]:
                return False
            taken |= set(chosen)
            results = [dict(zip(("driver", "pool", "device"), d, strict=True)) for d in chosen]
            named = [{"request": request["name"], **each} for each in results]
            given.setdefault(claim["metadata"]["name"], []).extend(named)
    for claim in claims:
        status = _allocation(given[claim["metadata"]["name"]])
        api.change(claim, partial(dict.update, status=status))
    return True


def _claim_extended(api: Api, pod: Json, node: str) -> list[Json]:
    """Make the claim of what a pod asks for and the node lists none of, by classes that give it."""
    on = api.get(Key("nodes", "", node))["status"]["allocatable"]
    classes = given_by_classes(api)
    requests = [
        {"name": f"container-{at}", "exactly": {"deviceClassName": classes[name], "count": int(n)}}
        for at, container in enumerate(pod["spec"]["containers"])
        for name, n in container["resources"]["requests"].items()
        if name in classes and on.get(name, "0") == "0"
    ]
    meta = pod["metadata"]
    if not requests:
        return []
    owner = {"kind": "Pod", "name": meta["name"], "uid": meta["uid"], "controller": True}
    name = f"{meta['name']}-extended-resources"
    about = {"name": name, "namespace": meta["namespace"], "ownerReferences": [owner]}
    spec = {"devices": {"requests": requests}}
    api.create({"kind": "ResourceClaim", "metadata": about, "spec": spec})
    status = {"extendedResourceClaimStatus": {"resourceClaimName": name}}
    api.change(pod, lambda obj: obj["status"].update(status))
    return [api.get(Key("resourceclaims", meta["namespace"], name))]


def given_by_classes(api: Api) -> dict[str, str]:
    """The class of each resource that one names."""
    named = ((each["spec"].get("extendedResourceName"), each) for each in api.all("deviceclasses"))
    return {resource: each["metadata"]["name"] for resource, each in named if resource}


def _results(claim: Json) -> list[Json]:
    allocation = claim.get("status", {}).get("allocation", {})
    found: list[Json] = allocation.get("devices", {}).get("results", [])
    return found


def _is_elsewhere(claim: Json, node: str) -> bool:
    return any(each["pool"] != node for each in _results(claim))


def _allocation(results: list[Json]) -> Json:
    dated = {"allocationTimestamp": "2026-01-01T00:00:00Z"}
    return {"allocation": {"devices": {"results": results}, **dated}}


def _devices(api: Api, node: str, wanted: Json) -> Iterator[tuple[str, str, str]]:
    for each in api.all("resourceslices"):
        spec = each["spec"]
        if spec["nodeName"] == node and wanted["deviceClassName"] in (spec["driver"], ANY):
            for device in spec["devices"]:
                yield spec["driver"], spec["pool"]["name"], device["name"]


def _taken(api: Api) -> Iterator[tuple[str, str, str]]:
    for claim in api.all("resourceclaims"):
        for each in _results(claim):
            yield each["driver"], each["pool"], each["device"]


# ---- the watches


def device_event(change: Change) -> Event:
    """What the reflector of claims, slices or classes makes of a change."""
    watch = WATCHED[change.key.plural]
    content = msgspec.json.encode(change.new or change.old or {})
    seen = watch.observe(msgspec.json.decode(content, type=DeviceObject))
    told = Changed(seen) if change.new is not None else Deleted(seen)
    return sinks.device_event(told, watch.fact)
