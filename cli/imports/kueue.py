"""Reads Kueue's ClusterQueues, Cohorts, LocalQueues and ResourceFlavors.

A GangQueue has one quota of a resource, whatever its flavor. So a ClusterQueue becomes one
GangQueue where each of its resources has one flavor; else one for each flavor, below one that holds
the rest. Quota is never mixed between flavors: where members of a cohort have a resource in
different flavors, each keeps its own, and what they could borrow within a flavor is named as lost.
"""

from collections.abc import Iterable, Mapping, Sequence

from cli.imports import kueue_remarks as remarks
from cli.imports.kueue_objects import (
    BorrowWithinCohort,
    ClusterQueue,
    WorkloadPriorityClass,
)
from cli.imports.kueue_world import Share, World, mixed_in, split_flavors, world_of
from cli.imports.objects import called, decoded
from cli.imports.outcome import Fault, Outcome, Source
from cli.imports.quantities import checked, exact
from cli.imports.systems import KUEUE
from kube.objects.base import Labels, Quantity
from kube.objects.queues.queue import (
    GangQueueSpec,
    Preemption,
    QueueSelector,
    QueueSelectorRequirement,
)

NAMESPACE_NAME = "kubernetes.io/metadata.name"
PLAIN = frozenset({"cpu", "memory", "pods", "ephemeral-storage"})
"""Resources that are no devices."""

UNCOVERED = frozenset({"pods"})
"""Counted by Kueue only where a ClusterQueue covers it."""

WHEN_BLOCKED = {"StrictFIFO": "Strict", "BestEffortFIFO": "BestEffort"}
STOPS = {each: each for each in ("None", "Hold", "HoldAndDrain")}
BORROW = {each: each for each in ("Never", "LowerPriority")}
WITHIN = {
    "Never": "Never",
    "LowerPriority": "LowerPriority",
    "LowerOrNewerEqualPriority": "LowerPriority",
}
RECLAIM = {"Never": "Never", "LowerPriority": "LowerPriority", "Any": "Any"}


def read(sources: Sequence[Source]) -> Outcome:
    """Return the queues; raises Fault where a value cannot be used."""
    outcome = Outcome()
    world = world_of(sources)
    for name in sorted(world.cohort_names):
        _add_cohort(name, world, outcome)
    for queue in world.cluster_queues:
        _add_queue(queue, world, outcome)
    _say_unused(world, outcome)
    for each in decoded(sources, KUEUE.group, "WorkloadPriorityClass", WorkloadPriorityClass):
        remarks.of_priority_class(each, outcome)
    return outcome


# ---- cohorts ------------------------------------------------------------------------------------


def _add_cohort(name: str, world: World, outcome: Outcome) -> None:
    cohort = world.cohorts.get(name)
    parent = world.cohort_names[cohort.parent] if cohort and cohort.parent else ""
    subject = f"Cohort {name}"
    mixed = mixed_in(name, world)
    shares = []
    for share in world.cohort_shares.get(name, ()):
        if share.said.name in mixed:
            remarks.of_mixed_cohort(subject, share.place, share.said, share.flavor, outcome)
        else:
            shares.append(share)
    if cohort is not None:
        remarks.of_weight(subject, cohort.spec.fair_sharing, outcome)
    remarks.of_name(subject, name, world.cohort_names[name], outcome)
    outcome.add(world.cohort_names[name], _limited(subject, shares, parent, frozenset(), outcome))


# ---- ClusterQueues ------------------------------------------------------------------------------


def _add_queue(queue: ClusterQueue, world: World, outcome: Outcome) -> None:
    name, subject = queue.metadata.name, called("ClusterQueue", queue.metadata)
    parent = world.cohort_names[queue.cohort] if queue.cohort else ""
    shares, split = world.shares[name], split_flavors(world.shares[name])
    mixed = mixed_in(queue.cohort, world)
    remarks.of_queue(subject, queue.spec, outcome)
    remarks.of_name(subject, name, world.queue_names[name], outcome)
    own = [each for each in shares if each.flavor not in split]
    if queue.cohort:
        _say_mixed(subject, shares, mixed, outcome)
    spec = _without(
        _limited(subject, own, parent, mixed, outcome),
        # What a ClusterQueue does not cover, none of its workloads gets.
        _covered(world) - {each.said.name for each in own} - UNCOVERED,
    )
    rules = _rules(queue, world, outcome)
    if not split:
        labels, scope = _nodes(subject, own, world, outcome)
        outcome.add(world.queue_names[name], _with(spec, rules, labels, scope))
        return
    outcome.add(world.queue_names[name], spec)
    _add_flavors(queue, split, rules, world, outcome)


def _covered(world: World) -> set[str]:
    """Return the resources that any ClusterQueue or Cohort has quota of."""
    lists = (*world.shares.values(), *world.cohort_shares.values())
    return {each.said.name for shares in lists for each in shares}


def _say_mixed(
    subject: str, shares: Sequence[Share], mixed: frozenset[str], outcome: Outcome
) -> None:
    split = split_flavors(shares)
    for share in shares:
        if share.said.name in mixed or share.flavor in split:
            remarks.of_mixed(subject, share.place, share.said, share.flavor, outcome)


def _without(spec: GangQueueSpec, resources: Iterable[str]) -> GangQueueSpec:
    """Return a queue that has and borrows nothing of some resources."""
    none = dict.fromkeys(sorted(resources), 0)
    return GangQueueSpec(
        parent=spec.parent,
        quota={**(spec.quota or {}), **none} or None,
        borrowing_limit={**(spec.borrowing_limit or {}), **(none if spec.parent else {})} or None,
        lending_limit=spec.lending_limit,
    )


def _add_flavors(
    queue: ClusterQueue,
    split: Sequence[str],
    rules: GangQueueSpec,
    world: World,
    outcome: Outcome,
) -> None:
    name, subject = queue.metadata.name, called("ClusterQueue", queue.metadata)
    above = world.queue_names[name]
    for flavor in split:
        shares = [each for each in world.shares[name] if each.flavor == flavor]
        every = frozenset(each.said.name for each in shares)
        spec = _limited(subject, shares, above, every, outcome)
        labels, scope = _nodes(subject, shares, world, outcome)
        outcome.add(world.flavor_names[name, flavor], _with(spec, rules, labels, scope))
    named = [world.flavor_names[name, flavor] for flavor in split]
    remarks.of_flavors(subject, split, named, outcome)


def _limited(
    subject: str,
    shares: Sequence[Share],
    parent: str,
    mixed: frozenset[str],
    outcome: Outcome,
) -> GangQueueSpec:
    """Return quota and limits; of a mixed resource nothing is borrowed nor lent."""
    quota: dict[str, Quantity] = {}
    borrowing: dict[str, Quantity] = {}
    lending: dict[str, Quantity] = {}
    for share in shares:
        said, at = share.said, f"{subject}: {share.place}"
        exact(said.nominal_quota, f"{at}.nominalQuota")
        quota[said.name] = said.nominal_quota
        if said.name in mixed:
            borrowing[said.name] = lending[said.name] = 0
        elif parent:
            _limit(share, at, borrowing, lending)
        else:
            remarks.of_limits_alone(subject, share.place, said, outcome)
    return GangQueueSpec(
        parent=parent,
        quota=checked(quota, f"{subject}: spec.resourceGroups") or None,
        borrowing_limit=checked(borrowing, f"{subject}: borrowingLimit") or None,
        lending_limit=checked(lending, f"{subject}: lendingLimit") or None,
    )


def _limit(
    share: Share, at: str, borrowing: dict[str, Quantity], lending: dict[str, Quantity]
) -> None:
    said = share.said
    if said.borrowing_limit is not None:
        exact(said.borrowing_limit, f"{at}.borrowingLimit")
        borrowing[said.name] = said.borrowing_limit
    if said.lending_limit is not None:
        exact(said.lending_limit, f"{at}.lendingLimit")
        lending[said.name] = said.lending_limit


def _rules(queue: ClusterQueue, world: World, outcome: Outcome) -> GangQueueSpec:
    """Return what is said of the gangs of the queue, whatever their flavor."""
    subject, spec = called("ClusterQueue", queue.metadata), queue.spec
    field = "spec.queueingStrategy"
    when_blocked = _known(subject, field, spec.queueing_strategy, WHEN_BLOCKED)
    preemption = None
    if spec.preemption is not None:
        said, field = spec.preemption, "spec.preemption"
        borrows = said.borrow_within_cohort or BorrowWithinCohort()
        preemption = Preemption(
            within_queue=_known(
                subject, f"{field}.withinClusterQueue", said.within_cluster_queue, WITHIN
            ),
            reclaim=_known(
                subject, f"{field}.reclaimWithinCohort", said.reclaim_within_cohort, RECLAIM
            ),
            while_borrowing=_known(
                subject, f"{field}.borrowWithinCohort.policy", borrows.policy, BORROW
            ),
            while_borrowing_max_priority=borrows.max_priority_threshold,
        )
    return GangQueueSpec(
        namespace_selector=_namespaces(queue, world, outcome),
        when_blocked=when_blocked,
        stop=_known(subject, "spec.stopPolicy", spec.stop_policy or "None", STOPS),
        preemption=None if preemption == Preemption() else preemption,
    )


def _known(subject: str, field: str, value: str, known: Mapping[str, str]) -> str:
    if value not in known:
        raise Fault(f"{subject}: {field}: {value!r} is not known; allowed: {', '.join(known)}")
    return known[value]


def _namespaces(queue: ClusterQueue, world: World, outcome: Outcome) -> QueueSelector | None:
    """Return the namespaces that the queue selects and that have a LocalQueue of it."""
    subject, selector = called("ClusterQueue", queue.metadata), queue.spec.namespace_selector
    mine = [each for each in world.local_queues if each.spec.cluster_queue == queue.metadata.name]
    if selector is None:
        remarks.of_no_selector(subject, mine, outcome)
        return None
    expressions = [
        QueueSelectorRequirement(each.key, each.operator, each.values)
        for each in selector.match_expressions
    ]
    for at, each in enumerate(expressions):
        field = f"spec.namespaceSelector.matchExpressions[{at}].operator"
        _known(subject, field, each.operator, remarks.OPERATORS)
    if mine:
        here = tuple(sorted({each.metadata.namespace for each in mine}))
        expressions.append(QueueSelectorRequirement(NAMESPACE_NAME, "In", here))
        remarks.of_local_queues(mine, world.queue_names[queue.metadata.name], outcome)
    elif world.local_queues:
        remarks.of_no_local_queue(subject, outcome)
    return QueueSelector(match_labels=selector.match_labels, match_expressions=tuple(expressions))


def _nodes(
    subject: str, shares: Sequence[Share], world: World, outcome: Outcome
) -> tuple[Labels, str]:
    """Return the labels of the nodes, and which pods are held to them.

    Kueue holds to a flavor's nodes the pods that ask for one of its resources: with CPU or memory
    among them all pods, else those that ask for the device.
    """
    held: dict[str, set[str]] = {}
    for share in shares:
        held.setdefault(share.flavor, set()).add(share.said.name)
    labelled = {}
    for flavor in held:
        found = world.flavors.get(flavor)
        remarks.of_flavor(subject, flavor, found, outcome)
        if found is not None and found.spec.node_labels:
            labelled[flavor] = found.spec.node_labels
    devices = [each for each in labelled if held[each] - PLAIN]
    chosen = devices or list(labelled)
    for flavor in labelled.keys() - set(chosen):
        remarks.of_other_nodes(subject, flavor, labelled[flavor], outcome)
    labels = _merged(subject, {each: labelled[each] for each in chosen}, outcome)
    is_all = any(held[each] & PLAIN for each in chosen)
    return labels, "All" if is_all else "Devices"


def _merged(subject: str, labelled: Mapping[str, Labels], outcome: Outcome) -> dict[str, str]:
    merged: dict[str, str] = {}
    for flavor, labels in sorted(labelled.items()):
        if any(merged.get(key, value) != value for key, value in labels.items()):
            remarks.of_other_nodes(subject, flavor, labels, outcome)
        else:
            merged |= labels
    return dict(sorted(merged.items()))


def _with(limits: GangQueueSpec, rules: GangQueueSpec, labels: Labels, scope: str) -> GangQueueSpec:
    return GangQueueSpec(
        parent=limits.parent,
        quota=limits.quota,
        borrowing_limit=limits.borrowing_limit,
        lending_limit=limits.lending_limit,
        namespace_selector=rules.namespace_selector,
        node_selector=labels,
        node_selector_scope=scope,
        when_blocked=rules.when_blocked,
        stop=rules.stop,
        preemption=rules.preemption,
    )


def _say_unused(world: World, outcome: Outcome) -> None:
    """Name the LocalQueues whose ClusterQueue is not among the objects."""
    for each in world.local_queues:
        remarks.of_local_queue(each, outcome)
        if each.spec.cluster_queue not in world.queue_names:
            remarks.of_lost_local_queue(each, outcome)
