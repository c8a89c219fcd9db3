"""Handles submitted forms: shows what a change would do, and does it once a person agrees."""

from typing import Final

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from cli.endings import Outdated, Unusable
from cli.managing.filled import cluster_form, queue_form
from cli.managing.owners import owner_of
from cli.managing.patches import state_of
from cli.page.reading.answers import name_of
from cli.page.safety.answers import answer
from cli.page.safety.callers import CALLER
from cli.page.writing.plans import PLANS, Asked, Request, Shown
from cli.read.ray.ray_object import list_objects, read_object
from cli.write.writer import Writer
from kube.api.resources import GANG_QUEUES, RAY_CLUSTERS

_PLACES: Final = {
    "clusters": "/api/manage/clusters/{namespace}/{name}",
    "jobs": "/api/manage/jobs/{namespace}/{name}",
    "queues": "/api/manage/queues/{name}",
}


_PARTS: Final = ("namespace", "name")


def add_writing(page: web.Application) -> None:
    """Add the routes to the page."""
    for kind, verb in PLANS:
        page.router.add_post(f"{_PLACES[kind]}/{verb}", _carry_out(kind, verb))
    page.router.add_get(_PLACES["clusters"], _cluster)
    page.router.add_get(_PLACES["queues"], _queue)
    page.router.add_get("/api/manage/choices/{namespace}", _choices)


def _carry_out(kind: str, verb: str) -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        asked = Asked(request[CALLER].writer, *_place(request), await _sent(request))
        shown = await PLANS[kind, verb](asked)
        if asked.request.agreed is None:
            return await _told(shown, asked.writer)
        shown.plan.check()
        if asked.request.agreed != shown.plan.asks:
            would = shown.plan.asks or "it destroys nothing any more"
            raise Outdated(f"nothing was done, for it would do something else by now: {would}")
        return answer({"done": await shown.plan.do()})

    return handler


def _place(request: web.Request) -> tuple[str, str]:
    """Return namespace and name, each empty where the path has none; raises Unusable."""
    found = request.match_info
    namespace, name = (name_of(key, found[key]) if key in found else "" for key in _PARTS)
    return namespace, name


async def _sent(request: web.Request) -> Request:
    try:
        return msgspec.json.decode(await request.read(), type=Request)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unusable(f"the form cannot be read: {error}") from None


async def _told(shown: Shown, writer: Writer) -> web.Response:
    """Say what would be done; nothing is written."""
    fit, unknown = await shown.fit(writer)
    plan = shown.plan
    return answer(
        {
            "said": plan.said,
            "asks": plan.asks,
            "refused": plan.refused,
            "nothing": plan.carry_out is None,
            "notes": [*plan.notes, *([unknown] if unknown else [])],
            "yaml": shown.yaml,
            "fit": fit,
        }
    )


async def _cluster(request: web.Request) -> web.StreamResponse:
    """Return what a form begins with: the RayCluster as it is, and its state."""
    found = await read_object(request[CALLER].reader, RAY_CLUSTERS, *_place(request))
    shown = {
        "form": cluster_form(found),
        "state": state_of(found),
        "owner": owner_of(found["metadata"]),
        "suspended": bool(found["spec"].get("suspend")),
    }
    return answer(shown)


async def _queue(request: web.Request) -> web.StreamResponse:
    found = await read_object(request[CALLER].reader, GANG_QUEUES, *_place(request))
    return answer({"form": queue_form(found), "state": state_of(found)})


async def _choices(request: web.Request) -> web.StreamResponse:
    """Name the queues and the Ray clusters that a form can offer; what may not be listed is not."""
    reader, (place, _) = request[CALLER].reader, _place(request)
    found = {
        "queues": await list_objects(reader, GANG_QUEUES, ""),
        "clusters": await list_objects(reader, RAY_CLUSTERS, place),
    }
    return answer({key: [each["metadata"]["name"] for each in all_] for key, all_ in found.items()})
