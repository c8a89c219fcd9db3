"""Frees the room of a gang that cannot start, because a release is refused for good."""

from dataclasses import replace
from math import floor

from coordinator.gang import placement_faults
from coordinator.gang.setbacks.refused_releases import Refused, RefusedReleases
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import withdraw


def give_up_after_refusals(look: Look) -> StepResult:
    """Give the placement up where a release has been refused for `TORN_PATIENCE`.

    Not before every pod is fenced of which a release may be on its way, or so long after the last
    one that it cannot arrive: a policy may refuse fences too. Where the API server has refused all
    that were sent, none is on its way.
    """
    view = look.view
    if any(each.settled for each in view.survey.standing):
        view.refused_releases = RefusedReleases()
    if not placement_faults.is_refused(view) or not look.scene.sighted:
        view.release_refused = None
        return NOTHING_DONE
    refused = view.release_refused = view.release_refused or Refused(look.now)
    if look.now < refused.since + look.scene.patience.torn:
        return NOTHING_DONE
    if not refused.gives_up:
        view.release_refused = replace(refused, gives_up=True)
        refusal = placement_faults.release_refusals(view)[0]
        said = f"gave its room back, for a release is refused: {refusal}"
        view.refused_releases = replace(view.refused_releases, text=said)
    gated = (pod for each in view.survey.standing for pod in each.gated)
    return _give_up(look) if withdraw(look, gated) else NOTHING_DONE


def _give_up(look: Look) -> StepResult:
    """Drop the placement; the gang is decided after all others for a time, and stops none."""
    view, scene = look.view, look.scene
    view.reservation.placement = view.release_refused = None
    before = view.refused_releases
    until = floor(scene.moment.wall + scene.patience.setback_after(before.count + 1))
    view.refused_releases = RefusedReleases(before.count + 1, float(until), before.text)
    return SURVEY_AGAIN
