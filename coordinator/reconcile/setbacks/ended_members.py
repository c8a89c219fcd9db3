"""Stops a whole gang when another member of its group has ended, if the group asks for that.

The members then wait for each other again. A gang that cannot be stopped goes on, and says so.
"""

from coordinator.gang.eviction.endings import Ending
from coordinator.reconcile.eviction_dry_run import why_kept
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.together.ends import first_end, has_ended
from coordinator.reconcile.together.starts import has_begun
from kube.objects import names
from scheduling.model.verdict import Reason


def end_with_others(look: Look) -> StepResult:
    """Stop the whole gang if another member that was placed with it has ended."""
    view, mate = look.view, look.scene.cache.together.of(look.view.key)
    view.together.goes_on = ""
    if mate is None or not look.scene.sighted or not _ends_with_others(look):
        return NOTHING_DONE
    if has_ended(look.scene, mate):
        return NOTHING_DONE  # what is left of it is its owner's
    said, kept = first_end(look), why_kept(look)
    if said and kept:
        view.together.goes_on = f"{said}, but this gang goes on: {kept}"
    elif said:
        why = f"all members are stopped, to wait for each other again ({names.TOGETHER_END}: All)"
        stamp = look.scene.moment.stamp
        view.eviction.decide(Ending(Reason.MEMBER_ENDED, f"{said}; {why}", stamp))
    return NOTHING_DONE


def _ends_with_others(look: Look) -> bool:
    """Say whether the gang's group has begun, and ends as a whole with any of its members."""
    view, group = look.view, look.view.together.group
    if group is None or not group.ends_at_once or view.eviction.whole is not None:
        return False
    return view.reservation.placement is not None and has_begun(look)
