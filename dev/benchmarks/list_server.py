"""`python -m benchmarks.list_server CERTIFICATE KEY PORT NODES PODS`: lists as from an API server.

It answers lists in pages, and watches that begin with all objects; no pod is one of Ray. POST
/expire makes every watch of pods end in 410 as soon as its list was sent; GET /lists says how many
were sent whole.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections.abc import Iterable, Sequence
from itertools import islice

from aiohttp import web

from benchmarks import extender

_PIECE = 200
"""Objects in one write."""
_END = {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}
_EXPIRED = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


class Lists:
    """What there is to list, and how often pods were listed."""

    def __init__(self, nodes: int, pods: int) -> None:
        self._nodes = [json.dumps(extender.node(number)) for number in range(nodes)]
        on = (extender.name_of(number % max(nodes, 1)) for number in range(pods))
        self._pods = [json.dumps(extender.pod(f"old-{i}", 0, node)) for i, node in enumerate(on)]
        self._expired = asyncio.Event()
        self._sent = 0

    def application(self) -> web.Application:
        """Return what listens."""
        application = web.Application()
        application.router.add_get("/api/v1/pods", self.pods)
        application.router.add_get("/api/v1/nodes", self.nodes)
        application.router.add_get("/lists", self.lists)
        application.router.add_post("/expire", self.expire)
        application.router.add_get("/{other:.*}", self.nothing)
        application.router.add_route("*", "/{other:.*}", self.accept)
        return application

    async def pods(self, request: web.Request) -> web.StreamResponse:
        """Send all pods, and the end once all watches are to end."""
        if _is_list(request):
            return _page(request, () if " in (" in _selector(request) else self._pods)
        answer = await self._stream(request, self._pods)
        self._sent += 1
        await self._expired.wait()
        await answer.write(_event("ERROR", json.dumps(_EXPIRED)))
        return answer

    async def nodes(self, request: web.Request) -> web.StreamResponse:
        """Send all nodes, and nothing more."""
        if _is_list(request):
            return _page(request, self._nodes)
        await self._stream(request, self._nodes)
        return await _forever()

    async def nothing(self, request: web.Request) -> web.StreamResponse:
        """List nothing."""
        if _is_list(request):
            return _page(request, ())
        await self._stream(request, ())
        return await _forever()

    async def accept(self, _: web.Request) -> web.Response:
        """Take whatever is written for written."""
        return web.json_response({})

    async def expire(self, _: web.Request) -> web.Response:
        """End the watches of pods, from here on."""
        self._expired.set()
        return web.json_response({})

    async def lists(self, _: web.Request) -> web.Response:
        """How often all pods were sent."""
        return web.json_response(self._sent)

    async def _stream(self, request: web.Request, objects: Iterable[str]) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        left = iter(objects)
        while piece := list(islice(left, _PIECE)):
            await answer.write(b"".join(_event("ADDED", each) for each in piece))
        await answer.write(_event("BOOKMARK", json.dumps({"metadata": _END})))
        return answer


def _is_list(request: web.Request) -> bool:
    return "watch" not in request.query


def _selector(request: web.Request) -> str:
    return request.query.get("labelSelector", "")


def _page(request: web.Request, objects: Sequence[str]) -> web.Response:
    """Answer with as many objects as are asked for; the place of the next is where to go on."""
    at, most = int(request.query.get("continue", 0)), int(request.query.get("limit", len(objects)))
    more = str(at + most) if at + most < len(objects) else ""
    meta = json.dumps({"resourceVersion": "1", "continue": more})
    text = f'{{"metadata":{meta},"items":[{",".join(objects[at : at + most])}]}}'
    return web.Response(body=text.encode(), content_type="application/json")


async def _forever() -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("a wait without end ended")


def _event(kind: str, of: str) -> bytes:
    return f'{{"type":"{kind}","object":{of}}}\n'.encode()


async def _serve(certificate: str, key: str, port: str, nodes: str, pods: str) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    runner = web.AppRunner(Lists(int(nodes), int(pods)).application(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(port), ssl_context=context).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
