"""Creates what a person asked for, and changes queues."""

from typing import Any

from cli.managing.forms import QueueForm
from cli.managing.patches import patch_of
from cli.managing.queue import changed_queue
from cli.write.managing import admitted, change, create, title
from cli.write.plan import Plan
from cli.write.writer import Writer
from kube.api.resources import GANG_QUEUES, Resource

Json = dict[str, Any]


def plan_creation(writer: Writer, resource: Resource, body: Json) -> Plan:
    """Return how an object is created."""

    async def write() -> str:
        await create(writer, resource, body)
        return f"{title(body['kind'], body['metadata'])} created"

    return Plan(carry_out=write)


async def plan_queue_edit(writer: Writer, read: Json, form: QueueForm) -> tuple[Plan, Json]:
    """Return how a GangQueue is changed, and what the API server would make of it."""
    called = title("GangQueue", read["metadata"])
    patch = patch_of(read, changed_queue(read, form))
    if not patch:
        return Plan((f"{called} is so already",)), read
    would_be = await admitted(writer, GANG_QUEUES, read, patch)

    async def write() -> str:
        await change(writer, GANG_QUEUES, read, patch)
        return f"{called} changed"

    return Plan(carry_out=write), would_be
