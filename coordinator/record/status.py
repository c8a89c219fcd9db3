"""Brings recorded statuses into the form in which they are compared with new ones."""

from typing import Any

import msgspec

from coordinator.record.urgency import Status
from kube.objects.gang import GangStatus


def recorded(status: GangStatus) -> Status:
    """The status that a Gang object holds, in the form that `status_of` makes.

    Without what others write: it is nothing that the coordinator would write anew.
    """
    found: Status = pruned(msgspec.to_builtins(status))
    for name in _OF_OTHERS:
        found.pop(name, None)
    return found


_OF_OTHERS = tuple(
    each.encode_name
    for each in msgspec.structs.fields(GangStatus)
    if each.name in GangStatus.of_others
)


def pruned(value: Any) -> Any:
    """The value without its empty parts: absent, null, zero and empty mean the same here."""
    match value:
        case dict():
            return {key: kept for key, each in value.items() if each and (kept := pruned(each))}
        case list() | tuple():
            return [pruned(each) for each in value]
        case _:
            return value


def filled(status: dict[str, Any]) -> dict[str, Any]:
    """The fields that say something, which is how a record holds them."""
    return {key: value for key, value in status.items() if value}
