"""Chooses the queue of a gang: the one that it names, else the one that selects its namespace."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from scheduling.model.constraints import Requirement
from scheduling.model.labels import selects
from scheduling.model.queue import DEFAULT_QUEUE, Queue

SHOWN = 10
"""How many names of queues a message shows."""

MOST_KEPT = 10_000
"""For how many sets of namespace labels it is remembered which queues select them."""


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """No queue can be chosen; `allowed` says what the gang may name."""

    allowed: str


class Selections:
    """The queues by which gangs find theirs, made anew when a name or a selector changes.

    There may be a thousand: only those are asked that may select a namespace, by one label that
    they want of it, and once for each set of labels.
    """

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        self.queues = queues
        self._by_label: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._by_no_label: list[str] = []
        self._open: dict[frozenset[tuple[str, str]], tuple[str, ...]] = {}
        for name, queue in queues.items():
            self._sort_in(name, queue.namespaces)

    def _sort_in(self, name: str, selector: tuple[Requirement, ...] | None) -> None:
        wanted = next((each for each in selector or () if each.operator == "In"), None)
        if wanted is not None:
            for value in wanted.values:
                self._by_label[wanted.key, value].append(name)
        elif selector is not None:
            self._by_no_label.append(name)

    def open_to(self, namespace_labels: Mapping[str, str]) -> tuple[str, ...]:
        """Return the queues that select a namespace, in order."""
        key = frozenset(namespace_labels.items())
        if key not in self._open:
            if len(self._open) >= MOST_KEPT:
                self._open.clear()
            self._open[key] = tuple(sorted(self._that_take(namespace_labels)))
        return self._open[key]

    def _that_take(self, labels: Mapping[str, str]) -> Iterator[str]:
        wanted = (self._by_label.get(pair, ()) for pair in labels.items())
        for name in {*self._by_no_label, *chain.from_iterable(wanted)}:
            selector = self.queues[name].namespaces
            if selector is not None and selects(selector, labels):
                yield name


NO_SELECTIONS = Selections({})


def choose_queue(
    asked: str, namespace_labels: Mapping[str, str], selections: Selections
) -> str | NotAllowed:
    """Return the queue that a gang waits in; `asked` is the one it names, empty if none.

    A gang of a namespace that no queue selects waits in the queue `default`, so that no queue need
    be made before Muster is of use; one of a namespace that several select must name one of them.
    A gang of a namespace that has queues may not leave them for the default one.
    """
    open_to = selections.open_to(namespace_labels) or (DEFAULT_QUEUE,)
    if asked in open_to:
        return asked
    if not asked and len(open_to) == 1:
        return open_to[0]
    return NotAllowed(_allowed(asked, open_to, selections.queues))


def _allowed(asked: str, open_to: Sequence[str], queues: Mapping[str, Queue]) -> str:
    some = ", ".join(open_to[:SHOWN])
    some += f" and {len(open_to) - SHOWN} more" if len(open_to) > SHOWN else ""
    if not asked:
        return f"one of the queues that select the namespace: {some}"
    exists = asked in queues or asked == DEFAULT_QUEUE
    fault = "does not select the namespace" if exists else "does not exist"
    return f"a queue that is open to the namespace: {some} (GangQueue {asked[:63]} {fault})"
