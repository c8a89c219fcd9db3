"""Drops the placement of a gang that was placed with others of which one lost its own."""

from coordinator.gang.together import ALONE
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import may_arrive
from coordinator.reconcile.together.starts import has_begun, is_broken


def drop_broken_group(look: Look) -> StepResult:
    """Drop the placement where nothing of the set was released, and others ask anew for all.

    So does a new leader with a set of which an earlier one wrote a part. What that may be releasing
    is fenced first.
    """
    placed = look.view.reservation
    if placed.placement is None or placed.together is ALONE or not look.scene.sighted:
        return NOTHING_DONE
    if has_begun(look) or not is_broken(look) or may_arrive(look):
        return NOTHING_DONE
    placed.placement = None
    return SURVEY_AGAIN
