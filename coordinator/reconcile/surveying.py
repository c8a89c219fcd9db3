"""Surveys the pods of a gang: which run, have a slot, wait, and whether the gang ever ran whole."""

from collections.abc import Iterable

from coordinator.gang.pods import adoption
from coordinator.gang.pods.pod_sets import is_ready, survey
from coordinator.gang.view import GangView
from coordinator.reconcile.status.placement import placement_json
from coordinator.reconcile.status.still_gated import outside
from kube.codec.observed_pod import ObservedPod
from reservation.release_order import NONE_DUE
from scheduling.model.placement import Placement


def take_survey(view: GangView, pods: list[ObservedPod]) -> None:
    """Bring `view.survey` in line with the pods, the terms and the placement."""
    terms, placement = view.understood.terms, view.reservation.placement
    found, writes = view.survey, view.pod_writes
    if terms is None:
        found.standing = ()
    else:
        due = NONE_DUE if view.together.due_beside is None else view.together.due_beside
        found.standing = survey(terms, pods, placement, writes.targets, writes.leaving, due)
    found.outside = outside(terms, pods)
    found.ready = sum(pod.ready for pod in pods if pod.alive)
    found.durable = placement is not None and _is_written(view, placement)
    found.ran = _has_run(view, pods)


def any_on_node(pods: Iterable[ObservedPod]) -> bool:
    """Whether a pod is on its node and neither ended nor is being deleted."""
    return any(pod.node and pod.alive for pod in pods)


def _has_run(view: GangView, pods: list[ObservedPod]) -> bool:
    """Whether the gang ran since it holds room; without terms that can be lost, and not found."""
    placed, ran, standing = view.reservation.placement, view.survey.ran, view.survey.standing
    if view.understood.terms is None:
        return ran and (placed is not None or any_on_node(pods))
    began = placed is not None or any(each.settled for each in standing)
    before = view.understood.provisioned and adoption.runs(standing)
    return began and (ran or is_ready(standing) or before)


def _is_written(view: GangView, placement: Placement) -> bool:
    """Whether the record holds the placement, and will when what is under way has arrived."""
    record, placed = view.record, view.reservation
    wanted = placement_json(placement, placed.epoch, placed.queue)
    said = record.written.get("together", {}).get("stamp", "")
    is_written = record.written.get("placement") == wanted and said == placed.together.stamp
    return is_written and not record.is_replaced
