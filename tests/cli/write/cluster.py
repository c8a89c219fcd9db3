"""A cluster of a few objects behind HTTP: it lists, patches, deletes, and refuses what it is told.

Of an API server it has what `muster release` and `muster uninstall` rest on: tests of JSON patches,
stale versions, uids of deletions, finalizers, selectors, discovery.
"""

import asyncio
import copy
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import jsonpatch
from aiohttp import web

from tests.cli.api_server import refusal

Json = dict[str, Any]
LABEL = {"app.kubernetes.io/part-of": "muster"}
TOO_LATE = 1.0
"""Seconds, longer than a test has its command wait for one answer."""


@dataclass(frozen=True)
class Kind:
    group: str
    version: str
    plural: str
    namespaced: bool = True

    @property
    def root(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"


ADMISSION, RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
KINDS = {
    each.plural: each
    for each in (
        Kind("", "v1", "pods"),
        Kind("", "v1", "namespaces", namespaced=False),
        Kind("", "v1", "configmaps"),
        Kind("", "v1", "secrets"),
        Kind("", "v1", "services"),
        Kind("apps", "v1", "deployments"),
        Kind("coordination.k8s.io", "v1", "leases"),
        Kind(RBAC, "v1", "clusterroles", namespaced=False),
        Kind(RBAC, "v1", "clusterrolebindings", namespaced=False),
        Kind(RBAC, "v1", "rolebindings"),
        Kind(ADMISSION, "v1", "mutatingwebhookconfigurations", namespaced=False),
        Kind(ADMISSION, "v1", "validatingwebhookconfigurations", namespaced=False),
        Kind(ADMISSION, "v1", "validatingadmissionpolicybindings", namespaced=False),
        Kind(ADMISSION, "v1", "mutatingadmissionpolicybindings", namespaced=False),
        Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False),
        Kind("ray.io", "v1", "rayclusters"),
        Kind("ray.io", "v1", "rayjobs"),
        Kind("ray.io", "v1", "rayservices"),
        Kind("muster.dev", "v1alpha1", "gangs"),
        Kind("muster.dev", "v1alpha1", "gangqueues", namespaced=False),
        Kind("muster.dev", "v1alpha1", "gangoffers"),
        Kind("workload.codeflare.dev", "v1beta2", "appwrappers"),
    )
}
_PATH = re.compile(
    r"(?P<root>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<plural>[a-z]+)(/(?P<name>[^/]+)(/status)?)?$"
)


class Double:
    """The cluster; `after` is called after each write, `behind` after each reading.

    `refused` are patterns of `METHOD path`; of those in `lost` one request each gets a 500, of
    those in `unheard` it is carried out, and its answer comes too late. `logs` are those of pods
    whose container has begun.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], Json] = {}
        self.refused: list[str] = []
        self.lost: list[str] = []
        self.unheard: list[str] = []
        self.writes: list[str] = []
        self.logs: dict[str, bytes] = {}
        self.logs_asked: list[str] = []
        self.behind: Callable[[str], None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None
        self._numbers = itertools.count(1)

    def add(self, plural: str, name: str, namespace: str = "", **fields: Any) -> Json:
        """Put an object there; `labels`, `annotations`, `finalizers` go into its metadata."""
        ours = ("labels", "annotations", "finalizers", "owners")
        said: Json = {key: fields.pop(key) for key in ours if key in fields}
        owners = said.pop("owners", None)
        meta: Json = {"name": name, "namespace": namespace, **said}
        meta |= {"ownerReferences": owners} if owners else {}
        meta |= {"uid": f"uid-{next(self._numbers)}", "resourceVersion": "1"}
        self.objects[plural, namespace, name] = {"metadata": meta, **fields}
        return self.objects[plural, namespace, name]

    def all(self, plural: str) -> list[Json]:
        return [each for (kind, _, _), each in self.objects.items() if kind == plural]

    def get(self, plural: str, name: str, namespace: str = "") -> Json:
        return self.objects[plural, namespace, name]

    def writes_to(self, part: str) -> list[int]:
        """Where among the writes those to a kind are."""
        return [at for at, each in enumerate(self.writes) if part in each]

    # --- the server

    async def handle(self, request: web.Request) -> web.Response:
        path = unquote(request.path)
        if path in ("/api", "/apis"):
            return web.json_response(self._discovery(core=path == "/api"))
        if path.endswith("/log"):
            return self._log(path.split("/")[-2], request.query_string)
        found = _PATH.fullmatch(path)
        kind = KINDS.get(found["plural"]) if found else None
        if found is None or kind is None or kind.root != found["root"]:
            return web.json_response({}, status=404)
        if any(re.search(each, f"{request.method} {path}") for each in self.refused):
            return refusal(403, "Forbidden", "the policy says no")
        lost = next((e for e in self.lost if re.search(e, f"{request.method} {path}")), None)
        if lost is not None:
            self.lost.remove(lost)
            return refusal(500, "InternalError", "etcdserver: request timed out")
        key = (kind.plural, found["namespace"] or "", found["name"] or "")
        before = copy.deepcopy(self.objects)
        answer = await self._answer(request, key)
        if "dryRun" in request.query:
            self.objects = before
        elif request.method == "GET":
            self.behind(f"GET {path}")
        else:
            self.writes.append(f"{request.method} {path}")
            self.after(self.writes[-1])
        unheard = next((e for e in self.unheard if re.search(e, f"{request.method} {path}")), None)
        if unheard is not None:
            self.unheard.remove(unheard)
            await asyncio.sleep(TOO_LATE)
        return answer

    def _log(self, pod: str, query: str) -> web.Response:
        self.logs_asked.append(f"{pod}?{query}")
        if pod not in self.logs:
            return refusal(400, "BadRequest", f'container "ray" in pod "{pod}" is waiting to start')
        return web.Response(body=self.logs[pod])

    async def _answer(self, request: web.Request, key: tuple[str, str, str]) -> web.Response:
        if request.method == "GET" and not key[2]:
            return web.json_response({"items": list(self._listed(request, key))})
        if request.method == "POST":
            return self._create(key, await request.json())
        if key not in self.objects:
            return refusal(404, "NotFound", f"{key[0]} {key[2]} not found")
        match request.method:
            case "GET":
                return web.json_response(self.objects[key])
            case "PATCH":
                return self._patch(key, request.content_type, await request.json())
            case _:
                return self._delete(key, await request.json())

    def _listed(self, request: web.Request, key: tuple[str, str, str]) -> Iterator[Json]:
        for (plural, namespace, _), each in sorted(self.objects.items()):
            if plural == key[0] and key[1] in ("", namespace) and _selected(request, each):
                yield each

    def _create(self, key: tuple[str, str, str], body: Json) -> web.Response:
        name = body["metadata"]["name"]
        if (key[0], key[1], name) in self.objects:
            return refusal(409, "AlreadyExists", f"{key[0]} {name} already exists")
        fields = {each: value for each, value in body.items() if each != "metadata"}
        return web.json_response(self.add(key[0], name, key[1], **fields), status=201)

    def _patch(self, key: tuple[str, str, str], how: str, body: Any) -> web.Response:
        old = self.objects[key]
        if how == "application/json-patch+json":
            try:
                new = jsonpatch.apply_patch(copy.deepcopy(old), body)
            except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
                return refusal(422, "Invalid", str(error))
        else:
            version = body.get("metadata", {}).get("resourceVersion")
            if version not in (None, old["metadata"]["resourceVersion"]):
                return refusal(409, "Conflict", "the object has been modified")
            new = _merged(old, body)
        meta = new["metadata"]
        meta["resourceVersion"] = str(int(meta["resourceVersion"]) + 1)
        self.objects[key] = new
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            del self.objects[key]
        return web.json_response(new)

    def _delete(self, key: tuple[str, str, str], options: Json) -> web.Response:
        meta = self.objects[key]["metadata"]
        if options.get("preconditions", {}).get("uid") not in (None, meta["uid"]):
            return refusal(409, "Conflict", "the precondition failed")
        if meta.get("finalizers"):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        else:
            del self.objects[key]
            self._go_with(key)
        return web.json_response({})

    def _go_with(self, key: tuple[str, str, str]) -> None:
        """A namespace takes what is in it along, and a definition its objects."""
        if key[0] == "namespaces":
            gone = [each for each in self.objects if each[1] == key[2]]
        elif key[0] == "customresourcedefinitions":
            gone = [each for each in self.objects if each[0] == key[2].partition(".")[0]]
        else:
            gone = []
        for each in gone:
            del self.objects[each]

    def _discovery(self, *, core: bool) -> Json:
        groups: dict[str, list[Json]] = {}
        for each in KINDS.values():
            if (each.group == "") == core:
                groups.setdefault(f"{each.group}/{each.version}", []).append(_resource(each))
        items = [
            {
                "metadata": {"name": name.partition("/")[0]},
                "versions": [{"version": name.partition("/")[2], "resources": found}],
            }
            for name, found in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "items": items}


def _resource(kind: Kind) -> Json:
    return {
        "resource": kind.plural,
        "responseKind": {"kind": kind.plural},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "verbs": ["get", "list", "delete"],
    }


def _selected(request: web.Request, found: Json) -> bool:
    labels = found["metadata"].get("labels", {})
    for asked in filter(None, request.query.get("labelSelector", "").split(",")):
        key, _, value = asked.partition("=")
        if labels.get(key) != value:
            return False
    for asked in filter(None, request.query.get("fieldSelector", "").split(",")):
        path, _, value = asked.partition("=")
        if path != "status.phase" and _at(found, path) != value:
            return False
    return True


def _at(found: Any, path: str) -> Any:
    for each in path.split("."):
        found = found.get(each, {})
    return found or ""


def _merged(old: Json, changes: Json) -> Json:
    found = {**old}
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(old.get(name) or {}, value) if isinstance(value, dict) else value
    return found
