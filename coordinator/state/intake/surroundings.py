"""Takes in what surrounds gangs: nodes, namespaces, classes, rules of admission, volumes."""

from coordinator.gang.demand import NotReady
from coordinator.messages.events import (
    AdmissionRuleGone,
    AdmissionRuleSeen,
    AdmissionRulesListed,
    DeviceClassGone,
    DeviceClassSeen,
    FactGone,
    FactSeen,
    FactsLost,
    FactsSeen,
    NamespaceGone,
    NamespaceSeen,
    NodeGone,
    NodeSeen,
    PriorityClassGone,
    PriorityClassSeen,
    SchedulerSeen,
)
from coordinator.state.known import Known
from kube.objects.admission import AdmissionRule, ResourceQuota
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason


def node_seen(event: NodeSeen, known: Known, moment: Moment) -> None:
    """Take in a node."""
    if known.cache.put_node(event.node):
        _node_changed(known, event.node.metadata.name)


def node_gone(event: NodeGone, known: Known, moment: Moment) -> None:
    """Forget a node."""
    known.cache.remove_node(event.name)
    _node_changed(known, event.name)


def _node_changed(known: Known, name: str) -> None:
    known.agenda.cycle_wanted = True
    known.agenda.dirty |= known.room.gangs_on(name)
    known.agenda.dirty |= known.term.refusals.forget_node(name)
    if name in known.cache.devices.index.nodes_with_slices:
        known.agenda.dirty |= known.cache.devices.gangs_by_class


def namespace_seen(event: NamespaceSeen, known: Known, moment: Moment) -> None:
    """Take in a namespace; its labels say which queues are open to it."""
    name = event.namespace.metadata.name
    before = known.cache.namespace_labels(name)
    known.cache.put_namespace(event.namespace)
    known.reports.selected.forget()
    if dict(before) != dict(event.namespace.metadata.labels):
        keys = known.cache.sources.keys() | known.quota.gangs.keys()
        known.agenda.dirty |= {key for key in keys if key.namespace == name}


def namespace_gone(event: NamespaceGone, known: Known, moment: Moment) -> None:
    """Forget a namespace."""
    known.cache.remove_namespace(event.name)
    known.reports.selected.forget()


def priority_class_seen(event: PriorityClassSeen, known: Known, moment: Moment) -> None:
    """Take in a PriorityClass."""
    known.cache.priority_classes[event.priority_class.metadata.name] = event.priority_class
    known.cache.admission.edition += 1
    known.agenda.dirty |= set(known.views)


def priority_class_gone(event: PriorityClassGone, known: Known, moment: Moment) -> None:
    """Forget a PriorityClass."""
    known.cache.priority_classes.pop(event.name, None)
    known.cache.admission.edition += 1
    known.agenda.dirty |= set(known.views)


def device_class_seen(event: DeviceClassSeen, known: Known, moment: Moment) -> None:
    """Take in a DeviceClass."""
    known.cache.put_device_class(event.device_class)
    _decide_anew(known)


def device_class_gone(event: DeviceClassGone, known: Known, moment: Moment) -> None:
    """Forget a DeviceClass."""
    known.cache.remove_device_class(event.name)
    _decide_anew(known)


def _decide_anew(known: Known) -> None:
    """Forget all answers, but not for which gangs room is held while others end."""
    memory = known.cycles.memory
    known.cycles.memory = memory.only_promises() if memory else None
    known.agenda.cycle_wanted = True


def admission_rule_seen(event: AdmissionRuleSeen, known: Known, moment: Moment) -> None:
    """Take in a rule of how pods are admitted."""
    known.cache.admission.put(event.rule)
    _admitted_otherwise(known, event.rule, moment)


def admission_rule_gone(event: AdmissionRuleGone, known: Known, moment: Moment) -> None:
    """Forget a rule of how pods are admitted."""
    known.cache.admission.drop(event.rule)
    _admitted_otherwise(known, event.rule, moment)


def admission_rules_listed(event: AdmissionRulesListed, known: Known, moment: Moment) -> None:
    """Begin to foresee by the rules of a kind."""
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
    look_at_those_without_claims(known, rule.metadata.namespace, moment)
    if known.turns.touch(rule.metadata.namespace):
        concerned = [key for key in known.views if key.namespace == rule.metadata.namespace]
        known.agenda.dirty.update(concerned)
    for key in concerned:
        view = known.views.get(key)
        if view is not None and view.held.problem is not None:
            known.agenda.put_off(key, moment.now)


def look_at_those_without_claims(known: Known, namespace: str, moment: Moment) -> None:
    """Look again at gangs of a namespace whose quota had no room for claims by class."""
    for key in {*known.cache.devices.gangs_by_class, *known.cache.foreseen.of(namespace)}:
        if key.namespace == namespace and _awaits_claims(known, key):
            known.agenda.put_off(key, moment.now)


def _awaits_claims(known: Known, key: GangKey) -> bool:
    """Say whether a gang waits for claims: where a quota has no room for them, for that."""
    view = known.views.get(key)
    asked = view.queueing.asked if view is not None else None
    return isinstance(asked, NotReady) and asked.reason is Reason.GANG_INCOMPLETE


def fact_seen(event: FactSeen, known: Known, moment: Moment) -> None:
    """Take in what volumes depend on."""
    if known.cache.storage.put(event.fact):
        known.agenda.cycle_wanted |= known.cache.is_mounting


def fact_gone(event: FactGone, known: Known, moment: Moment) -> None:
    """Forget what volumes depended on."""
    known.cache.storage.drop(event.fact)
    known.agenda.cycle_wanted |= known.cache.is_mounting


def facts_seen(event: FactsSeen, known: Known, moment: Moment) -> None:
    """Begin to judge volumes by the facts of a kind."""
    known.cache.storage.see(event.kind)
    known.agenda.cycle_wanted |= known.cache.is_mounting


def facts_lost(event: FactsLost, known: Known, moment: Moment) -> None:
    """Judge no volume by facts that may be out of date."""
    known.cache.storage.lose_sight(event.kind)


def scheduler_seen(event: SchedulerSeen, known: Known, moment: Moment) -> None:
    """Look at every gang where it is another one: it knows of no nomination of a gated pod."""
    if event.holder != known.scheduler:
        known.scheduler = event.holder
        known.agenda.dirty |= set(known.views)
