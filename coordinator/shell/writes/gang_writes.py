"""Creates, patches and deletes Gangs.

After a write that failed, or whose outcome is unknown, the Gang is read again, so that the state
machine decides on what is really there.
"""

import time
from collections.abc import Awaitable
from typing import TypeAlias

import msgspec
import structlog

from coordinator.messages.actions import CreateGang, DeleteGang, PatchGangSpec, WriteGangStatus
from coordinator.messages.events import Event, GangGone, GangSeen
from coordinator.messages.write_ends import WriteEnded
from coordinator.shell.suspicion import Suspicion
from coordinator.shell.writes.write_outcomes import Outcomes, unchanged
from kube.api.client import Client
from kube.api.errors import KubeError, NotFound, is_of_what_goes
from kube.api.resources import GANGS
from kube.codec.pod_patches import Operation
from kube.codec.status_patches import fields_patch
from kube.objects.base import Slim
from kube.objects.gang import Gang
from scheduling.model.gang import GangKey

log = structlog.get_logger()

_STATUS = "Status"
"""Kind of the answer to a DELETE of what went at once; what a finalizer holds comes back."""

GangWrite: TypeAlias = CreateGang | PatchGangSpec | WriteGangStatus | DeleteGang


class GangWrites:
    """Carries out what is to be done to Gangs."""

    def __init__(self, client: Client, outcomes: Outcomes, suspicion: Suspicion) -> None:
        self._client = client
        self._outcomes = outcomes
        self._suspicion = suspicion

    async def carry_out(self, action: GangWrite) -> list[Event]:
        """Send one write, and say what became of it."""
        match action:
            case CreateGang():
                path = GANGS.path(action.key.namespace)
                request = self._client.create(path, action.body, as_=Gang)
                return await self._write(action.key, "create", request)
            case PatchGangSpec():
                changes = fields_patch("spec", action.spec, action.before)
                request = self._patch(action, [*unchanged(action), *changes])
                return await self._write(action.key, "spec", request)
            case WriteGangStatus():
                return await self._write_status(action)
            case DeleteGang():
                return await self._delete(action)

    async def _write_status(self, action: WriteGangStatus) -> list[Event]:
        if action.decides:
            self._suspicion.placed()
        changes = fields_patch("status", action.status, action.before)
        request = self._patch(action, [*unchanged(action), *changes], "status")
        return await self._write(action.key, "status", request)

    async def _patch(
        self,
        action: PatchGangSpec | WriteGangStatus,
        operations: list[Operation],
        subresource: str | None = None,
    ) -> Gang:
        path = GANGS.path(action.key.namespace, action.key.name, subresource)
        return await self._client.json_patch(path, operations, as_=Gang)

    async def _write(self, key: GangKey, what: str, request: Awaitable[Gang]) -> list[Event]:
        sent = time.monotonic()
        try:
            gang = await request
        except KubeError as error:
            self._outcomes.failed(f"gang_{what}", error)
            if not is_of_what_goes(error):
                log.info("gang write failed", gang=str(key), what=what, error=str(error))
            return [*await self._read(key), WriteEnded(key, str(error))]
        self._suspicion.wrote("gangs", sent)
        self._outcomes.done(f"gang_{what}")
        return [GangSeen(gang), WriteEnded(key, None)]

    async def _delete(self, action: DeleteGang) -> list[Event]:
        path = GANGS.path(action.key.namespace, action.key.name)
        try:
            answer = await self._client.delete(path, uid=action.uid)
        except KubeError as error:
            self._outcomes.failed("gang_delete", error)
            return [*await self._read(action.key), WriteEnded(action.key, str(error))]
        self._outcomes.done("gang_delete")
        if _is_status(answer):
            return [GangGone(action.key, action.uid), WriteEnded(action.key, None)]
        left = await self._what_is_left(action)
        return [*left, WriteEnded(action.key, None if left else "deleted, and not read since")]

    async def _what_is_left(self, action: DeleteGang) -> list[Event]:
        """Read whether the Gang is gone: a finalizer may hold it after a DELETE that succeeded."""
        gone = GangGone(action.key, action.uid)
        match await self._read(action.key):
            case [GangSeen(gang)] if gang.metadata.uid == action.uid:
                return [GangSeen(gang)]
            case [GangSeen() as another]:
                return [gone, another]
            case [GangGone()]:
                return [gone]
            case _:
                return []  # the watch will tell; until then it may be there still

    async def _read(self, key: GangKey) -> list[Event]:
        try:
            path = GANGS.path(key.namespace, key.name)
            return [GangSeen(await self._client.get(path, as_=Gang))]
        except NotFound:
            return [GangGone(key)]
        except KubeError:
            return []  # the watch will tell


class _Answer(Slim, frozen=True):
    kind: str = ""


def _is_status(answer: bytes) -> bool:
    """Say whether the answer to a DELETE says that the object is gone."""
    try:
        return msgspec.json.decode(answer, type=_Answer).kind == _STATUS
    except msgspec.DecodeError:
        return False
