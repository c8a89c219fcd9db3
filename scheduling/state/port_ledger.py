"""Keeps which host ports are taken on which nodes, from events.

Every node offers every port, and pods may name any. So they have no rows in the matrices that
all gangs share: it is kept which nodes have pods with a port (`Taken`), and where ports are free is
worked out only for the shapes that ask for them.
"""

from collections.abc import Iterable, Mapping

Taken = Mapping[str, Mapping[str, int]]
"""How much is taken of which ports, by resource and by the name of the node: a value."""

NOTHING: Taken = {}
NOTHING_ON: Mapping[str, int] = {}


class PortLedger:
    """The ports that are taken, kept from events by one owner.

    A snapshot shares what does not change until the next one: an event copies the nodes of one port
    at most once per snapshot, and nothing where no snapshot was taken.
    """

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, int]] = {}
        self._own: set[str] = set()
        self._snapshot: Taken | None = None

    @property
    def now(self) -> Taken:
        """Return what is taken, which the next event changes."""
        return self._taken

    def snapshot(self) -> Taken:
        """Return what is taken at this moment; the same object while nothing has changed."""
        if self._snapshot is None:
            self._snapshot = dict(self._taken)
            self._own.clear()
        return self._snapshot

    def put(self, resource: str, node: str, total: int) -> None:
        """Note how much of a port is taken on a node."""
        self._snapshot = None
        if resource not in self._own:
            self._own.add(resource)
            self._taken[resource] = dict(self._taken.get(resource, {}))
        on = self._taken[resource]
        if total:
            on[node] = total
        else:
            on.pop(node, None)
        if not on:
            del self._taken[resource]
            self._own.discard(resource)


def added(taken: Taken, more: Iterable[tuple[str, str, int]]) -> Taken:
    """Return what is taken with more of it, by resource and node; less where that is negative."""
    found: dict[str, dict[str, int]] = {}
    for resource, node, amount in more:
        on = found.setdefault(resource, dict(taken.get(resource, {})))
        on[node] = on.get(node, 0) + amount
    return {**taken, **found} if found else taken


def differing(before: Taken, now: Taken) -> tuple[set[str], set[str]]:
    """Return the nodes where more or less is taken of some port now, and those where it is less."""
    changed: set[str] = set()
    less: set[str] = set()
    for resource in before.keys() | now.keys() if before is not now else ():
        was, on = before.get(resource, {}), now.get(resource, {})
        for node in was.keys() | on.keys() if was is not on else ():
            if was.get(node, 0) != on.get(node, 0):
                changed.add(node)
            if was.get(node, 0) > on.get(node, 0):
                less.add(node)
    return changed, less
