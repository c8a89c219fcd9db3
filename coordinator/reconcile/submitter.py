"""Adds the submitter of a RayJob to its gang's request, until KubeRay creates that pod."""

from collections.abc import Mapping

from coordinator.gang.pods.submitter import parted, with_submitter
from coordinator.reconcile.look import Look
from kube.foreseen.submitter import USUAL, Submitter, submitter_of
from kube.objects.ray import RayJob
from kube.ray.gang_terms import GangTerms
from scheduling.admission.gang import admit
from scheduling.admission.question import Accepted, Question
from scheduling.diagnosis.never_fits import patient
from scheduling.filters.feasibility import feasible
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.gang import PendingGang
from scheduling.model.placement import Assignment, amounts_of
from scheduling.queueing.line import requests_of

STEPS = 100_000
"""What the search for a node for one pod may take, which needs none as a rule."""


def with_its_submitter(look: Look, terms: GangTerms, asked: PendingGang) -> PendingGang:
    """Return what a gang that is to start asks for, with its submitter if that is foreseen."""
    if not asked.minimum or look.view.reservation.placement is not None:
        return asked
    found = _foreseen(look, terms, requests_of(asked.minimum))
    return asked if found is None else with_submitter(asked, found)


def room_beside(look: Look) -> Assignment | None:
    """Find room for the submitter of a gang that has its placement, from an earlier leader perhaps.

    None where there is no room; no room is made for it.
    """
    terms, placed = look.view.understood.terms, look.view.reservation.placement
    if terms is None or placed is None:
        return None
    found = _foreseen(look, terms, amounts_of(placed))
    if found is None:
        return None
    alone = with_submitter(PendingGang(look.view.key, 0, 0.0, ()), found)
    outcome = admit(Question(alone, FreeCapacity.of(look.scene.cache.columns()), STEPS))
    return parted(outcome.placement)[1] if isinstance(outcome, Accepted) else None


def _foreseen(look: Look, terms: GangTerms, gang: Mapping[str, int]) -> Submitter | None:
    """Work out the submitter, unless it asks for too much, or nodes may come for it alone.

    No quota counts what is kept for it: it asks for no more than the `gang`, by resource, or than
    KubeRay's own. An autoscaler adds nodes for a pod that waits: where no node that is there may
    ever run it, and where the queue asks for nodes anyway, the gang waits for its own pods alone.
    """
    cache, key = look.scene.cache, look.view.key
    job, queue = cache.owners.maker_of(look.source), look.scene.queues.objects.get(terms.queue)
    if not isinstance(job, RayJob) or (queue is not None and queue.spec.provisioning is not None):
        return None
    admission = cache.admission.admission(key.namespace, cache.priority_classes)
    found = submitter_of(job, admission, look.scene.profiles)
    if found is None or not feasible(patient(found.shape), cache.table.view()).any():
        return None
    most = {**gang, **{name: max(n, gang.get(name, 0)) for name, n in USUAL.items()}}
    is_modest = all(amount <= most.get(name, 0) for name, amount in found.shape.requests)
    return found if is_modest else None
