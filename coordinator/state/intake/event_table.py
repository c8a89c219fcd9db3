"""Takes in one event: updates the known facts, and marks the gangs that the event concerns.

`take` is the one entry; the table at the end maps each event to its function.
"""

from collections.abc import Callable
from typing import Any

from coordinator.messages.events import (
    AdmissionRuleGone,
    AdmissionRuleSeen,
    AdmissionRulesListed,
    ClusterGone,
    ClusterSeen,
    CycleDue,
    DeviceApiSeen,
    DeviceClassGone,
    DeviceClassSeen,
    DeviceFactGone,
    DeviceFactSeen,
    DeviceFactsLost,
    DeviceFactsSeen,
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
    OfferGone,
    OfferSeen,
    PodGone,
    PodSeen,
    PriorityClassGone,
    PriorityClassSeen,
    QueueGone,
    QueueSeen,
    RayOwnerGone,
    RayOwnerSeen,
    SchedulerSeen,
    TermEnded,
    TermStarted,
    TimePassed,
    WatchLost,
    WatchRecovered,
)
from coordinator.messages.write_ends import (
    BudgetsRead,
    EvictionTried,
    LeaseStamped,
    NodeRequestWriteEnded,
    NominationEnded,
    OfferWriteEnded,
    PodPatchEnded,
    QueueWriteEnded,
    RayClusterWriteEnded,
    RayJobWriteEnded,
    WriteEnded,
)
from coordinator.state.intake import (
    devices,
    gangs,
    leadership,
    node_requests,
    offers,
    pods,
    surroundings,
)
from coordinator.state.known import Known
from runtime.controller.moment import Moment


def take(event: Event, known: Known, moment: Moment) -> None:
    """Take in an event."""
    _HANDLERS[type(event)](event, known, moment)


def _queue_seen(event: QueueSeen, known: Known, moment: Moment) -> None:
    known.reports.census.changed.add(event.queue.metadata.name)
    if known.queues.put(event.queue):
        _queues_changed(known)


def _queue_gone(event: QueueGone, known: Known, moment: Moment) -> None:
    known.reports.forget(event.name)
    known.learned.forget(event.name)
    if known.queues.drop(event.name):
        _queues_changed(known)


def _queue_write_ended(event: QueueWriteEnded, known: Known, moment: Moment) -> None:
    known.reports.ended(event.name, moment.now, event.error, outdated=event.outdated)


def _queues_changed(known: Known) -> None:
    """Decide by the new rules; which gangs are to be looked at is seen once all events are in."""
    known.agenda.cycle_wanted = True
    known.reports.census.changed |= known.queues.objects.keys()


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
    PodSeen: pods.pod_seen,
    PodGone: pods.pod_gone,
    PodPatchEnded: pods.patch_ended,
    EvictionTried: pods.eviction_tried,
    BudgetsRead: pods.budgets_read,
    RayJobWriteEnded: gangs.ray_job_write_ended,
    RayClusterWriteEnded: gangs.ray_cluster_write_ended,
    AdmissionRuleSeen: surroundings.admission_rule_seen,
    AdmissionRuleGone: surroundings.admission_rule_gone,
    AdmissionRulesListed: surroundings.admission_rules_listed,
    NominationEnded: pods.nomination_ended,
    SchedulerSeen: surroundings.scheduler_seen,
    QueueSeen: _queue_seen,
    QueueGone: _queue_gone,
    QueueWriteEnded: _queue_write_ended,
    NodeSeen: surroundings.node_seen,
    NodeGone: surroundings.node_gone,
    ClusterSeen: gangs.cluster_seen,
    ClusterGone: gangs.cluster_gone,
    OfferSeen: offers.offer_seen,
    OfferGone: offers.offer_gone,
    OfferWriteEnded: offers.write_ended,
    LeaseStamped: offers.lease_stamped,
    RayOwnerSeen: gangs.ray_owner_seen,
    RayOwnerGone: gangs.ray_owner_gone,
    GangSeen: gangs.gang_seen,
    GangGone: gangs.gang_gone,
    WriteEnded: gangs.write_ended,
    NamespaceSeen: surroundings.namespace_seen,
    NamespaceGone: surroundings.namespace_gone,
    PriorityClassSeen: surroundings.priority_class_seen,
    PriorityClassGone: surroundings.priority_class_gone,
    DeviceClassSeen: surroundings.device_class_seen,
    DeviceClassGone: surroundings.device_class_gone,
    FactSeen: surroundings.fact_seen,
    FactGone: surroundings.fact_gone,
    FactsSeen: surroundings.facts_seen,
    FactsLost: surroundings.facts_lost,
    DeviceApiSeen: devices.api_seen,
    DeviceFactSeen: devices.fact_seen,
    DeviceFactGone: devices.fact_gone,
    DeviceFactsSeen: devices.facts_seen,
    DeviceFactsLost: devices.facts_lost,
    TimePassed: _time_passed,
    CycleDue: _cycle_due,
    NodeRequestSeen: node_requests.request_seen,
    NodeRequestGone: node_requests.request_gone,
    NodeRequestsListed: node_requests.requests_listed,
    NodeRequestWriteEnded: node_requests.write_ended,
    TermStarted: leadership.begin_term,
    TermEnded: leadership.end_term,
    WatchLost: leadership.lose_sight,
    WatchRecovered: leadership.regain_sight,
}
