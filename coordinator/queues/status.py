"""Works out the status of a GangQueue, as its admins read it."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import numpy as np

from coordinator.queues.census import Census
from coordinator.queues.fair_share import NOTHING, Told
from coordinator.queues.learned_durations import QueueDurations
from coordinator.queues.registry import ENDING, QueueRegistry
from coordinator.record.status import pruned
from kube.codec.fields import InvalidObject, quantity
from kube.codec.queues.fair_share import read_fair_sharing
from kube.objects.queues.queue import DURATIONS_LEARNED, RESOURCES_LIMITED, USAGE_COUNTED, GangQueue
from scheduling.diagnosis.amount_texts import written
from scheduling.model.amounts import CPU, Amounts, is_device
from scheduling.model.queue import NodeSelectorScope
from scheduling.queueing.queue_nodes import NodeRules
from scheduling.queueing.quota_tree import MOST, QuotaTree

Status = dict[str, Any]

ACTIVE = "Active"
FAIR_SHARE = "fairShare"
LEARNED = "learnedDurations"
SHOWN = 3
"""How many resources the summary names."""


class QueueReason(StrEnum):
    """Why a queue admits gangs, or admits none, and which of its selectors have no effect."""

    ACTIVE = "Active"
    STOPPED = "Stopped"
    TERMINATING = "Terminating"
    MISSING_PARENT = "MissingParent"
    PARENT_CYCLE = "ParentCycle"
    PARENT_NOT_ACTIVE = "ParentNotActive"
    INVALID_SPEC = "InvalidSpec"
    NO_NAMESPACE = "NoNamespace"
    NO_DEVICE_QUOTA = "NoDeviceQuota"
    UNLIMITED_RESOURCE = "UnlimitedResource"
    INVALID_FAIR_SHARING = "InvalidFairSharing"
    UNREADABLE_USAGE = "UnreadableUsage"
    RUNS_ELSEWHERE = "RunsElsewhere"
    STOPS_WHEN_LOST = "StopsWhenLost"
    UNREADABLE_DURATIONS = "UnreadableDurations"


@dataclass(frozen=True, eq=False, slots=True)
class Usage:
    """What the queues of a tree use at one moment: queues x resources."""

    tree: QuotaTree
    used: Amounts
    borrowed: Amounts

    def of(self, name: str, amounts: Amounts) -> dict[str, int]:
        """Return the amounts of one queue, of the resources that it is limited in."""
        at, tree = self.tree.index[name], self.tree
        columns = np.flatnonzero(tree.limited[at]).tolist()
        return {tree.resources[each]: int(amounts[at, each]) for each in columns}


def usage_of(tree: QuotaTree, held: Amounts) -> Usage:
    """Work out what the queues use of what their gangs hold."""
    used = tree.used(held)
    return Usage(tree, used, tree.borrowed(used))


def status_of(
    found: GangQueue,
    registry: QueueRegistry,
    census: Census,
    usage: Usage,
    selected: Container[str],
    stamp: str,
    holes: Sequence[Status] = (),
    told: Told = NOTHING,
) -> Status:
    """Return the whole status; `stamp` (RFC 3339) dates the conditions where they changed.

    `selected` are the queues that select any namespace, `holes` are those of this queue, `told` is
    what is said of its usage over time.
    """
    name, tree = found.metadata.name, usage.tree
    used, borrowed = _amounts(name, registry, census, usage)
    reserved = {each: census.reserved[name][each] for each in used}
    is_known = name in tree.index
    quota = usage.of(name, tree.subtree) if is_known else {}
    kept = usage.of(name, tree.kept_below()) if is_known else {}
    status = {
        "pending": census.pending[name],
        "admitted": census.admitted[name],
        "usage": _quantities(used),
        "reserved": _quantities(reserved),
        "borrowed": _quantities(borrowed),
        "summary": summary(used, quota, kept),
        "holes": holes,
        "conditions": [
            _dated(each, found, stamp)
            for each in (
                _active(name, registry),
                *_selects_none(found, selected),
                *_binds_none(found, registry),
                *_asks_for_nodes(found),
                *_stops_when_lost(found),
                *_leaves_unlimited(found, tree),
                *_counts_no_usage(found, told),
            )
        ],
    }
    return with_usage(_pruned(status), told)


def with_usage(status: Status, told: Told) -> Status:
    """Return a status that says this of the usage over time, and nothing else of it."""
    rest = {key: each for key, each in status.items() if key != FAIR_SHARE}
    return rest if told.status is None else rest | {FAIR_SHARE: told.status}


def with_durations(status: Status, found: GangQueue, learned: QueueDurations, stamp: str) -> Status:
    """Return a status that says how long gangs ran, and what of that could not be read."""
    said = learned.status()
    if said is not None:
        status = status | {LEARNED: said}
    if not learned.fault:
        return status
    fault = _Condition(DURATIONS_LEARNED, QueueReason.UNREADABLE_DURATIONS, learned.fault)
    return status | {"conditions": [*status["conditions"], pruned(_dated(fault, found, stamp))]}


def recorded(found: GangQueue) -> Status:
    """Return the status that a GangQueue holds, in the form that `status_of` makes."""
    return _pruned(msgspec.to_builtins(found.status))


def summary(used: Mapping[str, int], quota: Mapping[str, int], kept: Mapping[str, int]) -> str:
    """Say how much of its quota a queue uses, devices first: "nvidia.com/gpu 12/16, cpu 4/8".

    `kept` is what queues below it do not lend it, which counts neither in its use nor in its quota.
    """
    named = sorted(used, key=lambda each: (not is_device(each), each))
    said = [
        _share(each, used[each], quota.get(each)) + _beside(each, kept.get(each, 0))
        for each in named[:SHOWN]
    ]
    more = [f"and {len(named) - SHOWN} more"] if len(named) > SHOWN else []
    return ", ".join(said + more)


def in_base_units(resource: str, amount: int) -> float:
    """Return an amount as metrics have it: CPU in cores, all else as it is counted."""
    return amount / 1000 if resource == CPU else float(amount)


def reason_of(name: str, registry: QueueRegistry) -> QueueReason:
    """Return why the queue is active, or is not."""
    fault = registry.faults.get(name)
    if fault is None:
        return QueueReason.STOPPED if name in registry.stops else QueueReason.ACTIVE
    if fault == ENDING:
        return QueueReason.TERMINATING
    if not fault.startswith("spec.parent:"):
        return QueueReason.INVALID_SPEC
    if registry.rules[name].parent not in registry.rules:
        return QueueReason.MISSING_PARENT
    if name in above(name, registry):
        return QueueReason.PARENT_CYCLE
    return QueueReason.PARENT_NOT_ACTIVE


def active_reason(found: GangQueue) -> str:
    """Return why the queue is active, or is not, by its own status; empty where that is unsaid."""
    return next((each.reason for each in found.status.conditions if each.type == ACTIVE), "")


def above(name: str, registry: QueueRegistry) -> list[str]:
    """Return the queues above one, nearest first; in a circle of parents also the queue itself."""
    way: list[str] = []
    at = registry.queue(name).parent
    while at in registry.rules and at not in way:
        way.append(at)
        at = registry.rules[at].parent
    return way


def _amounts(
    name: str, registry: QueueRegistry, census: Census, usage: Usage
) -> tuple[dict[str, int], dict[str, int]]:
    """Return usage and what of it is borrowed, of the resources that are limited.

    One whose parents lead to no root is not in the tree: its usage is what its own gangs hold.
    """
    if name in usage.tree.index:
        return usage.of(name, usage.used), usage.of(name, usage.borrowed)
    named = sorted(set(registry.queue(name).named_resources()))
    return {each: census.held[name][each] for each in named}, {}


def _quantities(amounts: Mapping[str, int]) -> dict[str, str]:
    return {resource: quantity(resource, amount) for resource, amount in amounts.items()}


def _share(resource: str, used: int, quota: int | None) -> str:
    said = f"{resource} {written(resource, used, up=1)}"
    return said if quota is None else f"{said}/{_limit(resource, quota)}"


def _beside(resource: str, kept: int) -> str:
    return f" (and {written(resource, kept, up=0)} kept below)" if kept else ""


def _limit(resource: str, quota: int) -> str:
    return "unlimited" if quota >= MOST else written(resource, quota, up=0)


@dataclass(frozen=True, slots=True)
class _Condition:
    """One aspect of a queue."""

    kind: str
    reason: QueueReason
    message: str = ""
    is_true: bool = False


def _active(name: str, registry: QueueRegistry) -> _Condition:
    reason = reason_of(name, registry)
    stopped = registry.stops.get(name)
    message = registry.faults.get(name) or (stopped.in_words(name) if stopped else "")
    return _Condition(ACTIVE, reason, message, is_true=reason is QueueReason.ACTIVE)


def _selects_none(found: GangQueue, selected: Container[str]) -> Iterator[_Condition]:
    """Say of a queue that no namespace can use it, while that is so."""
    if found.spec.namespace_selector is not None and found.metadata.name not in selected:
        message = "spec.namespaceSelector: no namespace has such labels, so the queue has no gangs"
        yield _Condition("NamespacesSelected", QueueReason.NO_NAMESPACE, message)


def _binds_none(found: GangQueue, registry: QueueRegistry) -> Iterator[_Condition]:
    """Say of a queue that its node selector has no effect, while that is so."""
    rules = registry.node_rules.get(found.metadata.name, NodeRules())
    for_devices = found.spec.node_selector_scope == NodeSelectorScope.DEVICES
    if found.spec.node_selector and for_devices and not rules.devices:
        message = (
            "spec.nodeSelector: no quota of the queue, above it or below it names a device, so it "
            "binds no pod; allowed: a device in spec.quota, or nodeSelectorScope: All"
        )
        yield _Condition("NodeSelectorUsed", QueueReason.NO_DEVICE_QUOTA, message)


def _asks_for_nodes(found: GangQueue) -> Iterator[_Condition]:
    """Say of a queue whose gangs other clusters run which of its rules are about nodes here."""
    spec = found.spec
    rules = {
        "ageing": spec.ageing,
        "nodeSelector": spec.node_selector,
        "provisioning": spec.provisioning,
    }
    named = [f"spec.{name}" for name, rule in rules.items() if rule]
    if spec.clusters is not None and named:
        said = f"{', '.join(named)}: without effect, for its gangs run on other clusters"
        message = f"{said}; allowed: the same on the queue that they have there"
        yield _Condition("NodeRulesApply", QueueReason.RUNS_ELSEWHERE, message)


def _stops_when_lost(found: GangQueue) -> Iterator[_Condition]:
    """Say of a queue that its gangs end wherever they run once this cluster is away."""
    if found.spec.lost_after:
        message = (
            f"spec.whenClusterLost is Requeue: where this cluster or its dispatcher is away for "
            f"{found.spec.lost_after} s (clusters.lostAfterSeconds), gangs of the queue stop on "
            f"every cluster; allowed: Wait, by which they run on"
        )
        yield _Condition("OutlastsManager", QueueReason.STOPS_WHEN_LOST, message)


def _leaves_unlimited(found: GangQueue, tree: QuotaTree) -> Iterator[_Condition]:
    """Say of a queue with gangs that no quota bounds a resource which bounds queues beside it."""
    name, at = found.metadata.name, tree.index.get(found.metadata.name)
    named = tree.unlimited_beside_others(at) if at is not None else ()
    if named and found.spec.namespace_selector is not None:
        root = tree.names[tree.path(tree.index[name])[-1]]
        message = (
            f"spec.quota: {', '.join(named)} is unlimited in this queue, though another one below "
            f"{root} has quota of it; allowed: an amount here or in a queue above, 0 for none"
        )
        yield _Condition(RESOURCES_LIMITED, QueueReason.UNLIMITED_RESOURCE, message)


def _counts_no_usage(found: GangQueue, told: Told) -> Iterator[_Condition]:
    """Say of a queue that what it used over time does not count, or not all of it."""
    try:
        read_fair_sharing(found)
    except InvalidObject as error:
        message = f"{error}; until that is mended usage over time does not count"
        yield _Condition(USAGE_COUNTED, QueueReason.INVALID_FAIR_SHARING, message)
        return
    if told.fault:
        yield _Condition(USAGE_COUNTED, QueueReason.UNREADABLE_USAGE, told.fault)


def _dated(condition: _Condition, found: GangQueue, stamp: str) -> Status:
    status = "True" if condition.is_true else "False"
    before = [each for each in found.status.conditions if each.type == condition.kind]
    same = bool(before) and before[0].status == status
    return {
        "type": condition.kind,
        "status": status,
        "reason": condition.reason.value,
        "message": condition.message,
        "lastTransitionTime": before[0].last_transition_time if same else stamp,
        "observedGeneration": found.metadata.generation,
    }


def _pruned(status: Any) -> Status:
    """Leave out what is empty, but keep counts of nothing: a queue without gangs says so."""
    kept: Status = pruned(status)
    return {**dict.fromkeys(("pending", "admitted"), 0), **kept}
