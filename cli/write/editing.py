"""Changes a Ray cluster: says what each change does, refuses what KubeRay would not do, asks."""

from collections.abc import Iterator
from typing import Any

from cli.endings import StandsInTheWay
from cli.managing.changes import Edit, Effect, judge_edit
from cli.managing.patches import patch_of
from cli.managing.scaling import pods_that_go
from cli.write.managing import admitted, change, title
from cli.write.plan import Ask, Plan, Say, carry_out
from cli.write.writer import Writer
from kube.api.resources import RAY_CLUSTERS

Json = dict[str, Any]

_WORDS = (("now", Effect.NOW), ("later", Effect.LATER), ("refused", Effect.NEVER))


async def edit(writer: Writer, read: Json, wanted: Json, say: Say, ask: Ask) -> None:
    """Carry out a change of a RayCluster that was read; raises StandsInTheWay."""
    await carry_out(await plan_edit(writer, read, wanted), say, ask)


async def plan_edit(writer: Writer, read: Json, wanted: Json) -> Plan:
    """Return what a change of a RayCluster that was read does.

    It is judged on what the API server would make of it, defaults included.
    """
    name = title("RayCluster", read["metadata"])
    patch = patch_of(read, wanted)
    found = await _would_be(writer, read, wanted, patch) if patch else read
    judged = judge_edit(read, found)
    if not judged.changes:
        return Plan((f"{name} is so already",))

    async def write() -> str:
        await change(writer, RAY_CLUSTERS, read, patch)
        return f"{name} changed"

    asks = destroyed(read, found, judged)
    return Plan(tuple(lines(judged)), asks, refusal(name, judged), write)


async def _would_be(writer: Writer, read: Json, wanted: Json, patch: Json) -> Json:
    """Return what the API server would make of a change; what KubeRay would not do, as it is.

    A webhook may refuse that too, and knows no other way to the same.
    """
    try:
        return await admitted(writer, RAY_CLUSTERS, read, patch)
    except StandsInTheWay:
        if judge_edit(read, wanted).of(Effect.NEVER):
            return wanted
        raise


def lines(judged: Edit) -> Iterator[str]:
    """Say what holds now, and what holds later only."""
    for word, effect in _WORDS:
        for each in judged.of(effect):
            yield f"{word:8} {each}"


def refusal(name: str, judged: Edit) -> str:
    """Say why nothing is changed where KubeRay would not do all of it."""
    never = judged.of(Effect.NEVER)
    return f"{name}: nothing was changed: {'; '.join(map(str, never))}" if never else ""


def destroyed(read: Json, found: Json, judged: Edit) -> str:
    """Say which pods are lost by it; empty where none is."""
    if judged.recreates:
        return "upgradeStrategy is Recreate: KubeRay deletes ALL pods at once, and all work."
    going = pods_that_go(read, found)
    named = sum(each.field.endswith(".scaleStrategy") for each in judged.changes)
    if named:
        return "The pods that are named are deleted, with what runs there."
    if going:
        pods = "1 worker pod" if going == 1 else f"{going} worker pods"
        return f"KubeRay deletes {pods} of its own choice, with what runs there."
    return ""
