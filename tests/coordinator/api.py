"""An API server in memory, as far as the coordinator can tell: objects, tests, watches, faults.

Objects are JSON and never changed in place, so an event may hold one for as long as it likes."""

import re
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, cast

import jsonpatch
import msgspec

from kube.api.errors import (
    ApiError,
    Conflict,
    Invalid,
    NotFound,
    TooManyRequests,
)

Json = dict[str, Any]

PLURALS = {
    "Pod": "pods",
    "Node": "nodes",
    "Namespace": "namespaces",
    "PriorityClass": "priorityclasses",
    "DeviceClass": "deviceclasses",
    "ResourceSlice": "resourceslices",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
    "LimitRange": "limitranges",
    "ResourceQuota": "resourcequotas",
    "RuntimeClass": "runtimeclasses",
    "RayCluster": "rayclusters",
    "RayJob": "rayjobs",
    "RayService": "rayservices",
    "AppWrapper": "appwrappers",
    "ConfigMap": "configmaps",
    "Job": "jobs",
    "Gang": "gangs",
    "GangQueue": "gangqueues",
    "GangOffer": "gangoffers",
    "Lease": "leases",
    "Event": "events",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "PersistentVolume": "persistentvolumes",
    "StorageClass": "storageclasses",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "CSINode": "csinodes",
    "VolumeAttachment": "volumeattachments",
    "ProvisioningRequest": "provisioningrequests",
    "PodTemplate": "podtemplates",
}
WATCHED = tuple(
    plural
    for plural in PLURALS.values()
    if plural
    not in ("events", "poddisruptionbudgets", "configmaps", "jobs", "podtemplates", "leases")
)
OURS = ("gangs", "gangqueues", "gangoffers")
HELD_BY_US = ("gangqueues", "gangoffers")
_PATH = re.compile(
    r"/apis?/(?:[^/]+/)?v[^/]+/(?:namespaces/(?P<ns>[^/]+)/)?"
    r"(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)


BUDGET = TooManyRequests(
    429,
    "TooManyRequests",
    "Cannot evict pod as it would violate the pod's disruption budget.",
    causes=("DisruptionBudget",),
)


class Key(NamedTuple):
    plural: str
    namespace: str
    name: str


class Change(NamedTuple):
    """One change of one object: `old` is None for a creation, `new` for a removal."""

    key: Key
    old: Json | None
    new: Json | None


class Watch:
    """What one watcher has not been told yet: in order within a resource, not between them."""

    def __init__(self) -> None:
        self.queues: dict[str, deque[Change]] = {plural: deque() for plural in WATCHED}

    def waiting(self) -> list[str]:
        return [plural for plural, queue in self.queues.items() if queue]


class Api:
    """The objects, and what happened to them."""

    def __init__(self) -> None:
        self.objects: dict[Key, Json] = {}
        self.history: list[Change] = []
        self.watches: list[Watch] = []
        self.refusals: dict[str, ApiError] = {}  # pod -> what its release is refused with
        self.budgets: dict[str, ApiError] = {}  # pod -> what its eviction is refused with
        self.frozen: dict[str, ApiError] = {}  # pod -> what any change of it is refused with
        self.now = 0.0
        self._revision = 0
        self._uids = 0
        self.tries = 0  # RayClusters that RayJobs made

    # ---- reading

    def all(self, plural: str) -> Iterator[Json]:
        found = [each for each in self.objects.items() if each[0].plural == plural]
        return (obj for _, obj in sorted(found))

    def get(self, key: Key) -> Json:
        if key not in self.objects:
            raise NotFound(404, "NotFound", f"{key.plural} {key.name} not found")
        return self.objects[key]

    def watch(self) -> Watch:
        """Begin a watch with the list of all that there is."""
        watch = Watch()
        for key, obj in sorted(self.objects.items()):
            if key.plural in WATCHED:
                watch.queues[key.plural].append(Change(key, None, obj))
        self.watches.append(watch)
        return watch

    # ---- writing

    def create(self, obj: Json) -> Json:
        obj = copied(obj)
        meta = obj["metadata"]
        self._uids += 1
        if "generateName" in meta:
            meta["name"] = f"{meta.pop('generateName')}{self._uids:05}"
        key = key_of(obj)
        if key in self.objects:
            raise Conflict(409, "AlreadyExists", f"{key.name} exists")
        obj.setdefault("status", {})
        meta |= {"uid": f"uid-{self._uids}", "generation": 1, "creationTimestamp": self._stamp()}
        return self._store(key, obj)

    def patch(self, key: Key, operations: list[Json], subresource: str = "") -> Json:
        old = self.get(key)
        if key.name in self.frozen:
            raise self.frozen[key.name]
        if key.name in self.refusals and any(each["op"] == "remove" for each in operations):
            raise self.refusals[key.name]
        try:
            asked = jsonpatch.apply_patch(copied(old), operations, in_place=True)
        except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
            raise Invalid(422, "Invalid", f"the patch does not apply: {error}") from error
        new = self._update(key, old, asked, subresource)
        meta = new["metadata"]
        is_held = key.plural not in HELD_BY_US or meta.get("finalizers")
        if "deletionTimestamp" in meta and not is_held:
            self.remove(key)
        return new

    def change(self, obj: Json, change: Callable[[Json], object], subresource: str = "") -> Json:
        """Change the newest version of an object, as somebody who retries until it is done."""
        key = key_of(obj)
        asked = copied(self.get(key))
        change(asked)
        return self._update(key, self.get(key), asked, subresource)

    def delete(self, key: Key, uid: str | None = None, version: str | None = None) -> None:
        old = self.get(key)
        meta = old["metadata"]
        if uid not in (None, meta["uid"]) or version not in (None, meta["resourceVersion"]):
            raise Conflict(409, "Conflict", "the precondition failed")
        now = self._stamp()
        bound = key.plural == "pods" and old["spec"].get("nodeName")
        if bound or meta.get("finalizers"):
            self.change(old, lambda obj: obj["metadata"].setdefault("deletionTimestamp", now))
        else:
            self.remove(key)

    def evict(self, path: str, dry_run: bool, eviction: Json) -> None:
        """Evict a pod as the API server does: a pod that is not bound has no budget."""
        key = parsed(path)[0]
        pod, uid = self.get(key), eviction["deleteOptions"]["preconditions"]["uid"]
        if pod["metadata"]["uid"] != uid:
            raise Conflict(409, "Conflict", "the precondition failed")
        if key.name in self.budgets and pod["spec"].get("nodeName"):
            raise self.budgets[key.name]
        for budget in self.all("poddisruptionbudgets"):
            if _is_healthy(pod) and _selects(budget, pod) and not self.allowed(budget):
                raise BUDGET
        if not dry_run:
            self.delete(key, uid)

    def allowed(self, budget: Json) -> int:
        """How many healthy pods of a budget may go now, as its controller counts."""
        mine = [pod for pod in self.all("pods") if _selects(budget, pod) and _is_healthy(pod)]
        return max(0, len(mine) - int(budget["spec"]["minAvailable"]))

    def budgets_in(self, namespace: str) -> Json:
        """The list of the budgets of a namespace, each counted anew."""
        found = (each for each in self.all("poddisruptionbudgets"))
        mine = [each for each in found if each["metadata"]["namespace"] == namespace]
        status = ({"disruptionsAllowed": self.allowed(each)} for each in mine)
        return {"items": [{**each, "status": now} for each, now in zip(mine, status, strict=True)]}

    def merge(self, key: Key, changes: Json, *, dry_run: bool) -> Json:
        """Apply a merge patch that names the version it is of."""
        old = self.get(key)
        meta = changes["metadata"]
        read = {each: meta[each] for each in ("uid", "resourceVersion") if each in meta}
        if any(old["metadata"][each] != said for each, said in read.items()):
            raise Conflict(409, "Conflict", "the object has been modified")
        if key.name in self.refusals:
            raise self.refusals[key.name]
        new = _merged(old, changes)
        return old if dry_run else self._update(key, old, new, "")

    def hold(self, obj: Json, *finalizers: str) -> None:
        """Have finalizers hold an object once it is deleted."""
        self.change(obj, lambda held: held["metadata"].update(finalizers=list(finalizers)))

    def unhold(self, obj: Json) -> None:
        """Take the finalizers off, and with them the object if it is deleted already."""
        self.hold(obj)
        if "deletionTimestamp" in obj["metadata"]:
            self.remove(key_of(obj))

    def remove(self, key: Key) -> None:
        """Take the object away, whatever it is doing."""
        old = self.objects.pop(key)
        self._revision += 1
        last = _for_new_metadata(old)
        last["metadata"]["resourceVersion"] = str(self._revision)
        self._tell(Change(key, last, None))

    def _update(self, key: Key, old: Json, asked: Json, subresource: str) -> Json:
        status = asked.get("status")
        if key.plural in OURS and subresource == "status":
            _check_epoch(old, status or {})
            new = {**old, "status": status}
        elif key.plural in OURS:
            new = {**asked, "status": old.get("status") or {}}
        else:
            new = asked
        if new == old:
            return old
        new = _for_new_metadata(new)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        return self._store(key, new)

    def _store(self, key: Key, obj: Json) -> Json:
        self._revision += 1
        obj["metadata"]["resourceVersion"] = str(self._revision)
        old = self.objects.get(key)
        self.objects[key] = obj
        self._tell(Change(key, old, obj))
        return obj

    def _tell(self, change: Change) -> None:
        self.history.append(change)
        for watch in self.watches:
            if change.key.plural in WATCHED:
                watch.queues[change.key.plural].append(change)

    def _stamp(self) -> str:
        return stamp_at(self.now)


def stamp_at(now: float) -> str:
    """The stamp of a moment, in seconds since the worlds begin."""
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=int(now))
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def copied(obj: Json) -> Json:
    """A copy of an object that is JSON throughout, in a tenth of what `copy.deepcopy` takes."""
    return cast(Json, msgspec.msgpack.decode(msgspec.msgpack.encode(obj)))


def _for_new_metadata(obj: Json) -> Json:
    """The object, whose metadata may be set; all else is shared, for nothing changes it."""
    return {**obj, "metadata": dict(obj["metadata"])}


def _merged(old: Json, changes: Json) -> Json:
    found = {**old}
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(old.get(name, {}), value) if isinstance(value, dict) else value
    return found


def _is_healthy(pod: Json) -> bool:
    said = pod["status"].get("conditions", ())
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in said)
    return is_ready and "deletionTimestamp" not in pod["metadata"]


def _selects(budget: Json, pod: Json) -> bool:
    labels = pod["metadata"].get("labels", {})
    wanted = budget["spec"]["selector"]["matchLabels"]
    same = budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
    return bool(same and wanted.items() <= labels.items())


def key_of(obj: Json) -> Key:
    meta = obj["metadata"]
    return Key(PLURALS[obj["kind"]], meta.get("namespace", ""), meta["name"])


def _check_epoch(old: Json, status: Json) -> None:
    before = (old.get("status") or {}).get("epoch", 0)
    if status.get("epoch", 0) < before:
        raise Invalid(422, "Invalid", "status.epoch must not decrease")


def parsed(path: str) -> tuple[Key, str]:
    found = _PATH.fullmatch(path)
    assert found, path
    return Key(found["plural"], found["ns"] or "", found["name"] or ""), found["sub"] or ""
