"""Brings a held gang forward: its phase in line with its source, then the steps of that phase."""

from collections.abc import Iterator
from dataclasses import replace

from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.phases import Phase, Sign, Waiting
from coordinator.gang.held_start.start import TEXT_LIMIT
from coordinator.reconcile.held_start import dispatching
from coordinator.reconcile.held_start.quota_claims import ends_at
from coordinator.reconcile.held_start.resuming import WAIT
from coordinator.reconcile.held_start.resuspension import doubted_at
from coordinator.reconcile.held_start.source_writes import resume_source
from coordinator.reconcile.held_start.suspending import SUSPEND
from coordinator.reconcile.look import Look, run
from kube.gang.source import Stage
from scheduling.model.verdict import Reason


def notice(look: Look) -> None:
    """Bring the phase in line with what the source says; others may have changed it."""
    if look.source.stage is not None:
        _notice_stage(look, look.source.stage)
        return
    held, sign = look.view.held, _sign(look)
    if sign is None:
        return
    before = held.state.generation
    held.enter(sign, look.source.metadata.generation)
    if held.phase is Phase.NONE:
        look.scene.cache.foreseen.drop(look.view.key)
    else:
        _keep_late_starts(look, before)


def hold(look: Look) -> None:
    """Bring a gang forward that is held, or is to be suspended again."""
    waits = look.view.held.phase is Phase.WAITING
    look.source = look.source.resumed() if waits else look.source
    run(WAIT if waits else SUSPEND, look)


def resume_opted_out(look: Look) -> bool:
    """Resume the RayCluster of a gang that is opted out; say whether that is over."""
    held = look.view.held
    ours = look.source.dispatched is None and (held.holds or look.source.is_held)
    if held.is_behind(look.source) or held.write.under_way:
        return False
    if ours and look.source.suspended is not False:
        look.actions += resume_source(look)
        return False
    held.enter(Sign.OPTED_OUT, look.source.metadata.generation)
    return True


def next_at(look: Look) -> Iterator[float | None]:
    """Yield when time alone has a source resumed, suspended again, or asked once more."""
    held, patience = look.view.held, look.create_seconds
    yield held.write.attempts.not_before
    yield held.tries.paused.until if held.tries.paused is not None else None
    yield from dispatching.next_at(look)
    yield look.now + held.tries.setback.until - look.scene.moment.wall
    if held.learned.pods:
        yield held.learned.until
    rises = look.source.rises_every
    if rises and look.scene.allowed.adds_within(look.view.key.namespace):
        yield look.now + rises
    if held.write.asked is not None:
        yield held.write.asked.at + patience
    if isinstance(held.state, Waiting) and held.state.refused_since is not None:
        yield held.state.refused_since + patience
    yield doubted_at(look)
    yield look.scene.turns.due_at(look.view.key)
    yield ends_at(look)


def _sign(look: Look) -> Sign | None:
    """Return what leads to another phase, if anything does.

    Where the field is gone, KubeRay lets those sleep that it has put to sleep, and makes the pods
    of others.
    """
    said, view = look.source.suspended, look.view
    match view.held.phase:
        case Phase.RESUMED | Phase.SUSPENDING if _is_unrecorded(look):
            return Sign.UNRECORDED
        case Phase.WAITING if said is False or (said is None and look.pods):
            return Sign.RESUMED if view.reservation.placement is not None else Sign.TAKEN_OVER
        case Phase.RESUMED if said:
            return Sign.TAKEN_OVER
        case Phase.SUSPENDING if said:
            return Sign.SUSPENDED
        case Phase.SUSPENDING if any(pod.alive and not pod.gated for pod in look.pods):
            return Sign.RUNS
    return None


def _is_unrecorded(look: Look) -> bool:
    """Say whether a gang is resumed whose phase cannot be written: it is not suspended again."""
    write = look.view.held.write
    asked = write.under_way or write.asked is not None
    return "held" in look.view.record.drops and not asked and not look.source.suspended


def _keep_late_starts(look: Look, before: int) -> None:
    """Count late starts on where none but Muster changed the RayCluster: that is no edit."""
    late, now = look.view.late_starts, look.source.metadata.generation
    if late is not None and late.of.generation == before and now == before + 1:
        look.view.late_starts = replace(late, of=replace(late.of, generation=now))


def _notice_stage(look: Look, stage: Stage) -> None:
    """Bring the phase in line with the stage of the source, which another program alone changes.

    Once it is queued none of its pods is left, so that none is on its way to a slot.
    """
    view, source, held = look.view, look.source, look.view.held
    before = held.phase
    held.enter(stage, source.metadata.generation)
    if held.phase not in (before, Phase.RESUMED):
        look.scene.cache.foreseen.drop(view.key)
    if isinstance(held.state, Waiting):
        # The placement is of this spec, or goes.
        held.state = replace(held.state, generation=source.metadata.generation)
        if before is not Phase.WAITING:
            view.reservation.placement = None
    if before is Phase.RESUMED and held.holds and source.why_stopped:
        held.tries.text = f"it was stopped: {source.why_stopped}"[:TEXT_LIMIT]
        why = NotReady(Reason.PODS_REFUSED, held.tries.text)
        held.tries.pause(why, look.scene.moment, look.scene.patience)
    if held.phase is not Phase.NONE and source.suspended:
        look.source = source.resumed()
