"""Counts gangs that were partly bound at one time, and for how long, from a watch of pods.

A gang is partly bound from its first bound pod to its last: meanwhile it holds room and does not
run. Stock kube-scheduler is measured alike; it knows no gangs, so its figure is not an aim.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.podwatch import Seen


@dataclass(frozen=True)
class PartlyBound:
    """The most gangs partly bound at one time, the seconds over all of them, and the first whole.

    `first_whole` is the time, on the clock of the watch, at which the first gang was bound whole.
    """

    most: int
    gang_seconds: float
    first_whole: float


def partly_bound(pods: Iterable[Seen]) -> PartlyBound:
    """Work it out of pods that are all bound."""
    bound: defaultdict[str, list[float]] = defaultdict(list)
    for pod in pods:
        bound[pod.group].append(pod.bound)
    spans = [(min(times), max(times)) for times in bound.values()]
    # At one and the same moment an end counts before a beginning.
    steps = sorted([(first, 1) for first, _ in spans] + [(last, -1) for _, last in spans])
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    seconds = sum(last - first for first, last in spans)
    return PartlyBound(most, seconds, min(last for _, last in spans))
