"""Limits how many waiting gangs of a namespace take part in cycles: the oldest ones.

Without a limit, ten thousand gangs of one tenant would slow down every cycle, and so all other
gangs. Gangs beyond the limit take no part in cycles, and come up as older ones start or end.
"""

from bisect import bisect_left
from collections import defaultdict

from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason, Refusal

MOST = 1_000
"""What the limit is where nothing else is set."""

Arrival = tuple[float, str]
"""When a gang came, and its name."""


class WaitingLimit:
    """The gangs that wait for their minimum, by namespace, in the order of their arrival."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._arrivals: dict[GangKey, Arrival] = {}
        self._lines: defaultdict[str, list[Arrival]] = defaultdict(list)

    def note(self, key: GangKey, came: float | None) -> set[GangKey]:
        """Let a gang wait since it came, or no more (None); return others that this moves."""
        before = self._arrivals.get(key)
        now = None if came is None else (came, key.name)
        if now == before:
            return set()
        moved = set(self._leave(key, before)) ^ set(self._join(key, now))
        return {GangKey(key.namespace, name) for _, name in moved}

    def older(self, key: GangKey) -> int:
        """Count the waiting gangs of its namespace that came before a gang."""
        came = self._arrivals.get(key)
        return 0 if came is None else bisect_left(self._lines[key.namespace], came)

    def is_beyond(self, key: GangKey) -> bool:
        """Say whether so many older gangs wait that this one is not decided."""
        return self.older(key) >= self.most

    def refusal(self, key: GangKey) -> Refusal:
        """Say why a gang beyond the limit waits, in the numbers of this moment."""
        said = (
            f"{self.older(key)} older gangs of namespace {key.namespace} wait, and of one "
            f"namespace the {self.most} oldest that wait are decided: this gang comes up as those "
            "start or end"
        )
        return Refusal(Reason.NAMESPACE_LIMIT, said)

    def _leave(self, key: GangKey, came: Arrival | None) -> list[Arrival]:
        """Drop a gang; return the one that comes up in its place."""
        if came is None:
            return []
        line = self._lines[key.namespace]
        at = bisect_left(line, came)
        del line[at], self._arrivals[key]
        if not line:
            del self._lines[key.namespace]
        return line[self.most - 1 : self.most] if at < self.most else []

    def _join(self, key: GangKey, came: Arrival | None) -> list[Arrival]:
        """Add a gang; return the one that it pushes beyond the limit."""
        if came is None:
            return []
        line = self._lines[key.namespace]
        at = bisect_left(line, came)
        line.insert(at, came)
        self._arrivals[key] = came
        return line[self.most : self.most + 1] if at < self.most else []
