"""Fences gated pods whose release may be on its way, so that this release fails.

A fence changes the pod's resourceVersion, which every release tests. The token counts up within the
term, because an annotation that stays the same would not change the resourceVersion.

A policy may refuse fences too, for ever. But no release is under way for ever. A release is sent
only in a term that is valid; the client gives it `request_timeout` (10 s) and then closes the
connection; and the API server gives up a request after `--request-timeout` (60 s), including the
webhooks that it asks. So `Patience.arrival` (both, and 30 s) after the last release was sent, or
ended without an answer, none can change a pod any more, fenced or not. An earlier leader sent its
last release before this term began.
"""

from collections.abc import Iterable, Iterator

from coordinator.gang.view import GangView
from coordinator.messages.actions import Action, FencePod
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from kube.codec.observed_pod import ObservedPod


def fence_pods(look: Look) -> StepResult:
    """Fence the gated pods of a gang with a placement whose node is another one than before."""
    if look.view.reservation.placement is None:
        return NOTHING_DONE
    return StepResult(list(_fences(look)))


def fence_gated_pods(look: Look) -> StepResult:
    """Fence the gated pods of a gang that gives its room back, also where none is left."""
    return StepResult(list(_fence(look, gated(look.pods))))


def gated(pods: Iterable[ObservedPod]) -> list[ObservedPod]:
    """The pods with our gate that are members still."""
    return [pod for pod in pods if pod.gated and pod.alive]


def withdraw(look: Look, pods: Iterable[ObservedPod]) -> bool:
    """Have no release of gated pods arrive any more; say whether that is so already."""
    view, pods = look.view, list(pods)
    if view.pod_writes.withdrawn_since is None:
        view.pod_writes.withdrawn_since = look.now
    for pod in pods:
        if pod.uid in view.pod_writes.unsure | view.pod_writes.inflight:
            _require_new_fence(view, pod, "", look.scene.epoch)
        else:
            view.pod_writes.targets.pop(pod.uid, None)
    if view.pod_writes.inflight:
        return False
    return all(fence_holds(view, pod) for pod in pods) or none_can_arrive(look)


def call_back(look: Look, pods: Iterable[ObservedPod]) -> None:
    """Have releases of gated pods that ended in doubt arrive no more, by a fence."""
    for pod in pods:
        _require_new_fence(look.view, pod, "", look.scene.epoch)


def none_can_arrive(look: Look) -> bool:
    """Say whether the last release was sent so long ago that it was carried out, or never is.

    One that was decided before the gang gave up may have been sent, and not answered, long after.
    """
    since = look.view.pod_writes.withdrawn_since
    return since is not None and _long_ago(look, since) and not _in_doubt(look)


def _in_doubt(look: Look) -> bool:
    """Say whether a release that ended without an answer may still be carried out."""
    since = look.view.pod_writes.doubted_since
    return since is not None and not _long_ago(look, since)


def _long_ago(look: Look, since: float) -> bool:
    return look.now >= since + look.scene.patience.arrival


def fence_token(pod: ObservedPod, epoch: int, count: int) -> str:
    """Return a token that the pod does not carry yet: one that was forged on it fences nothing."""
    token = f"{epoch}.{count}"
    carried = pod.member is not None and pod.member.fence == token
    return f"{epoch}.{count + 1}" if carried else token


def fence_holds(view: GangView, pod: ObservedPod) -> bool:
    """Whether a pod carries the token that it must carry, if any."""
    wanted = view.pod_writes.fences.get(pod.uid)
    return wanted is None or (pod.member is not None and pod.member.fence == wanted)


def may_arrive(look: Look) -> dict[str, str]:
    """The gated pods whose release may still arrive: uid -> node, empty where that is not known."""
    view, writes, in_doubt = look.view, look.view.pod_writes, _in_doubt(look)
    asked = writes.inflight | (writes.unsure if in_doubt else set())
    sent = {uid: writes.targets[uid] for uid in asked if uid in writes.targets}
    if writes.fences and in_doubt:
        sent |= {pod.uid: "" for pod in gated(look.pods) if not fence_holds(view, pod)}
    return sent


def is_writable(look: Look, pod: ObservedPod) -> bool:
    """Whether a pod may be written now: no write is under way, and none has just failed."""
    writes = look.view.pod_writes
    tried = writes.attempts.get(pod.uid)
    under_way = pod.uid in writes.inflight | look.view.nominating.inflight.keys()
    return not under_way and (tried is None or tried.not_before <= look.now)


def _fences(look: Look) -> Iterator[Action]:
    standing = look.view.survey.standing
    with_slot = (each for pod_set in standing for each in pod_set.with_slot)
    without_slot = ((pod, "") for pod_set in standing for pod in pod_set.waiting)
    for pod, node in (*with_slot, *without_slot):
        _require_new_fence(look.view, pod, node, look.scene.epoch)
        yield from _fence(look, [pod])


def _fence(look: Look, pods: Iterable[ObservedPod]) -> Iterator[Action]:
    view = look.view
    for pod in pods:
        if not fence_holds(view, pod) and is_writable(look, pod):
            view.pod_writes.inflight.add(pod.uid)
            assert pod.raw is not None
            yield FencePod(view.key, pod.raw, view.pod_writes.fences[pod.uid])


def _require_new_fence(view: GangView, pod: ObservedPod, node: str, epoch: int) -> None:
    """Ask for a new token where a release to another node may be on its way."""
    writes = view.pod_writes
    sent_to = writes.targets.get(pod.uid)
    if sent_to is not None and sent_to != node and pod.uid not in writes.inflight:
        count = int(writes.fences.get(pod.uid, f"{epoch}.0").rpartition(".")[2]) + 1
        writes.fences[pod.uid] = fence_token(pod, epoch, count)
        del writes.targets[pod.uid]
