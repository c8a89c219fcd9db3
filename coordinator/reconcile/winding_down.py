"""Gives back the reservation of a gang whose RayCluster is being deleted or was opted out."""

from coordinator.gang import ending
from coordinator.gang.demand import NotReady, Settled
from coordinator.messages.actions import Action
from coordinator.reconcile.demand import ask_for_nothing
from coordinator.reconcile.held_start.advance import resume_opted_out
from coordinator.reconcile.held_start.quota_stakes import note_stake
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, Step, StepResult, run
from coordinator.reconcile.pod_writes.deletions import delete_stranded_pods
from coordinator.reconcile.pod_writes.fences import fence_gated_pods, gated, withdraw
from coordinator.reconcile.pod_writes.nominations import take_back_nominations
from coordinator.reconcile.pod_writes.releases import release_unpinned
from coordinator.reconcile.record.recording import clear_away, keep_queue, sync_record, write_record
from coordinator.reconcile.terms import expect_deletions, understand
from coordinator.record.spec import is_of
from kube.objects.gang import Gang
from reservation.slots import is_released
from scheduling.model.holder import gang_holder
from scheduling.model.verdict import Reason

OPT_OUT_DELAY = 2.0  # seconds; a label that is just being set is seen by one watch before another


def withdraw_releases(look: Look) -> StepResult:
    """Keep of the placement what released pods are on their way to; no other pod follows them.

    A release that is on its way is waited for, or fenced, before its room is given up.
    """
    reservation = look.view.reservation
    if reservation.placement is not None and withdraw(look, gated(look.pods)):
        reservation.placement = ending.on_their_way(reservation.placement, look.pods)
    return SURVEY_AGAIN


def say_terminating(look: Look) -> StepResult:
    """Say what is left of the gang."""
    text = ending.text(look.view.survey.standing, gang_holder(look.view.key).kind)
    look.view.queueing.asked = NotReady(Reason.TERMINATING, text)
    return NOTHING_DONE


GIVE_ROOM_BACK: tuple[Step, ...] = (
    sync_record,
    understand,
    expect_deletions,
    delete_stranded_pods,
    withdraw_releases,
    ask_for_nothing,
    fence_gated_pods,
    take_back_nominations,
)

WIND_DOWN: tuple[Step, ...] = (*GIVE_ROOM_BACK, say_terminating, note_stake, write_record)


def wind_down(look: Look) -> None:
    """Keep nothing for a RayCluster that is being deleted, and release and decide nothing."""
    look.view.events.silence()
    run(WIND_DOWN, look)


def opt_out(look: Look) -> None:
    """The gang was opted out: its gated pods go unpinned, its room is given back, its record ends.

    A release cannot be taken back, and the gate on a pod is evidence that the webhook, which reads
    the truth, saw a gang: so the news must be seen clearly, and last for a while. Until then all
    stays as it is, but nothing is released. Then pods that are on their way are waited for.
    """
    view = look.view
    view.events.silence()
    view.queueing.asked = Settled()
    if not look.scene.sighted or view.key.namespace not in look.scene.cache.namespaces:
        view.out_since = None
        return
    view.out_since = look.now if view.out_since is None else view.out_since
    if look.now >= view.out_since + OPT_OUT_DELAY:
        _leave(look)


def _leave(look: Look) -> None:
    reservation, eviction = look.view.reservation, look.view.eviction
    if not resume_opted_out(look):
        return
    if eviction.endings:
        eviction.finish()  # what is left of it runs on: others wait for its end in vain
        look.ends_less = True
    if reservation.placement is not None:
        run(GIVE_ROOM_BACK, look)
    if reservation.placement is None:
        look.actions += [*release_unpinned(look), *_end_record(look)]
    elif look.view.record.gang is not None:
        run((write_record,), look)


def _end_record(look: Look) -> list[Action]:
    """Delete the record; not while it alone says whose quota the pods use that Muster placed."""
    gang = look.scene.cache.gangs.get(look.view.key)
    if gang is None:
        return []
    return keep_queue(look, gang) if _uses_quota(look, gang) else clear_away(look, gang)


def _uses_quota(look: Look, gang: Gang) -> bool:
    queues, queue = look.scene.queues, gang.spec.queue
    if not is_of(gang, look.view.cluster_uid) or queue not in queues.objects:
        return False
    return queues.has_quota(queue) and any(is_released(pod) and pod.holds for pod in look.pods)
