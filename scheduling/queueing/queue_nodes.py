"""Holds the pods of a gang to the nodes of its queue: by the node selectors from it to the root.

A queue below another narrows what that one allows, and never widens it. Where both name one label
with different values, no node is left.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from scheduling.model.amounts import is_device
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.pod import PodShape
from scheduling.model.queue import NodeSelectorScope, Queue
from scheduling.model.shape import node_restrictions
from scheduling.queueing.quota_tree import QuotaTree

Labels = tuple[tuple[str, str], ...]


class NodeRules(NamedTuple):
    """The nodes that pods of one queue may use, as labels, sorted.

    `of_all` are for every pod, `of_devices` for those that ask for one of the `devices`.
    """

    of_all: Labels = ()
    of_devices: Labels = ()
    devices: frozenset[str] = frozenset()

    def labels(self, shape: PodShape) -> Labels:
        """Return the labels that nodes of the pods of a shape must have."""
        return self.labels_for(shape.amounts)

    def labels_for(self, resources: Iterable[str]) -> Labels:
        """Return the labels that nodes of a pod must have that asks for these resources."""
        asks = self.of_devices and not self.devices.isdisjoint(resources)
        return tuple(sorted({*self.of_all, *self.of_devices})) if asks else self.of_all


def node_rules(tree: QuotaTree) -> Mapping[str, NodeRules]:
    """Return the rules of each queue that has any, by name."""
    named = ((each.name, _rules(each, tree)) for each in tree.queues)
    return {name: rules for name, rules in named if rules.of_all or rules.of_devices}


def on_nodes_of_queue(gang: PendingGang, rules: NodeRules) -> PendingGang:
    """Return the gang with its pods held to the nodes of its queue."""
    shapes = {each.shape for each in gang.groups()}
    held = {each: node_restrictions.on_nodes_of_queue(each, rules.labels(each)) for each in shapes}

    def shape(pods: Group | Member) -> PodShape:
        return held.get(pods.shape, pods.shape)

    return gang.reshaped(shape)


def _rules(queue: Queue, tree: QuotaTree) -> NodeRules:
    path = [*_path(queue, tree)]
    of_all = _labels(path, NodeSelectorScope.ALL)
    of_devices = _labels(path, NodeSelectorScope.DEVICES)
    return NodeRules(of_all, of_devices, _devices(queue, tree) if of_devices else frozenset())


def _devices(queue: Queue, tree: QuotaTree) -> frozenset[str]:
    """Return the devices that are under quota in a queue."""
    limited = tree.limited[tree.index[queue.name]]
    named = (name for name, is_under in zip(tree.resources, limited, strict=True) if is_under)
    return frozenset(filter(is_device, named))


def _labels(path: list[Queue], scope: NodeSelectorScope) -> Labels:
    found = (each.node_selector for each in path if each.node_selector_scope is scope)
    return tuple(sorted({pair for labels in found for pair in labels}))


def _path(queue: Queue, tree: QuotaTree) -> Iterator[Queue]:
    """Yield a queue and those above it."""
    yield queue
    while queue.parent:
        queue = tree.queues[tree.index[queue.parent]]
        yield queue
