"""Has a gang suspended again that was resumed and cannot start: all of it exists, or nothing.

Its pods do not come, or otherwise than foreseen so that they do not fit.
"""

from collections.abc import Iterator
from math import floor

from coordinator.gang.demand import NotReady
from coordinator.gang.held_start import Doubt, Phase, difference, exist_in_words
from coordinator.reconcile.fences import gated, withdraw
from coordinator.reconcile.late_starts import create_seconds
from coordinator.reconcile.look import NOTHING_DONE, SURVEY_AGAIN, Done, Look
from kube.gang.source import GangSource
from kube.ray.held_start import asks_to_be_held, never_held
from scheduling.model.verdict import Reason

UNFIT_PATIENCE = 5.0
"""Seconds until a gang is suspended again whose pods exist and cannot be placed."""

LATE, REFUSED, UNFIT = "late", "refused", "unfit"
"""Why a gang may have to be suspended again."""

FIRST_PAUSE, LONGEST_PAUSE = 30.0, 600.0
"""Seconds until a gang asks for room again that was suspended again in vain."""

TEXT_LIMIT = 600
"""Characters of what is said of the last try, beside why the gang waits now."""

OLD_SCHEMA = (
    "the API server drops status.held of Gangs: their definition (CRD) is of an earlier release, "
    "apply manifests/crds of this one"
)

STAYS = (Reason.MISCONFIGURED, Reason.FOREIGN_GATES)
"""Reasons to wait for which pods or RayCluster are to be changed as they are."""


def suspend_again(look: Look) -> Done:
    """Have a gang that was resumed suspended again where it cannot start; all or nothing exists."""
    view, held = look.view, look.view.held
    view.not_held = _not_held(look)
    doubt = _doubt(look)
    if view.released_any:
        held.forget_tries()
        if view.key not in look.scene.cache.foreseen:
            held.forget_foresight()
    if doubt is None or held.doubt is None or held.doubt.kind != doubt:
        held.doubt = Doubt(doubt, look.now) if doubt is not None else None
    if held.doubt is None or look.now < _due(look, held.doubt):
        return NOTHING_DONE
    return _return(look, held.doubt) if withdraw(look, gated(look.pods)) else NOTHING_DONE


def doubted_at(look: Look) -> Iterator[float]:
    """Yield when time alone has a RayCluster suspended again."""
    doubt = look.view.held.doubt
    if doubt is not None:
        yield _due(look, doubt)


def _doubt(look: Look) -> str | None:
    """Say of a gang of which nothing started why it may have to be suspended again."""
    view, asked = look.view, look.view.queueing.asked
    if view.held.phase is not Phase.RESUMED or view.released_any or not look.scene.sighted:
        return None
    if view.understood.terms is None or not all(pod.gated for pod in look.pods):
        return None
    if not any(each.count for each in view.understood.terms.pod_sets):
        return None  # no pods are asked for, or no more
    if view.expects_pods:
        return REFUSED if look.source.refused_pods else f"{LATE} {view.held.came}"
    waits = view.queueing.refusal is not None
    if isinstance(asked, NotReady):
        waits = asked.reason not in STAYS
    return UNFIT if waits and view.reservation.placement is None else None


def _due(look: Look, doubt: Doubt) -> float:
    """Return when the room is given back: at once where the API server has answered."""
    if doubt.kind == REFUSED:
        return doubt.since + (0.0 if look.source.refuses_for_good else look.scene.patience.bind)
    return doubt.since + (UNFIT_PATIENCE if doubt.kind == UNFIT else create_seconds(look))


def _return(look: Look, doubt: Doubt) -> Done:
    """Give the placement up, and remember how the pods came; what comes to nothing again waits."""
    view, held = look.view, look.view.held
    pods = [pod for pod in look.pods if pod.alive]
    differs = difference(held.foresight.pods, pods)
    why = f"it was suspended again: {_why(look, doubt, differs)}"
    if differs and doubt.kind == UNFIT:
        held.learn(pods, look.now)
    view.reservation.placement = None
    held.become(Phase.SUSPENDING, look.source.metadata.generation)
    if doubt.kind != UNFIT or held.returns:
        reason = Reason.PODS_REFUSED if doubt.kind == REFUSED else Reason.HELD
        pause(look, NotReady(reason, why))
    held.returns, held.text = held.returns + 1, why[:TEXT_LIMIT]
    return SURVEY_AGAIN


def _why(look: Look, doubt: Doubt, differs: str) -> str:
    view, refused = look.view, look.source.refused_pods
    if doubt.kind == UNFIT:
        return differs or "its pods exist and could not be placed"
    exist = exist_in_words(view.survey.standing)
    if refused:
        return f"{exist}; KubeRay could not create more: {refused}"
    seconds = create_seconds(look)
    return f"{exist}, and none came within {seconds} s{look.source.why_late}"


def pause(look: Look, why: NotReady) -> None:
    """Have the gang ask for nothing for a time, and come after others for longer; both double.

    It may be that its pods can never be created: what it stopped for them was stopped in vain.
    """
    held, patience = look.view.held, look.scene.patience
    seconds = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(held.pauses, 16))
    held.pauses += 1
    held.paused, held.paused_until = why, look.now + seconds
    held.set_back_until = float(floor(look.scene.moment.wall + patience.setback_after(held.pauses)))


def _not_held(look: Look) -> str:
    """Say why a gang is not held though it is asked for; empty where it is, or was."""
    view, terms, cluster = look.view, look.view.understood.terms, look.source.resumable
    if terms is None or view.held.phase is not Phase.NONE or cluster is None:
        return ""
    queue_holds = look.scene.queues.holds(terms.queue)
    if not asks_to_be_held(cluster.metadata.annotations, queue_holds=queue_holds):
        return ""
    because = OLD_SCHEMA if view.record.drops_held else ""
    because = because or never_held(cluster, look.scene.cache.owners.owner_of(look.source))
    because = because or view.held.foresight.unforeseeable
    return because or "that is decided when a RayCluster is created, or it was resumed by others"


def as_it_is(look: Look) -> GangSource:
    """Return the RayCluster as it was seen: a look at a gang that waits has it as if resumed."""
    return look.scene.cache.sources[look.view.key]
