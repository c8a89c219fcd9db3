"""An API server that knows some objects: lists in pages and as tables, single ones, and logs."""

import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer

from kube.api.client import Client
from kube.api.credentials import open_access
from tests.cli.api_server import refusal

Json = dict[str, Any]

COLUMNS: dict[str, Sequence[tuple[str, Callable[[Json], Any]]]] = {
    "rayclusters": [
        ("desired workers", lambda each: each["status"].get("desiredWorkerReplicas")),
        ("available workers", lambda each: each["status"].get("availableWorkerReplicas")),
        ("gpus", lambda each: each["status"].get("desiredGPU")),
        ("status", lambda each: each["status"].get("state")),
    ],
    "gangs": [
        ("Phase", lambda each: each["status"].get("phase")),
        ("Queue", lambda each: each["spec"].get("queue")),
        ("Position", lambda each: each["status"].get("position")),
        ("Ready", lambda each: each["status"].get("ready")),
        ("Reason", lambda each: each["status"].get("reason")),
        ("Message", lambda each: each["status"].get("message")),
    ],
}


def ray_cluster(name: str, namespace: str = "team", **fields: Any) -> Json:
    """A RayCluster as KubeRay fills its status; `status` and `metadata` are added to it."""
    meta = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    status = {"desiredWorkerReplicas": 4, "availableWorkerReplicas": 2, "desiredGPU": "32"}
    return {
        "metadata": {**meta, **fields.get("metadata", {})},
        "spec": fields.get("spec", {"workerGroupSpecs": [{"groupName": "w", "replicas": 4}]}),
        "status": {**status, "state": "ready", **fields.get("status", {})},
    }


def gang(name: str, namespace: str = "team", **status: Any) -> Json:
    """A Gang that waits, unless its status says otherwise."""
    waits = {
        "phase": "Queued",
        "position": 1,
        "ready": "0/5",
        "reason": "InsufficientResources",
        "message": "2 of 4 w fit",
    }
    meta = {"name": name, "namespace": namespace, "uid": f"gang-{name}"}
    return {"metadata": meta, "spec": {"queue": "research"}, "status": {**waits, **status}}


class FakeApi:
    """Answers GET; `forbidden` are plurals with a namespace, empty for all namespaces at once."""

    def __init__(self) -> None:
        self.objects: defaultdict[str, list[Json]] = defaultdict(list)
        self.forbidden: set[tuple[str, str]] = set()
        self.refused = 0
        """The status of every answer, where it is not 0."""
        self.logs: dict[tuple[str, str], Callable[[], AsyncIterator[bytes]]] = {}
        self.asked: list[web.Request] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        if self.refused:
            return refusal(self.refused, "Unauthorized", "Unauthorized")
        if request.path == "/version":
            return web.json_response({"major": "1", "minor": "37"})
        parts = request.path.strip("/").split("/")
        parts = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = parts[1] if parts[:1] == ["namespaces"] and len(parts) > 2 else ""
        plural, *rest = parts[2:] if namespace else parts
        if (plural, namespace) in self.forbidden:
            said = f'User "ada" cannot list resource "{plural}" at the cluster scope'
            return refusal(403, "Forbidden", f"{plural} is forbidden: {said}")
        if rest[1:] == ["log"]:
            return await self._log(request, namespace, rest[0])
        here = [
            each
            for each in self.objects[plural]
            if namespace in ("", each["metadata"].get("namespace", ""))
        ]
        if rest:
            return _one(here, rest[0])
        return _list(request, plural, [each for each in here if _selected(request, each)])

    async def _log(self, request: web.Request, namespace: str, pod: str) -> web.StreamResponse:
        if (namespace, pod) not in self.logs:
            return refusal(404, "NotFound", f'pods "{pod}" not found')
        stream = web.StreamResponse()
        await stream.prepare(request)
        async for piece in self.logs[namespace, pod]():
            await stream.write(piece)
        return stream


async def _who(_: web.Request) -> web.Response:
    return web.json_response({"status": {"userInfo": {"username": "ada", "groups": []}}})


def _one(here: Sequence[Json], name: str) -> web.Response:
    found = next((each for each in here if each["metadata"]["name"] == name), None)
    if found is None:
        return refusal(404, "NotFound", f'"{name}" not found')
    return web.json_response(found)


def _selected(request: web.Request, each: Json) -> bool:
    label = request.query.get("labelSelector", "")
    if label:
        key, _, value = label.partition("=")
        return bool(each["metadata"].get("labels", {}).get(key) == value)
    field = request.query.get("fieldSelector", "")
    if field.startswith("involvedObject.uid="):
        return bool(each["involvedObject"]["uid"] == field.partition("=")[2])
    return True


def _list(request: web.Request, plural: str, found: Sequence[Json]) -> web.Response:
    """Answer with a page; as an API server does, only the first of a table names its columns."""
    at, limit = int(request.query.get("continue", 0)), int(request.query.get("limit", 10**9))
    page, more = found[at : at + limit], at + limit < len(found)
    meta = {"continue": str(at + limit)} if more else {}
    if "as=Table" not in request.headers["Accept"]:
        return web.json_response({"metadata": meta, "items": list(page)})
    columns = COLUMNS[plural]
    table = {
        "kind": "Table",
        "metadata": meta,
        "columnDefinitions": [{"name": name} for name, _ in columns] if at == 0 else [],
        "rows": [
            {
                "cells": [value(each) for _, value in columns],
                "object": {"kind": "PartialObjectMetadata", "metadata": each["metadata"]},
            }
            for each in page
        ],
    }
    return web.Response(body=json.dumps(table), content_type="application/json")


@asynccontextmanager
async def client_of(api: FakeApi) -> AsyncIterator[Client]:
    """A client of the fake API server."""
    app = web.Application()
    app.router.add_get("/{path:.*}", api.handle)
    app.router.add_post("/apis/authentication.k8s.io/v1/selfsubjectreviews", _who)
    async with (
        TestServer(app, host="127.0.0.1") as server,
        Client(open_access(f"http://127.0.0.1:{server.port}")) as client,
    ):
        yield client
