"""Frees the room of a gang that cannot start, because a release is refused for good."""

from math import floor

from coordinator.gang import repair
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import withdraw


def give_up_after_refusals(look: Look) -> StepResult:
    """Give the placement up where a release has been refused for `TORN_PATIENCE`.

    Not before every pod is fenced of which a release may be on its way, or so long after the last
    one that it cannot arrive: a policy may refuse fences too. Where the API server has refused all
    that were sent, none is on its way.
    """
    view, state = look.view, look.view.refused_releases
    if any(each.settled for each in view.survey.standing):
        state.count, state.until, state.text = 0, 0.0, ""
    if not repair.is_refused(view) or not look.scene.sighted:
        state.refused_since, state.under_way = None, False
        return NOTHING_DONE
    if state.refused_since is None:
        state.refused_since = look.now
    if look.now < state.refused_since + look.scene.patience.torn:
        return NOTHING_DONE
    if not state.under_way:
        said = repair.release_refusals(view)[0]
        state.under_way, state.text = True, f"gave its room back, for a release is refused: {said}"
    gated = (pod for each in view.survey.standing for pod in each.gated)
    return _give_up(look) if withdraw(look, gated) else NOTHING_DONE


def _give_up(look: Look) -> StepResult:
    """Drop the placement; the gang is decided after all others for a time, and stops none."""
    state = look.view.refused_releases
    look.view.reservation.placement = None
    state.refused_since, state.under_way = None, False
    state.count += 1
    state.until = float(
        floor(look.scene.moment.wall + look.scene.patience.setback_after(state.count))
    )
    return SURVEY_AGAIN
