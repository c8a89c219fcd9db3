"""Reads the terms of a gang from its source, and trims its placement to them."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from operator import is_

from coordinator.gang.pods.growth import minimums_of, without_growth
from coordinator.gang.priority import Asked, lowest_priority
from coordinator.gang.source import with_added, without_succeeded
from coordinator.gang.terms import Read, Understood
from coordinator.gang.view import GangView
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, Scene, StepResult
from coordinator.reconcile.pod_writes.fences import may_arrive
from coordinator.record.spec import terms_recorded
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from kube.ray.gang_terms import (
    HEAD,
    GangTerms,
    Misconfigured,
    fixed_queue,
    priority_class_asked,
    queue_counted_in,
)
from reservation.replicas import handed_on, trim, without_halves
from reservation.slots import slots_of
from reservation.unclaimed import without_unclaimed
from scheduling.model.placement import Placement
from scheduling.model.queue import DEFAULT_QUEUE


def understand(look: Look) -> StepResult:
    """Read the terms; a gang that was admitted or ran goes on under recorded ones if they break."""
    view, before, pods = look.view, look.view.understood, look.pods
    read, lowest = _read(look), lowest_priority(pods)
    terms, problem = _terms(look, read.said, lowest)
    if terms is None and (view.reservation.placement is not None or view.survey.ran):
        terms = before.terms or _terms_on_record(view)
    terms, misplaced = _in_its_queue(look, terms)
    terms = without_succeeded(look.source, _as_started(look, terms), pods)
    terms = with_added(look.source, terms, pods)
    name = terms.priority_class if terms is not None and not problem else ""
    asked = _class_asked(name, view.key.namespace, look.scene)
    queue = terms.queue if terms is not None else _queue_asked(look)
    said_before = before.provisioned or not view.pod_writes.removed_any
    view.understood = Understood(
        read,
        terms,
        problem or misplaced,
        queue,
        priority=asked.priority(lowest) + _added(look),
        has_quota=look.scene.queues.has_quota(queue),
        provisioned=look.source.was_provisioned and said_before,
        head_lost=_lost_for_good(look),
    )
    if view.reservation.placement is not None:
        view.reservation.placement = trimmed(look, view.reservation.placement)
    return NOTHING_DONE


def _queue_asked(look: Look) -> str:
    labels = look.scene.cache.namespace_labels(look.view.key.namespace)
    return queue_counted_in(look.source.metadata, labels, look.scene.queues.selections)


def _lost_for_good(look: Look) -> bool:
    """Say whether the head is gone or going, and KubeRay makes no other."""
    heads = (pod.member for pod in look.pods if pod.alive)
    there = any(member is not None and member.pod_set == HEAD for member in heads)
    return not there and look.scene.sighted and look.source.makes_no_other_head


def _added(look: Look) -> int:
    """Return what the gang's source adds to its priority, where the operator lets that count."""
    if not look.scene.allowed.adds_within(look.view.key.namespace):
        return 0
    return look.source.added_priority(look.scene.moment.wall)


def _in_its_queue(look: Look, terms: GangTerms | None) -> tuple[GangTerms | None, str]:
    """Keep a gang that holds quota in the queue that it was admitted in.

    What it holds would else move to a queue that nothing was asked of. The built-in queue holds no
    gang to a quota: a gang leaves it for the GangQueue that selects its namespace since.
    """
    placed = look.view.reservation
    holds = placed.placement is not None or any(pod.holds for pod in look.pods)
    fixed = placed.queue in look.scene.queues.rules or placed.queue not in ("", DEFAULT_QUEUE)
    if not holds:
        placed.queue = ""
    if terms is None or not holds or terms.queue == placed.queue:
        return terms, ""
    if not fixed:
        placed.queue = terms.queue
        return terms, ""
    return replace(terms, queue=placed.queue), fixed_queue(look.source.metadata, placed.queue)


def _as_started(look: Look, terms: GangTerms | None) -> GangTerms | None:
    """Keep the minimum of a gang of which a part is there: what is added to it is surplus.

    One of which nothing is left starts anew, as where KubeRay makes all pods again for a new spec.
    """
    view, gang = look.view, look.view.record.gang
    sent = view.pod_writes.targets.keys() - view.pod_writes.leaving
    if terms is None or not (sent or any(pod.alive and pod.settled_on for pod in look.pods)):
        return terms
    recorded = minimums_of(gang.spec.pod_sets) if gang is not None else {}
    found = without_growth(terms, view.reservation.minimums or recorded)
    view.reservation.minimums = minimums_of(found.pod_sets)
    return found


def expect_deletions(look: Look) -> StepResult:
    """Count pods whose deletion was asked for as members no more."""
    writes = look.view.pod_writes
    writes.leaving = set(writes.deleted)
    return SURVEY_AGAIN


def trimmed(look: Look, placement: Placement) -> Placement | None:
    """Return what of a placement is still of use; without terms all of it is."""
    view, pods, terms = look.view, look.pods, look.view.understood.terms
    if terms is None:
        return placement
    hosts = {each.name: each.hosts for each in terms.pod_sets}
    sent = may_arrive(look)
    whole = without_halves(placement, pods, hosts, sent)
    kept = handed_on(trim(whole, pods, _most_slots(terms, whole), sent), pods)
    # Else it is not known yet which slots are claimed: by pods to come, or by unknown releases.
    if not view.expects_pods and all(sent.values()):
        kept = _claimed(kept, pods, terms, sent, view.pod_writes.targets)
    if not slots_of(kept):
        return None
    return placement if kept == placement else kept


def _claimed(
    kept: Placement,
    pods: list[ObservedPod],
    terms: GangTerms,
    sent: Mapping[str, str],
    targets: Mapping[str, str],
) -> Placement:
    """Return the slots that pods are or may come for, in whole replicas."""
    hosts = {each.name: each.hosts for each in terms.pod_sets}
    counts = {each.name: each.count for each in terms.pod_sets}
    claimed = without_unclaimed(kept, pods, counts, hosts, targets)
    return kept if claimed is kept else without_halves(claimed, pods, hosts, sent)


def _most_slots(terms: GangTerms, placement: Placement) -> dict[str, int]:
    """How many slots each pod set may have: no more than its pods, no half of a spare replica."""
    if all(each.hosts == 1 for each in terms.pod_sets):
        return {each.name: each.count for each in terms.pod_sets}
    have: Counter[str] = Counter()
    for slot, count in slots_of(placement).items():
        have[slot.kind.pod_set] += count
    whole = {
        each.name: each.minimum + max(0, have[each.name] - each.minimum) // each.hosts * each.hosts
        for each in terms.pod_sets
        if each.hosts
    }
    return {each.name: min(each.count, whole.get(each.name, 0)) for each in terms.pod_sets}


def _terms(
    look: Look, terms: GangTerms | Misconfigured, lowest: int | None
) -> tuple[GangTerms | None, str]:
    name = priority_class_asked(look.source.metadata)
    problem = _class_asked(name, look.view.key.namespace, look.scene).problem(lowest)
    if isinstance(terms, Misconfigured):
        return None, "; ".join(filter(None, (terms.message, problem)))
    problem = problem or _misplaced(look, terms.queue)
    return (None, problem) if problem else (terms, "")


def _misplaced(look: Look, queue: str) -> str:
    """Say that its queue sends gangs to other clusters, and the gang is to run here, or not."""
    runs_here = look.source.dispatched is None
    if look.source.offered is not None or look.scene.queues.has_clusters(queue) is not runs_here:
        return ""
    kind = look.source.owner.kind
    field, value = _NOTES.get(kind, ("spec.managedBy", names.MANAGED_ELSEWHERE))
    if runs_here:
        said = f"GangQueue {queue} has clusters, and {field} was not set at its creation"
        return f"{said}: create the {kind} anew"
    return f"{field} is {value}, and GangQueue {queue} has no clusters: create the {kind} anew"


_NOTES = {names.APP_WRAPPER_KIND: (f"annotation {names.DISPATCHED}", "true")}
"""By kind how the webhook says that another cluster runs a gang, where not by managedBy."""


def _read(look: Look) -> Read:
    """Read the terms where the RayCluster, its namespace or the queues are not those read last."""
    source, before = look.source, look.view.understood.read
    selections = look.scene.queues.selections
    labels = look.scene.cache.namespace_labels(source.metadata.namespace)
    sources = (source, labels, selections)
    if before is not None and all(map(is_, before, sources)):
        return before
    return Read(*sources, source.terms(labels, selections))


def _terms_on_record(view: GangView) -> GangTerms | None:
    gang = view.record.gang
    return terms_recorded(gang) if gang is not None and gang.spec.pod_sets else None


def _class_asked(name: str, namespace: str, scene: Scene) -> Asked:
    allowed = scene.allowed.within(namespace)
    return Asked(name, namespace, scene.cache.priority_classes, allowed)
