"""Remembers in which shapes pods came that were foreseen otherwise."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kube.codec.observed_pod import ObservedPod

LEARNED_FOR, LEARNED_LONGEST = 3600.0, 86_400.0
"""Seconds for which pods are expected as they came; a side-car may not be injected any more."""


@dataclass(frozen=True, slots=True)
class LearnedPods:
    """Pods that came otherwise than foreseen, by pod set; they count for a time."""

    pods: Mapping[str, tuple[ObservedPod, ...]] = field(default_factory=dict)
    templates: object | None = None
    """What they are made of; None until that is first asked."""
    until: float = 0.0

    def at(self, templates: object, now: float) -> "LearnedPods":
        """Return what still counts of pods that are made of these templates."""
        known = self if self.templates is not None else replace(self, templates=templates)
        return known if known.templates == templates and now < known.until else LearnedPods()

    def in_shapes(self, foreseen: tuple[ObservedPod, ...]) -> tuple[ObservedPod, ...]:
        """Return foreseen pods in the shapes in which they came."""
        return tuple(_as_learned(foreseen, self.pods)) if self.pods else foreseen


def learned(seen: Iterable[ObservedPod], now: float, before: int) -> LearnedPods:
    """Remember how pods came; `before` times in a row they were remembered before."""
    seconds = min(LEARNED_LONGEST, LEARNED_FOR * 2.0 ** min(before, 16))
    return LearnedPods(by_pod_set(seen), until=now + seconds)


def by_pod_set(pods: Iterable[ObservedPod]) -> dict[str, tuple[ObservedPod, ...]]:
    """Return pods by pod set, as far as their shapes are to be remembered."""
    found: dict[str, list[ObservedPod]] = {}
    for pod in pods:
        if pod.alive and pod.member is not None and pod.member.shape is not None:
            found.setdefault(pod.member.pod_set, []).append(replace(pod, raw=None))
    return {name: tuple(pods) for name, pods in found.items()}


def _as_learned(
    foreseen: Iterable[ObservedPod], learned: Mapping[str, Sequence[ObservedPod]]
) -> Iterator[ObservedPod]:
    counts: Counter[str] = Counter()
    for pod in foreseen:
        name = pod.member.pod_set if pod.member is not None else ""
        seen, at = learned.get(name), counts[name]
        counts[name] += 1
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
