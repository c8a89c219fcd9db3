"""Answers what changes of the cluster would do, one question after another."""

import asyncio
from typing import Final

import msgspec
from aiohttp import web

from cli.endings import Unusable
from cli.files import objects_of
from cli.forecast.changes import Changes
from cli.imports.outcome import Fault
from cli.page.reading.answers import name_of
from cli.page.safety.answers import Refused, answer
from cli.page.safety.callers import CALLER
from cli.read.forecast.changes import read_changes
from cli.read.forecast.what_if import read_what_if
from kube.objects.base import Slim

TURN: Final = web.AppKey("what_if", asyncio.Lock)
"""Who holds it has a forecast under way: one takes a core for up to half a minute."""

DEFAULT: Final = "default"
"""Kubernetes' own namespace for whoever names none."""


class Question(Slim, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """What a form sends; each is written as `muster what-if` takes it."""

    namespace: str = ""
    cordon: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    add_nodes: tuple[str, ...] = ()
    quota: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    yaml: str = ""


async def what_if(request: web.Request) -> web.StreamResponse:
    """Send what the changes of a question would do; nothing is written."""
    asked = await _question(request)
    turn = request.app[TURN]
    if turn.locked():
        raise Refused(503, "another what-if is under way: ask again in half a minute")
    async with turn:
        caller = request[CALLER]
        place = name_of("namespace", asked.namespace or caller.namespace or DEFAULT)
        try:
            # In a thread: a quarter of a megabyte of YAML takes more than a second.
            changes = await asyncio.to_thread(_changes, asked, place)
            return answer(await read_what_if(caller.reader, changes))
        except Fault as fault:
            raise Unusable(str(fault)) from None


async def _question(request: web.Request) -> Question:
    try:
        found = msgspec.json.decode(await request.read(), type=Question)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unusable(f"the form cannot be read: {error}") from None
    if not any((*_said(found).values(), found.yaml.strip())):
        raise Unusable("what is to be changed? allowed: cordon, drain, addNodes, quota, stop, yaml")
    return found


def _changes(asked: Question, namespace: str) -> Changes:
    sources = list(objects_of("YAML", asked.yaml.encode())) if asked.yaml.strip() else []
    return read_changes(_said(asked), sources, namespace)


def _said(asked: Question) -> dict[str, tuple[str, ...]]:
    return {
        "cordon": asked.cordon,
        "drain": asked.drain,
        "add_nodes": asked.add_nodes,
        "quota": asked.quota,
        "stop": asked.stop,
    }
