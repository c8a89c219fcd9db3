"""Has a gang suspended again that was resumed and cannot start: all of it exists, or nothing.

Its pods do not come, or otherwise than foreseen so that they do not fit.
"""

from coordinator.gang.demand import NotReady
from coordinator.gang.held_start.differences import difference
from coordinator.gang.held_start.phases import Doubt, Phase, Resumed, Sign
from coordinator.gang.held_start.start import TEXT_LIMIT, Expected
from coordinator.gang.pods.pod_sets import exist_in_words
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Look, StepResult
from coordinator.reconcile.pod_writes.fences import gated, withdraw
from kube.ray.held_start import asks_to_be_held, never_held
from scheduling.model.verdict import Reason

UNFIT_PATIENCE = 5.0
"""Seconds until a gang is suspended again whose pods exist and cannot be placed."""

LATE, REFUSED, UNFIT = "late", "refused", "unfit"
"""Why a gang may have to be suspended again."""

OLD_SCHEMA = (
    "the API server drops status.held of Gangs: their definition (CRD) is of an earlier release, "
    "apply manifests/crds of this one"
)

STAYS = (Reason.MISCONFIGURED, Reason.FOREIGN_GATES)
"""Reasons to wait for which pods or RayCluster are to be changed as they are."""


def suspend_again(look: Look) -> StepResult:
    """Have a gang that was resumed suspended again where it cannot start; all or nothing exists."""
    view, resumed = look.view, look.view.held.state
    view.not_held = _not_held(look)
    if view.released_any:
        view.held.forget_tries()
        if view.key not in look.scene.cache.foreseen:
            view.held.expected = Expected()
    if not isinstance(resumed, Resumed):
        return NOTHING_DONE
    view.held.state = resumed = resumed.doubted(_doubt(look, resumed), look.now)
    doubt = resumed.doubt
    if doubt is None or look.now < _due(look, doubt):
        return NOTHING_DONE
    return _return(look, doubt) if withdraw(look, gated(look.pods)) else NOTHING_DONE


def doubted_at(look: Look) -> float | None:
    """Return when time alone has a source suspended again."""
    state = look.view.held.state
    doubt = state.doubt if isinstance(state, Resumed) else None
    return _due(look, doubt) if doubt is not None else None


def _doubt(look: Look, resumed: Resumed) -> str | None:
    """Say of a gang of which nothing started why it may have to be suspended again."""
    view, asked, terms = look.view, look.view.queueing.asked, look.view.understood.terms
    if view.released_any or not look.scene.sighted or not all(pod.gated for pod in look.pods):
        return None
    if terms is None or not any(each.count for each in terms.pod_sets):
        return None  # no pods are asked for, or no more
    if view.expects_pods:
        return REFUSED if look.source.refused_pods else f"{LATE} {resumed.came}"
    waits = view.queueing.refusal is not None
    if isinstance(asked, NotReady):
        waits = asked.reason not in STAYS
    return UNFIT if waits and view.reservation.placement is None else None


def _due(look: Look, doubt: Doubt) -> float:
    """Return when the room is given back: at once where the API server has answered."""
    if doubt.kind == REFUSED:
        return doubt.since + (0.0 if look.source.refuses_for_good else look.scene.patience.bind)
    return doubt.since + (UNFIT_PATIENCE if doubt.kind == UNFIT else look.create_seconds)


def _return(look: Look, doubt: Doubt) -> StepResult:
    """Give the placement up, and remember how the pods came; what comes to nothing again waits."""
    view, held, tries = look.view, look.view.held, look.view.held.tries
    pods = [pod for pod in look.pods if pod.alive]
    differs = difference(held.expected.foresight.pods, pods)
    why = f"it was suspended again: {_why(look, doubt, differs)}"
    if differs and doubt.kind == UNFIT:
        held.learn(pods, look.now)
    view.reservation.placement = None
    held.enter(Sign.GIVEN_BACK, look.source.metadata.generation)
    if doubt.kind != UNFIT or tries.returns:
        reason = Reason.PODS_REFUSED if doubt.kind == REFUSED else Reason.HELD
        tries.pause(NotReady(reason, why), look.scene.moment, look.scene.patience)
    tries.returns, tries.text = tries.returns + 1, why[:TEXT_LIMIT]
    return SURVEY_AGAIN


def _why(look: Look, doubt: Doubt, differs: str) -> str:
    refused = look.source.refused_pods
    if doubt.kind == UNFIT:
        return differs or "its pods exist and could not be placed"
    exist = exist_in_words(look.view.survey.standing)
    if refused:
        return f"{exist}; KubeRay could not create more: {refused}"
    seconds, lacks = look.create_seconds, look.view.repairs.devices.unclaimed
    if lacks:
        return f"{exist}, and their claims were not made within {seconds} s: {lacks}"
    return f"{exist}, and none came within {seconds} s{look.source.why_late}"


def _not_held(look: Look) -> str:
    """Say why a gang is not held though it is asked for; empty where it is, or was."""
    view, terms, cluster = look.view, look.view.understood.terms, look.source.resumable
    if terms is None or view.held.phase is not Phase.NONE or cluster is None:
        return ""
    queue_holds = look.scene.queues.holds(terms.queue)
    if not asks_to_be_held(cluster.metadata.annotations, queue_holds=queue_holds):
        return ""
    because = OLD_SCHEMA if "held" in view.record.drops else ""
    because = because or never_held(cluster, look.scene.cache.owners.owner_of(look.source))
    because = because or view.held.expected.foresight.unforeseeable
    return because or "that is decided when a RayCluster is created, or it was resumed by others"
