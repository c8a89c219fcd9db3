"""Resumes a held gang once a cycle has placed it, by foreseen pods.

Nothing is ever written to foreseen pods. Once the placement is written the source is resumed:
KubeRay makes the pods, gated, and the usual steps match them with their slots and release them.
"""

from collections.abc import Collection
from dataclasses import replace

from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.phases import Waiting
from coordinator.gang.held_start.start import TEXT_LIMIT
from coordinator.gang.source import hindrance_of
from coordinator.reconcile.demand import ask
from coordinator.reconcile.held_start.dispatching import (
    forget_why_back,
    hear_of_end,
    let_others_have_its_quota,
    may_run_elsewhere,
)
from coordinator.reconcile.held_start.foreseeing import foresee, have_nothing_asked
from coordinator.reconcile.held_start.quota_claims import short_of_quota
from coordinator.reconcile.held_start.quota_stakes import note_stake
from coordinator.reconcile.held_start.resuspension import OLD_SCHEMA
from coordinator.reconcile.held_start.source_writes import (
    is_being_resumed,
    is_never_resumed,
    is_without_effect,
    resume_source,
)
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, Step, StepResult, run
from coordinator.reconcile.owner_deadlines import note_owner_deadline
from coordinator.reconcile.record.events import emit_events
from coordinator.reconcile.record.recording import sync_record, write_record
from coordinator.reconcile.repair.broken_groups import drop_broken_group
from coordinator.reconcile.repair.dropped_slots import drop_unusable_slots, drop_void_placement
from coordinator.reconcile.setbacks.late_starts import forget_what_is_over
from coordinator.reconcile.terms import expect_deletions, understand
from coordinator.reconcile.together.starts import is_recorded
from coordinator.reconcile.together.waiting import is_kept_back, wait_for_members
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from scheduling.model.holder import gang_holder
from scheduling.model.verdict import Reason

PODS_NAMED = 3


def end_at_once(look: Look) -> StepResult:
    """Stop a gang that has a placement and no pods, where it is to be stopped."""
    view = look.view
    if not view.eviction.endings or is_being_resumed(look) or may_run_elsewhere(look):
        return NOTHING_DONE
    view.reservation.placement = None
    view.eviction.finish()
    return SURVEY_AGAIN


def give_up(look: Look) -> StepResult:
    """Give the placement up that cannot be had any more, unless pods may come for it already."""
    view, waiting = look.view, look.view.held.state
    assert isinstance(waiting, Waiting)
    if is_without_effect(look):
        return _give_resumption_up(look, "the API server took it and changed nothing")
    if is_being_resumed(look) or may_run_elsewhere(look):
        return NOTHING_DONE
    problem, is_here = _problem(look), look.source.dispatched is None
    short = short_of_quota(look) if problem is None and is_here else ""
    problem = NotReady(Reason.PODS_REFUSED, short) if short else problem
    view.held.state = waiting = replace(waiting, problem=problem, is_short=bool(short))
    if problem is not None:
        view.reservation.placement = None
        return SURVEY_AGAIN
    if is_never_resumed(look, waiting):
        refusal = view.held.write.attempts.refusal or "the API server does not answer"
        return _give_resumption_up(look, refusal)
    done = drop_unusable_slots(look) if is_here else NOTHING_DONE
    if done.resurvey:
        run((expect_deletions,), look)
    return drop_void_placement(look)


def drop_set(look: Look) -> StepResult:
    """Give the placement up where others lost theirs that were placed with it."""
    return NOTHING_DONE if is_being_resumed(look) else drop_broken_group(look)


def _give_resumption_up(look: Look, refusal: str) -> StepResult:
    """Let others have the room of a gang whose source cannot be resumed; try again later."""
    view, tries = look.view, look.view.held.tries
    view.reservation.placement, view.held.write.asked = None, None
    tries.text = f"it could not be resumed: {refusal}"[:TEXT_LIMIT]
    tries.pause(NotReady(Reason.HELD, tries.text), look.scene.moment, look.scene.patience)
    return SURVEY_AGAIN


def _problem(look: Look) -> NotReady | None:
    """Say why the pods could not be created, as far as that is known."""
    rules, foresight = look.scene.cache.admission, look.view.held.expected.foresight
    hindrance = hindrance_of(look.source, foresight.unforeseeable)
    if hindrance is not None:
        return hindrance
    if "held" in look.view.record.drops and look.source.resumable is None:
        return NotReady(Reason.HELD, OLD_SCHEMA)
    if rules.unlisted:
        kinds = ", ".join(sorted(each.__name__ for each in rules.unlisted))
        return NotReady(Reason.PENDING, f"waiting for the list of all {kinds} objects")
    if foresight.refused:
        return NotReady(Reason.PODS_REFUSED, foresight.refused)
    if foresight.put_off:
        return NotReady(Reason.HELD, foresight.put_off)
    return None


def ask_ahead(look: Look) -> StepResult:
    """Ask for room for the pods that are to come, unless something is known to stop them."""
    done, view = ask(look), look.view
    hindrance = _hindrance(look) if view.understood.terms is not None else None
    if hindrance is not None and view.reservation.placement is None and not view.is_finished:
        view.queueing.asked, view.queueing.refusal = hindrance, None
    return done


def _hindrance(look: Look) -> NotReady | None:
    view, held = look.view, look.view.held
    left = look.scene.cache.members(view.key, view.cluster_uid)
    if left:
        kind = gang_holder(view.key).kind
        said = f"the {kind} is suspended again; {_named(left)} left to be deleted"
        return NotReady(Reason.HELD, said)
    is_resumed = look.source.resumable is not None
    if "held" in view.record.drops and is_resumed:
        return NotReady(Reason.HELD, f"the RayCluster is being resumed: {OLD_SCHEMA}")
    if held.expected.foresight.unforeseeable and is_resumed:
        return NotReady(Reason.HELD, "the RayCluster is being resumed: its pods cannot be foreseen")
    return held.problem or held.tries.paused_at(look.now)


def _named(left: Collection[ObservedPod]) -> str:
    """Name the pods that are in the way, some of them where they are many."""
    some = sorted(pod.name for pod in left)[:PODS_NAMED]
    count = "1 pod" if len(left) == 1 else f"{len(left)} pods"
    return f"{count} ({', '.join(some)}{', ...' if len(left) > len(some) else ''})"


def tell_without_pods(look: Look) -> StepResult:
    """Tell the user; there is no head pod to tell it on."""
    look.pods = []
    return emit_events(look)


def resume(look: Look) -> StepResult:
    """Resume the source once the placement is written, or when its user says so.

    Of an offer nothing is resumed: what takes its room over is another gang. Nor is what another
    cluster runs.
    """
    if look.source.offered is not None or look.source.dispatched is not None:
        return NOTHING_DONE
    view = look.view
    always = look.source.metadata.annotations.get(names.CREATE_PODS) == names.CREATE_ALWAYS
    cannot_wait = "held" in view.record.drops or bool(view.held.expected.foresight.unforeseeable)
    placed = view.survey.durable and is_recorded(look)
    due = look.scene.sighted and (placed or always or (cannot_wait and not is_kept_back(look)))
    return StepResult(resume_source(look)) if due else NOTHING_DONE


WAIT: tuple[Step, ...] = (
    sync_record,
    hear_of_end,
    forget_why_back,
    foresee,
    understand,
    expect_deletions,
    have_nothing_asked,
    forget_what_is_over,
    end_at_once,
    note_stake,
    give_up,
    let_others_have_its_quota,
    drop_set,
    ask_ahead,
    wait_for_members,
    note_owner_deadline,
    write_record,
    tell_without_pods,
    resume,
)
