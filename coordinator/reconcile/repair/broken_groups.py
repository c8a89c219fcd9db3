"""Drops a gang's placement when another gang of its start-together group has lost its own."""

from coordinator.gang.together import ALONE
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import may_arrive
from coordinator.reconcile.together.starts import has_begun, is_broken


def drop_broken_group(look: Look) -> StepResult:
    """Drop the placement if no pod of the group was released, so that all gangs ask anew together.

    A new leader does the same with a group of which an earlier leader wrote only a part. Releases
    that may still arrive are fenced first.
    """
    placed = look.view.reservation
    if placed.placement is None or placed.together is ALONE or not look.scene.sighted:
        return NOTHING_DONE
    if has_begun(look) or not is_broken(look) or may_arrive(look):
        return NOTHING_DONE
    placed.placement = None
    return SURVEY_AGAIN
