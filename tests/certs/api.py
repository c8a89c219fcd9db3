"""An API server with room for one Secret, a Lease, two configurations, and faults to order."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import jsonpatch
import orjson
from aiohttp import web

from certs.chain import certificates_in
from certs.held import Held, data_of, notes_of, read_held

Json = dict[str, Any]

NAMESPACE = "muster-system"
SECRET = "muster-webhook-tls"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
MUTATING = f"{CONFIGURATIONS}/mutatingwebhookconfigurations/muster-webhook"
VALIDATING = f"{CONFIGURATIONS}/validatingwebhookconfigurations/muster-webhook"


def refused(code: int, reason: str) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": f"{reason} it is"}
    return web.json_response(body, status=code)


def calling(name: str, service: str) -> Json:
    reference = {"namespace": NAMESPACE, "name": service, "path": "/mutate"}
    return {"name": name, "clientConfig": {"service": reference}}


class Api:
    """Keeps objects with versions; `fault` may answer in the place of a write."""

    def __init__(self) -> None:
        self._versions = itertools.count(1)
        self.objects: dict[str, Json] = {}
        self.writes: list[str] = []
        self.fault: Callable[[web.Request], web.Response | None] = lambda _: None
        self.after: Callable[[str], None] = lambda _: None
        """Called with the path of what was written."""
        self.unreadable = ""
        self.clock: Callable[[], datetime] = lambda: datetime.now(UTC)
        webhooks = [calling("other", "other"), calling("pods.muster.dev", "muster-webhook")]
        self.put(MUTATING, {"webhooks": webhooks})
        self.put(VALIDATING, {"webhooks": [calling("v.muster.dev", "muster-webhook")]})

    def put(self, path: str, obj: Json) -> Json:
        metadata = {**obj.get("metadata", {}), "resourceVersion": str(next(self._versions))}
        self.objects[path] = {**obj, "metadata": metadata}
        return self.objects[path]

    def application(self) -> web.Application:
        application = web.Application()
        reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        application.router.add_post(reviews, self._review)
        application.router.add_get("/{path:.*}", self._get)
        application.router.add_post("/{path:.*}", self._create)
        application.router.add_patch("/{path:.*}", self._patch)
        return application

    # ---- what is there

    @property
    def held(self) -> Held:
        found = self.objects[f"{SECRETS}/{SECRET}"]
        meta = found["metadata"]
        return read_held(found["data"], meta.get("labels") or {}, meta.get("annotations") or {})

    def hold(self, held: Held) -> None:
        """Put a Secret there."""
        data = {name: text for name, text in data_of(held).items() if text is not None}
        notes = {name: text for name, text in notes_of(held).items() if text is not None}
        labels = {"app.kubernetes.io/part-of": "muster"} if held.ours else {}
        metadata = {"name": SECRET, "labels": labels, "annotations": notes}
        self.put(f"{SECRETS}/{SECRET}", {"metadata": metadata, "data": data})

    def bundle(self, path: str, index: int = 0) -> tuple[bytes, ...]:
        """What a webhook trusts."""
        config = self.objects[path]["webhooks"][index]["clientConfig"]
        text = config.get("caBundle", "")
        return certificates_in(base64.b64decode(text)) if text else ()

    @property
    def bundles(self) -> list[tuple[bytes, ...]]:
        """What our webhooks trust."""
        return [self.bundle(MUTATING, 1), self.bundle(VALIDATING)]

    # ---- what it answers

    async def _get(self, request: web.Request) -> web.Response:
        found = self.objects.get(request.path)
        if request.path == self.unreadable:
            return refused(403, "Forbidden")
        return web.json_response(found) if found else refused(404, "NotFound")

    async def _create(self, request: web.Request) -> web.Response:
        made = orjson.loads(await request.read())
        path = f"{request.path}/{made['metadata']['name']}"
        fault = self.fault(request)
        if fault is not None:
            return fault
        if path in self.objects:
            return refused(409, "AlreadyExists")
        self._note(path)
        return web.json_response(self.put(path, made), status=201)

    async def _patch(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        fault = self.fault(request)
        if fault is not None:
            return fault
        found = self.objects[request.path]
        if isinstance(body, list):
            try:
                changed = jsonpatch.apply_patch(found, body)
            except jsonpatch.JsonPatchException:
                return refused(422, "Invalid")
        else:
            if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                return refused(409, "Conflict")
            changed = merged(found, body)
        self._note(request.path)
        put = self.put(request.path, changed)
        self.after(request.path)
        return web.json_response(put)

    async def _review(self, _: web.Request) -> web.Response:
        stamp = self.clock().strftime("%Y-%m-%dT%H:%M:%SZ")
        return web.json_response({"metadata": {"creationTimestamp": stamp}}, status=201)

    def _note(self, path: str) -> None:
        if LEASES not in path:
            self.writes.append(path.rsplit("/", 2)[1])


def merged(found: Any, patch: Any) -> Any:
    """A JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    result = dict(found) if isinstance(found, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
