"""Changes a Ray cluster: says what each change does, refuses what KubeRay would not do, asks."""

from collections.abc import Callable, Iterator
from typing import Any

from cli.endings import StandsInTheWay
from cli.managing.changes import Edit, Effect, judge_edit
from cli.managing.patches import as_read, patch_of
from cli.managing.scaling import pods_that_go
from cli.write.managing import admitted, change, title
from cli.write.writer import Writer
from kube.api.resources import RAY_CLUSTERS

Json = dict[str, Any]

Say = Callable[[str], None]
Ask = Callable[[str], bool]
"""Told what a change destroys, empty where that is nothing; says whether to go on."""


_WORDS = (("now", Effect.NOW), ("later", Effect.LATER), ("refused", Effect.NEVER))


async def edit(writer: Writer, read: Json, wanted: Json, say: Say, ask: Ask) -> None:
    """Carry out a change of a RayCluster that was read; raises StandsInTheWay.

    It is judged on what the API server would make of it, defaults included.
    """
    name = title("RayCluster", read["metadata"])
    patch = patch_of(read, wanted)
    found = await admitted(writer, RAY_CLUSTERS, read, as_read(patch, read)) if patch else read
    judged = judge_edit(read, found)
    if not judged.changes:
        say(f"{name} is so already")
        return
    for line in lines(judged):
        say(line)
    refuse(name, judged)
    if ask(destroyed(read, found, judged)):
        await change(writer, RAY_CLUSTERS, read, patch)
        say(f"{name} changed")


def lines(judged: Edit) -> Iterator[str]:
    """Say what holds now, and what holds later only."""
    for word, effect in _WORDS:
        for each in judged.of(effect):
            yield f"{word:8} {each}"


def refuse(name: str, judged: Edit) -> None:
    """Raise StandsInTheWay where KubeRay would not do all of it."""
    never = judged.of(Effect.NEVER)
    if never:
        said = "; ".join(map(str, never))
        raise StandsInTheWay(f"{name}: nothing was changed: {said}")


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
