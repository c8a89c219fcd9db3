"""Says which decisions on a gang are logged.

One line for each admission once it is written, for what was released together once all of it was
answered, for each refusal whose reason changed, and for each repair. They are worked out from what
a look at the gang found and asked for, so that deciding knows nothing of logging. What is tried
again because a write failed is told once.
"""

from collections import Counter
from collections.abc import Iterator

from coordinator.gang.demand import NotReady
from coordinator.gang.eviction.endings import Ending, covered
from coordinator.gang.eviction.stop_method import Suspend
from coordinator.messages.actions import (
    ADOPTED,
    STOPPED,
    STRANDED,
    TORN,
    DeletePod,
    EmitEvent,
    FencePod,
    LogDecision,
    ReleasePod,
)
from coordinator.reconcile.eviction_dry_run import stop_method_of
from coordinator.reconcile.look import Look
from coordinator.reconcile.record.recording import endings_written
from coordinator.reconcile.status.message import explain
from kube.codec.fields import created_at
from scheduling.model.verdict import Reason

ADMITTED = "gang admitted"
RELEASED = "pods released"
REFUSED = "gang refused"
DELETED = "pods deleted"
FENCED = "pods fenced"
GIVEN_UP = "placement given up"
GANG_STOPPED = "gang stopped"
SURPLUS_STOPPED = "surplus stopped"

REPAIRS = {
    STRANDED: "released pods cannot get onto their node",
    ADOPTED: "Muster did not release the pods, and kube-scheduler cannot place them",
    STOPPED: "the gang is being stopped, and the eviction of the pods is refused",
    TORN: "a part of the gang was released, and the rest is not bound",
}


def decisions(look: Look) -> Iterator[LogDecision]:
    """Say what the log is to tell after a look at a gang."""
    _note_asking(look)
    yield from _admission(look)
    yield from _release(look)
    yield from _refusal(look)
    yield from _given_up(look)
    yield from _stopped(look)
    yield from _deletions(look)
    yield from _fences(look)


def _note_asking(look: Look) -> None:
    """Note since when the gang asks for room for its start."""
    view = look.view
    if view.reservation.placement is None and not view.asks_for_minimum:
        view.logged.asks_since = None
    elif view.asks_for_minimum and view.logged.asks_since is None:
        view.logged.asks_since = look.now


def _admission(look: Look) -> Iterator[LogDecision]:
    view, notes = look.view, look.view.logged
    if not (notes.placed and view.survey.durable):
        return
    placed, first = notes.placed, notes.first
    asked, notes.asks_since, notes.written_at = notes.asks_since, None, look.now
    notes.placed, notes.first, notes.refused = Counter(), False, ""
    yield LogDecision(
        gang=view.key,
        what=ADMITTED,
        queue=view.understood.queue,
        pods=placed.total(),
        nodes=tuple(sorted(placed)),
        seconds=_waited(look) if first else None,
        reason=Reason.ADMITTED,
        started=first,
        asked_for=look.now - asked if first and asked is not None else None,
    )


def _release(look: Look) -> Iterator[LogDecision]:
    view, notes = look.view, look.view.logged
    sent = [each for each in look.actions if isinstance(each, ReleasePod)]
    notes.releasing.update({each.pod.metadata.uid: each.node for each in sent})
    if not notes.releasing or view.pod_writes.inflight & notes.releasing.keys():
        return
    releasing, notes.releasing = notes.releasing, {}
    done = [pod.uid for pod in look.pods if pod.uid in releasing and not pod.gated]
    nodes = {releasing[uid] for uid in done} - {""}
    if done:
        at = notes.written_at
        yield LogDecision(
            gang=view.key,
            what=RELEASED,
            queue=view.understood.queue,
            pods=len(done),
            nodes=tuple(sorted(nodes)),
            released_in=look.now - at if at is not None and nodes else None,
        )


def _refusal(look: Look) -> Iterator[LogDecision]:
    """As often as it is told to the user by an Event: so seldom, whatever a tenant patches."""
    view = look.view
    for told in look.actions:
        if not isinstance(told, EmitEvent) or told.regarding is not None or not told.warning:
            continue
        if told.reason == view.events.heard.reason != view.logged.refused:
            view.logged.refused = told.reason
            yield LogDecision(
                gang=view.key,
                what=REFUSED,
                queue=view.understood.queue,
                seconds=_waited(look),
                reason=told.reason,
                message=told.message,
            )


def _given_up(look: Look) -> Iterator[LogDecision]:
    view = look.view
    if look.before is None or view.reservation.placement is not None:
        return
    view.logged.placed, view.logged.first = Counter(), False
    if view.eviction.whole is not None:
        return  # that it is stopped was told
    said = explain(view, view.queueing.asked if isinstance(view.queueing.asked, NotReady) else None)
    yield LogDecision(
        view.key, GIVEN_UP, view.understood.queue, reason=said.reason, message=said.message
    )


def _stopped(look: Look) -> Iterator[LogDecision]:
    """As soon as it is written what ends: from then on it is carried out."""
    view, told = look.view, look.view.logged.stopped
    if not endings_written(view):
        return
    for ending in view.eviction.endings:
        if (ending.preemptor, ending.since) not in told:
            yield LogDecision(
                gang=view.key,
                what=GANG_STOPPED if ending.is_whole else SURPLUS_STOPPED,
                queue=view.understood.queue,
                pods=len(covered(ending, view.understood.terms, look.pods)),
                reason=ending.reason,
                message=ending.message,
                preempted=_kind(look, ending) if ending.reason == Reason.PREEMPTED else "",
                replicas=len(ending.replicas),
            )
    view.logged.stopped = {(each.preemptor, each.since) for each in view.eviction.endings}


def _kind(look: Look, ending: Ending) -> str:
    """Say what is preempted: surplus, a gang, or a gang through its RayJob."""
    if not ending.is_whole:
        return "surplus"
    return "job" if isinstance(stop_method_of(look), Suspend) else "gang"


def _deletions(look: Look) -> Iterator[LogDecision]:
    view, told = look.view, look.view.logged.deleted
    found = [a for a in look.actions if isinstance(a, DeletePod) and a.uid not in told]
    told |= {each.uid for each in found}
    for why in sorted({each.why for each in found}):
        mine = [each for each in found if each.why == why]
        nodes = tuple(sorted({each.node for each in mine} - {""}))
        yield LogDecision(
            gang=view.key,
            what=DELETED,
            queue=view.understood.queue,
            pods=len(mine),
            nodes=nodes,
            reason=why,
            message=REPAIRS.get(why, ""),
        )


def _fences(look: Look) -> Iterator[LogDecision]:
    view, told = look.view, look.view.logged.fenced
    asked = {a.pod.metadata.uid: a.token for a in look.actions if isinstance(a, FencePod)}
    fresh = dict(asked.items() - told.items())
    told.update(fresh)
    if fresh:
        yield LogDecision(view.key, FENCED, view.understood.queue, len(fresh))


def _waited(look: Look) -> float:
    """Seconds since the RayCluster was made: of that only the second is known."""
    moment = look.scene.moment
    made = moment.wall - created_at(look.source.metadata) - 1
    return max(0.0, made, moment.now - look.view.since)
