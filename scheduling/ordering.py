"""In which order do waiting gangs get their turn?"""

from collections.abc import Iterable

from scheduling.model import PendingGang


def in_order(pending: Iterable[PendingGang]) -> list[PendingGang]:
    """Return the gangs by falling priority, then first come, then by namespace and name."""
    return sorted(
        pending,
        key=lambda gang: (-gang.priority, gang.created, gang.key.namespace, gang.key.name),
    )
