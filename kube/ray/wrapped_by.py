"""Finds the AppWrapper that an object is made for, and names the Gang of an AppWrapper.

Both API groups may have an AppWrapper of one name. The prefix of the name distinguishes their
Gangs, and an additional label marks objects that are made for an AppWrapper of `mcad.ibm.com`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from kube.objects import names
from kube.objects.base import Labels, ObjectMeta

_GANGS: Mapping[str, str] = {
    names.CODEFLARE_GROUP: names.APP_WRAPPER_GANG,
    names.MCAD_GROUP: names.MCAD_GANG,
}


class WrapperName(NamedTuple):
    """API group and name of an AppWrapper."""

    group: str
    name: str


class WrappedBy(NamedTuple):
    """The AppWrapper that an object is made for: an earlier one of its name had another uid."""

    group: str
    name: str
    uid: str


WrapperOf = Callable[[Labels], WrappedBy | None]
"""Reads of its labels which AppWrapper an object is made for."""

_COPYING_KINDS = ("RayJob", "RayService")


def wrapped_by(labels: Labels) -> WrappedBy | None:
    """Read the labels of an object; None where they name no AppWrapper.

    The uid is beside the name: a label that was copied without it means nothing.
    """
    name, uid = labels.get(names.APP_WRAPPER), labels.get(names.APP_WRAPPER_UID)
    group = labels.get(names.APP_WRAPPER_GROUP, names.CODEFLARE_GROUP)
    return WrappedBy(group, name, uid) if name and uid and group in _GANGS else None


def unwrapped(_labels: Labels) -> WrappedBy | None:
    """Read nothing of the labels: where AppWrappers are not switched on they have no meaning."""
    return None


def is_made_for_wrapper(metadata: ObjectMeta, wrapper_of: WrapperOf = wrapped_by) -> bool:
    """Say whether a RayCluster is made for the AppWrapper that its labels name.

    Labels alone do not do it: every user may write them on a RayCluster.
    """
    named = wrapper_of(metadata.labels)
    owner = next((each for each in metadata.owner_references if each.controller), None)
    return named is not None and owner is not None and is_made_by(owner.kind, owner.uid, named.uid)


def is_made_by(owner_kind: str, owner_uid: str, wrapper_uid: str) -> bool:
    """Say whether what controls a RayCluster is an AppWrapper, or made for it.

    That may be a RayJob or RayService: KubeRay copies their labels.
    """
    return bool(wrapper_uid) and (owner_uid == wrapper_uid or owner_kind in _COPYING_KINDS)


def labels_of_group(api_version: str) -> dict[str, str]:
    """Return the label that tells the API group, which one of CodeFlare's does not need."""
    group = group_of(api_version)
    return {} if group == names.CODEFLARE_GROUP else {names.APP_WRAPPER_GROUP: group}


def group_of(api_version: str) -> str:
    """Return the API group; where an object does not say which, CodeFlare's is meant."""
    return api_version.rpartition("/")[0] or names.CODEFLARE_GROUP


def gang_name(group: str, name: str) -> str:
    """Name the Gang of an AppWrapper."""
    return f"{_GANGS[group]}{name}"


def wrapper_of_gang(gang: str) -> WrapperName | None:
    """Return the AppWrapper that a Gang is named after; None for that of a RayCluster."""
    for group, begin in _GANGS.items():
        if gang.startswith(begin):
            return WrapperName(group, gang.removeprefix(begin))
    return None
