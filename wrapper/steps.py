"""Values of a step of one AppWrapper: what is known of it, and what can be done next."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from appwrapper.completion import Completion
from appwrapper.phases import Phase
from kube.codec.fields import moment_of
from runtime.controller.moment import Moment
from scheduling.model.verdict import Reason as GangReason
from wrapper.contents import Contents, Reference
from wrapper.messages import GangSignal, WrappedPod, Wrapper
from wrapper.view import PodCounts, Progress


class Reason(StrEnum):
    """Why an AppWrapper is in its phase, where the coordinator does not say why."""

    MISCONFIGURED = "Misconfigured"
    SUSPENDED = "Suspended"
    PLACED = "Placed"
    ITEM_CREATION_FAILURE = "ItemCreationFailure"
    ITEMS_CREATED = "ItemsCreated"
    ITEM_MISSING = "ItemMissing"
    ITEM_FAILED = "ItemFailed"
    PODS_FAILED = "PodsFailed"
    PODS_NOT_READY = "PodsNotReady"
    MIN_PODS_NOT_RUNNING = "MinPodsNotRunning"
    DEADLINE_EXCEEDED = "DispatchDeadlineExceeded"
    COMPLETED = "Completed"
    STOPPED = "Stopped"
    ITEMS_DELETED = "ItemsDeleted"


WAITING_PHASE = "Waiting"
SUSPENDING_PHASE = "Suspending"
"""Phases of the held start of a Gang."""


@dataclass(frozen=True, slots=True)
class Look:
    """All that is known of one AppWrapper at one moment."""

    wrapper: Wrapper
    progress: Progress
    signal: GangSignal | None
    pods: PodCounts
    moment: Moment
    members: Mapping[str, WrappedPod] = field(default_factory=dict)

    @property
    def contents(self) -> Contents:
        """Its items and terms."""
        return self.wrapper.contents

    @property
    def lasted(self) -> float:
        """For how many seconds the phase has lasted."""
        return self.moment.wall - moment_of(self.wrapper.status.phase_since)

    @property
    def restarts(self) -> int:
        """How often in a row it was started in vain."""
        status = self.wrapper.status
        return status.number_of_requeueings if self.contents.is_mcad else status.resetting_count

    def own_pods(self) -> Iterator[tuple[str, str]]:
        """List name and uid of its pods, those that are being deleted too."""
        for pod in self.members.values():
            if pod.of == self.wrapper.metadata.uid:
                yield pod.metadata.name, pod.metadata.uid

    @property
    def left(self) -> tuple[Reference, ...]:
        """Items that are written down and not known to be gone, the last first."""
        gone = self.progress.gone
        return tuple(each for each in reversed(recorded(self.wrapper)) if each not in gone)


@dataclass(frozen=True, slots=True)
class Become:
    """Enter a phase. With `again` the start was in vain, and counts."""

    phase: Phase
    reason: str
    message: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """Write down which items there are to be (or, where `gone`, that there are none)."""

    gone: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """Create the items that do not exist yet."""

    items: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete items, and find out which are gone; `pods`, by name and uid, by force."""

    items: tuple[Reference, ...]
    pods: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Inspect:
    """Read how the items are; where `quiet`, not again soon."""

    quiet: bool = False


@dataclass(frozen=True, slots=True)
class Remember:
    """Write down how items ended that are deleted some time after that."""

    ends: tuple[tuple[Reference, Completion], ...]


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing until something happens, or until that moment (monotonic seconds)."""

    until: float | None = None


Step: TypeAlias = Become | Record | Create | Delete | Inspect | Remember | Rest


def may_start(wrapper: Wrapper, signal: GangSignal | None) -> bool:
    """Say whether the coordinator has placed this very AppWrapper as it is, and waits for its pods.

    One without pods needs no place, and the Gang says so.
    """
    if signal is None or signal.of != wrapper.metadata.uid or signal.held != WAITING_PHASE:
        return False
    if signal.generation != wrapper.generation:
        return False  # what an earlier spec was promised
    return signal.placed or signal.reason == GangReason.NOT_REQUIRED


def recorded(wrapper: Wrapper) -> tuple[Reference, ...]:
    """List the items that may exist, as they are written down."""
    return tuple(
        Reference(each.api_version, each.kind, each.name)
        for each in wrapper.status.component_status
        if not any(c.type == DEPLOYED and c.status == "False" for c in each.conditions)
    )


DEPLOYED = "ResourcesDeployed"
