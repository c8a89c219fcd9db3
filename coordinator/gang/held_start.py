"""Keeps how far the held start of a gang has come: its RayCluster is suspended until admission.

What the phase is stands in the Gang; all else is lost with the term, and found out again. A
RayCluster that is suspended while its phase says Resumed, or has none, was suspended by others.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from coordinator.gang.attempts import Attempts
from coordinator.gang.demand import NotReady
from coordinator.gang.foresight import NOTHING_FORESEEN, Foresight
from coordinator.gang.late_starts import stamp_of
from coordinator.gang.pod_sets import Standing
from kube.codec.fields import moment_of
from kube.codec.observed_pod import ObservedPod
from kube.gang.source import GangSource
from kube.objects.gang import GangHeld
from scheduling.diagnosis.wording import written
from scheduling.model.pod import PodShape

LEARNED_FOR, LEARNED_LONGEST = 3600.0, 86_400.0
"""Seconds for which pods are expected as they came; a side-car may not be injected any more."""

SETS_NAMED = 3
RESOURCES_NAMED = 3


class Phase(StrEnum):
    """How far the held start has come; NONE of gangs that are not held."""

    NONE = ""
    WAITING = "Waiting"
    RESUMED = "Resumed"
    SUSPENDING = "Suspending"


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a gang that was resumed may have to be suspended again, and since when."""

    kind: str
    since: float


@dataclass(slots=True)
class HeldStart:
    """The held start of one gang. Written by `reconcile.holding`, `opening` and `intake`.

    `phase` and `generation` (of the RayCluster, when the phase began) are those of the record.
    `asked` is the generation in which the RayCluster was last asked to be resumed or suspended, 0
    where that failed, and `asked_at` says when (monotonic seconds); `writing` says that it is under
    way.

    `foresight` is what the templates tell of the pods, worked out of `foresight_of` (RayCluster,
    edition of the rules), and `expected` are the pods that it was decided on. `learned` are pods
    that came otherwise, by pod set, of the templates `learned_of`, and count until `learned_until`.
    `problem` says why the pods cannot be created, as far as that can be foreseen.

    `came` is how many of its pods existed at most since it was resumed, and `came_at` since when
    (monotonic seconds; 0 before the first look).

    `returns` counts how often in a row it was suspended again, and `text` says why the last time.
    It fails to be resumed since `refused_since`. Until `paused_until` it asks for nothing, for the
    reason `paused`; `pauses` counts those in a row. Until `set_back_until` (seconds since 1970) it
    comes after others and stops none. The record holds both, so a new leader goes on with them.
    """

    phase: Phase = Phase.NONE
    generation: int = 0
    asked: int = 0
    asked_at: float = 0.0
    writing: bool = False
    attempts: Attempts = field(default_factory=Attempts)
    foresight: Foresight = NOTHING_FORESEEN
    foresight_of: tuple[GangSource, int] | None = None
    expected: tuple[ObservedPod, ...] = ()
    learned: Mapping[str, tuple[ObservedPod, ...]] = field(default_factory=dict)
    learned_of: object | None = None
    learned_until: float = 0.0
    problem: NotReady | None = None
    doubt: Doubt | None = None
    came: int = 0
    came_at: float = 0.0
    returns: int = 0
    text: str = ""
    refused_since: float | None = None
    paused: NotReady | None = None
    paused_until: float = 0.0
    pauses: int = 0
    set_back_until: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether the RayCluster is suspended by Muster, or about to be."""
        return self.phase in (Phase.WAITING, Phase.SUSPENDING)

    def setbacks(self, wall: float) -> int:
        """Count the starts in vain for which the gang comes after others for a time."""
        return self.pauses if wall < self.set_back_until else 0

    def become(self, phase: Phase, generation: int) -> None:
        """Enter a phase."""
        self.phase, self.generation, self.asked, self.doubt = phase, generation, 0, None
        self.came, self.came_at = 0, 0.0
        if phase is Phase.RESUMED or phase is Phase.NONE:
            self.text = ""
        if phase is Phase.NONE:
            self.pauses, self.set_back_until = 0, 0.0

    def forget_tries(self) -> None:
        """Drop what is of use only until the gang starts."""
        self.returns = self.pauses = 0
        self.set_back_until = 0.0
        self.learned, self.learned_of = {}, None

    def forget_foresight(self) -> None:
        """Drop what was foreseen of pods that exist."""
        self.foresight, self.foresight_of, self.expected = NOTHING_FORESEEN, None, ()

    def note_pods(self, pods: int, now: float) -> None:
        """Take in how many pods exist: the time for those to come begins anew with each more."""
        if pods > self.came or not self.came_at:
            self.came, self.came_at = pods, now

    def learn(self, seen: Iterable[ObservedPod], now: float) -> None:
        """Remember how pods came; each time in a row for twice as long."""
        self.learned, self.learned_of = seen_shapes(seen), None
        self.learned_until = now + min(LEARNED_LONGEST, LEARNED_FOR * 2.0 ** min(self.returns, 16))

    def is_behind(self, source: GangSource) -> bool:
        """Say whether the RayCluster that was seen is older than the one of the phase."""
        return self.phase is not Phase.NONE and source.metadata.generation < self.generation

    def ended(self, now: float, error: str | None, refusal: str) -> None:
        """Take in how the resumption or suspension that was asked for ended."""
        self.writing = False
        if error is None:
            self.attempts = Attempts()
            return
        self.asked = 0
        self.attempts.failed(now, refusal)


def held_json(held: HeldStart) -> dict[str, Any]:
    """Write the phase down as the record holds it."""
    if held.phase is Phase.NONE:
        return {}
    written: dict[str, Any] = {"phase": str(held.phase), "generation": held.generation}
    if held.pauses:
        written |= {"failures": held.pauses, "until": stamp_of(held.set_back_until)}
    return written


def held_recorded(written: GangHeld | None) -> HeldStart:
    """Read the phase that a record holds; one of a later release is none."""
    known = {str(each): each for each in Phase}
    if written is None or written.phase not in known:
        return HeldStart()
    held = HeldStart(known[written.phase], written.generation)
    held.pauses, held.set_back_until = written.failures, moment_of(written.until)
    return held


def with_learned(held: HeldStart, source: GangSource, now: float) -> tuple[ObservedPod, ...]:
    """Return the foreseen pods in the shapes in which they came, if they came of late."""
    if not held.learned:
        return held.foresight.pods
    if held.learned_of is None:
        held.learned_of = source.templates
    if held.learned_of != source.templates or now >= held.learned_until:
        held.learned, held.learned_of = {}, None
    return tuple(_as_learned(held.foresight.pods, held.learned))


def _as_learned(
    foreseen: Iterable[ObservedPod], learned: Mapping[str, Sequence[ObservedPod]]
) -> Iterator[ObservedPod]:
    counts: dict[str, int] = {}
    for pod in foreseen:
        name = pod.member.pod_set if pod.member is not None else ""
        seen, at = learned.get(name), counts.get(name, 0)
        counts[name] = at + 1
        yield _in_shape_of(seen[at % len(seen)], pod) if seen else pod


def _in_shape_of(seen: ObservedPod, pod: ObservedPod) -> ObservedPod:
    """Return a pod that does not exist with what matters to the scheduler of one that did."""
    member, like = pod.member, seen.member
    if member is None or like is None or member.shape == like.shape:
        return pod
    return replace(
        pod,
        used=seen.used,
        kind=seen.kind,
        anti_affinity=seen.anti_affinity,
        mounts=seen.mounts,
        member=replace(member, shape=like.shape, priority=like.priority, invalid=like.invalid),
    )


def seen_shapes(pods: Iterable[ObservedPod]) -> dict[str, tuple[ObservedPod, ...]]:
    """Return pods by pod set, as far as their shapes are to be remembered."""
    found: dict[str, list[ObservedPod]] = {}
    for pod in pods:
        if pod.alive and pod.member is not None and pod.member.shape is not None:
            found.setdefault(pod.member.pod_set, []).append(replace(pod, raw=None))
    return {name: tuple(pods) for name, pods in found.items()}


def difference(foreseen: Iterable[ObservedPod], seen: Iterable[ObservedPod]) -> str:
    """Say in what pods came otherwise than their templates told; empty where they did not."""
    told, came = seen_shapes(foreseen), seen_shapes(seen)
    said = [_of_set(name, told[name], came[name]) for name in sorted(told.keys() & came.keys())]
    return "; ".join([each for each in said if each][:SETS_NAMED])


def _of_set(name: str, told: Sequence[ObservedPod], came: Sequence[ObservedPod]) -> str:
    known = {shape.key for pod in told if (shape := _shape(pod)) is not None}
    first = _shape(told[0])
    other = next((s for pod in came if (s := _shape(pod)) is not None and s.key not in known), None)
    if other is None or first is None:
        return ""
    return f"pods of {name} came with {_fields(first, other)}"


def _shape(pod: ObservedPod) -> PodShape | None:
    return pod.member.shape if pod.member is not None else None


def _fields(told: PodShape, came: PodShape) -> str:
    """Name the amounts in which shapes differ; where there are none, what else it is."""
    before, now = dict(told.own_requests), dict(came.own_requests)
    moved = [name for name in sorted(before | now) if before.get(name) != now.get(name)]
    amounts = [
        f"{_amount(name, now.get(name, 0))} {name} instead of {_amount(name, before.get(name, 0))}"
        for name in moved[:RESOURCES_NAMED]
    ]
    return ", ".join(amounts) or f"another {_other_field(told, came)}"


def _amount(resource: str, amount: int) -> str:
    return written(resource, amount, up=0)


def _other_field(told: PodShape, came: PodShape) -> str:
    words = {
        "node_selector": "nodeSelector",
        "node_affinity": "node affinity",
        "tolerations": "list of tolerations",
        "affinity": "pod affinity",
        "anti_affinity": "pod anti-affinity",
        "spread": "list of topology spread constraints",
        "volumes": "list of volume claims",
    }
    found = (word for name, word in words.items() if getattr(told, name) != getattr(came, name))
    return next(found, "constraint")


def exist_in_words(standing: Standing) -> str:
    """Say how many pods of the minimum exist."""
    exist = sum(min(each.exist, each.terms.minimum) for each in standing)
    return f"{exist} of {sum(each.terms.minimum for each in standing)} pods exist"
