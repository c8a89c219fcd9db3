"""Evicts a gang, or replicas of its surplus: removes the pods as members, the head goes last.

Nothing is evicted before the record says so, and from then on the pods are no members: no slot is
kept for them, and no pod is released in their place. What was begun of a whole gang is finished.
"""

from collections.abc import Iterable
from dataclasses import replace

from coordinator.gang.demand import NotReady
from coordinator.gang.eviction.budgets import Objection
from coordinator.gang.eviction.endings import Ending, covered, left_in_words, replicas
from coordinator.gang.eviction.stop_method import DeleteObjects, EvictPods, Keep
from coordinator.gang.held_start.phases import Phase, Sign
from coordinator.gang.source import asks_no_more
from coordinator.gang.view import GangView
from coordinator.reconcile.demand import ask_for_nothing
from coordinator.reconcile.eviction.evictions import ending_pods, stop, tell_of_endings
from coordinator.reconcile.eviction_dry_run import deletes_in_the_end, stop_method_of, why_kept
from coordinator.reconcile.held_start.quota_stakes import note_stake
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, Step, StepResult, run
from coordinator.reconcile.pod_writes.fences import fence_gated_pods, gated, withdraw
from coordinator.reconcile.pod_writes.nominations import take_back_nominations
from coordinator.reconcile.record.events import emit_events
from coordinator.reconcile.record.recording import endings_written, sync_record, write_record
from coordinator.reconcile.terms import expect_deletions, understand
from coordinator.reconcile.winding_down import withdraw_releases
from kube.codec.observed_pod import ObservedPod
from reservation.edits import with_homeless, without_slots
from reservation.slots import Slots, slot_of
from scheduling.model.gang import PendingGang
from scheduling.model.verdict import Reason
from scheduling.preemption.candidates import is_open
from scheduling.queueing.stops import StoppedBy


def is_under_way(view: GangView) -> bool:
    """Whether something is to end, and the record says so."""
    return bool(view.eviction.endings) and endings_written(view)


def drop_ended_slots(look: Look) -> StepResult:
    """Drop the slots of surplus that ends once its pods hold them or are gone.

    A slot stays while one like it is still to be taken: a pod that holds it would else be counted
    in that one, whose room others would get.
    """
    if look.view.eviction.whole is None:
        _note_slots(look)
    placed, slots = look.view.reservation, look.view.eviction.slots
    there, open_slots = {pod.uid for pod in look.pods if not pod.terminal}, placed.reserved.slots
    over = [uid for uid in slots if uid not in there or not open_slots[slots[uid]]]
    gone = Slots(slots.pop(uid) for uid in over)
    if gone and placed.placement is not None:
        placed.placement = without_slots(placed.placement, gone)
    return NOTHING_DONE


def _note_slots(look: Look) -> None:
    """Note what surplus that ends is on its way to, and forget what is to stay."""
    slots, ends = look.view.eviction.slots, {pod.uid for pod in ending_pods(look)}
    stay = {pod.uid for pod in look.pods if pod.uid not in ends and not pod.terminal}
    for uid in slots.keys() & stay:
        del slots[uid]
    for pod in look.pods:
        slot = slot_of(pod, pod.settled_on) if pod.uid in ends and not pod.holds else None
        if slot is not None:
            slots[pod.uid] = slot


def settle_endings(look: Look) -> StepResult:
    """Drop what has ended, and undo what is needed no more and was not begun."""
    eviction = look.view.eviction
    if eviction.whole is not None:
        return _settle_whole(look, eviction.whole)
    if eviction.endings:
        before = ending_pods(look)
        settled = (_settled(look, each) for each in eviction.endings)
        eviction.endings = tuple(each for each in settled if each.replicas)
        eviction.text = "; ".join(each.in_words() for each in eviction.endings)
        return _return_slots(look, before)
    return NOTHING_DONE


def remove_ended_members(look: Look) -> StepResult:
    """Count the pods that end as members no more; of a gang that may yet go on all are."""
    view = look.view
    if not is_under_way(view) or _may_be_undone(look):
        return NOTHING_DONE
    view.pod_writes.leaving |= {pod.uid for pod in ending_pods(look)}
    return SURVEY_AGAIN


def give_room_back(look: Look) -> StepResult:
    """Keep of the placement of a gang that ends what its released pods are on their way to."""
    goes = is_under_way(look.view) and not _may_be_undone(look)
    return withdraw_releases(look) if goes else NOTHING_DONE


def have_objects_deleted(look: Look) -> StepResult:
    """Have all objects of the gang deleted, which the record asks for from now on.

    It is held again from the next look on, so that it is not undone: its pods may go at any time.
    """
    view, held = look.view, look.view.held
    ends = view.eviction.whole is not None and is_under_way(view) and look.scene.sighted
    if ends and isinstance(stop_method_of(look), DeleteObjects) and held.phase is Phase.RESUMED:
        held.enter(Sign.GIVEN_BACK, held.state.generation)
    return NOTHING_DONE


def say_stopped(look: Look) -> StepResult:
    """Have the gang wait for its own end."""
    whole = look.view.eviction.whole or look.view.eviction.last
    if whole is not None:
        look.view.queueing.asked = NotReady(whole.reason, whole.message)
    return NOTHING_DONE


def carry_out(look: Look) -> StepResult:
    """Ask for the evictions that are missing."""
    if not is_under_way(look.view) or not look.scene.sighted:
        return NOTHING_DONE
    return StepResult([*tell_of_endings(look), *stop(look)])


STOP: tuple[Step, ...] = (
    sync_record,
    understand,
    expect_deletions,
    settle_endings,
    remove_ended_members,
    give_room_back,
    ask_for_nothing,
    say_stopped,
    have_objects_deleted,
    note_stake,
    write_record,
    emit_events,
    fence_gated_pods,
    take_back_nominations,
    carry_out,
)


def stop_gang(look: Look) -> None:
    """Bring the end of a whole gang forward; it is neither torn nor repaired meanwhile."""
    run(STOP, look)


# --- what is left of an ending --------------------------------------------------------------------


def _settle_whole(look: Look, ending: Ending) -> StepResult:
    view, eviction = look.view, look.view.eviction
    left = covered(ending, view.understood.terms, look.pods)
    undo = _may_be_undone(look) and look.scene.sighted
    is_refused = bool(eviction.pause.refusal) and not deletes_in_the_end(view, look.scene.queues)
    if undo and is_refused:
        eviction.keep("", Objection(eviction.pause.refusal), look.now)
    if undo and (is_refused or _is_needless(look, ending) or _must_be_kept(look)):
        eviction.drop()
        _return_slots(look, look.pods)
    elif _is_over(look, left) and withdraw(look, gated(look.pods)):
        _end(look)
    else:
        eviction.text = left_in_words(ending, left, eviction.pause.refusal)
    look.ends_less |= eviction.whole is None
    return SURVEY_AGAIN


def _is_over(look: Look, left: Iterable[ObservedPod]) -> bool:
    """Say whether all pods are gone; where the RayCluster is suspended then, whether all end.

    Once they are gone KubeRay would make them again.
    """
    if not is_under_way(look.view):
        return False
    return not any(pod.alive for pod in left) if _is_suspended_then(look) else not left


def _end(look: Look) -> None:
    """Give the placement up; what Muster resumed is to be suspended again."""
    view = look.view
    if _is_suspended_then(look):
        view.held.enter(Sign.GIVEN_BACK, look.source.metadata.generation)
    view.reservation.placement = None
    view.pod_writes.removed_any = True
    view.eviction.finish()


def _is_suspended_then(look: Look) -> bool:
    """Say whether the RayCluster is suspended after its pods were evicted.

    A suspension instead would ask no PodDisruptionBudget, and end the head with the workers.
    """
    return look.view.held.phase is Phase.RESUMED and isinstance(stop_method_of(look), EvictPods)


def _must_be_kept(look: Look) -> bool:
    return isinstance(stop_method_of(look), Keep)


def _may_be_undone(look: Look) -> bool:
    """Say whether the whole gang is to end, and no pod of it can be gone for that yet."""
    eviction = look.view.eviction
    return eviction.whole is not None and not eviction.begun and not eviction.sent


def _is_needless(look: Look, ending: Ending) -> bool:
    """Say whether the gang that it is for is gone, waits no more, or may not stop this one."""
    key, scene = ending.preemptor, look.scene
    if key is None:
        return ending.reason is Reason.QUEUE_STOPPED and _draining(look) is None
    source, view = scene.cache.sources.get(key), scene.views.get(key)
    held = view is not None and view.held.holds
    if source is None or asks_no_more(source, held=held):
        return True
    if ending.preemptor_uid not in ("", source.metadata.uid):
        return True
    if view is None or not view.looked_at:
        return False  # a new leader has not come to it yet
    return not (view.asks_for_minimum and _may_stop(view, look))


def say_why_not_stopped(look: Look) -> StepResult:
    """Say of a gang that was to end that it runs on, and why; once it may a cycle is due."""
    eviction = look.view.eviction
    if not eviction.endings:
        before = eviction.text
        eviction.text = _why_it_runs_on(look) or look.view.together.goes_on
        look.ends_less |= bool(before) and not eviction.text
    return NOTHING_DONE


def _why_it_runs_on(look: Look) -> str:
    view, stop = look.view, _draining(look)
    if stop is None or view.reservation.placement is None:
        return ""
    because, said = why_kept(look), stop.in_words(_queue_of(view))
    return f"{said}, but this gang runs on: {because}" if because else ""


def _draining(look: Look) -> StoppedBy | None:
    """Return what has the gangs of its queue stopped; None where nothing does."""
    stop = look.scene.queues.stops.get(_queue_of(look.view))
    return stop if stop is not None and stop.drains else None


def _queue_of(view: GangView) -> str:
    terms = view.understood.terms
    return view.reservation.queue or (terms.queue if terms is not None else "")


def _may_stop(preemptor: GangView, look: Look) -> bool:
    """Say whether the GangQueue of a gang lets it stop this one still; quota is not judged again.

    Without a GangQueue there is nothing that could have changed. A gang for which this one is to
    move may.
    """
    asked, queues, mine = preemptor.queueing.asked, look.scene.queues, look.view
    if look.scene.cache.is_to_move(mine.key, preemptor.key):
        return True
    if not isinstance(asked, PendingGang) or asked.queue not in queues.objects:
        return True
    terms = mine.understood.terms
    of = terms.queue if terms is not None else ""
    return is_open(queues.queue(asked.queue), asked.priority, of, mine.understood.priority)


def _settled(look: Look, ending: Ending) -> Ending:
    """Return what is left of an ending of replicas."""
    terms, writes = look.view.understood.terms, look.view.pod_writes
    pods = covered(ending, terms, look.pods)
    if look.scene.sighted and _is_needless(look, ending):
        pods = [pod for pod in pods if pod.terminating or pod.uid in writes.deleted]
    left = set(replicas(terms, pods).values())
    return replace(ending, replicas=tuple(each for each in ending.replicas if each in left))


def _return_slots(look: Look, pods: Iterable[ObservedPod]) -> StepResult:
    """Give those of these pods their slots back that stay: these were dropped with the decision.

    A pod without one would take that of the next that is placed there.
    """
    placed, ends = look.view.reservation, {pod.uid for pod in ending_pods(look)}
    stay = {pod.uid for pod in pods if pod.alive and pod.uid not in ends}
    if not stay or placed.placement is None:
        return NOTHING_DONE
    before, placed.placement = placed.placement, with_homeless(placed.placement, look.pods, stay)
    return NOTHING_DONE if placed.placement is before else SURVEY_AGAIN
