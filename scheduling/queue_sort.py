"""Orders the waiting gangs: by setbacks, priority, creation and name (as a QueueSort plugin)."""

from collections.abc import Iterable

from scheduling.model.gang import PendingGang


def in_order(pending: Iterable[PendingGang]) -> list[PendingGang]:
    """Return the gangs by falling priority, then the oldest first, then by namespace and name.

    A gang that had room recently and gave it back without having run comes after all others.
    """
    return sorted(pending, key=_place)


def _place(gang: PendingGang) -> tuple[int, int, float, str, str]:
    return gang.setbacks, -gang.priority, gang.created, gang.key.namespace, gang.key.name
