"""Keeps the queues whose selectors match at least one namespace; the others never have a gang."""

from collections.abc import Iterable, Mapping

from scheduling.queueing.membership import NO_SELECTIONS, Selections


class SelectedQueues:
    """The queues that are open to a namespace, worked out when selectors or namespaces changed."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self._selections = NO_SELECTIONS
        self._is_stale = True

    def forget(self) -> None:
        """Mark the set as stale, because namespaces changed."""
        self._is_stale = True

    def refresh(
        self, selections: Selections, namespaces: Iterable[Mapping[str, str]]
    ) -> frozenset[str]:
        """Bring the set up to date with the labels of all namespaces; return the changed queues."""
        if not self._is_stale and selections is self._selections:
            return frozenset()
        before, self._selections, self._is_stale = self.names, selections, False
        self.names = frozenset(name for each in namespaces for name in selections.open_to(each))
        return self.names ^ before
