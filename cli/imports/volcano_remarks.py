"""Lists fields of Volcano's objects that are not mapped, why, and what to do instead."""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from cli.imports.objects import called
from cli.imports.outcome import Outcome
from cli.imports.quantities import spelled
from cli.imports.volcano_objects import Affinity, PodGroup, QueueSpec
from kube.objects.base import Quantity
from kube.objects.names import (
    MIN_REPLICAS,
    OPT_IN,
    PRIORITY_CLASS,
    QUEUE,
    TOPOLOGY_PREFERRED,
    TOPOLOGY_REQUIRED,
)

RAY = ("RayCluster", "RayJob", "RayService")


def of_queue(subject: str, spec: QueueSpec, outcome: Outcome) -> None:
    """Name the fields of a Queue that have no counterpart."""
    if spec.weight != 1:
        why = (
            "queues have no weights: the one that uses less of its quota goes first; give it quota"
        )
        outcome.leave_out(subject, "spec.weight", spec.weight, why)
    if spec.reclaimable is False:
        why = (
            "what a queue borrows can be taken back, what its quota covers never: "
            "borrowingLimit of 0 keeps it from borrowing"
        )
        outcome.leave_out(subject, "spec.reclaimable", "false", why)
    if spec.priority:
        why = "queues have no priority; give its gangs one, by the PriorityClass of their pods"
        outcome.leave_out(subject, "spec.priority", spec.priority, why)
    if spec.extend_clusters:
        why = "Muster starts gangs in its own cluster alone"
        outcome.leave_out(subject, "spec.extendClusters", _short(spec.extend_clusters), why)
    if spec.dra:
        why = "resource claims are not judged; quota is over resources that pods request"
        outcome.leave_out(subject, "spec.dra", _short(spec.dra), why)


def of_name(subject: str, name: str, given: str, outcome: Outcome) -> None:
    """Say that a queue has another name than the object that it was made of."""
    if given != name:
        why = f"its queue is called {given}: names of queues are DNS names, each there once"
        outcome.advise(subject, "metadata.name", name, why)


def of_all(outcome: Outcome) -> None:
    """What a Queue does not say, but Volcano's configuration does."""
    why = (
        "every namespace may name each queue, as in Volcano: narrow namespaceSelector until one "
        "selects a namespace, and its gangs need not name any"
    )
    outcome.advise("all Queues", "namespaces", "all", why)
    why = (
        "whether queues preempt is in the scheduler's configuration, not in Queues: where that "
        "has reclaim, set spec.preemption.reclaim: Any; where preempt, withinQueue: LowerPriority"
    )
    outcome.advise("all Queues", "preemption", "Never", why)


def of_closed(subject: str, state: str, outcome: Outcome) -> None:
    """A closed queue takes no gangs."""
    why = "it has no namespaceSelector, so that it takes no gangs; add one to open it"
    outcome.advise(subject, "status.state", state, why)


def of_exceeded(
    subject: str, resource: str, promised: Quantity, lent: Fraction, outcome: Outcome
) -> None:
    """Queues that deserve more together than the one above them."""
    why = (
        f"the queues below it deserve {spelled(lent, promised)} together, and in Muster quota is a "
        "promise: as much may be in use; lower them until they add up to this if it must hold"
    )
    outcome.leave_out(subject, f"spec.deserved[{resource}]", promised, why)


def of_unpromised(subject: str, resource: str, most: Quantity, outcome: Outcome) -> None:
    """A queue that deserves nothing of a resource borrows all of it."""
    why = (
        "it deserves none, so it may use up to this of what other queues lend, and not what the "
        "nodes have beyond all quotas: give the queue above them that as its quota"
    )
    outcome.leave_out(subject, f"spec.capability[{resource}]", most, why)


def of_affinity(subject: str, affinity: Affinity, outcome: Outcome) -> None:
    """A queue selects nodes by labels that they must have."""
    wanted, unwanted = affinity.node_group_affinity, affinity.node_group_anti_affinity
    field = "spec.affinity.nodeGroupAffinity"
    why = "a queue requires one value of a label: label the nodes of all its groups alike"
    required = wanted.required_during_scheduling_ignored_during_execution if wanted else ()
    if len(required) > 1:
        outcome.leave_out(subject, f"{field}.required...", ", ".join(required), why)
    preferred = wanted.preferred_during_scheduling_ignored_during_execution if wanted else ()
    if preferred:
        why = "preferences play no part in a placement"
        outcome.leave_out(subject, f"{field}.preferred...", ", ".join(preferred), why)
    if unwanted is not None:
        why = (
            "a queue has labels that its nodes must have, none that they must not: label the others"
        )
        field = "spec.affinity.nodeGroupAntiAffinity"
        outcome.leave_out(subject, field, "set", why)


def of_pod_group(group: PodGroup, names: Mapping[str, str], outcome: Outcome) -> None:
    """Say what the owner of a PodGroup has to say instead."""
    subject, spec = called("PodGroup", group.metadata), group.spec
    owner = next((each for each in group.metadata.owner_references if each.kind in RAY), None)
    if owner is None:
        why = "Muster starts Ray clusters whole; pods of other owners are not gated"
        outcome.leave_out(subject, "metadata.ownerReferences", "no Ray object", why)
        return
    queue = names.get(spec.queue or "default", spec.queue or "default")
    said = f'label {owner.kind} {owner.name}: {OPT_IN}: "true" and {QUEUE}: {queue}'
    outcome.advise(subject, "spec.queue", spec.queue, said)
    why = (
        f"the head and all replicas start together; fewer by the annotation {MIN_REPLICAS}: "
        "GROUP=COUNT, so that head and replicas are as many pods as this"
    )
    outcome.advise(subject, "spec.minMember", spec.min_member, why)
    _of_details(subject, group, outcome)


def _of_details(subject: str, group: PodGroup, outcome: Outcome) -> None:
    spec = group.spec
    if spec.min_task_member:
        counts = ",".join(f"{task}={count}" for task, count in sorted(spec.min_task_member.items()))
        why = f"annotation {MIN_REPLICAS}, with the worker groups' names: {counts}"
        outcome.advise(subject, "spec.minTaskMember", counts, why)
    if spec.min_resources:
        why = "left away: what pods request is read from the pods"
        outcome.advise(subject, "spec.minResources", _short(dict(spec.min_resources)), why)
    if spec.priority_class_name:
        why = f"label {PRIORITY_CLASS}, or priorityClassName in every pod template"
        outcome.advise(subject, "spec.priorityClassName", spec.priority_class_name, why)
    if spec.network_topology:
        why = (
            f"annotation {TOPOLOGY_REQUIRED} or {TOPOLOGY_PREFERRED}, with the key of a node label"
        )
        outcome.leave_out(subject, "spec.networkTopology", _short(spec.network_topology), why)
    if spec.sub_group_policy:
        why = f"groups are those of the RayCluster; their minimum is in {MIN_REPLICAS}"
        outcome.leave_out(subject, "spec.subGroupPolicy", _short(spec.sub_group_policy), why)


def _short(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
