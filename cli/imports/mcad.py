"""Reads MCAD's QuotaSubtrees: nodes of one tree or several, each becomes a GangQueue.

In MCAD the quota of a node bounds all that is below it; in Muster, as in Kueue, a queue's quota
comes on top of what those below it have. So a queue above others gets what the quotas below leave
of its node's. Where they are more than that, they stay as they are, and the bound above is lost:
a promise is kept rather than a bound, for both cannot be.

As in MCAD's tree cache: of several roots of a tree the first by name counts; nodes that do not
lead to it do not count; a resource that a node does not name is 0.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from cli.imports.mcad_objects import Quotas, QuotaSubtree
from cli.imports.naming import Names, several
from cli.imports.objects import called, decoded
from cli.imports.outcome import Fault, Outcome, Source
from cli.imports.quantities import (
    MOST_RESOURCES,
    checked,
    resources_of,
    spelled,
    value,
)
from cli.imports.systems import MCAD
from kube.objects.base import Quantity
from kube.objects.names import DEFAULT_QUEUE, QUEUE
from kube.objects.queues.queue import GangQueueSpec, Preemption, QueueSelector

KIND = "QuotaSubtree"
TREE = "tree"

# MCAD takes back what is borrowed whatever its priority, and preempts lower ones within a node.
PREEMPTION = Preemption(within_queue="LowerPriority", reclaim="Any")


@dataclass(frozen=True, slots=True)
class Node:
    """A node, and the place of its definition."""

    name: str
    parent: str
    quota: Mapping[str, Quantity]
    is_hard: bool
    subject: str
    field: str


Held = Mapping[str, Mapping[str, Fraction]]
"""By resource and node: what the node and those below it may hold."""


@dataclass(slots=True)
class Tree:
    """The nodes of a tree that lead to its root."""

    name: str
    nodes: dict[str, Node]
    below: dict[str, list[Node]] = field(default_factory=dict)

    @property
    def resources(self) -> list[str]:
        """The resources that any node names: of these every node has a quota, 0 if none is said."""
        return resources_of(each.quota for each in self.nodes.values())

    def held(self, resource: str) -> dict[str, Fraction]:
        """Return what each node and those below it may hold: its quota, or theirs if more."""
        found: dict[str, Fraction] = {}
        for name in reversed(self.nodes):  # those below come after the nodes above them
            below = sum((found[each.name] for each in self.below[name]), Fraction(0))
            found[name] = max(value(self.nodes[name].quota, resource), below)
        return found


def read(sources: Sequence[Source]) -> Outcome:
    """Return the queues for all trees; raises Fault where one can be read in two ways."""
    outcome = Outcome()
    found = decoded(sources, MCAD.group, KIND, QuotaSubtree)
    trees = [_rooted(*each, outcome) for each in sorted(_by_tree(found, outcome).items())]
    names = _names(trees)
    for tree in trees:
        _add_tree(tree, names, outcome)
    _advise(trees, names, outcome)
    return outcome


def _by_tree(found: Iterable[QuotaSubtree], outcome: Outcome) -> Mapping[str, dict[str, Node]]:
    trees: defaultdict[str, dict[str, Node]] = defaultdict(dict)
    for subtree in found:
        tree = subtree.metadata.labels.get(TREE, "")
        if tree:
            _add_nodes(subtree, trees[tree], outcome)
        else:
            why = "MCAD does not read a QuotaSubtree without this label; give it one"
            outcome.leave_out(called(KIND, subtree.metadata), f"metadata.labels[{TREE}]", "", why)
    return trees


def _add_nodes(subtree: QuotaSubtree, nodes: dict[str, Node], outcome: Outcome) -> None:
    subject = called(KIND, subtree.metadata)
    for at, child in enumerate(subtree.spec.children):
        place, quotas = f"spec.children[{at}]", child.quotas or Quotas()
        if not child.name:
            raise Fault(f"{subject}: {place}.name: empty or missing")
        if child.name in nodes:
            first = nodes[child.name]
            where = f"{first.subject}: {first.field}"
            raise Fault(f"{subject}: {place}.name: node {child.name!r} is there twice, see {where}")
        quota = checked(quotas.requests, f"{subject}: {place}.quotas.requests")
        parent = "" if subtree.spec.parent == "nil" else subtree.spec.parent
        nodes[child.name] = Node(child.name, parent, quota, quotas.hard_limit, subject, place)
        if quotas.disabled:
            why = "MCAD does not read it, so the quota counts; take the queue away if it should not"
            outcome.leave_out(subject, f"{place}.quotas.disabled", "true", why)


def _rooted(name: str, nodes: dict[str, Node], outcome: Outcome) -> Tree:
    """Return the tree below its root; what does not lead there is left out."""
    roots = sorted(each.name for each in nodes.values() if not each.parent)
    below: defaultdict[str, list[Node]] = defaultdict(list)
    for node in sorted(nodes.values(), key=lambda each: each.name):
        below[node.parent].append(node)
    reached, waiting = dict[str, Node](), roots[:1]
    while waiting:
        at = waiting.pop()
        reached[at] = nodes[at]
        waiting += [each.name for each in below[at]]
    for node in (nodes[each] for each in sorted(nodes.keys() - reached.keys())):
        outcome.leave_out(
            node.subject, f"{node.field}.name", node.name, _why_apart(name, node, roots)
        )
    return Tree(name, reached, {at: below[at] for at in reached})


def _why_apart(tree: str, node: Node, roots: Sequence[str]) -> str:
    if not node.parent:
        return f"tree {tree} has the root {roots[0]}, and MCAD skips another; give this a parent"
    if not roots:
        return f"tree {tree} has no root, so MCAD reads none of it; add a node without spec.parent"
    return f"its parents do not lead to the root {roots[0]} of tree {tree}; correct spec.parent"


def _names(trees: Sequence[Tree]) -> dict[tuple[str, str], str]:
    """Name queues after their nodes, and after tree and node where several trees have the node."""
    count: defaultdict[str, int] = defaultdict(int)
    for node in (name for tree in trees for name in tree.nodes):
        count[node] += 1
    given, names = {}, Names()
    for key in ((tree.name, node) for tree in trees for node in sorted(tree.nodes)):
        both = "-".join(key)
        given[key] = names.give(both) if count[key[1]] > 1 else names.give(key[1], both)
    return given


def _add_tree(tree: Tree, names: Mapping[tuple[str, str], str], outcome: Outcome) -> None:
    resources = tree.resources
    if len(resources) > MOST_RESOURCES:
        raise Fault(
            f"tree {tree.name}: {len(resources)} resources; allowed: at most {MOST_RESOURCES}"
        )
    held = {resource: tree.held(resource) for resource in resources}
    for node in tree.nodes.values():
        name = names[tree.name, node.name]
        if name != node.name:
            why = f"its queue is called {name}: names of queues are DNS names, each there once"
            outcome.advise(node.subject, f"{node.field}.name", node.name, why)
        parent = names[tree.name, node.parent] if node.parent else ""
        outcome.add(name, _spec(node, parent, tree, held, outcome))


def _spec(node: Node, parent: str, tree: Tree, held: Held, outcome: Outcome) -> GangQueueSpec:
    below = tree.below[node.name]
    limits = dict.fromkeys(held, 0) if node.is_hard and parent else None
    return GangQueueSpec(
        parent=parent,
        quota=_own_quota(node, below, held, outcome) or None,
        borrowing_limit=limits or None,
        namespace_selector=None if below else QueueSelector(),
        preemption=None if below else PREEMPTION,
    )


def _own_quota(
    node: Node, below: Sequence[Node], held: Held, outcome: Outcome
) -> dict[str, Quantity]:
    """Return what the quotas below leave of a node's; all of it where there are none below."""
    if not below:
        return dict(node.quota)
    quota: dict[str, Quantity] = {}
    for resource, amounts in held.items():
        lent = sum((amounts[each.name] for each in below), Fraction(0))
        own = value(node.quota, resource)
        like = _unit(node, below, resource)
        quota[resource] = spelled(max(Fraction(0), own - lent), like)
        if lent > own:
            _say_exceeded(node, below, resource, spelled(lent, like), outcome)
    return quota


def _unit(node: Node, below: Sequence[Node], resource: str) -> Quantity:
    amounts = (each.quota[resource] for each in (node, *below) if resource in each.quota)
    return next(amounts, 0)


def _say_exceeded(
    node: Node, below: Sequence[Node], resource: str, lent: Quantity, outcome: Outcome
) -> None:
    why = (
        f"the quotas below it ({several(each.name for each in below)}) are {lent} together, and in "
        f"Muster quota is a promise: up to {lent} may be in use; lower them until they add up to "
        "this if it must hold"
    )
    field = f"{node.field}.quotas.requests[{resource}]"
    outcome.leave_out(node.subject, field, node.quota.get(resource, "not named"), why)


def _advise(trees: Sequence[Tree], names: Mapping[tuple[str, str], str], outcome: Outcome) -> None:
    """Say what labels of AppWrappers become."""
    for tree in trees:
        leaves = [each for each in tree.nodes if not tree.below[each]]
        if leaves:
            example = names[tree.name, leaves[0]]
            why = (
                f"a label {tree.name}: {leaves[0]} of an AppWrapper becomes {QUEUE}: {example}; "
                "every namespace may name each of these queues, as in MCAD: narrow "
                "namespaceSelector until one selects a namespace, and its gangs need not name any"
            )
            outcome.advise(f"tree {tree.name}", f"metadata.labels[{TREE}]", tree.name, why)
    if len(trees) > 1:
        _say_several(trees, outcome)
    _say_default(trees, names, outcome)


def _say_several(trees: Sequence[Tree], outcome: Outcome) -> None:
    why = (
        "an AppWrapper used quota in every tree; a gang uses that of one queue, and of those above"
        " it: choose the tree that is to bind, and do not apply the queues of the others"
    )
    for tree in trees[1:]:
        outcome.leave_out(f"tree {tree.name}", f"metadata.labels[{TREE}]", tree.name, why)


def _say_default(
    trees: Sequence[Tree], names: Mapping[tuple[str, str], str], outcome: Outcome
) -> None:
    why = (
        "AppWrappers without a label waited in it; a gang that names no queue waits in the one "
        "that selects its namespace: its queue, {name}, must be named while others select the "
        "namespace too"
    )
    for tree in trees:
        if DEFAULT_QUEUE in tree.nodes:
            node, name = tree.nodes[DEFAULT_QUEUE], names[tree.name, DEFAULT_QUEUE]
            field = f"{node.field}.name"
            outcome.leave_out(node.subject, field, node.name, why.format(name=name))
