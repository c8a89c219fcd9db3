"""Orders the waiting gangs: setbacks, priority, arrival, name."""

from collections.abc import Iterable

from scheduling.model.gang import PendingGang


def in_order(pending: Iterable[PendingGang]) -> list[PendingGang]:
    """Return the gangs by falling priority, then first come, then by namespace and name.

    Whoever had room of late and could not make use of it comes after all others.
    """
    return sorted(pending, key=_place)


def _place(gang: PendingGang) -> tuple[int, int, float, str, str]:
    return gang.setbacks, -gang.priority, gang.created, gang.key.namespace, gang.key.name
