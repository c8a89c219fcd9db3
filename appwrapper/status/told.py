"""Describes the state of an AppWrapper in values that both generations have words for."""

from dataclasses import dataclass
from enum import StrEnum

from appwrapper.phases import Phase
from kube.objects.app_wrapper import AppWrapperStatus, PendingPod


class Step(StrEnum):
    """How far an AppWrapper is, in what both generations have words for.

    QUEUED: it waits, and was not tried yet. FIRST: it is tried next. NO_ROOM and NO_QUOTA: it was
    tried; NO_CLUSTER: on several clusters. SUSPENDED: its user keeps it out of the queue.
    DISPATCHED: its objects are created, or being created. RUNNING: a pod runs. HOLDING: all that
    is asked for is complete and pods run on. FAILED_PODS: its pods stay failed. TOO_FEW and
    UNSCHEDULABLE: it is stopped and queued again for its pods. STOPPING: it is stopped for another
    reason, which `reason` and `message` say. OVERDUE, NOT_CREATED and BROKEN (a component failed,
    or is gone): it failed. GIVEN_UP: it was queued again too often.
    """

    QUEUED = "Queued"
    FIRST = "First"
    NO_ROOM = "NoRoom"
    NO_QUOTA = "NoQuota"
    NO_CLUSTER = "NoCluster"
    SUSPENDED = "Suspended"
    DISPATCHED = "Dispatched"
    RUNNING = "Running"
    HOLDING = "Holding"
    SUCCEEDED = "Succeeded"
    FAILED_PODS = "FailedPods"
    TOO_FEW = "TooFew"
    UNSCHEDULABLE = "Unschedulable"
    STOPPING = "Stopping"
    OVERDUE = "Overdue"
    NOT_CREATED = "NotCreated"
    BROKEN = "Broken"
    GIVEN_UP = "GivenUp"


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Pods of an AppWrapper, and how many it is to have."""

    expected: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0

    @property
    def suffice(self) -> bool:
        """Whether all pods run, or have succeeded."""
        return self.running + self.succeeded >= self.expected


@dataclass(frozen=True, slots=True)
class Totals:
    """What the pods of an AppWrapper ask for: CPU in milli, memory in bytes, GPUs."""

    cpu: int = 0
    memory: int = 0
    gpu: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of an AppWrapper at a moment (seconds since 1970).

    `reason` and `message` are Muster's own. `detail` completes MCAD's message where the step has
    one: what the creation failed of, or the limit in seconds. `first_seen` and `first_dispatched`
    are 0 where that is not so yet.
    """

    step: Step
    phase: Phase
    moment: float
    reason: str = ""
    message: str = ""
    detail: str = ""
    pods: PodCounts = PodCounts()
    totals: Totals = Totals()
    min_available: int = 0
    priority: float = 0.0
    first_seen: float = 0.0
    first_dispatched: float = 0.0
    requeued_seconds: int = 0
    requeued: int = 0
    resets: int = 0
    pending_pods: tuple[PendingPod, ...] = ()


def transitions(before: AppWrapperStatus, phase: Phase) -> int:
    """Count a change of phase."""
    return before.transition_count + (before.phase != phase)
