"""Tells expected changes of a starting pod (bound, ready) from those that need a look.

The pods of a starting gang are released, bound and become ready one after another. Only the last
pod at each step changes what is to be done next, and a look at a gang reads all of its pods. So the
gang is looked at after that last pod, when something else happens, or a moment later.
"""

from dataclasses import dataclass, field, replace

from coordinator.gang.pods.pod_sets import Standing
from kube.codec.observed_pod import ObservedPod
from reservation.slots import kind_of


@dataclass(slots=True)
class ExpectedChanges:
    """The pods of a gang that have a step before them, as they were when it was last looked at.

    All are uids: of pods yet to be bound, and yet to be ready. Where the release is `in_steps`,
    what is released next waits for binds.
    """

    binding: set[str] = field(default_factory=set)
    starting: set[str] = field(default_factory=set)
    in_steps: bool = False

    def begin(self, standing: Standing, writing: set[str], *, in_steps: bool) -> None:
        """Note which pods have which step before them; a write to those `writing` is under way."""
        self.in_steps = in_steps
        settled = [pod for pod_set in standing for pod in pod_set.settled]
        unsettled = writing - {pod.uid for pod in settled}
        self.binding = unsettled | {pod.uid for pod in settled if not pod.node}
        self.starting = unsettled | {pod.uid for pod in settled if not pod.ready}

    def is_last(self, before: ObservedPod, after: ObservedPod) -> bool:
        """Note the step of a pod; say whether it is the last that something waits for."""
        bound, ready = bool(after.node and not before.node), after.ready and not before.ready
        if bound:
            self.binding.discard(after.uid)
        if ready:
            self.starting.discard(after.uid)
        step_over = self.in_steps and bound and not self.binding
        return step_over or (ready and not self.starting)


def goes_on(before: ObservedPod, after: ObservedPod, target: str) -> bool:
    """Say whether a pod took a step that was decided; `target` is where it is being released to."""
    if before.uid != after.uid or after.gated or not after.alive or after.unschedulable:
        return False
    if before.gated:
        return _was_released(before, after, target)
    forward = after.ready or not before.ready
    in_place = after.settled_on == before.settled_on and after.holds in (before.holds, after.node)
    in_place = in_place and _nomination_stands(before, after)
    moving = ("node", "holds", "nominated_to", "ready", "unschedulable", "resource_version")
    return forward and in_place and _same_but(before, after, *moving)


def was_nominated(before: ObservedPod, after: ObservedPod, target: str) -> bool:
    """Say whether a gated pod was nominated to `target`, and nothing else of it changed.

    Where the target is empty, whether its nomination was taken back.
    """
    if after.nominated_to != target or (target and before.nominated_to not in ("", target)):
        return False
    if before.member is None or after.member is None:
        return False
    same = (
        before.uid == after.uid and replace(before.member, told=after.member.told) == after.member
    )
    moving = ("nominated", "nominated_to", "resource_version", "member", "raw")
    return same and after.gated and _same_but(before, after, *moving)


def _nomination_stands(before: ObservedPod, after: ObservedPod) -> bool:
    """Whether a pod is nominated as before, or bound and was nominated to no other node."""
    same = after.nominated_to == before.nominated_to
    return same or (bool(after.node) and before.nominated_to in ("", after.node))


def _was_released(before: ObservedPod, after: ObservedPod, target: str) -> bool:
    same = kind_of(before) == kind_of(after) is not None
    moving = ("node", "holds", "ready", "unschedulable", "resource_version", "member", "raw")
    return (
        same and bool(target) and after.settled_on == target and _same_but(before, after, *moving)
    )


def _same_but(before: ObservedPod, after: ObservedPod, *fields: str) -> bool:
    moved = {each: getattr(after, each) for each in fields}
    return replace(before, **moved) == after
