"""Brings a gang forward whose RayCluster Muster suspended: no pod of it exists while it waits.

So it does a gang whose objects another program creates and deletes, as the Gang says: nothing is
written to its source.

It is decided on the pods that its templates tell of, which stand for its pods in a look; nothing is
ever written to them. Once its placement is written, the RayCluster is resumed: KubeRay makes the
pods, gated, and the usual steps match them with their slots and release them. Where they do not
come, or otherwise than foreseen so that they do not fit, it is suspended again, whole.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

from coordinator.cluster.foreseen_gangs import MOST_OF_A_NAMESPACE, MOST_PODS
from coordinator.gang import ending
from coordinator.gang.demand import NotReady
from coordinator.gang.foresight import Foresight, foresight_of, pods_of
from coordinator.gang.held_start import (
    Phase,
    with_learned,
)
from coordinator.gang.source import came_back, hindrance_of, phase_of
from coordinator.messages.actions import (
    Action,
    ResumeRayCluster,
    SuspendRayCluster,
)
from coordinator.reconcile.demand import ask, ask_for_nothing
from coordinator.reconcile.events import tell_user
from coordinator.reconcile.fences import fence_gated_pods, gated, withdraw
from coordinator.reconcile.late_starts import create_seconds, forget_what_is_over
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Done, Look, Step, run
from coordinator.reconcile.lost_slots import drop_lost_slots, drop_void_placement
from coordinator.reconcile.nominations import take_back_nominations
from coordinator.reconcile.owner_deadlines import hear_owner
from coordinator.reconcile.quota_claims import ends_at, short_of_quota
from coordinator.reconcile.recording import sync_record, write_record
from coordinator.reconcile.resumption import OLD_SCHEMA, TEXT_LIMIT, as_it_is, doubted_at, pause
from coordinator.reconcile.terms import expect_deletions, understand
from kube.codec.observed_pod import ObservedPod
from kube.foreseen.gang import Outlook
from kube.gang.source import Stage
from kube.objects import names
from scheduling.model.holder import gang_holder
from scheduling.model.verdict import Reason

PODS_NAMED = 3


def notice(look: Look) -> None:
    """Bring the phase in line with what the RayCluster says; others may have changed it."""
    if look.source.stage is not None:
        _notice_stage(look, look.source.stage)
        return
    held, found = look.view.held, Phase.NONE if _is_unrecorded(look) else _phase_found(look)
    if found is None:
        return
    if found is not Phase.NONE:
        _keep_late_starts(look)
    held.become(found, look.source.metadata.generation)
    if found is Phase.NONE:
        look.scene.cache.foreseen.drop(look.view.key)


def _phase_found(look: Look) -> Phase | None:
    """Return the phase that the RayCluster says to have begun, if one has.

    Where the field is gone, KubeRay lets those sleep that it has put to sleep, and makes the pods
    of others.
    """
    said = look.source.suspended
    match look.view.held.phase:
        case Phase.WAITING if said is False or (said is None and look.pods):
            placed = look.view.reservation.placement is not None
            return Phase.RESUMED if placed else Phase.NONE
        case Phase.RESUMED if said:
            return Phase.NONE  # by others: it is theirs to resume
        case Phase.SUSPENDING if said:
            return Phase.WAITING
        case Phase.SUSPENDING if any(pod.alive and not pod.gated for pod in look.pods):
            return Phase.RESUMED  # others took a gate off: it runs
    return None


def _notice_stage(look: Look, stage: Stage) -> None:
    """Bring the phase in line with the stage of the source, which another program alone changes.

    Once it is queued none of its pods is left, so that none is on its way to a slot.
    """
    held, found, now = look.view.held, look.source, phase_of(stage, look.view.held.phase)
    why = came_back(found, held.phase, now)
    if now is not held.phase:
        held.become(now, found.metadata.generation)
        if now is not Phase.RESUMED:
            look.scene.cache.foreseen.drop(look.view.key)
        if now is Phase.WAITING:
            look.view.reservation.placement = None
    if now is Phase.WAITING:
        held.generation = found.metadata.generation  # the placement is of this spec, or is dropped
    if why:
        held.text = f"it was stopped: {why}"[:TEXT_LIMIT]
        pause(look, NotReady(Reason.PODS_REFUSED, held.text))
    if now is not Phase.NONE and found.suspended:
        look.source = found.resumed()


def _is_unrecorded(look: Look) -> bool:
    """Say whether a gang is resumed whose phase cannot be written: it is not suspended again."""
    held = look.view.held
    if not look.view.record.drops_held or held.writing or look.source.suspended:
        return False
    return held.phase in (Phase.RESUMED, Phase.SUSPENDING) and not held.asked


def _keep_late_starts(look: Look) -> None:
    """Count late starts on where none but Muster changed the RayCluster: that is no edit."""
    view, now = look.view, look.source.metadata.generation
    before, late = view.held.generation, view.late
    if late is not None and late.of.generation == before and now == before + 1:
        view.late = replace(late, of=replace(late.of, generation=now))


def hold(look: Look) -> None:
    """Bring a gang forward that is held, or is to be suspended again."""
    waits = look.view.held.phase is Phase.WAITING
    look.source = look.source.resumed() if waits else look.source
    run(WAIT if waits else SUSPEND, look)


def let_go(look: Look) -> bool:
    """Resume the RayCluster of a gang that is opted out; say whether that is over."""
    held = look.view.held
    ours = held.holds or look.source.is_held
    if held.is_behind(look.source) or held.writing:
        return False
    if ours and look.source.suspended is not False:
        look.actions += _asked(look, ResumeRayCluster)
        return False
    held.become(Phase.NONE, look.source.metadata.generation)
    return True


# --- a gang that waits ----------------------------------------------------------------------------


def foresee(look: Look) -> Done:
    """Have the pods that the templates tell of stand for those of the gang.

    One that a person suspended asks for none, and takes no part of what may be foreseen.
    """
    held, source = look.view.held, as_it_is(look)
    if source.stopped_by_user:
        look.scene.cache.foreseen.drop(look.view.key)
        held.foresight_of, held.expected, look.pods = None, (), []
        return NOTHING_DONE
    rules, classes = look.scene.cache.admission, look.scene.cache.priority_classes
    known = held.foresight_of
    stale = known is None or known[0] is not source or known[1] != rules.edition
    if stale or held.foresight.put_off:
        outlook = look.scene.foresee(source, rules.admission(look.view.key.namespace, classes))
        held.foresight, held.foresight_of = _foresight(look, outlook), (source, rules.edition)
    before, held.expected = held.expected, with_learned(held, look.source, look.now)
    look.pods = list(held.expected)
    if held.expected is not before or look.view.key not in look.scene.cache.foreseen:
        look.scene.cache.foresee(look.view.key, look.pods)
    return NOTHING_DONE


def _foresight(look: Look, outlook: Outlook) -> Foresight:
    """List the pods, unless there would be too many of all held gangs."""
    count = pods_of(outlook)
    if look.scene.cache.foreseen.takes(look.view.key, count):
        return foresight_of(outlook, look.scene.profiles)
    return Foresight(
        put_off=f"its pods ({count}) are judged when fewer pods of held gangs wait; allowed: "
        f"{MOST_OF_A_NAMESPACE} in a namespace, {MOST_PODS} in all"
    )


def have_nothing_asked(look: Look) -> Done:
    """Answer at once whether the gang can be stopped: there is no pod to ask the API server for."""
    for probe in look.view.eviction.probes.values():
        probe.passed = True
    return NOTHING_DONE


def end_at_once(look: Look) -> Done:
    """Stop a gang that has a placement and no pods, where it is to be stopped."""
    view = look.view
    if not view.eviction.endings or _is_being_resumed(look):
        return NOTHING_DONE
    view.reservation.placement = None
    view.eviction.finish()
    return SURVEY_AGAIN


def give_up(look: Look) -> Done:
    """Give the placement up that cannot be had any more, unless pods may come for it already."""
    if _is_without_effect(look):
        return _give_resumption_up(look, "the API server took it and changed nothing")
    if _is_being_resumed(look):
        return NOTHING_DONE
    view = look.view
    view.held.problem = _problem(look)
    if view.held.problem is not None:
        view.reservation.placement = None
        return SURVEY_AGAIN
    if _is_never_resumed(look):
        refusal = view.held.attempts.refusal or "the API server does not answer"
        return _give_resumption_up(look, refusal)
    done = drop_lost_slots(look)
    if done.resurvey:
        run((expect_deletions,), look)
    return drop_void_placement(look)


def _give_resumption_up(look: Look, refusal: str) -> Done:
    """Let others have the room of a gang whose RayCluster cannot be resumed; try again later."""
    view = look.view
    view.reservation.placement, view.held.asked = None, 0
    view.held.text = f"it could not be resumed: {refusal}"[:TEXT_LIMIT]
    pause(look, NotReady(Reason.HELD, view.held.text))
    return SURVEY_AGAIN


def ask_ahead(look: Look) -> Done:
    """Ask for room for the pods that are to come, unless something is known to stop them."""
    done, view = ask(look), look.view
    hindrance = _hindrance(look) if view.understood.terms is not None else None
    if hindrance is not None and view.reservation.placement is None and not view.is_finished:
        view.queueing.asked, view.queueing.refusal = hindrance, None
    return done


def _hindrance(look: Look) -> NotReady | None:
    left = look.scene.cache.members(look.view.key, look.view.cluster_uid)
    if left:
        said = f"the {_kind(look)} is suspended again; {_named(left)} left to be deleted"
        return NotReady(Reason.HELD, said)
    held = look.view.held
    is_resumed = look.source.resumable is not None
    if look.view.record.drops_held and is_resumed:
        return NotReady(Reason.HELD, f"the RayCluster is being resumed: {OLD_SCHEMA}")
    if held.foresight.unforeseeable and is_resumed:
        return NotReady(Reason.HELD, "the RayCluster is being resumed: its pods cannot be foreseen")
    return held.problem or (held.paused if look.now < held.paused_until else None)


def _named(left: Collection[ObservedPod]) -> str:
    """Name the pods that are in the way, some of them where they are many."""
    some = sorted(pod.name for pod in left)[:PODS_NAMED]
    count = "1 pod" if len(left) == 1 else f"{len(left)} pods"
    return f"{count} ({', '.join(some)}{', ...' if len(left) > len(some) else ''})"


def _problem(look: Look) -> NotReady | None:
    """Say why the pods could not be created, as far as that is known."""
    rules, held = look.scene.cache.admission, look.view.held
    hindrance = hindrance_of(look.source, held.foresight.unforeseeable)
    if hindrance is not None:
        return hindrance
    if look.view.record.drops_held and look.source.resumable is None:
        return NotReady(Reason.HELD, OLD_SCHEMA)
    if rules.unlisted:
        kinds = ", ".join(sorted(each.__name__ for each in rules.unlisted))
        return NotReady(Reason.PENDING, f"waiting for the list of all {kinds} objects")
    if held.foresight.refused:
        return NotReady(Reason.PODS_REFUSED, held.foresight.refused)
    if held.foresight.put_off:
        return NotReady(Reason.HELD, held.foresight.put_off)
    short = short_of_quota(look)
    return NotReady(Reason.PODS_REFUSED, short) if short else None


def tell_without_pods(look: Look) -> Done:
    """Tell the user; there is no head pod to tell it on."""
    look.pods = []
    return tell_user(look)


def resume(look: Look) -> Done:
    """Resume the RayCluster once the placement is written, or when its user says so."""
    view, scene = look.view, look.scene
    always = look.source.metadata.annotations.get(names.CREATE_PODS) == names.CREATE_ALWAYS
    cannot_wait = view.record.drops_held or bool(view.held.foresight.unforeseeable)
    if not scene.sighted or not (view.survey.durable or always or cannot_wait):
        return NOTHING_DONE
    return Done(_asked(look, ResumeRayCluster))


WAIT: tuple[Step, ...] = (
    sync_record,
    foresee,
    understand,
    expect_deletions,
    have_nothing_asked,
    forget_what_is_over,
    end_at_once,
    give_up,
    ask_ahead,
    hear_owner,
    write_record,
    tell_without_pods,
    resume,
)


# --- a gang that is to be suspended again ---------------------------------------------------------


def keep_on_their_way(look: Look) -> Done:
    """Keep of the placement what released pods are on their way to, until they are gone."""
    placed = look.view.reservation
    if placed.placement is not None and withdraw(look, gated(look.pods)):
        placed.placement = ending.on_their_way(placed.placement, look.pods)
    return SURVEY_AGAIN


def say_suspending(look: Look) -> Done:
    """Have the gang wait until it is suspended."""
    said = f"the {_kind(look)} is being suspended"
    look.view.queueing.asked = NotReady(Reason.HELD, said)
    return NOTHING_DONE


def suspend(look: Look) -> Done:
    """Suspend the RayCluster once the record says so."""
    view = look.view
    written = view.record.written.get("held", {}).get("phase") == Phase.SUSPENDING
    if not written or view.record.replacing or not look.scene.sighted:
        return NOTHING_DONE
    return Done(_asked(look, SuspendRayCluster))


SUSPEND: tuple[Step, ...] = (
    sync_record,
    understand,
    expect_deletions,
    have_nothing_asked,
    keep_on_their_way,
    ask_for_nothing,
    say_suspending,
    write_record,
    tell_user,
    fence_gated_pods,
    take_back_nominations,
    suspend,
)


# --- time -----------------------------------------------------------------------------------------


def next_at(look: Look) -> Iterator[float | None]:
    """Yield when time alone has a RayCluster resumed, suspended again, or asked once more."""
    held = look.view.held
    yield held.attempts.not_before
    yield held.paused_until
    if held.learned:
        yield held.learned_until
    yield look.now + held.set_back_until - look.scene.moment.wall
    rises = look.source.rises_every
    if rises and look.scene.allowed.adds_within(look.view.key.namespace):
        yield look.now + rises
    if held.asked:
        yield held.asked_at + create_seconds(look)
    if held.refused_since is not None:
        yield held.refused_since + create_seconds(look)
    yield from doubted_at(look)
    yield ends_at(look)


# --- writes to the RayCluster ---------------------------------------------------------------------


def _asked(look: Look, what: type[ResumeRayCluster] | type[SuspendRayCluster]) -> list[Action]:
    """Ask for a write once for each generation of the RayCluster, again where it failed.

    Where another program does it the record says it all: it sees it there.
    """
    held, source = look.view.held, as_it_is(look)
    generation, cluster = source.metadata.generation, source.resumable
    if held.writing or held.asked == generation or look.now < held.attempts.not_before:
        return []
    held.asked, held.asked_at = generation, look.now
    if cluster is None:
        return []
    held.writing = True
    return [what(look.view.key, cluster)]


def _kind(look: Look) -> str:
    return gang_holder(look.view.key).kind


def _is_being_resumed(look: Look) -> bool:
    """Say whether the RayCluster was asked to be resumed, so that pods may come any time."""
    held = look.view.held
    return held.writing or held.asked == look.source.metadata.generation


def _is_without_effect(look: Look) -> bool:
    """Say whether the RayCluster stays as it is though the resumption was taken long ago."""
    held, generation = look.view.held, look.source.metadata.generation
    if held.writing or held.asked != generation or look.view.reservation.placement is None:
        return False
    return look.scene.sighted and look.now >= held.asked_at + create_seconds(look)


def _is_never_resumed(look: Look) -> bool:
    """Say whether the resumption fails for so long that others should have the room."""
    view, held = look.view, look.view.held
    if view.reservation.placement is None or not held.attempts.failures:
        held.refused_since = None
        return False
    if held.refused_since is None:
        held.refused_since = look.now
    return look.now >= held.refused_since + create_seconds(look)
