"""Reports or stops a gang that lost a part of its minimum for good, as its queue says.

Ray goes on without a worker, so by default the gang is left as it is. Its deadline is that of its
slots: until then a replacement has its place, or another one is looked for. A gang that was given a
larger minimum lost nothing: what it never had is waited for. A new leader takes for had what is
there or has a slot.
"""

from collections.abc import Iterator

from coordinator.gang.eviction.endings import Ending
from coordinator.gang.eviction.stop_method import Keep
from coordinator.gang.pods.kept_slots import Start
from coordinator.gang.pods.pod_sets import PodSetStanding
from coordinator.gang.pods.repairs import BelowMinimum
from coordinator.gang.setbacks.below_minimum import one_more
from coordinator.reconcile.eviction_dry_run import eviction_method
from coordinator.reconcile.look import NOTHING_DONE, Look, StepResult
from coordinator.reconcile.repair.kept_slots import makes_no_pods, patience_of_queue
from scheduling.model.verdict import Reason

LISTED = 3  # pod sets; a message counts the others


def end_broken(look: Look) -> StepResult:
    """Have a gang stopped whole that is below its minimum for good, or say that it goes on.

    The deadline is counted from the loss of the first pod until all are on nodes again. What is on
    its way then is waited for.
    """
    view = look.view
    since = _below_since(look)
    view.repairs.below = BelowMinimum(since) if since is not None else None
    if since is None or look.now < since.at + _patience(look) or _is_on_its_way(look):
        return NOTHING_DONE
    kept = _why_kept(look)
    said = f"{_in_numbers(look)} since {since.stamp}"
    if kept:
        text = f"{said}; the gang goes on without: {kept}"
        view.repairs.below = BelowMinimum(since, text)
    elif not view.eviction.kept_now("", look.now).because and view.eviction.whole is None:
        _end(look, since, said)
    return NOTHING_DONE


def moments(look: Look) -> Iterator[float]:
    """Yield when time alone has the loss of pods judged, or ends the setback for it."""
    below, breaks = look.view.repairs.below, look.view.breaks
    if below is not None:
        yield below.since.at + _patience(look)
    if breaks is not None:
        yield look.now + breaks.until - look.scene.moment.wall


def _below_since(look: Look) -> Start | None:
    """Return since when the gang lacks a part; nothing is counted while a watch is down."""
    view, moment = look.view, look.scene.moment
    runs = view.survey.ran and any(each.settled for each in view.survey.standing)
    if not runs:
        view.repairs.had.clear()
        return None
    _note_had(look)
    lacks = any(each.bound < _had(look, each) for each in view.survey.standing)
    if not lacks or not look.scene.sighted or view.expects_pods:
        return None
    below = view.repairs.below
    return below.since if below is not None else Start(moment.now, moment.stamp)


def _note_had(look: Look) -> None:
    """Note how many pods of each set there were, of those that its minimum counts now."""
    had = look.view.repairs.had
    for each in look.view.survey.standing:
        most = max(had.get(each.terms.name, each.placed), each.bound)
        had[each.terms.name] = min(most, each.terms.minimum)


def _had(look: Look, each: PodSetStanding) -> int:
    return look.view.repairs.had.get(each.terms.name, 0)


def _patience(look: Look) -> float:
    """Seconds until a loss is for good; KubeRay needs some to make a pod again."""
    return max(patience_of_queue(look), look.scene.patience.bind)


def _is_on_its_way(look: Look) -> bool:
    """Whether all that is lacking was released."""
    return all(len(each.settled) >= _had(look, each) for each in look.view.survey.standing)


def _why_kept(look: Look) -> str:
    """Say why a broken gang is left as it is; empty where it is to be stopped."""
    terms, scene = look.view.understood.terms, look.scene
    queue = terms.queue if terms is not None else ""
    if look.source.own_retries:
        return look.source.own_retries
    if not scene.queues.requeues_broken(queue):
        return "its queue has no whenBroken: Requeue"
    if makes_no_pods(look) or look.view.understood.problem:
        return "its pods could not be made again as the RayCluster is"
    method = eviction_method(scene.cache, scene.queues, look.source, queue)
    return method.because if isinstance(method, Keep) else ""


def _in_numbers(look: Look) -> str:
    """Say what is lacking, the first few pod sets by name."""
    standing = look.view.survey.standing
    short = [each for each in standing if len(each.settled) < _had(look, each)]
    said = [
        f"{len(each.settled)} of {each.terms.minimum} {each.terms.name}" for each in short[:LISTED]
    ]
    more = [f"{len(short) - LISTED} more groups"] if len(short) > LISTED else []
    return f"below its minimum: {', '.join([*said, *more])} run"


def _end(look: Look, since: Start, said: str) -> None:
    view, moment = look.view, look.scene.moment
    if view.breaks is None or view.breaks.of != since.stamp:
        view.breaks = one_more(view.breaks, since.stamp, look.scene.patience, moment.wall)
    message = f"{said}; the gang is stopped whole to wait again, as its queue says (whenBroken)"
    view.eviction.decide(Ending(Reason.BELOW_MINIMUM, message, moment.stamp))
