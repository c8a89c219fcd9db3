"""AppWrappers in a world in memory: the program `wrapper`, and controllers of what it creates.

The toy program keeps to what the real one does of an AppWrapper's phase: it is written before
anything is created or deleted, and Suspended means that none of it is left.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from appwrapper.creation import created_object
from appwrapper.phases import ACTIVE, LEAVING, QUEUED
from appwrapper.spec.items import read
from kube.gang.sent import is_noted
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.ray.wrapped_by import gang_name, group_of
from tests.coordinator.api import Api, Key, key_of
from tests.coordinator.builders import TEAM, Json, template

POD_KINDS = ("pods", "rayclusters", "rayjobs", "jobs", "configmaps")


def app_wrapper(name: str, *objects: Json, **spec: object) -> Json:
    """An AppWrapper of CodeFlare's generation."""
    return {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": "AppWrapper",
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "labels": {},
            "annotations": {names.CREATED_BY: '{"username": "ann"}'},
        },
        "spec": {"components": [{"template": each} for each in objects], **spec},
    }


def job(name: str, pods: int, *, completions: int | None = None, **pod: Any) -> Json:
    """A Job; `pod` goes to its template."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "parallelism": pods,
            "completions": pods if completions is None else completions,
            "template": template(**pod),
        },
    }


def config_map(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def bare_pod(name: str, **pod: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, **template(**pod)}


def wrapper_of(api: Api, name: str) -> Json:
    """The AppWrapper as it is now."""
    return api.get(Key("appwrappers", TEAM, name))


def phase(api: Api, name: str) -> str:
    return str((wrapper_of(api, name).get("status") or {}).get("phase", ""))


def pods_of(api: Api, name: str) -> list[Json]:
    """The pods of an AppWrapper, whatever made them."""
    return [pod for pod in api.all("pods") if _labels(pod).get(names.APP_WRAPPER) == name]


def nodes_of(api: Api, name: str) -> list[str]:
    """Where pods of an AppWrapper are bound."""
    found = (pod["spec"].get("nodeName", "") for pod in pods_of(api, name))
    return sorted(each for each in found if each)


def had_objects(api: Api, name: str) -> bool:
    """Whether anything of an AppWrapper existed at any moment."""
    created = (change.new for change in api.history if change.new is not None)
    return any(_labels(obj).get(names.APP_WRAPPER) == name for obj in created)


# ---- the program


def reconcile(api: Api) -> None:
    for wrapper in list(api.all("appwrappers")):
        meta = wrapper["metadata"]
        if "deletionTimestamp" not in meta and not is_noted(meta["annotations"]):
            _step(api, wrapper)


def _step(api: Api, wrapper: Json) -> None:
    now, held = _phase(wrapper), _gang_status(api, wrapper)
    asked = held.get("held", {}).get("phase")
    if now in QUEUED:
        nothing = held.get("reason") == "NotRequired"
        placed = asked == "Waiting" and (held.get("placement") or nothing)
        if placed and not _stopped(wrapper) and _is_of_now(held, wrapper):
            become(api, wrapper, "Resuming")
    elif now in ACTIVE and (asked == "Suspending" or _stopped(wrapper)):
        become(api, wrapper, "Suspending")
    elif now == "Resuming":
        _create(api, wrapper)
    elif now in LEAVING:
        _delete(api, wrapper)


def become(api: Api, wrapper: Json, phase_now: str, **more: object) -> None:
    """Write the phase of an AppWrapper."""
    count = (wrapper.get("status") or {}).get("transitionCount", 0)
    status = {"phase": phase_now, "transitionCount": count + 1, **more}
    api.change(wrapper, lambda obj: obj.update(status=status))


def _gang_status(api: Api, wrapper: Json) -> Json:
    name = gang_name(group_of(wrapper["apiVersion"]), wrapper["metadata"]["name"])
    key = Key("gangs", TEAM, name)
    gang = api.objects.get(key, {})
    owners = gang.get("metadata", {}).get("ownerReferences", ())
    mine = any(each["uid"] == wrapper["metadata"]["uid"] for each in owners)
    return dict(gang.get("status") or {}) if mine else {}


def _is_of_now(status: Json, wrapper: Json) -> bool:
    """Say whether a Gang speaks of an AppWrapper as it is."""
    counted = (wrapper.get("status") or {}).get("transitionCount", 0)
    same: bool = status["held"]["generation"] == wrapper["metadata"]["generation"] + counted
    return same


def _create(api: Api, wrapper: Json) -> None:
    found = msgspec.json.decode(msgspec.json.encode(wrapper), type=AppWrapper)
    wrapped = read(found)
    for item in wrapped.items:
        made = created_object(item, found.metadata, found.api_version, wrapped.generation)
        if key_of(made) not in api.objects:
            made["metadata"].setdefault("annotations", {})
            pod = {"status": {"phase": "Pending"}} if item.kind == "Pod" else {}
            api.create(gated(api, {**pod, **made}) if pod else made)
    become(api, wrapper, "Running")


def _delete(api: Api, wrapper: Json) -> None:
    uid, name = wrapper["metadata"]["uid"], wrapper["metadata"]["name"]
    left = [obj for kind in POD_KINDS for obj in api.all(kind) if _is_of(obj, name, uid)]
    for obj in left:
        if "deletionTimestamp" not in obj["metadata"]:
            api.delete(key_of(obj))
    if not left:
        become(api, wrapper, "Suspended", message=wrapper["status"].get("message", ""))


def _is_of(obj: Json, name: str, uid: str) -> bool:
    said = {names.APP_WRAPPER: name, names.APP_WRAPPER_UID: uid}
    return said.items() <= _labels(obj).items()


def _phase(wrapper: Json) -> str:
    return str((wrapper.get("status") or {}).get("phase", ""))


def _stopped(wrapper: Json) -> bool:
    return bool(wrapper["spec"].get("suspend"))


def _labels(obj: Json) -> dict[str, str]:
    return dict(obj["metadata"].get("labels") or {})


# ---- controllers, and the webhook


def make_pods(api: Api, reviewed: Callable[[Json, Json], Json]) -> None:
    """Make the pods of Jobs."""
    for each in list(api.all("jobs")):
        for number in range(*_missing(api, each)):
            api.create(reviewed(each, _pod_of_job(api, each, number)))


def _missing(api: Api, made: Json) -> tuple[int, int]:
    mine = [pod for pod in api.all("pods") if _owner(pod) == made["metadata"]["uid"]]
    done = sum(pod["status"].get("phase") == "Succeeded" for pod in mine)
    alive = sum(_is_alive(pod) for pod in mine)
    spec = made["spec"]
    return alive, min(spec["parallelism"], spec["completions"] - done)


def _is_alive(pod: Json) -> bool:
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return not ended and "deletionTimestamp" not in pod["metadata"]


def _pod_of_job(api: Api, made: Json, number: int) -> Json:
    meta, found = made["metadata"], made["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"]}
    return {
        "kind": "Pod",
        "metadata": {
            "generateName": f"{meta['name']}-",
            "namespace": meta["namespace"],
            "labels": dict(found["metadata"]["labels"]),
            "annotations": {},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {**found["spec"], "schedulingGates": [], **_priority(api, found["spec"])},
        "status": {"phase": "Pending"},
    }


def _priority(api: Api, spec: Json) -> Json:
    """What admission writes into a pod that names a class."""
    classes = {each["metadata"]["name"]: each["value"] for each in api.all("priorityclasses")}
    name = spec.get("priorityClassName")
    return {"priority": classes[name]} if name else {}


def is_wrapped(pod: Json) -> bool:
    return bool(_labels(pod).get(names.APP_WRAPPER))


def gated(api: Api, pod: Json) -> Json:
    """Gate a pod whose AppWrapper exists, by name and uid."""
    labels = _labels(pod)
    key = Key("appwrappers", TEAM, labels[names.APP_WRAPPER])
    uid = api.objects.get(key, {"metadata": {"uid": None}})["metadata"]["uid"]
    if uid != labels.get(names.APP_WRAPPER_UID):
        return pod
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": names.GATE}]}}


def _owner(obj: Json) -> str:
    owners = obj["metadata"].get("ownerReferences") or [{"uid": ""}]
    return str(owners[0]["uid"])


def succeed(api: Api, name: str, most: int = 1 << 30) -> None:
    """Have bound pods of an AppWrapper succeed."""
    for pod in [pod for pod in pods_of(api, name) if _is_alive(pod)][:most]:
        assert pod["spec"].get("nodeName")
        api.change(pod, lambda obj: obj.update(status={"phase": "Succeeded"}))
