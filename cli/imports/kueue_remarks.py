"""Lists fields of Kueue's objects that are not mapped, why, and what to do instead."""

import json
from collections.abc import Sequence
from typing import Any

from cli.imports.kueue_objects import (
    ClusterQueueSpec,
    FairSharing,
    LocalQueue,
    ResourceFlavor,
    ResourceQuota,
    WorkloadPriorityClass,
)
from cli.imports.objects import called
from cli.imports.outcome import Outcome
from cli.imports.quantities import exact
from kube.objects.base import Labels
from kube.objects.names import PRIORITY_CLASS, QUEUE, TOPOLOGY_REQUIRED

OPERATORS = {each: each for each in ("In", "NotIn", "Exists", "DoesNotExist")}
QUEUE_NAME = "kueue.x-k8s.io/queue-name"

_CHECKS = "gangs wait for no other controllers; do what the check did before the gang is created"
_UNMAPPED = (
    ("admissionChecks", "admission_checks", _CHECKS),
    ("admissionChecksStrategy", "admission_checks_strategy", _CHECKS),
    (
        "admissionScope",
        "admission_scope",
        "use in the past does not count; gangs go by priority, then by arrival",
    ),
    (
        "concurrentAdmissionPolicy",
        "concurrent_admission_policy",
        "a gang waits in one queue; it names another one when its RayCluster is made anew",
    ),
)


def of_queue(subject: str, spec: ClusterQueueSpec, outcome: Outcome) -> None:
    """Name the fields of a ClusterQueue that have no counterpart."""
    for name, attribute, why in _UNMAPPED:
        found = getattr(spec, attribute)
        if found:
            outcome.leave_out(subject, f"spec.{name}", _short(found), why)
    of_weight(subject, spec.fair_sharing, outcome)
    _of_preemption(subject, spec, outcome)


def of_weight(subject: str, sharing: FairSharing | None, outcome: Outcome) -> None:
    """Queues have no weights."""
    if sharing is None or sharing.weight is None:
        return
    if exact(sharing.weight, f"{subject}: spec.fairSharing.weight") != 1:
        why = "queues have no weights: the one that uses less of its quota goes first; change quota"
        outcome.leave_out(subject, "spec.fairSharing.weight", sharing.weight, why)


def _of_preemption(subject: str, spec: ClusterQueueSpec, outcome: Outcome) -> None:
    said = spec.preemption
    if said is None:
        return
    if said.within_cluster_queue == "LowerOrNewerEqualPriority":
        why = "newer gangs of equal priority are not stopped; it became LowerPriority"
        field = "spec.preemption.withinClusterQueue"
        outcome.leave_out(subject, field, said.within_cluster_queue, why)


def of_name(subject: str, name: str, given: str, outcome: Outcome) -> None:
    """Say that a queue has another name than the object that it was made of."""
    if given != name:
        why = f"its queue is called {given}: another one has its name, or it is no DNS name"
        outcome.advise(subject, "metadata.name", name, why)


def of_limits_alone(subject: str, place: str, said: ResourceQuota, outcome: Outcome) -> None:
    """Limits of a queue without a cohort."""
    limits = {"borrowingLimit": said.borrowing_limit, "lendingLimit": said.lending_limit}
    for field, limit in limits.items():
        if limit is not None:
            exact(limit, f"{subject}: {place}.{field}")
            why = (
                "without a cohort there is no queue to share with; it has no effect in Kueue either"
            )
            outcome.leave_out(subject, f"{place}.{field}", limit, why)


def of_mixed(subject: str, place: str, said: ResourceQuota, flavor: str, outcome: Outcome) -> None:
    """A resource in several flavors, which must not be mixed."""
    why = (
        f"{said.name} is there in several flavors, and quota of a queue has none: nothing of "
        f"flavor {flavor} is borrowed or lent, each queue has its own quota; where all queues of "
        "a parent are of one flavor, give them limits again"
    )
    limits = f"{_or_none(said.borrowing_limit)}, {_or_none(said.lending_limit)}"
    outcome.leave_out(subject, f"{place}.borrowingLimit, lendingLimit", limits, why)


def of_mixed_cohort(
    subject: str, place: str, said: ResourceQuota, flavor: str, outcome: Outcome
) -> None:
    """Quota of a cohort in one of several flavors."""
    why = (
        f"{said.name} is there in several flavors, and quota of a queue has none: quota of flavor "
        f"{flavor} that all members share is lost; add it to the queues of that flavor"
    )
    outcome.leave_out(subject, f"{place}.nominalQuota", said.nominal_quota, why)


def of_flavors(
    subject: str, flavors: Sequence[str], queues: Sequence[str], outcome: Outcome
) -> None:
    """A gang chooses its flavor by its queue."""
    why = (
        f"a gang names its flavor by its queue, {QUEUE}: {' or '.join(queues)}; Kueue tried one "
        "flavor after the other"
    )
    outcome.leave_out(subject, "spec.resourceGroups", ", ".join(flavors), why)


def of_flavor(subject: str, flavor: str, found: ResourceFlavor | None, outcome: Outcome) -> None:
    """What a flavor does to pods, beside its labels."""
    if found is None:
        why = "there is no such ResourceFlavor in the input, so nodeSelector is left out; add it"
        outcome.leave_out(subject, "spec.resourceGroups", f"flavor {flavor}", why)
        return
    name = called("ResourceFlavor", found.metadata)
    once = {(each.subject, each.field) for each in outcome.left_out}
    if found.spec.tolerations and (name, "spec.tolerations") not in once:
        why = "Muster adds no tolerations to pods; put them into the pod templates"
        outcome.leave_out(name, "spec.tolerations", _short(found.spec.tolerations), why)
    if found.spec.topology_name and (name, "spec.topologyName") not in once:
        why = (
            f"a gang names the label of its topology itself, by the annotation {TOPOLOGY_REQUIRED}"
        )
        outcome.leave_out(name, "spec.topologyName", found.spec.topology_name, why)


def of_other_nodes(subject: str, flavor: str, labels: Labels, outcome: Outcome) -> None:
    """Labels of a flavor that hold other pods than those of the queue's nodeSelector."""
    why = (
        f"labels of flavor {flavor}: a queue has one nodeSelector, and that is of another flavor; "
        "put them into nodeSelector of the pod templates"
    )
    outcome.leave_out(subject, "spec.resourceGroups", _short(labels), why)


def of_no_selector(subject: str, mine: Sequence[LocalQueue], outcome: Outcome) -> None:
    """A queue that selects no namespace."""
    why = "selects no namespace, in Kueue and here: give the queue a namespaceSelector to use it"
    outcome.advise(subject, "spec.namespaceSelector", f"null, {len(mine)} LocalQueues", why)


def of_no_local_queue(subject: str, outcome: Outcome) -> None:
    """A queue that other namespaces have LocalQueues of, and this one not."""
    why = "no LocalQueue names it; its queue takes the gangs of all namespaces that it selects"
    outcome.advise(subject, "spec.namespaceSelector", "", why)


def of_local_queues(mine: Sequence[LocalQueue], queue: str, outcome: Outcome) -> None:
    """What the objects of each namespace say now."""
    for each in mine:
        name = each.metadata.name
        why = (
            f"the label {QUEUE_NAME}: {name} becomes {QUEUE}: {queue} (of several flavors: that of "
            "the flavor); needed where several queues select the namespace"
        )
        subject = called("LocalQueue", each.metadata)
        outcome.advise(subject, "spec.clusterQueue", each.spec.cluster_queue, why)


def _of_stop_policy(subject: str, policy: str | None, outcome: Outcome) -> None:
    """A namespace cannot be stopped alone."""
    if policy not in (None, "", "None"):
        why = "spec.stop of a GangQueue stops all its namespaces; give this one a queue of its own"
        outcome.leave_out(subject, "spec.stopPolicy", policy, why)


def of_local_queue(each: LocalQueue, outcome: Outcome) -> None:
    """Name the fields of a LocalQueue that have no counterpart."""
    subject = called("LocalQueue", each.metadata)
    _of_stop_policy(subject, each.spec.stop_policy, outcome)
    of_weight(subject, each.spec.fair_sharing, outcome)
    if each.spec.wall_time_policy:
        why = "queues have no budget of hours; give the namespace another queue when it is used up"
        field = "spec.wallTimePolicy"
        outcome.leave_out(subject, field, _short(each.spec.wall_time_policy), why)


def of_lost_local_queue(each: LocalQueue, outcome: Outcome) -> None:
    """A LocalQueue of a ClusterQueue that is not there."""
    why = "there is no such ClusterQueue in the input, so its namespace gets no queue; add it"
    subject = called("LocalQueue", each.metadata)
    outcome.leave_out(subject, "spec.clusterQueue", each.spec.cluster_queue, why)


def of_priority_class(each: WorkloadPriorityClass, outcome: Outcome) -> None:
    """Priorities are those of PriorityClasses."""
    why = (
        f"create a PriorityClass of this value with preemptionPolicy: Never; gangs name it by "
        f"{PRIORITY_CLASS}, and above their pods only where MUSTER_COORDINATOR_PRIORITY_CLASSES "
        "allows it"
    )
    outcome.leave_out(called("WorkloadPriorityClass", each.metadata), "value", each.value, why)


def _or_none(limit: object) -> str:
    return "none" if limit is None else str(limit)


def _short(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
