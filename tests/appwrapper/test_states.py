"""The status says in MCAD's and CodeFlare's words what the gang is, and in ours why."""

from typing import Any

import msgspec
import pytest

from appwrapper.phases import Phase
from appwrapper.spec.wrapped import Generation
from appwrapper.status.conditions import micro_stamp, stamp
from appwrapper.status.states import status_of
from appwrapper.status.told import PodCounts, Step, Told, Totals
from kube.objects.app_wrapper import AppWrapperStatus, PendingPod

NOTHING = AppWrapperStatus()
PHASES = {
    Step.DISPATCHED: Phase.RESUMING,
    Step.RUNNING: Phase.RUNNING,
    Step.HOLDING: Phase.RUNNING,
    Step.SUCCEEDED: Phase.SUCCEEDED,
    Step.OVERDUE: Phase.FAILED,
    Step.NOT_CREATED: Phase.FAILED,
    Step.BROKEN: Phase.FAILED,
    Step.GIVEN_UP: Phase.FAILED,
}


def told(step: Step, at: float = 100.0, **fields: Any) -> Told:
    phase = fields.pop("phase", PHASES.get(step, Phase.SUSPENDED))
    return Told(step, phase, at, first_seen=50.0, **fields)


def mcad(*steps: Told) -> AppWrapperStatus:
    status = NOTHING
    for each in steps:
        status = status_of(Generation.MCAD, each, status)
    return status


def last(status: AppWrapperStatus) -> tuple[str, str, str]:
    found = status.conditions[-1]
    assert found.status == "True"
    return found.type, found.reason, found.message


TOO_FEW = "Insufficient number of Running and Completed pods, minimum=3, running=1, completed=1."
FEW = PodCounts(4, 2, 1, 1)


@pytest.mark.parametrize(
    ("said", "state", "condition"),
    [
        (told(Step.QUEUED), "Pending", ("Queueing", "AwaitingHeadOfLine", "")),
        (told(Step.FIRST), "Pending", ("HeadOfLine", "FrontOfQueue.", "")),
        (
            told(Step.NO_ROOM),
            "Pending",
            (
                "Backoff",
                "AppWrapperNotRunnable.",
                "Insufficient resources to dispatch AppWrapper.",
            ),
        ),
        (
            told(Step.NO_QUOTA),
            "Pending",
            (
                "Backoff",
                "AppWrapperNotRunnable.",
                "Insufficient quota and/or resources to dispatch AppWrapper.",
            ),
        ),
        (told(Step.DISPATCHED), "Running", ("Dispatched", "AppWrapperRunnable", "")),
        (told(Step.RUNNING), "Running", ("Running", "PodsRunning", "")),
        (
            told(Step.HOLDING),
            "RunningHoldCompletion",
            ("RunningHoldCompletion", "SomeItemsCompleted", ""),
        ),
        (told(Step.SUCCEEDED), "Completed", ("Completed", "PodsCompleted", "")),
        (
            told(Step.TOO_FEW, pods=FEW, min_available=3),
            "Pending",
            ("Backoff", "PreemptionTriggered", TOO_FEW),
        ),
        (
            told(Step.UNSCHEDULABLE, pods=PodCounts(2, 2), pending_pods=(PendingPod("a"),)),
            "Pending",
            ("Backoff", "PreemptionTriggered", "Pods failed scheduling failed=1, running=0."),
        ),
        (
            told(Step.STOPPING, message="a gang of higher priority needs its room"),
            "Pending",
            ("Backoff", "PreemptionTriggered", "a gang of higher priority needs its room"),
        ),
        (
            told(Step.OVERDUE, detail="10"),
            "Failed",
            (
                "PreemptCandidate",
                "DispatchDeadlineExceeded",
                "Dispatch deadline exceeded. allowed to run for 10 seconds",
            ),
        ),
        (
            told(Step.NOT_CREATED, detail="ns/aw creation failure: no"),
            "Failed",
            ("Failed", "ItemCreationFailure.", "ns/aw creation failure: no"),
        ),
        (
            told(Step.GIVEN_UP, pods=FEW, min_available=3),
            "Deleted",
            ("PreemptCandidate", "MinPodsNotRunning", TOO_FEW),
        ),
    ],
    ids=lambda each: each.step if isinstance(each, Told) else "",
)
def test_mcads_users_read_mcads_words(
    said: Told, state: str, condition: tuple[str, str, str]
) -> None:
    status = mcad(said)
    assert (status.state, last(status)) == (state, condition)


def test_each_step_has_words_of_mcad() -> None:
    for step in Step:
        status = mcad(told(step))
        assert status.state
        assert status.queue_job_state
        assert status.sender.startswith("before ")
        assert status.filter_ignore
        assert status.can_run == (status.state in ("Running", "RunningHoldCompletion"))


def test_queuejobstate_repeats_the_last_condition() -> None:
    status = mcad(told(Step.QUEUED), told(Step.FIRST), told(Step.NO_ROOM))
    assert (status.queue_job_state, last(status)[0]) == ("Backoff", "Backoff")
    assert [each.type for each in status.conditions] == [
        "Init",
        "Queueing",
        "HeadOfLine",
        "Backoff",
    ]
    assert mcad(told(Step.OVERDUE)).queue_job_state == "Failed"


def test_a_step_that_passed_unseen_is_told_all_the_same() -> None:
    """Scripts wait for Dispatched before Running, and for HeadOfLine before it and Backoff."""
    types = [each.type for each in mcad(told(Step.NO_ROOM), told(Step.RUNNING)).conditions]
    assert types == ["Init", "HeadOfLine", "Backoff", "Dispatched", "Running"]
    types = [each.type for each in mcad(told(Step.QUEUED), told(Step.DISPATCHED)).conditions]
    assert types == ["Init", "Queueing", "HeadOfLine", "Dispatched"]


def test_a_condition_moves_to_the_end_with_its_time_and_is_there_once() -> None:
    waiting = told(Step.NO_ROOM, 100.0)
    status = mcad(waiting, told(Step.DISPATCHED, 200.0), told(Step.NO_ROOM, 300.0))
    assert [each.type for each in status.conditions].count("Backoff") == 1
    found = status.conditions[-1]
    assert found.last_transition_micro_time == "1970-01-01T00:05:00.000000Z"
    assert found.last_update_micro_time == found.last_transition_micro_time
    assert status.conditions[0].last_transition_micro_time == micro_stamp(50.0)


@pytest.mark.parametrize("generation", Generation)
@pytest.mark.parametrize("step", Step)
def test_what_is_told_again_changes_nothing(generation: Generation, step: Step) -> None:
    """So nothing is written."""
    once = status_of(generation, told(step, 100.0, message="why"), NOTHING)
    assert status_of(generation, told(step, 900.0, message="why"), once) == once


def test_counts_and_times_are_told_in_mcads_fields() -> None:
    said = told(
        Step.RUNNING,
        pods=PodCounts(7, 1, 2, 3, 1),
        totals=Totals(3000, 2**40, 4),
        priority=9.5,
        first_dispatched=60.25,
        requeued_seconds=120,
        requeued=2,
        min_available=2,
        pending_pods=(PendingPod("a"),),
    )
    written = msgspec.to_builtins(mcad(said))
    assert (
        written.items()
        >= {
            "pending": 1,
            "running": 2,
            "Succeeded": 3,
            "failed": 1,
            "template": 2,
            "totalcpu": 3000,
            "totalmemory": 2**31 - 1,
            "totalgpu": 4,
            "systempriority": 9.5,
            "canrun": True,
            "controllerfirsttimestamp": "1970-01-01T00:00:50.000000Z",
            "controllerfirstdispatchtimestamp": "1970-01-01T00:01:00.250000Z",
            "requeueingTimeInSeconds": 120,
            "numberOfRequeueings": 2,
        }.items()
    )
    assert [*written["pendingpodconditions"]] == [{"podname": "a"}]
    assert mcad(told(Step.OVERDUE, pods=PodCounts(2, 0, 2))).running == 0


@pytest.mark.parametrize("generation", Generation)
def test_our_own_reason_stands_beside(generation: Generation) -> None:
    said = told(Step.NO_ROOM, reason="InsufficientRoom", message="2 of 4 web fit")
    status = status_of(generation, said, NOTHING)
    assert (status.reason, status.message) == ("InsufficientRoom", "2 of 4 web fit")


def test_changes_of_the_phase_are_counted() -> None:
    status = mcad(told(Step.QUEUED), told(Step.NO_ROOM), told(Step.DISPATCHED), told(Step.RUNNING))
    assert (status.phase, status.transition_count) == ("Running", 3)


# --- CodeFlare


def codeflare(*steps: Told) -> dict[str, tuple[str, str, str]]:
    status = NOTHING
    for each in steps:
        status = status_of(Generation.CODEFLARE, each, status)
    return {each.type: (each.status, each.reason, each.message) for each in status.conditions}


def test_what_waits_has_no_quota_and_says_why_in_our_words() -> None:
    found = codeflare(told(Step.NO_ROOM, message="2 of 4 web fit"))
    assert found == {"QuotaReserved": ("False", "Suspended", "2 of 4 web fit")}
    assert codeflare(told(Step.SUSPENDED, message="x")) == {
        "QuotaReserved": ("False", "Suspended", "Suspend is true")
    }


def test_what_is_resumed_has_quota_and_resources() -> None:
    said = "Suspend is false"
    assert codeflare(told(Step.DISPATCHED)) == {
        "QuotaReserved": ("True", "Resuming", said),
        "ResourcesDeployed": ("True", "Resuming", said),
        "PodsReady": ("False", "Resuming", said),
        "Unhealthy": ("False", "Resuming", said),
    }


@pytest.mark.parametrize(
    ("pods", "ready"),
    [
        (
            PodCounts(3, 1, 2),
            (
                "False",
                "InsufficientPodsReady",
                "1 pods pending; 2 pods running; 0 pods succeeded",
            ),
        ),
        (
            PodCounts(3, 0, 2, 1),
            ("True", "SufficientPodsReady", "2 pods running; 1 pods succeeded"),
        ),
    ],
)
def test_running_pods_are_counted(pods: PodCounts, ready: tuple[str, str, str]) -> None:
    found = codeflare(told(Step.DISPATCHED), told(Step.RUNNING, pods=pods))
    assert found["PodsReady"] == ready
    assert found["Unhealthy"][0] == "False"


def test_failed_pods_are_unhealthy_until_there_are_none() -> None:
    failed = told(Step.RUNNING, pods=PodCounts(2, 0, 1, 0, 1))
    assert codeflare(failed)["Unhealthy"] == ("True", "FoundFailedPods", "")
    well = told(Step.RUNNING, pods=PodCounts(2, 0, 2))
    assert codeflare(failed, well)["Unhealthy"] == ("False", "FoundNoFailedPods", "")


def test_what_is_reset_says_so_and_waits_again() -> None:
    resetting = told(Step.TOO_FEW, phase=Phase.RESETTING, pods=FEW)
    said = "2 pods pending; 1 pods running; 1 pods succeeded"
    found = codeflare(told(Step.DISPATCHED), resetting)
    assert found["Unhealthy"] == ("True", "InsufficientPodsReady", said)
    assert found["DeletingResources"] == ("True", "DeletionInitiated", "")
    waits = told(Step.QUEUED, message="it waits")
    found = codeflare(told(Step.DISPATCHED), resetting, waits)
    assert found["ResourcesDeployed"] == ("False", "Suspended", "it waits")
    assert found["DeletingResources"] == ("False", "DeletionComplete", "")


def test_the_end_is_told() -> None:
    done = told(Step.SUCCEEDED, pods=PodCounts(2, 0, 0, 2))
    said = "2 pods succeeded and no running, pending, or failed pods"
    assert codeflare(told(Step.DISPATCHED), done)["ResourcesDeployed"] == (
        "True",
        "Succeeded",
        said,
    )
    failed = told(Step.NOT_CREATED, detail="services is forbidden")
    found = codeflare(told(Step.DISPATCHED), failed)
    assert found["Unhealthy"] == (
        "True",
        "CreateFailed",
        "error creating components: services is forbidden",
    )
    assert found["ResourcesDeployed"][0] == found["QuotaReserved"][0] == "False"
    going = codeflare(told(Step.DISPATCHED), told(Step.STOPPING, phase=Phase.TERMINATING))
    assert going["ResourcesDeployed"] == ("False", "Terminating", "Resources successfully deleted")


def test_a_condition_of_codeflare_keeps_its_time_while_its_status_is_the_same() -> None:
    first = status_of(Generation.CODEFLARE, told(Step.NO_ROOM, 100.0, message="a"), NOTHING)
    second = status_of(Generation.CODEFLARE, told(Step.NO_ROOM, 200.0, message="b"), first)
    (found,) = second.conditions
    assert (found.message, found.last_transition_time) == ("b", stamp(100.0))
    third = status_of(Generation.CODEFLARE, told(Step.DISPATCHED, 300.0), second)
    assert third.conditions[0].last_transition_time == "1970-01-01T00:05:00Z"
