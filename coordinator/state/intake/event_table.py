"""Takes in one event: changes what is known, and marks the gangs that it concerns.

`take` is the one entry; which function takes which event is the table at the end.
"""

from collections.abc import Callable
from typing import Any

from coordinator.gang.source import source_of
from coordinator.messages.events import (
    AdmissionRuleGone,
    AdmissionRuleSeen,
    AdmissionRulesListed,
    ClusterGone,
    ClusterSeen,
    CycleDue,
    DeviceClassGone,
    DeviceClassSeen,
    Event,
    FactGone,
    FactSeen,
    FactsLost,
    FactsSeen,
    GangGone,
    GangSeen,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeRequestGone,
    NodeRequestSeen,
    NodeRequestsListed,
    NodeSeen,
    PodGone,
    PodSeen,
    PriorityClassGone,
    PriorityClassSeen,
    QueueGone,
    QueueSeen,
    RayOwnerGone,
    RayOwnerSeen,
    SchedulerSeen,
    SightLost,
    SightRegained,
    TermEnded,
    TermStarted,
    TimePassed,
)
from coordinator.messages.write_ends import (
    BudgetsRead,
    EvictionTried,
    NodeRequestWriteEnded,
    NominationEnded,
    PodPatchEnded,
    QueueWriteEnded,
    RayClusterWriteEnded,
    RayJobWriteEnded,
    WriteEnded,
)
from coordinator.state import rayjob_resumption
from coordinator.state.intake import leadership
from coordinator.state.intake import node_requests as node_request_intake
from coordinator.state.intake import pods as pod_intake
from coordinator.state.known import Known
from kube.objects.admission import AdmissionRule, ResourceQuota
from kube.ray.ray_cluster import is_terminating
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey


def take(event: Event, known: Known, moment: Moment) -> None:
    """Take in an event."""
    _HANDLERS[type(event)](event, known, moment)


# --- nodes --------------------------------------------------------------------------------------


def _node_seen(event: NodeSeen, known: Known, moment: Moment) -> None:
    if known.cache.put_node(event.node):
        _node_changed(known, event.node.metadata.name)


def _node_gone(event: NodeGone, known: Known, moment: Moment) -> None:
    known.cache.remove_node(event.name)
    _node_changed(known, event.name)


def _node_changed(known: Known, name: str) -> None:
    known.agenda.cycle_wanted = True
    known.agenda.dirty |= known.room.gangs_on(name)
    known.agenda.dirty |= known.term.refusals.forget_node(name)


# --- RayClusters and Gangs ----------------------------------------------------------------------


def _cluster_seen(event: ClusterSeen, known: Known, moment: Moment) -> None:
    meta = event.cluster.metadata
    key = GangKey(meta.namespace, meta.name)
    source, before = source_of(event.cluster), known.cache.sources.get(key)
    if before is not None and before.content == source.content:
        return  # most of what KubeRay writes there is for its own users
    known.agenda.cycle_wanted |= is_terminating(meta)
    known.cache.put_source(key, source)
    known.agenda.dirty.add(key)


def _cluster_gone(event: ClusterGone, known: Known, moment: Moment) -> None:
    before = known.cache.sources.get(event.key)
    if before is not None and before.metadata.uid == event.uid:
        known.cache.remove_source(event.key)
        known.unknown_keys.gone(event.key)
    known.agenda.dirty.add(event.key)
    known.agenda.cycle_wanted = True


def _ray_owner_seen(event: RayOwnerSeen, known: Known, moment: Moment) -> None:
    if known.cache.owners.put(event.owner):
        known.agenda.dirty |= known.cache.owners.clusters_of(event.owner.metadata.uid)


def _ray_owner_gone(event: RayOwnerGone, known: Known, moment: Moment) -> None:
    known.cache.owners.drop(event.uid)
    known.agenda.dirty |= known.cache.owners.clusters_of(event.uid)


def _ray_job_write_ended(event: RayJobWriteEnded, known: Known, moment: Moment) -> None:
    view = known.views.get(event.gang)
    if view is None or event.uid not in view.eviction.sent:
        rayjob_resumption.resumption_ended(known, event, moment)
        return
    if event.error is None or event.unknown:
        view.eviction.accepted()
    if event.error is not None:
        view.eviction.sent.discard(event.uid)
        view.eviction.refused(moment.now, event.error if event.refused else "")
    known.agenda.dirty.add(event.gang)


def _ray_cluster_write_ended(event: RayClusterWriteEnded, known: Known, moment: Moment) -> None:
    view = known.views.get(event.gang)
    if view is not None and view.cluster_uid == event.uid:
        refusal = (event.error or "") if event.refused else ""
        view.held.write.ended(moment.now, event.error, refusal)
        known.agenda.dirty.add(event.gang)


def _gang_seen(event: GangSeen, known: Known, moment: Moment) -> None:
    if not known.cache.put_gang(event.gang):
        return
    key = GangKey(event.gang.metadata.namespace, event.gang.metadata.name)
    view = known.views.get(key)
    if view is None or not view.record.writing:  # else the end of the write has it looked at
        known.agenda.dirty.add(key)


def _gang_gone(event: GangGone, known: Known, moment: Moment) -> None:
    known.cache.remove_gang(event.key, event.uid)
    known.agenda.dirty.add(event.key)


def _write_ended(event: WriteEnded, known: Known, moment: Moment) -> None:
    view = known.views.get(event.key)
    if view is None:
        return
    record = view.record
    record.writing = record.replacing = False
    if event.error is None:
        record.attempts.failures = 0
    else:
        record.attempts.failed(moment.now, event.error)
        record.urgency.failed()
        record.sent = {}
    known.agenda.dirty.add(event.key)


# --- namespaces and classes ---------------------------------------------------------------------


def _namespace_seen(event: NamespaceSeen, known: Known, moment: Moment) -> None:
    name = event.namespace.metadata.name
    before = known.cache.namespace_labels(name)
    known.cache.put_namespace(event.namespace)
    known.reports.selected.forget()
    if dict(before) != dict(event.namespace.metadata.labels):
        keys = known.cache.sources.keys() | known.quota.gangs.keys()
        known.agenda.dirty |= {key for key in keys if key.namespace == name}


def _namespace_gone(event: NamespaceGone, known: Known, moment: Moment) -> None:
    known.cache.remove_namespace(event.name)
    known.reports.selected.forget()


def _priority_class_seen(event: PriorityClassSeen, known: Known, moment: Moment) -> None:
    known.cache.priority_classes[event.priority_class.metadata.name] = event.priority_class
    known.cache.admission.edition += 1
    known.agenda.dirty |= set(known.views)


def _priority_class_gone(event: PriorityClassGone, known: Known, moment: Moment) -> None:
    known.cache.priority_classes.pop(event.name, None)
    known.cache.admission.edition += 1
    known.agenda.dirty |= set(known.views)


def _queue_seen(event: QueueSeen, known: Known, moment: Moment) -> None:
    known.reports.census.changed.add(event.queue.metadata.name)
    if known.queues.put(event.queue):
        _queues_changed(known)


def _queue_gone(event: QueueGone, known: Known, moment: Moment) -> None:
    known.reports.forget(event.name)
    if known.queues.drop(event.name):
        _queues_changed(known)


def _queue_write_ended(event: QueueWriteEnded, known: Known, moment: Moment) -> None:
    known.reports.ended(event.name, moment.now, event.error, outdated=event.outdated)


def _queues_changed(known: Known) -> None:
    """Decide by the new rules; which gangs are to be looked at is seen once all events are in."""
    known.agenda.cycle_wanted = True
    known.reports.census.changed |= known.queues.objects.keys()


def _device_class_seen(event: DeviceClassSeen, known: Known, moment: Moment) -> None:
    known.cache.put_device_class(event.device_class)
    _decide_anew(known)


def _device_class_gone(event: DeviceClassGone, known: Known, moment: Moment) -> None:
    known.cache.remove_device_class(event.name)
    _decide_anew(known)


def _decide_anew(known: Known) -> None:
    """Forget all answers, but not for which gangs room is held while others end."""
    memory = known.cycles.memory
    known.cycles.memory = memory.only_promises() if memory else None
    known.agenda.cycle_wanted = True


# --- how pods are admitted ----------------------------------------------------------------------


def _admission_rule_seen(event: AdmissionRuleSeen, known: Known, moment: Moment) -> None:
    known.cache.admission.put(event.rule)
    _admitted_otherwise(known, event.rule, moment)


def _admission_rule_gone(event: AdmissionRuleGone, known: Known, moment: Moment) -> None:
    known.cache.admission.drop(event.rule)
    _admitted_otherwise(known, event.rule, moment)


def _admission_rules_listed(event: AdmissionRulesListed, known: Known, moment: Moment) -> None:
    known.cache.admission.unlisted.discard(event.kind)
    known.agenda.dirty.update(known.cache.foreseen)


def _admitted_otherwise(known: Known, rule: AdmissionRule, moment: Moment) -> None:
    """Look at held gangs again.

    A quota moves with each pod, so of a quota only at those that it stops, and not each time.
    """
    concerned = known.cache.foreseen.of(rule.metadata.namespace)
    if not isinstance(rule, ResourceQuota):
        known.agenda.dirty.update(concerned)
        return
    if known.turns.touch(rule.metadata.namespace):
        concerned = [key for key in known.views if key.namespace == rule.metadata.namespace]
        known.agenda.dirty.update(concerned)
    for key in concerned:
        view = known.views.get(key)
        if view is not None and view.held.problem is not None:
            known.agenda.put_off(key, moment.now)


# --- volumes ------------------------------------------------------------------------------------


def _fact_seen(event: FactSeen, known: Known, moment: Moment) -> None:
    if known.cache.storage.put(event.fact):
        known.agenda.cycle_wanted |= known.cache.is_mounting


def _fact_gone(event: FactGone, known: Known, moment: Moment) -> None:
    known.cache.storage.drop(event.fact)
    known.agenda.cycle_wanted |= known.cache.is_mounting


def _facts_seen(event: FactsSeen, known: Known, moment: Moment) -> None:
    known.cache.storage.see(event.kind)
    known.agenda.cycle_wanted |= known.cache.is_mounting


def _facts_lost(event: FactsLost, known: Known, moment: Moment) -> None:
    known.cache.storage.lose_sight(event.kind)


def _scheduler_seen(event: SchedulerSeen, known: Known, moment: Moment) -> None:
    """Look at every gang where it is another one: it knows of no nomination of a gated pod."""
    if event.holder != known.scheduler:
        known.scheduler = event.holder
        known.agenda.dirty |= set(known.views)


# --- time ---------------------------------------------------------------------------------------


def _time_passed(event: TimePassed, known: Known, moment: Moment) -> None:
    known.agenda.pass_time(moment.now)
    window = known.term.window
    for key in window.overdue(moment.now):  # also where it is a request that takes so long
        window.give_up(key)
    if known.term.forbidden_ended(moment.now):
        known.agenda.dirty |= set(known.views)
    over = known.term.refusals.expire(moment.now)
    known.agenda.dirty |= over
    known.agenda.cycle_wanted |= bool(over)


def _cycle_due(event: CycleDue, known: Known, moment: Moment) -> None:
    """Nothing to take in: the cycle runs once all events before it were followed up."""


_HANDLERS: dict[type[Event], Callable[[Any, Known, Moment], None]] = {
    PodSeen: pod_intake.pod_seen,
    PodGone: pod_intake.pod_gone,
    PodPatchEnded: pod_intake.patch_ended,
    EvictionTried: pod_intake.eviction_tried,
    BudgetsRead: pod_intake.budgets_read,
    RayJobWriteEnded: _ray_job_write_ended,
    RayClusterWriteEnded: _ray_cluster_write_ended,
    AdmissionRuleSeen: _admission_rule_seen,
    AdmissionRuleGone: _admission_rule_gone,
    AdmissionRulesListed: _admission_rules_listed,
    NominationEnded: pod_intake.nomination_ended,
    SchedulerSeen: _scheduler_seen,
    QueueSeen: _queue_seen,
    QueueGone: _queue_gone,
    QueueWriteEnded: _queue_write_ended,
    NodeSeen: _node_seen,
    NodeGone: _node_gone,
    ClusterSeen: _cluster_seen,
    ClusterGone: _cluster_gone,
    RayOwnerSeen: _ray_owner_seen,
    RayOwnerGone: _ray_owner_gone,
    GangSeen: _gang_seen,
    GangGone: _gang_gone,
    WriteEnded: _write_ended,
    NamespaceSeen: _namespace_seen,
    NamespaceGone: _namespace_gone,
    PriorityClassSeen: _priority_class_seen,
    PriorityClassGone: _priority_class_gone,
    DeviceClassSeen: _device_class_seen,
    DeviceClassGone: _device_class_gone,
    FactSeen: _fact_seen,
    FactGone: _fact_gone,
    FactsSeen: _facts_seen,
    FactsLost: _facts_lost,
    TimePassed: _time_passed,
    CycleDue: _cycle_due,
    NodeRequestSeen: node_request_intake.request_seen,
    NodeRequestGone: node_request_intake.request_gone,
    NodeRequestsListed: node_request_intake.requests_listed,
    NodeRequestWriteEnded: node_request_intake.write_ended,
    TermStarted: leadership.begin_term,
    TermEnded: leadership.end_term,
    SightLost: leadership.lose_sight,
    SightRegained: leadership.regain_sight,
}
