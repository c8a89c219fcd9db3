"""`python -m benchmarks.paged_lists PORT GANGS NODES PODS`: lists in pages, as an API server sends.

Over plain HTTP, and nothing but lists: what a command of `muster` reads of a large cluster. The
pages are made before the first request, so that a command waits for its own work alone.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web

from benchmarks import extender

Json = dict[str, Any]

MUSTER = "/apis/muster.dev/v1alpha1"
QUEUES = 20
RUNNING_SHARE = 4
"""One gang of so many has its place."""

_SETS = (("headgroup", 1, 0), ("workers", 8, 1))
_CREATED = "2026-11-22T07:00:00Z"


def gang(number: int, nodes: int) -> Json:
    """A gang of a head and 8 workers with a GPU each; one of four has its place."""
    runs = number % RUNNING_SHARE == 0
    metadata = {
        "name": f"train-{number:05}",
        "namespace": f"team-{number % 50}",
        "uid": f"gang-{number}",
        "creationTimestamp": _CREATED,
    }
    sets = [{"name": name, "count": count, "minimum": count} for name, count, _ in _SETS]
    spec = {"queue": f"queue-{number % QUEUES}", "rayClusterUid": f"c-{number}", "podSets": sets}
    return {
        "metadata": metadata,
        "spec": spec,
        "status": _placed(number, nodes) if runs else _waiting(number),
    }


def _waiting(number: int) -> Json:
    message = (
        "0 of 8 workers fit: each needs 1 nvidia.com/gpu on one node; 3 are free, at most 1 on one "
        "node. 64 of 40000 nvidia.com/gpu are held by RayCluster team-1/train-00001"
    )
    shortage = {"resource": extender.GPU, "each": "1", "needed": "8", "free": "3", "largest": "1"}
    sets = [{"name": "workers", "count": 8, "minimum": 8, "gated": 8, "shortage": shortage}]
    return {
        "phase": "Queued",
        "position": number // QUEUES + 1,
        "ready": "0/9",
        "totalPods": 9,
        "reason": "InsufficientResources",
        "message": message,
        "podSets": sets,
    }


def _placed(number: int, nodes: int) -> Json:
    def assigned(name: str, count: int, gpus: int) -> Json:
        on = {extender.name_of((number + at) % nodes): 1 for at in range(count)}
        requests = {"cpu": "4", "memory": "16Gi", "pods": "1", extender.GPU: str(gpus)}
        return {"name": name, "assignments": [{"shape": "s", "requests": requests, "nodes": on}]}

    sets = [assigned(*each) for each in _SETS]
    placement = {"epoch": 1, "queue": f"queue-{number % QUEUES}", "podSets": sets}
    counts = [{"name": name, "count": count, "minimum": count} for name, count, _ in _SETS]
    said = {"phase": "Running", "ready": "9/9", "reason": "Running", "podSets": counts}
    return {**said, "placement": placement}


def queue(number: int) -> Json:
    """A queue with quota."""
    quota = {"nvidia.com/gpu": 2000}
    status = {"pending": 375, "admitted": 125, "usage": {"nvidia.com/gpu": "1000"}}
    return {"metadata": {"name": f"queue-{number}"}, "spec": {"quota": quota}, "status": status}


class PagedLists:
    """The lists by their path."""

    def __init__(self, gangs: int, nodes: int, pods: int) -> None:
        on = (extender.name_of(number % max(nodes, 1)) for number in range(pods))
        self._lists: Mapping[str, Sequence[str]] = {
            f"{MUSTER}/gangs": [json.dumps(gang(each, nodes)) for each in range(gangs)],
            f"{MUSTER}/gangqueues": [json.dumps(queue(each)) for each in range(QUEUES)],
            "/api/v1/nodes": [json.dumps(extender.node(each)) for each in range(nodes)],
            "/api/v1/pods": [json.dumps(extender.pod(f"p-{i}", 1, at)) for i, at in enumerate(on)],
        }
        self._pages: dict[tuple[str, int, int], bytes] = {}

    def application(self) -> web.Application:
        """Return what listens."""
        application = web.Application()
        application.router.add_get("/{path:.*}", self.answer)
        return application

    async def answer(self, request: web.Request) -> web.Response:
        """Send one page of a list; one object, where the path has its name; else nothing."""
        path, at = request.path, int(request.query.get("continue", "0"))
        limit = int(request.query.get("limit", "500"))
        if "/namespaces/" in path and path.endswith("train-00001"):
            found = self._lists[f"{MUSTER}/gangs"][1]
            return web.Response(text=found, content_type="application/json")
        return web.Response(body=self._page(path, at, limit), content_type="application/json")

    def _page(self, path: str, at: int, limit: int) -> bytes:
        if (path, at, limit) not in self._pages:
            found = self._lists.get(path, ())
            token = str(at + limit) if at + limit < len(found) else ""
            items = ",".join(found[at : at + limit])
            body = f'{{"metadata":{{"continue":"{token}"}},"items":[{items}]}}'
            self._pages[path, at, limit] = body.encode()
        return self._pages[path, at, limit]


async def _serve(port: int, gangs: int, nodes: int, pods: int) -> None:
    runner = web.AppRunner(PagedLists(gangs, nodes, pods).application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(*map(int, sys.argv[1:])))
