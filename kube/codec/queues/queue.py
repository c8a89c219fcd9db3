"""Reads a GangQueue: quantities into whole numbers, the selector into requirements."""

from math import inf

from kube.codec.fields import InvalidObject, read_amounts
from kube.codec.queues.fair_share import read_fair_sharing
from kube.codec.selectors import selector
from kube.objects.queues.queue import Ageing, GangQueue, Preemption
from scheduling.model.constraints import Requirement
from scheduling.model.queue import (
    FairSharing,
    NodeSelectorScope,
    Ordering,
    Queue,
    Reclaim,
    Stop,
    WhenBlocked,
    WhileBorrowing,
    WithinQueue,
)


def read_queue(found: GangQueue) -> Queue:
    """Return the rules of a queue; raises InvalidObject where a quantity cannot be read."""
    spec, ageing = found.spec, found.spec.ageing or Ageing()
    preemption = spec.preemption or Preemption()
    threshold = preemption.while_borrowing_max_priority
    return Queue(
        name=found.metadata.name,
        parent=spec.parent,
        quota=read_amounts(spec.quota or {}, "spec.quota"),
        borrowing_limit=read_amounts(spec.borrowing_limit or {}, "spec.borrowingLimit"),
        lending_limit=read_amounts(spec.lending_limit or {}, "spec.lendingLimit"),
        ordering=Ordering(spec.ordering),
        when_blocked=WhenBlocked(spec.when_blocked),
        namespaces=read_namespaces(found),
        duration=spec.default_duration_seconds or inf,
        most_passes=ageing.max_passes,
        longest_wait=ageing.max_wait_seconds,
        within_queue=WithinQueue(preemption.within_queue),
        reclaim=Reclaim(preemption.reclaim),
        while_borrowing=WhileBorrowing(preemption.while_borrowing),
        borrowers_priority=inf if threshold is None else threshold,
        node_selector=tuple(sorted(spec.node_selector.items())),
        node_selector_scope=NodeSelectorScope(spec.node_selector_scope),
        gets_nodes=spec.provisioning is not None,
        stop=Stop(spec.stop),
        fair=fair_sharing_of(found),
    )


def fair_sharing_of(found: GangQueue) -> FairSharing | None:
    """Return how usage counts; where that cannot be read it does not, and the queue works on."""
    try:
        return read_fair_sharing(found)
    except InvalidObject:
        return None


def read_namespaces(found: GangQueue) -> tuple[Requirement, ...] | None:
    """Return the labels of the namespaces that may use a queue; None where it takes no gangs.

    Also of a queue whose quantities cannot be read: its gangs wait in it and go nowhere else.
    """
    selected = found.spec.namespace_selector
    return None if selected is None else selector(selected)
