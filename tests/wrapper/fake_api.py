"""An API server in memory, as far as the wrapper can tell, that can be killed at any request.

It checks what must hold at every request: objects are created only while the AppWrapper says so,
and deleted only after it says so.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import jsonpatch
import msgspec

from kube.api.errors import Conflict, Forbidden, Invalid, KubeError, NotFound, Timeout
from kube.objects import names

Json = dict[str, Any]
Key = tuple[str, str]
"""Plural and name; all is in one namespace."""

NAMESPACE = "ns"
PLURALS = {
    "v1": {"Pod": "pods", "ConfigMap": "configmaps", "Secret": "secrets", "Node": "nodes"},
    "apps/v1": {"Deployment": "deployments"},
    "batch/v1": {"Job": "jobs"},
}
CLUSTER_SCOPED = ("nodes",)
ITEMS = ("configmaps", "secrets", "jobs", "deployments")
MAY_CREATE, MAY_DELETE = ("Resuming",), ("Suspending", "Resetting", "Failed", "Succeeded")


class Killed(BaseException):
    """The program was killed at this request."""


class FakeApi:
    """The objects, what was done, and what is refused.

    `die_at` counts requests: at that one the program is killed, before it is carried out or, where
    `dies_late`, after. `unserved` are resources that discovery leaves out. `refuse` has errors by
    kind, and `deny` what the creator may not create.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, Json] = {}
        self.news: list[tuple[str, Key, Json]] = []
        self.version = 100
        self.requests = 0
        self.die_at: int | None = None
        self.dies_late = False
        self.refuse: dict[str, KubeError] = {}
        self.deny: set[str] = set()
        self.reviewed = True
        self.unserved: set[str] = set()
        self.created: list[Key] = []
        self.deleted: list[Key] = []
        self.forced: list[str] = []
        self.phases: list[str] = []
        self.statuses = 0
        self.read: list[str] = []
        self.unwritable = False
        """No status is taken."""
        self.keeps: frozenset[str] | None = None
        """The fields of a status that the definition knows; None: all."""

    # --- what tests and controllers do ----------------------------------------------------------

    def put(self, plural: str, obj: Json) -> Json:
        """Create or replace an object."""
        self.version += 1
        key = plural, obj["metadata"]["name"]
        meta = obj["metadata"]
        meta.setdefault("namespace", NAMESPACE)
        meta.setdefault("uid", f"uid-{self.version}")
        meta["resourceVersion"] = str(self.version)
        self.objects[key] = obj
        self.news.append(("SEEN", key, copy.deepcopy(obj)))
        return obj

    def change(self, plural: str, name: str, **fields: Any) -> Json:
        """Replace fields of an object."""
        return self.put(plural, {**copy.deepcopy(self.objects[plural, name]), **fields})

    def remove(self, plural: str, name: str) -> None:
        """Let an object be gone."""
        obj = self.objects.pop((plural, name))
        self.news.append(("GONE", (plural, name), copy.deepcopy(obj)))

    def named(self, plural: str) -> list[Json]:
        """All objects of a resource."""
        return [obj for (kind, _), obj in self.objects.items() if kind == plural]

    def reads_of(self, plural: str) -> int:
        """How often an object of a resource was asked for."""
        return self.read.count(plural)

    # --- the client -----------------------------------------------------------------------------

    async def request(self, _method: str, path: str, **_: Any) -> bytes:
        """Discovery."""
        return json.dumps(
            {"kind": "APIGroupDiscoveryList", "items": list(_groups(path, self.unserved))}
        ).encode()

    async def get(self, path: str, *, as_: Any = None, **_: Any) -> Any:
        self._count()
        plural, name, _sub = _parsed(path)
        self.read.append(plural)
        if plural.endswith("webhookconfigurations"):
            return self._rules(as_)
        return _as(as_, self._there(plural, name))

    async def create(self, path: str, obj: Any, *, as_: Any = None, **_: Any) -> Any:
        plural, _name, _sub = _parsed(path)
        if plural == "subjectaccessreviews":
            self._count()
            resource = obj["spec"]["resourceAttributes"]["resource"]
            return _as(as_, {"status": {"allowed": resource not in self.deny}})
        return _as(as_, self._write(lambda: self._create(plural, obj)))

    async def json_patch(self, path: str, operations: Any, *, as_: Any = None, **_: Any) -> Any:
        plural, name, _sub = _parsed(path)
        return _as(as_, self._write(lambda: self._patch(plural, name, operations)))

    async def merge_patch(self, path: str, changes: Any, *, as_: Any = None, **_: Any) -> Any:
        plural, name, _sub = _parsed(path)
        return _as(as_, self._write(lambda: self.change(plural, name, **changes)))

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        grace_period_seconds: int | None = None,
        **_: Any,
    ) -> bytes:
        plural, name, _sub = _parsed(path)
        if grace_period_seconds == 0:
            self._write(lambda: self._force(plural, name, uid))
        else:
            self._write(lambda: self._delete(plural, name, uid))
        return b"{}"

    # --- how it answers -------------------------------------------------------------------------

    def _count(self) -> None:
        """Count a request, and be killed at one that changes nothing."""
        self.requests += 1
        if self.requests == self.die_at:
            raise Killed

    def _write(self, carry_out: Any) -> Json:
        if not self.dies_late:
            self._count()
        else:
            self.requests += 1
        try:
            return copy.deepcopy(carry_out() or {})
        finally:
            if self.requests == self.die_at:
                raise Killed

    def _there(self, plural: str, name: str) -> Json:
        found = self.objects.get((plural, name))
        if found is None:
            raise NotFound(404, "NotFound", f'{plural} "{name}" not found')
        return copy.deepcopy(found)

    def _rules(self, as_: Any) -> Any:
        if not self.reviewed:
            raise NotFound(404, "NotFound", "no rules")
        return _as(as_, {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}})

    def _create(self, plural: str, obj: Json) -> Json:
        obj = copy.deepcopy(obj)
        key = plural, obj["metadata"]["name"]
        refusal = self.refuse.get(plural)
        if plural != "events" and refusal is not None:
            raise refusal
        if key in self.objects:
            raise Conflict(409, "AlreadyExists", f'{plural} "{key[1]}" already exists')
        if plural in ITEMS:
            self._expect(obj, MAY_CREATE)
            self.created.append(key)
        return self.put(plural, obj)

    def _patch(self, plural: str, name: str, operations: Any) -> Json:
        before = self._there(plural, name)
        if self.unwritable:
            raise unanswered()
        try:
            after = jsonpatch.apply_patch(before, operations)
        except jsonpatch.JsonPatchException as error:
            raise Invalid(422, "Invalid", str(error)) from error
        self.statuses += 1
        if self.keeps is not None:
            after["status"] = {k: v for k, v in after["status"].items() if k in self.keeps}
        self.phases += [after["status"]["phase"]] if _phase(before) != _phase(after) else []
        return self.put(plural, after)

    def _delete(self, plural: str, name: str, uid: str | None) -> None:
        there = self._there(plural, name)
        if uid is not None and there["metadata"]["uid"] != uid:
            raise Conflict(409, "Conflict", "the uid differs")
        self._expect(there, MAY_DELETE)
        self.deleted.append((plural, name))
        there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        self.put(plural, there)

    def _force(self, plural: str, name: str, uid: str | None) -> None:
        """A pod that is deleted by force is gone at once."""
        there = self._there(plural, name)
        assert (plural, uid) == ("pods", there["metadata"]["uid"])
        wrapper = self.objects["appwrappers", there["metadata"]["labels"][names.APP_WRAPPER]]
        assert _phase(wrapper) in MAY_DELETE
        self.forced.append(name)
        self.remove(plural, name)

    def _expect(self, obj: Json, phases: tuple[str, ...]) -> None:
        """What is done must have been written before."""
        owner = obj["metadata"]["ownerReferences"][0]
        wrapper = self.objects.get(("appwrappers", owner["name"]))
        assert wrapper is not None
        assert wrapper["metadata"]["uid"] == owner["uid"]
        assert _phase(wrapper) in phases


def refused(message: str) -> KubeError:
    """An object that the API server finds invalid."""
    return Invalid(422, "Invalid", message)


def over_quota() -> KubeError:
    """An object that a ResourceQuota has no room for."""
    return Forbidden(403, "Forbidden", "exceeded quota: compute")


def not_granted(more: str = "") -> KubeError:
    """An object that RBAC does not let us create."""
    said = 'jobs.batch is forbidden: User "w" cannot create resource "jobs" in API group "batch"'
    return Forbidden(403, "Forbidden", f'{said} in the namespace "ns"{more}')


def unanswered() -> KubeError:
    """A request whose outcome is not known."""
    return Timeout("no answer in time")


def _phase(wrapper: Json) -> str:
    return str(wrapper.get("status", {}).get("phase", ""))


def _as(as_: Any, obj: Json) -> Any:
    body = json.dumps(obj).encode()
    return body if as_ is None else msgspec.json.decode(body, type=as_)


def _parsed(path: str) -> tuple[str, str, str]:
    parts = path.split("?", maxsplit=1)[0].strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    parts = parts[2:] if parts and parts[0] == "namespaces" else parts
    plural, name, subresource = [*parts, "", ""][:3]
    return plural, name, subresource


def _groups(path: str, unserved: set[str]) -> Iterator[Json]:
    for api_version, kinds in PLURALS.items():
        group, _, version = api_version.rpartition("/")
        if (path == "/api") != (group == ""):
            continue
        resources = [
            {
                "resource": plural,
                "responseKind": {"kind": kind},
                "scope": "Cluster" if plural in CLUSTER_SCOPED else "Namespaced",
                "verbs": ["create", "get", "delete"],
            }
            for kind, plural in kinds.items()
            if plural not in unserved
        ]
        yield {
            "metadata": {"name": group},
            "versions": [{"version": version, "resources": resources}],
        }
