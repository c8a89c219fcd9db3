"""Keeps which gangs wait as one: the first of them asks for all."""

from collections.abc import Sequence

from scheduling.admission.together import in_order, join
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.verdict import Refusal


class JoinedGangs:
    """The own requests of joined gangs, by the gang that asks for all."""

    def __init__(self) -> None:
        self._asked: dict[GangKey, tuple[PendingGang, ...]] = {}
        self._asker: dict[GangKey, GangKey] = {}
        self._made: dict[GangKey, tuple[tuple[PendingGang, ...], PendingGang | Refusal]] = {}
        """The question made last, by its asker: most looks at a gang find it unchanged."""
        self.serial = 0
        """Counts how often gangs were joined, for stamps."""

    def put(self, gangs: Sequence[PendingGang]) -> PendingGang | Refusal:
        """Join gangs into one question; return it, or why they cannot be joined."""
        ordered = in_order(gangs)
        made = self._made.get(ordered[0].key)
        if made is None or made[0] != ordered:
            made = self._made[ordered[0].key] = ordered, join(ordered)
        if isinstance(made[1], PendingGang):
            self._note(ordered)
        return made[1]

    def _note(self, ordered: tuple[PendingGang, ...]) -> None:
        self.serial += 1
        self._asked[ordered[0].key] = ordered
        self._asker.update((each.key, ordered[0].key) for each in ordered)

    def drop(self, key: GangKey) -> Sequence[PendingGang]:
        """Dissolve the question that includes this gang; return its gangs."""
        gangs = self._asked.pop(self.asker(key), ())
        for each in gangs:
            del self._asker[each.key]
        return gangs

    def forget(self, key: GangKey) -> None:
        """Forget the question of a gang that is gone."""
        self._made.pop(key, None)

    def asker(self, key: GangKey) -> GangKey:
        """Return the gang that asks for a gang: mostly the gang itself."""
        return self._asker.get(key, key)

    def of(self, key: GangKey) -> Sequence[PendingGang]:
        """Return the gangs in one question with a gang; none where it asks for itself."""
        return self._asked.get(self.asker(key), ())
