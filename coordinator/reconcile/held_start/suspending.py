"""Has a gang suspended again: what is left of its placement, the record, then its source."""

from coordinator.gang import ending
from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.phases import Phase
from coordinator.reconcile.demand import ask_for_nothing
from coordinator.reconcile.held_start.foreseeing import have_nothing_asked
from coordinator.reconcile.held_start.quota_stakes import note_stake
from coordinator.reconcile.held_start.source_writes import suspend_source
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, Step, StepResult
from coordinator.reconcile.pod_writes.fences import fence_gated_pods, gated, withdraw
from coordinator.reconcile.pod_writes.nominations import take_back_nominations
from coordinator.reconcile.record.events import emit_events
from coordinator.reconcile.record.recording import sync_record, write_record
from coordinator.reconcile.terms import expect_deletions, understand
from scheduling.model.holder import gang_holder
from scheduling.model.verdict import Reason


def keep_on_their_way(look: Look) -> StepResult:
    """Keep of the placement what released pods are on their way to, until they are gone."""
    placed = look.view.reservation
    if placed.placement is not None and withdraw(look, gated(look.pods)):
        placed.placement = ending.on_their_way(placed.placement, look.pods)
    return SURVEY_AGAIN


def say_suspending(look: Look) -> StepResult:
    """Have the gang wait until it is suspended."""
    said = f"the {gang_holder(look.view.key).kind} is being suspended"
    look.view.queueing.asked = NotReady(Reason.HELD, said)
    return NOTHING_DONE


def suspend(look: Look) -> StepResult:
    """Suspend the source once the record says so."""
    record = look.view.record
    written = record.written.get("held", {}).get("phase") == Phase.SUSPENDING
    ready = written and not record.is_replaced and look.scene.sighted
    return StepResult(suspend_source(look)) if ready else NOTHING_DONE


SUSPEND: tuple[Step, ...] = (
    sync_record,
    understand,
    expect_deletions,
    have_nothing_asked,
    keep_on_their_way,
    ask_for_nothing,
    say_suspending,
    note_stake,
    write_record,
    emit_events,
    fence_gated_pods,
    take_back_nominations,
    suspend,
)
