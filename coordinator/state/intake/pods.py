"""Takes in changes of pods, and the outcome of writes to them."""

from coordinator.gang.eviction.budgets import BY_BUDGET, REFUSED, Objection
from coordinator.gang.nominations import FORBIDDEN_FOR
from coordinator.gang.pods.expected_changes import goes_on, was_nominated
from coordinator.gang.view import GangView
from coordinator.messages.events import PodGone, PodSeen
from coordinator.messages.write_ends import (
    BudgetsRead,
    EvictionTried,
    NominationEnded,
    PodPatchEnded,
)
from coordinator.reconcile.eviction_dry_run import deletes_in_the_end
from coordinator.state.intake.surroundings import look_at_those_without_claims
from coordinator.state.known import Known
from kube.codec.observed_pod import ObservedPod
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey


def pod_seen(event: PodSeen, known: Known, moment: Moment) -> None:
    """Take in a pod; a look at its whole gang waits where it only goes on as decided."""
    if known.cache.renew_pod(event.pod, event.teller):
        return
    before = known.cache.pods.get(event.pod.key)
    room_before = known.room.room_of(before)
    spread_before = known.cache.is_spread_over(event.pod.namespace)
    if known.cache.put_pod(event.pod, event.teller) is None:
        return
    if before is not None and before.uid != event.pod.uid:
        known.room.forget_pod(before.uid)
    if known.cache.is_spread_over(event.pod.namespace) != spread_before:
        _look_at_all(known, event.pod.namespace)
    known.agenda.cycle_wanted |= known.submitter_room.seen(event.pod)
    _note_stray_gate(known, before, event.pod)
    _note_step(known, before, event.pod, moment)
    if before is not None and _is_nominated(known, before, event.pod, moment):
        known.agenda.cycle_wanted |= room_before not in ("", known.room.room_of(event.pod))
        return
    gathering = _gathering(known, event.pod) if before is None else None
    if gathering is not None:
        known.agenda.put_off(gathering, moment.now)
    elif before is None or not _goes_on(known, before, event.pod, moment):
        _pod_changed(known, before, event.pod)
        room_now = known.room.room_of(event.pod)
        _note_room(known, room_before, room_now, shrunk=_shrunk(before, event.pod))


def pod_gone(event: PodGone, known: Known, moment: Moment) -> None:
    """Forget a pod."""
    room_before = known.room.room_of(known.cache.pods.get((event.namespace, event.name)))
    spread_before = known.cache.is_spread_over(event.namespace)
    before = known.cache.remove_pod(event.namespace, event.name, event.uid, event.teller)
    if before is not None:
        known.room.forget_pod(before.uid)
        known.stray_gates.gone(before.namespace, before.uid)
        if known.cache.is_spread_over(event.namespace) != spread_before:
            _look_at_all(known, event.namespace)
        _pod_changed(known, before, None)
        if known.cache.devices.index.gives_any(before.extended):
            look_at_those_without_claims(known, event.namespace, moment)
        _note_room(known, room_before, "", shrunk=False)


def patch_ended(event: PodPatchEnded, known: Known, moment: Moment) -> None:
    """Take in how a release, fence or deletion ended."""
    view = known.views.get(event.gang)
    if view is None:
        return
    _note_end(view, event, moment.now)
    gated = known.cache.is_gated(view.key)
    if event.error is None and (view.pod_writes.inflight or not gated):
        known.agenda.put_off(event.gang, moment.now)
    else:
        known.agenda.dirty.add(event.gang)


def eviction_tried(event: EvictionTried, known: Known, moment: Moment) -> None:
    """Take in how the dry run of an eviction ended.

    What a budget says is no refusal where the queue has such pods deleted in the end.
    """
    view = known.views.get(event.gang)
    if view is None:
        return
    overruled = event.by_budget and deletes_in_the_end(view, known.queues)
    in_short = BY_BUDGET if event.by_budget else REFUSED
    refusal = "" if overruled else event.refusal
    objection = Objection(refusal, event.uid, in_short) if refusal else None
    for probe in view.eviction.probes.values():
        probe.heard(event.uid, objection)
    known.agenda.dirty.add(event.gang)


def budgets_read(event: BudgetsRead, known: Known, moment: Moment) -> None:
    """Take in the disruption budgets that a trial has to be within."""
    trial = known.term.trials.get(event.gang)
    if trial is None or event.namespace not in trial.asked:
        return
    trial.budgets[event.namespace] = event.budgets
    if event.error is not None:
        trial.unread[event.namespace] = event.error


def _note_eviction(view: GangView, event: PodPatchEnded, now: float) -> None:
    eviction = view.eviction
    if eviction.sent.pop(event.uid, None) is None:
        return
    if event.error is None:
        eviction.accepted()
    else:
        eviction.begun |= event.unknown
        eviction.refused(now, event.error if event.refused else "")


def nomination_ended(event: NominationEnded, known: Known, moment: Moment) -> None:
    """Take in that the write of a nomination ended, however it did.

    Where none may be written, it is as without that guard for a time: no release waits for any.
    """
    if event.forbidden and moment.now >= known.term.forbidden_until:
        known.term.forbidden_until = moment.now + FORBIDDEN_FOR
        known.agenda.dirty |= set(known.views)
    view, left = known.views.get(event.gang), known.term.left.get(event.gang)
    if left is not None and event.uid in left.writes.inflight:
        writes = left.writes
    elif view is not None:
        writes = view.nominating
    else:
        return
    if writes.ended(event.uid):
        known.agenda.dirty.add(event.gang)
    else:
        known.agenda.put_off(event.gang, moment.now)


def _note_end(view: GangView, event: PodPatchEnded, now: float) -> None:
    _note_eviction(view, event, now)
    writes, uid = view.pod_writes, event.uid
    writes.inflight.discard(uid)
    if event.error is None:
        writes.attempts.pop(uid, None)
        writes.unsure.discard(uid)
        return
    if event.unknown:
        writes.unsure.add(uid)
        writes.doubted_since = now if uid in writes.targets else writes.doubted_since
    writes.deleted.discard(uid)
    writes.attempts_at(uid).failed(now, event.error if event.refused else "")


def _gathering(known: Known, pod: ObservedPod) -> GangKey | None:
    """Name the gang of a new pod where it goes on waiting for others of its minimum."""
    view = known.views.get(pod.member.gang) if pod.member is not None and pod.gated else None
    if view is None or view.understood.terms is None:
        return None
    if (view.reservation.placement is not None and not view.expects_pods) or view.survey.ran:
        return None
    minimum = sum(each.minimum for each in view.understood.terms.pod_sets)
    return view.key if known.cache.count(view.key) < minimum else None


def _goes_on(known: Known, before: ObservedPod, after: ObservedPod, moment: Moment) -> bool:
    """Take in a step of a pod that was decided, without a look at its whole gang."""
    view = known.views.get(after.member.gang) if after.member is not None else None
    if view is None or after.uid in view.pod_writes.leaving:
        return False
    if not goes_on(before, after, view.pod_writes.targets.get(after.uid, "")):
        return False
    if after.holds != before.holds and not known.room.use(view, after):
        return False
    _note_existing_pods(known, before, after)
    if view.expected_changes.is_last(before, after) or _makes_way(known, view):
        known.agenda.dirty.add(view.key)
    else:
        known.agenda.put_off(view.key, moment.now)
    return True


def _is_nominated(known: Known, before: ObservedPod, after: ObservedPod, moment: Moment) -> bool:
    """Take in a nomination that was asked for, or its end.

    It takes no room beside the slot that it repeats.
    """
    view = known.views.get(after.member.gang) if after.member is not None else None
    asked = view.nominating.inflight.get(after.uid) if view is not None else None
    if view is None or asked is None or not was_nominated(before, after, asked):
        return False
    if asked and not known.room.repeats(view, after):
        return False
    known.agenda.put_off(view.key, moment.now)
    return True


def _makes_way(known: Known, view: GangView) -> bool:
    """Say whether others wait for the place of a gang whose pods are all bound."""
    window = known.term.window
    return window.has_line and view.key in window and not view.expected_changes.binding


def _note_step(
    known: Known, before: ObservedPod | None, after: ObservedPod, moment: Moment
) -> None:
    """Note that pods of gangs come, and how far those have come that are being started."""
    if after.member is None:
        return
    if before is None:
        known.came_at = moment.now if after.gated else known.came_at
    elif after.node and not before.node:
        known.term.window.bound(after.member.gang, moment.now)
    elif before.gated and not after.gated:
        known.term.window.step(after.member.gang, moment.now)


def _note_stray_gate(known: Known, before: ObservedPod | None, after: ObservedPod) -> None:
    """Have a pod told of that has our gate and is in no gang."""
    if before is not None and before.uid != after.uid:
        known.stray_gates.gone(before.namespace, before.uid)
    key = known.stray_gates.seen(after)
    if key is not None:
        known.agenda.dirty.add(key)


def _pod_changed(known: Known, before: ObservedPod | None, after: ObservedPod | None) -> None:
    for pod in (before, after):
        if pod is not None and pod.member is not None:
            known.agenda.dirty.add(pod.member.gang)
    _note_existing_pods(known, before, after)


def _look_at_all(known: Known, namespace: str) -> None:
    """Look at all gangs of a namespace: whether they may be nominated is another answer now."""
    known.agenda.dirty |= {key for key in known.views if key.namespace == namespace}


def _note_room(known: Known, freed: str, taken: str, *, shrunk: bool) -> None:
    """Ask for a cycle where room came free; where it was taken, look at the gangs on the node."""
    if freed and (freed != taken or shrunk):
        known.agenda.cycle_wanted = True
    if taken and taken != freed:
        known.agenda.dirty |= known.room.gangs_on(taken)
        if known.term.epoch:  # less room starts no gang, but moves the numbers of waiting ones
            known.agenda.renew_soon()


def _note_existing_pods(
    known: Known, before: ObservedPod | None, after: ObservedPod | None
) -> None:
    """Ask for a cycle where a pod moved that affinity or spread of waiting pods may count."""
    repels = any(pod is not None and pod.repels for pod in (before, after))
    if (known.cache.has_pod_constraints or repels) and _place(before) != _place(after):
        known.agenda.cycle_wanted = True


def _shrunk(before: ObservedPod | None, after: ObservedPod) -> bool:
    """Say whether a pod may have come to take less."""
    return before is not None and _claim(before) != _claim(after)


def _claim(pod: ObservedPod) -> tuple[object, ...]:
    """How much room a pod takes, and from pods of which priority."""
    return pod.used, pod.nominated


def _place(pod: ObservedPod | None) -> tuple[object, ...]:
    """What of a pod matters to the inter-pod constraints of others."""
    if pod is None or not pod.expected_on:
        return ()
    return pod.expected_on, pod.stay, pod.kind, pod.repels
