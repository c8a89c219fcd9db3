"""Runs the steps of a look at one gang, in their order.

A look follows each change that concerns the gang. Another look without a change does nothing,
because each write stays marked as under way until its end is reported.
"""

from coordinator.gang.source import opt_in_of
from coordinator.reconcile.demand import ask
from coordinator.reconcile.eviction.endings import (
    carry_out,
    drop_ended_slots,
    remove_ended_members,
    say_why_not_stopped,
    settle_endings,
    stop_gang,
)
from coordinator.reconcile.eviction_dry_run import probe
from coordinator.reconcile.held_start.advance import hold, notice
from coordinator.reconcile.held_start.quota_claims import claim_what_is_to_come
from coordinator.reconcile.held_start.quota_stakes import make_way, note_stake
from coordinator.reconcile.held_start.resuspension import suspend_again
from coordinator.reconcile.look import Look, Step, run
from coordinator.reconcile.node_requests import request_nodes
from coordinator.reconcile.owner_deadlines import note_owner_deadline
from coordinator.reconcile.pod_writes.deletions import delete_pods
from coordinator.reconcile.pod_writes.fences import fence_pods
from coordinator.reconcile.pod_writes.nominations import nominate_pods
from coordinator.reconcile.pod_writes.releases import release_pods
from coordinator.reconcile.record.events import emit_events
from coordinator.reconcile.record.recording import sync_record, write_record
from coordinator.reconcile.repair.broken_groups import drop_broken_group
from coordinator.reconcile.repair.dropped_slots import (
    drop_unusable_slots,
    drop_void_placement,
    keep_late_releases,
)
from coordinator.reconcile.repair.kept_slots import end_kept_slots, tell_kept_slots
from coordinator.reconcile.repair.missed_pods import wake_kuberay
from coordinator.reconcile.setbacks.below_minimum import end_broken
from coordinator.reconcile.setbacks.ended_members import end_with_others
from coordinator.reconcile.setbacks.late_starts import time_out
from coordinator.reconcile.setbacks.refused_releases import give_up_after_refusals
from coordinator.reconcile.terms import expect_deletions, understand
from coordinator.reconcile.together.waiting import wait_for_members
from coordinator.reconcile.winding_down import opt_out, wind_down
from kube.ray.ray_cluster import Answer, is_terminating

BEGIN: tuple[Step, ...] = (
    sync_record,
    drop_ended_slots,
    understand,
    expect_deletions,
    time_out,
    end_broken,
    end_with_others,
)

STEPS: tuple[Step, ...] = (
    settle_endings,
    say_why_not_stopped,
    remove_ended_members,
    delete_pods,
    give_up_after_refusals,
    drop_unusable_slots,
    keep_late_releases,
    drop_void_placement,
    drop_broken_group,
    end_kept_slots,
    tell_kept_slots,
    ask,
    wait_for_members,
    note_owner_deadline,
    claim_what_is_to_come,
    note_stake,
    make_way,
    suspend_again,
    wake_kuberay,
    write_record,
    emit_events,
    fence_pods,
    release_pods,
    nominate_pods,
    probe,
    carry_out,
)


def advance(look: Look) -> None:
    """Bring the view up to date and ask for the writes that are missing."""
    request_nodes(look)
    if is_terminating(look.source.metadata):
        wind_down(look)
    elif opt_in_of(look.source, look.scene.cache).answer is Answer.NO:
        opt_out(look)
    elif not look.view.held.is_behind(look.source):
        look.view.out_since = None
        notice(look)
        _advance(look)


def _advance(look: Look) -> None:
    if look.view.held.holds:
        hold(look)
    elif look.view.eviction.whole is not None:
        stop_gang(look)
    else:
        run(BEGIN, look)
        _go_on(look)


def _go_on(look: Look) -> None:
    """Go on with a gang that was looked at, unless it is to be stopped from now on."""
    if look.view.eviction.whole is not None:
        stop_gang(look)
    else:
        run(STEPS, look)
