"""Says whether kube-scheduler would take a pod on a node, the slow and obvious way.

Written from the scheduler's plugins and on plain manifests, sharing no line with the core: one
pod, one node, everything that is bound so far. What refuses is named, so that it can be counted
how often each constraint decided.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.oracle.ingredient import Ingredient, Reach
from tests.oracle.ingredients import INGREDIENTS
from tests.oracle.model import Bound, Json, Scene, name_of, priority_of

_ROOM = tuple(each for each in INGREDIENTS if each.reach is not Reach.EXISTING_PODS)


def refusals(
    pod: Json, node: Json, scene: Scene, of: Sequence[Ingredient] = INGREDIENTS
) -> Iterator[str]:
    """Name the constraints that refuse the pod on the node.

    Pods nominated to the node count as well where they are no less important: it must take the
    pod with them and without them.
    """
    for each in of:
        if each.name not in scene.ignored and each.refuses(pod, node, scene):
            yield each.name
    before = [(other, where) for other, where in scene.nominated if where is node]
    before = [bound for bound in before if priority_of(bound[0]) >= priority_of(pod)]
    if before:
        asked = [each for each in of if each.is_asked(pod, scene)]
        crowded = replace(scene, bound=[*scene.bound, *before], nominated=[])
        yield from refusals(pod, node, crowded, asked)


def with_pod(scene: Scene, pod: Json, node: Json) -> Scene:
    """Return the scene once the pod is bound."""
    return replace(scene, bound=[*scene.bound, (pod, node)])


def accepts(pod: Json, node: Json, scene: Scene) -> bool:
    """Say whether nothing speaks against the pod on the node."""
    return next(refusals(pod, node, scene), None) is None


def takes(pod: Json, node: Json, scene: Scene) -> bool:
    """Say whether no refusal is final, whatever pods are bound later."""
    return next(refusals(pod, node, scene, _ROOM), None) is None


def faults(gang: Sequence[Bound], scene: Scene) -> Iterator[str]:
    """Say what is wrong with a gang that is bound as it stands here, in the order of release.

    A pod that is refused tries again once others are bound, as in kube-scheduler. A pod that is
    bound too early may keep others out for good: nothing is wrong if another order binds all.
    """
    for each in INGREDIENTS:
        yield from each.faults(gang, scene)
    now, waiting = scene, list(gang)
    while waiting:
        now, left = _pass(now, waiting)
        if len(left) == len(waiting):
            if not _has_order(scene, list(gang), set()):
                yield from _told(now, left)
            return
        waiting = left


def _told(now: Scene, left: Sequence[Bound]) -> Iterator[str]:
    for pod, node in left:
        names = " and ".join(refusals(pod, node, now))
        yield f"{names} refuses {name_of(pod)} on {name_of(node)}"


def _has_order(now: Scene, waiting: list[Bound], tried: set[frozenset[str]]) -> bool:
    """Say whether some order binds all that wait; `tried` are those left over before in vain."""
    left = frozenset(name_of(pod) for pod, _ in waiting)
    if not waiting or left in tried:
        return not waiting
    tried.add(left)
    return any(
        accepts(pod, node, now)
        and _has_order(
            with_pod(now, pod, node), [each for each in waiting if each[0] is not pod], tried
        )
        for pod, node in waiting
    )


def _pass(now: Scene, waiting: list[Bound]) -> tuple[Scene, list[Bound]]:
    """Bind accepted pods, one after the other; return the scene then and the pods that are left."""
    left = []
    for pod, node in waiting:
        if accepts(pod, node, now):
            now = with_pod(now, pod, node)
        else:
            left.append((pod, node))
    return now, left
