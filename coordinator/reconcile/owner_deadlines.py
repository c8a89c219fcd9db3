"""Notes how the RayJob or RayService of a gang limits its wait, and warns before a deadline."""

from coordinator.gang.owner_deadlines import Deadline, deadline_of, regarding
from coordinator.messages.actions import EmitEvent
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from kube.objects.ray import RayJob
from scheduling.model.verdict import Reason


def note_owner_deadline(look: Look) -> StepResult:
    """Note the owner, and warn where a deadline is near while the gang waits.

    A reference of a RayCluster to an owner that does not name it says nothing: anyone can refer.
    """
    look.view.owner = look.scene.cache.owners.maker_of(look.source)
    deadline = _deadline(look)
    return _warning(look, deadline) if deadline is not None else NOTHING_DONE


def warn_at(look: Look) -> float | None:
    """Return when a deadline is to be warned of (monotonic seconds)."""
    deadline = _deadline(look)
    return look.now + deadline.warn_at - look.scene.moment.wall if deadline is not None else None


def _deadline(look: Look) -> Deadline | None:
    owner = look.scene.cache.owners.maker_of(look.source)
    return deadline_of(owner) if isinstance(owner, RayJob) and not look.view.survey.ran else None


def _warning(look: Look, deadline: Deadline) -> StepResult:
    view, wall = look.view, look.scene.moment.wall
    if not deadline.warn_at <= wall < deadline.at:
        return NOTHING_DONE
    uid, reason, on = (
        view.cluster_uid,
        Reason.DEADLINE_NEAR,
        next(iter(regarding(view.owner)), None),
    )
    said = deadline.message
    told = EmitEvent(view.key, uid, warning=True, reason=reason, message=said, regarding=on)
    return StepResult([told])
