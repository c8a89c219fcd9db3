"""Keeps what one leader remembers of one AppWrapper, beside its status.

All of it can be lost: whoever leads next finds it out again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from appwrapper.completion import Completion
from appwrapper.phases import Phase
from appwrapper.status.told import Totals
from kube.objects.app_wrapper import AppWrapperStatus, PendingPod
from runtime.controller.pause import Pause
from wrapper.contents import Reference
from wrapper.messages import NO_TOTALS, Created, Deleted, Read, WrappedPod, Wrapper, WrapperKey

READS_A_SECOND = 10.0
"""Items of one AppWrapper that are read in a second, over time, however often its pods end."""

_NONE: Mapping[str, int] = {}


@dataclass(slots=True)
class Progress:
    """How far a phase has come. `trouble` says what stops it since `trouble_since`.

    `ends` are the outcomes of items that are deleted after their end, as they were read last; from
    `read_from` on they may be read again. `failed_since` is since when pods are failed;
    `were_ready` says that all ran at once already.
    """

    created: set[int] = field(default_factory=set)
    gone: set[Reference] = field(default_factory=set)
    completion: Completion = Completion.RUNNING
    missing: str = ""
    ends: tuple[tuple[Reference, Completion], ...] = ()
    pause: Pause = field(default_factory=Pause)
    trouble: str = ""
    trouble_since: float = 0.0
    failed_since: float | None = None
    were_ready: bool = False
    lasts: bool = False
    forbidden: bool = False
    read_from: float = 0.0

    def created_some(self, result: Created, now: float) -> None:
        """Take in which items exist, and what stopped the next."""
        self.created |= result.items
        refusal = result.refusal
        if result.items:
            self.trouble = ""
        if refusal is None and not result.error:
            self.pause.end()
            return
        self.lasts = refusal is not None and refusal.lasts
        self.forbidden = refusal is not None and refusal.forbidden
        self._stopped(refusal.message if refusal is not None else result.error, now)

    def deleted_some(self, result: Deleted, now: float) -> None:
        """Take in which items are gone; the others take their time."""
        self.gone |= result.items
        if result.items:
            self.pause.end()
        self.pause.lengthen(now)

    def read_all(self, result: Read, items: int, now: float) -> None:
        """Take in how the items are, if they could be read; so many take some time to rest."""
        if not result.error:
            self.completion, self.missing = result.completion, result.missing
            self.ends = result.ends
        self.pause.lengthen(now)
        self.read_from = now + items / READS_A_SECOND
        self.pause.not_before = max(self.pause.not_before, self.read_from)

    def count(self, pods: "PodCounts", needed: int, now: float) -> None:
        """Take in how the pods are."""
        self.were_ready |= pods.running + pods.succeeded >= needed
        if not pods.failed:
            self.failed_since = None
        elif self.failed_since is None:
            self.failed_since = now

    def _stopped(self, message: str, now: float) -> None:
        if not self.trouble:
            self.trouble_since = now
        self.trouble = message
        self.pause.lengthen(now)


@dataclass(slots=True)
class View:
    """One AppWrapper.

    `ticket` is that of the action under way, 0 where there is none. `first_looked` is when it
    was first looked at, `informed_at` when its user was last informed, `told` the last Event. A
    write that failed is tried again after `write_pause`. `completed` counts by pod set the pods
    that succeeded since the start and are gone. `asked` is the status that was written last, and
    `answered` what the API server made of it: less, where a definition of others lacks our fields.
    """

    wrapper: Wrapper
    ticket: int = 0
    progress: Progress = field(default_factory=Progress)
    write_pause: Pause = field(default_factory=Pause)
    informed_at: float | None = None
    first_looked: float | None = None
    told: tuple[str, str] = ("", "")
    asked: AppWrapperStatus | None = None
    answered: AppWrapperStatus | None = None
    completed: Counter[str] = field(default_factory=Counter)

    @property
    def key(self) -> WrapperKey:
        """Where the AppWrapper is."""
        return self.wrapper.key

    @property
    def status_told(self) -> AppWrapperStatus:
        """The status with all that was written, while it is what the API server made of that."""
        status = self.wrapper.status
        return self.asked if self.asked is not None and status == self.answered else status

    def see(self, wrapper: Wrapper) -> None:
        """Take in what a watch told, unless it is older than what is known."""
        if not _is_older(wrapper, self.wrapper):
            self.read(wrapper)

    def read(self, wrapper: Wrapper) -> None:
        """Take in what the API server answered; it is newer than all that was known."""
        if _stage(wrapper) != _stage(self.wrapper):
            self.progress = Progress()
            if wrapper.status.phase == Phase.RESUMING:
                self.completed.clear()
        self.wrapper = wrapper

    def forget_term(self) -> None:
        """Drop what only the leader needs."""
        self.ticket, self.progress, self.write_pause = 0, Progress(), Pause()


def _stage(wrapper: Wrapper) -> tuple[str, int]:
    return wrapper.status.phase, wrapper.status.transition_count


def _is_older(told: Wrapper, known: Wrapper) -> bool:
    """Say whether a watch is behind: spec and phase are counted, and no count ever falls."""
    spec = told.metadata.generation < known.metadata.generation
    return spec or told.status.transition_count < known.status.transition_count


@dataclass(frozen=True, slots=True)
class PodCounts:
    """Pods of an AppWrapper by phase; `strangers` are of an earlier one of its name, and ending.

    `completed` counts those that succeeded by pod set.
    `exits` are the codes with which containers of failed pods ended. `totals` is what those request
    that run or have succeeded; `unschedulable` are those that kube-scheduler cannot place.
    """

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    strangers: int = 0
    completed: Mapping[str, int] = field(default_factory=lambda: _NONE)
    exits: frozenset[int] = frozenset()
    totals: Totals = NO_TOTALS
    unschedulable: tuple[PendingPod, ...] = ()

    @property
    def total(self) -> int:
        """All that exist."""
        return self.pending + self.running + self.succeeded + self.failed


def counted(pods: Iterable[WrappedPod], uid: str) -> PodCounts:
    """Count the pods of an AppWrapper, among all that have its name in their label."""
    counts: dict[str, int] = {}
    completed: Counter[str] = Counter()
    exits: set[int] = set()
    own: list[WrappedPod] = []
    strangers = 0
    for pod in pods:
        if pod.of == uid:
            counts[pod.phase] = counts.get(pod.phase, 0) + 1
            completed[pod.pod_set] += pod.completed
            exits.update(pod.exits)
            own.append(pod)
        else:
            strangers += bool(pod.metadata.deletion_timestamp)
    return PodCounts(
        pending=counts.get("Pending", 0) + counts.get("", 0) + counts.get("Unknown", 0),
        running=counts.get("Running", 0),
        succeeded=counts.get("Succeeded", 0),
        failed=counts.get("Failed", 0),
        strangers=strangers,
        completed=completed,
        exits=frozenset(exits),
        totals=_totals(own),
        unschedulable=tuple(sorted(_unschedulable(own), key=lambda each: each.pod_name)),
    )


def _totals(pods: Iterable[WrappedPod]) -> Totals:
    counted = [pod.totals for pod in pods if pod.phase in ("Running", "Succeeded")]
    return Totals(
        sum(each.cpu for each in counted),
        sum(each.memory for each in counted),
        sum(each.gpu for each in counted),
    )


def _unschedulable(pods: Iterable[WrappedPod]) -> Iterator[PendingPod]:
    for pod in pods:
        if pod.unschedulable:
            yield PendingPod(pod.metadata.name, pod.unschedulable)
