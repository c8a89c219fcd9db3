"""Chooses the queue of a gang: the one that it names, else the one that selects its namespace."""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduling.model.labels import selects
from scheduling.model.queue import DEFAULT_QUEUE, Queue

SHOWN = 10
"""How many names of queues a message shows."""


@dataclass(frozen=True, slots=True)
class NotAllowed:
    """No queue can be chosen; `allowed` says what the gang may name."""

    allowed: str


def choose_queue(
    asked: str, namespace_labels: Mapping[str, str], queues: Mapping[str, Queue]
) -> str | NotAllowed:
    """Return the queue that a gang waits in; `asked` is the one it names, empty if none.

    A gang of a namespace that no queue selects waits in the queue `default`, so that no queue need
    be made before Muster is of use; one of a namespace that several select must name one of them.
    A gang of a namespace that has queues may not leave them for the default one.
    """
    open_to = sorted(name for name, queue in queues.items() if _takes(queue, namespace_labels))
    open_to = open_to or [DEFAULT_QUEUE]
    if asked in open_to:
        return asked
    if not asked and len(open_to) == 1:
        return open_to[0]
    return NotAllowed(_allowed(asked, open_to, queues))


def _takes(queue: Queue, namespace_labels: Mapping[str, str]) -> bool:
    return queue.namespaces is not None and selects(queue.namespaces, namespace_labels)


def _allowed(asked: str, open_to: list[str], queues: Mapping[str, Queue]) -> str:
    some = ", ".join(open_to[:SHOWN])
    some += f" and {len(open_to) - SHOWN} more" if len(open_to) > SHOWN else ""
    if not asked:
        return f"one of the queues that select the namespace: {some}"
    exists = asked in queues or asked == DEFAULT_QUEUE
    fault = "does not select the namespace" if exists else "does not exist"
    return f"a queue that is open to the namespace: {some} (GangQueue {asked[:63]} {fault})"
