"""Patches GangQueues; only their watch reports their new state."""

from typing import TypeAlias

import structlog

from coordinator.messages.actions import WriteQueueFinalizers, WriteQueueStatus
from coordinator.messages.events import Event
from coordinator.messages.write_ends import QueueWriteEnded
from coordinator.shell.writes.write_outcomes import Outcomes, unchanged
from kube.api.client import Client
from kube.api.errors import Conflict, Invalid, KubeError, NotFound, is_of_what_goes
from kube.api.resources import GANG_QUEUES
from kube.codec.pod_patches import Operation
from kube.codec.status_patches import fields_patch
from kube.objects.queues.queue import GangQueue

log = structlog.get_logger()

QueueWrite: TypeAlias = WriteQueueStatus | WriteQueueFinalizers


class QueueWrites:
    """Carries out what is to be done to GangQueues."""

    def __init__(self, client: Client, outcomes: Outcomes) -> None:
        self._client = client
        self._outcomes = outcomes

    async def carry_out(self, action: QueueWrite) -> list[Event]:
        """Send one write, and say what became of it."""
        match action:
            case WriteQueueStatus():
                changes = fields_patch("status", action.status, action.before)
                path = GANG_QUEUES.path(None, action.name, "status")
                return await self._write(action, "queue_status", path, changes)
            case WriteQueueFinalizers():
                value = list(action.finalizers)
                change: Operation = {"op": "add", "path": "/metadata/finalizers", "value": value}
                path = GANG_QUEUES.path(None, action.name)
                return await self._write(action, "queue_finalizers", path, [change])

    async def _write(
        self, action: QueueWrite, what: str, path: str, changes: list[Operation]
    ) -> list[Event]:
        name, operations = action.name, [*unchanged(action), *changes]
        try:
            await self._client.json_patch(path, operations, as_=GangQueue)
        except KubeError as error:
            self._outcomes.failed(what, error)
            if not is_of_what_goes(error):
                log.info("queue write failed", queue=name, what=what, error=str(error))
            outdated = isinstance(error, Invalid | Conflict | NotFound)
            return [QueueWriteEnded(name, str(error), outdated)]
        self._outcomes.done(what)
        return [QueueWriteEnded(name, None)]
