"""Would kube-scheduler take this pod on that node, worked out the slow and obvious way?

Written from the scheduler's plugins and on plain manifests, sharing no line with the core: one
pod, one node, everything that is bound so far. What refuses is named, so that it can be counted
how often each constraint decided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.model import Bound, Json, Scene, name_of


def refusals(pod: Json, node: Json, scene: Scene) -> Iterator[str]:
    """Name the constraints that refuse the pod on the node."""
    for each in INGREDIENTS:
        if each.name not in scene.ignored and each.refuses(pod, node, scene):
            yield each.name


def with_pod(scene: Scene, pod: Json, node: Json) -> Scene:
    """Return the scene once the pod is bound."""
    return replace(scene, bound=[*scene.bound, (pod, node)])


def accepts(pod: Json, node: Json, scene: Scene) -> bool:
    """Say whether nothing speaks against the pod on the node."""
    return next(refusals(pod, node, scene), None) is None


def faults(gang: Sequence[Bound], scene: Scene) -> Iterator[str]:
    """Say what is wrong with a gang that is bound as it stands here, in the order of release.

    A pod that is refused tries again once others are bound, as kube-scheduler has it.
    """
    for each in INGREDIENTS:
        yield from each.faults(gang, scene)
    now, waiting = scene, list(gang)
    while waiting:
        left = []
        for pod, node in waiting:
            if accepts(pod, node, now):
                now = with_pod(now, pod, node)
            else:
                left.append((pod, node))
        if len(left) == len(waiting):
            for pod, node in left:
                names = " and ".join(refusals(pod, node, now))
                yield f"{names} refuses {name_of(pod)} on {name_of(node)}"
            return
        waiting = left


def possible(scene: Scene, pods: list[Json], tries: int) -> bool | None:
    """Say whether equal pods can be bound one after the other; None where it takes too long."""
    seen: set[tuple[str, ...]] = set()

    def search(now: Scene, left: list[Json], on: tuple[str, ...]) -> bool:
        if not left:
            return True
        if on in seen or len(seen) > tries:
            return False
        seen.add(on)
        return any(
            search(with_pod(now, left[0], node), left[1:], tuple(sorted((*on, name_of(node)))))
            for node in now.nodes
            if accepts(left[0], node, now)
        )

    return search(scene, pods, ()) or (None if len(seen) > tries else False)
