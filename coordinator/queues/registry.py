"""Keeps the observed GangQueues, the faults of those that are not active, and the quota tree."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from kube.codec.fields import InvalidObject
from kube.codec.queues.queue import fair_sharing_of, read_namespaces, read_queue
from kube.objects.queues.queue import (
    CREATE_WHEN_ADMITTED,
    REQUEUE_BROKEN,
    GangQueue,
    Preemption,
    Timeouts,
)
from scheduling.model.queue import DEFAULT_QUEUE, Queue
from scheduling.queueing.faults import faults, rooted
from scheduling.queueing.membership import NO_SELECTIONS, Selections
from scheduling.queueing.queue_nodes import NodeRules, node_rules
from scheduling.queueing.quota_tree import QuotaTree
from scheduling.queueing.stops import StoppedBy, stops

NO_RULES = Preemption()
NO_TIMEOUTS = Timeouts()

BUILT_IN = Queue(DEFAULT_QUEUE)
"""What the queue `default` is while there is no GangQueue of that name."""

ENDING = "the GangQueue is being deleted: it goes once none of its gangs holds anything"


class Outward(NamedTuple):
    """What gangs depend on: the queues that they may use, and of their own queue all but its size.

    How much the queue may hold is a matter of cycles. `by_queue` has the rest by name.
    """

    selections: Selections = NO_SELECTIONS
    by_queue: Mapping[str, object] = MappingProxyType({})


class QueueRegistry:
    """All GangQueues by name. Every change makes new values of what is derived from them."""

    def __init__(self) -> None:
        self.objects: dict[str, GangQueue] = {}
        self._derived: Derived | None = None
        self._selections = NO_SELECTIONS

    @property
    def outward(self) -> Outward:
        """What gangs depend on: the same object until a GangQueue changes."""
        return self._now.outward

    def put(self, found: GangQueue) -> bool:
        """Take in a GangQueue; say whether that changes any rule."""
        before = self.objects.get(found.metadata.name)
        self.objects[found.metadata.name] = found
        if before is not None and _rules_of(before) == _rules_of(found):
            return False
        self._derived = None
        return True

    def drop(self, name: str) -> bool:
        """Forget a GangQueue; say whether there was one."""
        if self.objects.pop(name, None) is None:
            return False
        self._derived = None
        return True

    @property
    def rules(self) -> Mapping[str, Queue]:
        """The queues that a gang can name."""
        return self._now.rules

    @property
    def selections(self) -> Selections:
        """The queues by which gangs find theirs: the same object until a name or selector changes.

        A change of quota has no gang look for its queue again.
        """
        return self._now.selections

    @property
    def faults(self) -> Mapping[str, str]:
        """Why queues are not active, by name: their gangs wait."""
        return self._now.faults

    @property
    def stops(self) -> Mapping[str, StoppedBy]:
        """The queues that admit nothing new because an admin says so, by name."""
        return self._now.stops

    @property
    def tree(self) -> QuotaTree:
        """The quota of the queues, always with the default one.

        One that is not active is part of it where its parents lead to a root, for what its gangs
        hold goes on counting in those above it.
        """
        return self._now.tree

    @property
    def node_rules(self) -> Mapping[str, NodeRules]:
        """The nodes that gangs may use, by queue; of queues without a node selector nothing."""
        return self._now.node_rules

    @property
    def _now(self) -> "Derived":
        """What follows from the objects, worked out when it is asked for first."""
        if self._derived is None:
            self._derived = _derive(self.objects, self._selections)
            self._selections = self._derived.selections
        return self._derived

    def queue(self, name: str) -> Queue:
        """Return the rules of a queue that gangs wait in."""
        return self.rules.get(name, BUILT_IN)

    def preemption(self, name: str) -> Preemption:
        """Return what the gangs of a queue may be stopped for, and how."""
        found = self.objects.get(name)
        return (found.spec.preemption if found is not None else None) or NO_RULES

    def timeouts(self, name: str) -> Timeouts:
        """Return how long starts of the gangs of a queue may take."""
        found = self.objects.get(name)
        return (found.spec.timeouts if found is not None else None) or NO_TIMEOUTS

    def requeues_broken(self, name: str) -> bool:
        """Say whether gangs of a queue are stopped whole once a part is lost for good."""
        found = self.objects.get(name)
        return found is not None and found.spec.when_broken == REQUEUE_BROKEN

    def holds(self, name: str) -> bool:
        """Say whether the pods of a queue's gangs are created when those are admitted."""
        found = self.objects.get(name)
        return found is not None and found.spec.create_pods == CREATE_WHEN_ADMITTED

    def has_clusters(self, name: str) -> bool:
        """Say whether the gangs of a queue are sent to other clusters."""
        found = self.objects.get(name)
        return found is not None and found.spec.clusters is not None

    def has_quota(self, name: str) -> bool:
        """Say whether the gangs of a queue are held to any quota; also those of one with a fault.

        A resource is limited where the queue, one above it or one below it names it.
        """
        return name in self.faults or self.tree.is_limited(name)


def _selectors(queues: Mapping[str, Queue]) -> Mapping[str, object]:
    return {name: queue.namespaces for name, queue in queues.items()}


class Derived(NamedTuple):
    """What follows from the GangQueues there are."""

    rules: Mapping[str, Queue]
    selections: Selections
    faults: Mapping[str, str]
    stops: Mapping[str, StoppedBy]
    tree: QuotaTree
    node_rules: Mapping[str, NodeRules]
    outward: Outward


def _derive(objects: Mapping[str, GangQueue], before: Selections) -> Derived:
    rules, unreadable = {}, {}
    for name, found in sorted(objects.items()):
        try:
            rules[name] = read_queue(found)
        except InvalidObject as error:
            rules[name], unreadable[name] = _without_quantities(found), str(error)
    broken = faults(rules, unreadable)
    ending = {name: ENDING for name, found in objects.items() if _is_ending(found)}
    stopped = MappingProxyType({**ending, **broken})
    standing = {
        name: _stopped(rules[name]) if name in stopped else rules[name] for name in rooted(rules)
    }
    tree = QuotaTree({DEFAULT_QUEUE: BUILT_IN, **standing}.values())
    same = _selectors(rules) == _selectors(before.queues)
    selections = before if same else Selections(MappingProxyType(rules))
    nodes = node_rules(tree)
    by_admin = MappingProxyType(stops(rules))
    of_specs = {
        name: (
            found.spec.preemption,
            found.spec.timeouts,
            found.spec.when_broken,
            found.spec.provisioning,
            found.spec.clusters is not None,
        )
        for name, found in objects.items()
    }
    by_queue = {
        name: (
            *of_specs[name],
            stopped.get(name),
            by_admin.get(name),
            nodes.get(name),
            rule.duration,
            tree.is_limited(name),
        )
        for name, rule in rules.items()
    }
    outward = Outward(selections, MappingProxyType(by_queue))
    return Derived(MappingProxyType(rules), selections, stopped, by_admin, tree, nodes, outward)


def _stopped(queue: Queue) -> Queue:
    """Return what counts of a queue that is not active: its quota, of which it lends nothing."""
    return replace(queue, borrowing_limit={}, lending_limit=dict.fromkeys(queue.quota, 0))


def _without_quantities(found: GangQueue) -> Queue:
    """Return what a queue with a quantity that cannot be read still decides: whose gangs wait."""
    namespaces, fair = read_namespaces(found), fair_sharing_of(found)
    return Queue(found.metadata.name, found.spec.parent, namespaces=namespaces, fair=fair)


def _is_ending(found: GangQueue) -> bool:
    return found.metadata.deletion_timestamp is not None


def _rules_of(found: GangQueue) -> tuple[object, ...]:
    return found.spec, _is_ending(found)
