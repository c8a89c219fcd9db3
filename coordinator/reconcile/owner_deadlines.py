"""Notes how the RayJob or RayService of a gang limits its wait, and warns before a deadline."""

from coordinator.gang.owner_deadlines import (
    Deadline,
    deadline_of,
    upgrade_in_words,
    version_that_serves,
)
from coordinator.messages.actions import EmitEvent, Regarding
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from kube.objects import names
from kube.objects.ray import RayJob, RayOwner, RayService
from scheduling.model.verdict import Reason


def note_owner_deadline(look: Look) -> StepResult:
    """Note what is to be said of the owner while the gang waits, and warn where a deadline is near.

    A reference of a RayCluster to an owner that does not name it says nothing: anyone can refer.
    """
    view, owner = look.view, look.scene.cache.owners.maker_of(look.source)
    view.owner_text, view.owner = "", _regarding(owner)
    if view.survey.ran or owner is None:
        return NOTHING_DONE
    if isinstance(owner, RayService):
        return _note_upgrade(look, owner)
    deadline = deadline_of(owner)
    if deadline is None:
        return NOTHING_DONE
    view.owner_text = deadline.message
    return _warning(look, deadline)


def warn_at(look: Look) -> float | None:
    """Return when a deadline is to be warned of (monotonic seconds)."""
    owner = look.scene.cache.owners.maker_of(look.source)
    deadline = deadline_of(owner) if isinstance(owner, RayJob) else None
    if deadline is None or look.view.survey.ran:
        return None
    return look.now + deadline.warn_at - look.scene.moment.wall


def _note_upgrade(look: Look, service: RayService) -> StepResult:
    serves = version_that_serves(service, look.view.key.name)
    if serves:
        look.view.owner_text = upgrade_in_words(service, serves)
    return NOTHING_DONE


def _warning(look: Look, deadline: Deadline) -> StepResult:
    view, wall = look.view, look.scene.moment.wall
    if not deadline.warn_at <= wall < deadline.at:
        return NOTHING_DONE
    reason = Reason.DEADLINE_NEAR
    on = view.owner[0] if view.owner else None
    return StepResult(
        [
            EmitEvent(
                view.key,
                view.cluster_uid,
                warning=True,
                reason=reason,
                message=deadline.message,
                regarding=on,
            )
        ]
    )


def _regarding(owner: RayOwner | None) -> tuple[Regarding, ...]:
    if owner is None:
        return ()
    kind = "RayJob" if isinstance(owner, RayJob) else "RayService"
    meta = owner.metadata
    return (Regarding(names.RAY_API_VERSION, kind, meta.name, meta.uid),)
