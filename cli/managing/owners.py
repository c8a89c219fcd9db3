"""Finds the owner of an object; an owned object is changed through its owner."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import convert

from cli.endings import StandsInTheWay
from kube.objects.base import OwnerReference

_OF_RAY: Final = ("RayJob", "RayService", "RayCronJob")


def owner_of(metadata: Mapping[str, Any]) -> str:
    """Name the object that made one, and would undo what is done to it; empty without one."""
    return owner_among(convert(metadata.get("ownerReferences") or (), list[OwnerReference]))


def owner_among(references: Iterable[OwnerReference]) -> str:
    """Name the one of them that would undo a change: the controller, or an AppWrapper."""
    owners = (each for each in references if each.controller or each.kind == "AppWrapper")
    return next((f"{each.kind} {each.name}" for each in owners), "")


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
