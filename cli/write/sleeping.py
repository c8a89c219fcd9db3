"""Suspends and resumes a Ray cluster: says what that does to its pods, then does it."""

from typing import Any, Final

from cli.managing.suspending import is_held, resumption, suspension
from cli.read.ray.ray_object import held_phase
from cli.write.managing import change, title
from cli.write.plan import Plan
from cli.write.writer import Writer
from kube.api.resources import RAY_CLUSTERS

Json = dict[str, Any]

_HELD: Final = "Muster held it: its pods are created now, gated, and it is held no longer"


async def plan_suspension(writer: Writer, read: Json) -> Plan:
    """Return how a RayCluster is suspended; raises StandsInTheWay where Muster holds it."""
    patch, called = suspension(read, await _held_phase(writer, read)), _title(read)
    if not patch:
        return Plan((f"{called} is suspended already",))

    async def write() -> str:
        await change(writer, RAY_CLUSTERS, read, patch)
        return f"{called} suspended; muster resume starts it again, in its queue"

    asks = f"KubeRay deletes ALL pods of {called}, with what runs there."
    return Plan(asks=asks, carry_out=write)


async def plan_resumption(writer: Writer, read: Json) -> Plan:
    """Return how a RayCluster is resumed."""
    patch, called = resumption(read), _title(read)
    if not patch:
        return Plan((f"{called} is not suspended",))
    held = is_held(read, await _held_phase(writer, read))

    async def write() -> str:
        await change(writer, RAY_CLUSTERS, read, patch)
        return f"{called} resumed{f'; {_HELD}' if held else ''}"

    return Plan(carry_out=write)


def _title(read: Json) -> str:
    return title("RayCluster", read["metadata"])


async def _held_phase(writer: Writer, read: Json) -> str:
    meta = read["metadata"]
    return await held_phase(writer.reader, meta["namespace"], meta["name"])
