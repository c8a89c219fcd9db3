"""Has KubeRay look again at a RayCluster where pods that it should have made do not come.

KubeRay makes no pod of a group for 30 s where the last one was gone before its cache showed it
(`ExpectationsTimeout` in its scale_expectations.go), and looks again by itself only after 300 s.
"""

from collections.abc import Iterator

from coordinator.gang.pods.repairs import MissingPods
from coordinator.gang.setbacks.late_starts import stamp_of
from coordinator.messages.actions import WakeKubeRay
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from kube.foreseen.namespace_quota import exceeded

WAKE_AFTER = 35.0
"""Seconds without a new pod until KubeRay is asked to look again."""

QUOTA_WAKE_AFTER = 0.5
"""The same where a ResourceQuota refused them that has room now: KubeRay is not told of that."""


def wake_kuberay(look: Look) -> StepResult:
    """Ask once for each number of pods that exist; again only where a quota has room for them."""
    repairs, exist = look.view.repairs, sum(each.exist for each in look.view.survey.standing)
    fits = _has_quota_now(look)
    if not _are_due(look, fits=fits):
        repairs.unmade = None
    elif repairs.unmade is None or (repairs.unmade.exist, repairs.unmade.fits) != (exist, fits):
        after = QUOTA_WAKE_AFTER if fits else WAKE_AFTER
        repairs.unmade = MissingPods(exist, fits, look.now + after)
    elif repairs.unmade.due is not None and look.now >= repairs.unmade.due:
        repairs.unmade = MissingPods(exist, fits, look.now + WAKE_AFTER if fits else None)
        cluster = look.scene.cache.sources[look.view.key].resumable
        at = stamp_of(look.scene.moment.wall)
        return StepResult([WakeKubeRay(look.view.key, cluster, at)] if cluster is not None else ())
    return NOTHING_DONE


def next_at(look: Look) -> Iterator[float | None]:
    """Yield when KubeRay is to be asked."""
    unmade = look.view.repairs.unmade
    yield unmade.due if unmade is not None else None


def _has_quota_now(look: Look) -> bool:
    """Say whether a ResourceQuota that refused pods has room for all of them now, or is gone."""
    refusal, turns = look.source.refused_pods, look.scene.turns
    refused = exceeded(refusal).keys()
    if refused and refused.isdisjoint(turns.bounds(look.view.key.namespace)):
        return True
    return bool(refusal) and turns.answer(look.view.key).fits


def _are_due(look: Look, *, fits: bool) -> bool:
    """Say whether KubeRay owes pods, and does not say why they do not come: then it tries again."""
    if look.source.resumable is None or not look.source.is_ours:
        return False
    if (
        not look.scene.sighted
        or look.view.understood.head_lost
        or (look.source.refused_pods and not fits)
    ):
        return False
    return any(each.exist < each.terms.count for each in look.view.survey.standing)
