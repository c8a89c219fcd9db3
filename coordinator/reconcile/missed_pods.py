"""Has KubeRay look again at a RayCluster where pods that it should have made do not come.

KubeRay makes no pod of a group for 30 s where the last one was gone before its cache showed it
(`ExpectationsTimeout` in its scale_expectations.go), and looks again by itself only after 300 s.
"""

from collections.abc import Iterator

from coordinator.gang.late_starts import stamp_of
from coordinator.gang.view import Unmade
from coordinator.messages.actions import WakeKubeRay
from coordinator.reconcile.look import NOTHING_DONE, Done, Look

WAKE_AFTER = 35.0
"""Seconds without a new pod until KubeRay is asked to look again."""


def wake_kuberay(look: Look) -> Done:
    """Ask once for each number of pods that exist."""
    repairs, exist = look.view.repairs, sum(each.exist for each in look.view.survey.standing)
    if not _are_due(look):
        repairs.unmade = None
    elif repairs.unmade is None or repairs.unmade.exist != exist:
        repairs.unmade = Unmade(exist, look.now)
    elif not repairs.unmade.woken and look.now >= repairs.unmade.since + WAKE_AFTER:
        repairs.unmade.woken = True
        cluster = look.scene.cache.sources[look.view.key].resumable
        at = stamp_of(look.scene.moment.wall)
        return Done([WakeKubeRay(look.view.key, cluster, at)] if cluster is not None else ())
    return NOTHING_DONE


def next_at(look: Look) -> Iterator[float]:
    """Yield when KubeRay is to be asked."""
    unmade = look.view.repairs.unmade
    if unmade is not None and not unmade.woken:
        yield unmade.since + WAKE_AFTER


def _are_due(look: Look) -> bool:
    """Say whether KubeRay owes pods, and does not say why they do not come: then it tries again."""
    if look.source.resumable is None or not look.source.is_ours:
        return False
    if not look.scene.sighted or look.view.understood.head_lost or look.source.refused_pods:
        return False
    return any(each.exist < each.terms.count for each in look.view.survey.standing)
