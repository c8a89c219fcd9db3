"""Says whose an object is: what others made is changed through them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cli.endings import StandsInTheWay

_OF_RAY: Final = ("RayJob", "RayService", "RayCronJob")


def owner_of(metadata: Mapping[str, Any]) -> str:
    """Name the object that made one, and would undo what is done to it; empty without one."""
    owners = list(_owners(metadata))
    return owners[0] if owners else ""


def _owners(metadata: Mapping[str, Any]) -> Iterator[str]:
    for each in metadata.get("ownerReferences") or ():
        if each.get("controller") or each.get("kind") == "AppWrapper":
            yield f"{each.get('kind')} {each.get('name')}"


def check_free(kind: str, metadata: Mapping[str, Any]) -> None:
    """Raise StandsInTheWay where an object belongs to another, or is about to be gone."""
    name = f"{kind} {metadata.get('namespace')}/{metadata.get('name')}"
    owner = owner_of(metadata)
    if owner:
        raise StandsInTheWay(
            f"{name} belongs to {owner}, and nothing was changed: change {owner}, {_why(owner)}"
        )
    if metadata.get("deletionTimestamp"):
        raise StandsInTheWay(f"{name} is being deleted, and nothing was changed")


def _why(owner: str) -> str:
    if owner.partition(" ")[0] in _OF_RAY:
        return "from which KubeRay makes it"
    return "which makes it, and would undo this"
