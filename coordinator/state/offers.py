"""Answers GangOffers by the decisions on their gangs: the member's side of several clusters.

`dispatcher.protocol.offering` decides what may be done next with an offer. This module has only
what that takes: the placement behind an offer, and what is left of the objects created for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coordinator.messages.offer_actions import (
    Closed,
    DeleteCreated,
    HoldOffer,
    OfferAction,
    StartOffer,
    WriteOffer,
)
from coordinator.state.agenda import LATER
from coordinator.state.created import (
    created_for,
    end_of,
    has_pods,
    may_have_pods,
    of_its_name,
    stop_pods,
)
from coordinator.state.known import NEVER, Known, ManagerLease, OfferProgress
from coordinator.state.offer_news import news_due, news_of
from dispatcher.protocol import offering
from dispatcher.protocol.objects import Lease, Offer, Phase
from dispatcher.protocol.offering import (
    OPEN_SECONDS,
    Move,
    has_run_out,
    next_move,
    seconds_left,
)
from kube.gang.nested import RAY_CLUSTER
from kube.gang.offer import OfferForm
from kube.gang.sent import ENDING
from kube.objects.base import ObjectMeta
from kube.objects.clusters.dispatch import ENDS, JOB_GONE
from kube.objects.clusters.gang_offer import FINALIZER
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder

CREATE_SECONDS = 60.0
"""How long room is kept for a RayCluster that is to be created for an offer that was accepted."""

Closing = tuple[str, str]
"""Reason and message."""


@dataclass(frozen=True, slots=True)
class _Look:
    """One look at one offer."""

    known: Known
    key: GangKey
    form: OfferForm
    progress: OfferProgress
    moment: Moment

    @property
    def created(self) -> ObjectMeta | None:
        """What was created for it."""
        return created_for(self.known, self.form)

    @property
    def is_gone(self) -> bool:
        """Whether what was created is there no more; what was created anew does not count."""
        first = self.progress.object_uid
        return bool(first) and (self.created is None or self.created.uid != first)

    @property
    def title(self) -> str:
        """Kind and name of what it is about."""
        return f"{self.form.kind} {self.form.successor}"

    @property
    def phase(self) -> Phase:
        return Phase(self.form.answer.phase or Phase.ASKED)

    @property
    def lease(self) -> Lease:
        """What is known of its manager."""
        found, after = self.manager_lease, self.progress.accepted_after
        is_read = found is not None and (after is None or found.answered > after)
        if found is None or not is_read:
            return Lease(self.progress.term, copied=None)
        return Lease(self.progress.term, copied=found.copied, read_at=found.read_at)

    @property
    def manager_lease(self) -> ManagerLease | None:
        """The Lease of its manager, where that is kept."""
        return self.known.term.manager_leases.get(self.form.manager)

    def deletes(self, uid: str) -> bool:
        """Whether the watch has not told yet of a deletion that was asked for."""
        return uid == self.progress.deleted and self.moment.now < self.progress.echo_by

    @property
    def is_lost(self) -> bool:
        """Whether it may run no longer, for its manager was not heard of."""
        offer, lease, now, _ = _asked(self)
        is_noted = self.form.answer.reason == Closed.MANAGER_LOST
        return self.phase is not Phase.CLOSED and (is_noted or has_run_out(offer, lease, now))

    @property
    def move(self) -> Move | None:
        """What it needs next, by the rules of the protocol."""
        return Move.CLOSE if self.is_lost else next_move(*_asked(self))

    @property
    def has_room(self) -> bool:
        """Whether there is a placement on record: its room is reserved."""
        view = self.known.views.get(self.key)
        return view is not None and view.reservation.placement is not None and view.survey.durable


def reconcile_offer(known: Known, key: GangKey, moment: Moment) -> Iterator[OfferAction]:
    """Yield the write that an offer lacks, and have it looked at when time alone changes it."""
    form = known.cache.offers.get(key)
    if form is None:
        return
    look = _look(known, key, form, moment)
    progress = look.progress
    _note(look)
    version = form.metadata.resource_version or ""
    is_busy = progress.writing or progress.waits_for_echo(version, moment.now)
    if is_busy or moment.now < progress.attempts.not_before:
        known.agenda.wake_by(key, max(progress.attempts.not_before, moment.now + LATER))
        return
    action = _next(look) if look.is_lost or not known.blind else None
    if action is not None:
        is_of_offer = isinstance(action, WriteOffer | StartOffer | HoldOffer)
        progress.begin(version if is_of_offer else "", moment.now)
        progress.deleted = action.uid if isinstance(action, DeleteCreated) else progress.deleted
        yield action
    for at in _due(look):
        known.agenda.wake_by(key, at)


def planned(known: Known, key: GangKey, moment: Moment) -> tuple[bool, Move | None]:
    """Say whether it is known if an offer may run on, and what it needs next by the protocol."""
    look = _look(known, key, known.cache.offers[key], moment)
    return look.lease.copied is not None, look.move


def _look(known: Known, key: GangKey, form: OfferForm, moment: Moment) -> _Look:
    progress = known.term.offers.setdefault(form.metadata.uid, OfferProgress())
    return _Look(known, key, form, progress, moment)


def _note(look: _Look) -> None:
    """Remember what only time, or the end of what was created, makes use of.

    A manager writes a stamp back before it accepts: one that was read before is of no use.
    """
    progress, now = look.progress, look.moment.now
    lease, is_accepted = look.manager_lease, look.form.accepted_by and look.form.lost_after
    if lease is not None and is_accepted and progress.accepted_after is None:
        progress.accepted_after, lease.due = lease.sent, NEVER
    if look.phase is Phase.STARTED and progress.started_at is None:
        progress.started_at = now
    created = look.created.uid if look.created is not None else ""
    progress.object_uid = progress.object_uid or look.form.answer.object_uid or created


def _due(look: _Look) -> Iterator[float]:
    progress, now = look.progress, look.moment.now
    if look.phase is Phase.OFFERED and progress.offered_at is not None:
        yield max(progress.offered_at + OPEN_SECONDS, now + LATER)
    if look.phase is Phase.STARTED and look.created is None and progress.started_at is not None:
        yield max(progress.started_at + CREATE_SECONDS, now + LATER)
    if look.phase is Phase.STARTED:
        yield from news_due(progress, now)
    if look.phase is Phase.STARTED and _is_over(look) and not may_have_pods(look.known, look.form):
        yield now + LATER  # for its last pods
    if look.form.metadata.deletion_timestamp is not None:
        yield now + LATER
    fence, copied = look.form.lost_after, look.lease.copied
    if fence and look.form.accepted_by and copied is not None and look.phase is not Phase.CLOSED:
        clocks = offering.Moment(now, look.moment.wall)
        yield now + max(seconds_left(look.lease, fence, clocks), LATER)


def _next(look: _Look) -> OfferAction | None:
    """Return the next write, by the rules of the protocol."""
    held = FINALIZER in look.form.finalizers
    withdrawn = look.form.metadata.deletion_timestamp is not None
    if not held and not withdrawn:
        return _hold(look)
    stays = look.form.answer.reason in ENDS and not withdrawn  # for what it says of its end
    stray = _leftover(look) if look.phase is Phase.CLOSED and not stays else None
    return stray or _moved(look)


def _moved(look: _Look) -> OfferAction | None:
    match look.move:
        case Move.OFFER:
            return _offer(look)
        case Move.START:
            return _start(look)
        case Move.CLOSE:
            return _close(look, _why(look))
        case Move.FORGET:
            return _hold(look) if FINALIZER in look.form.finalizers else None
        case None:
            return _go_on(look)


def _asked(look: _Look) -> tuple[Offer, Lease, offering.Moment, float | None]:
    """Put the offer into the words of the protocol."""
    form, moment = look.form, look.moment
    withdrawn = form.metadata.deletion_timestamp is not None
    uid, accepted_by, fence = form.metadata.uid, form.accepted_by, float(form.lost_after)
    offer = Offer(form.attempt, uid, 0, look.phase, accepted_by, withdrawn, fence)
    now = offering.Moment(moment.now, moment.wall)
    return offer, look.lease, now, look.progress.offered_at


# ---- asked


def _offer(look: _Look) -> OfferAction | None:
    """Offer the room once it is reserved on record; say until then why there is none."""
    early = _never_offered(look)
    if early is not None:
        return _close(look, early)
    if look.has_room:
        look.progress.offered_at = look.moment.now
        return _write(look, {"phase": Phase.OFFERED, "offeredAt": look.moment.stamp})
    view = look.known.views.get(look.key)
    said = view.record.written if view is not None else {}
    answer = look.form.answer
    reason, message = said.get("reason", ""), said.get("message", "")
    if not reason or (answer.reason, answer.message) == (reason, message):
        return None
    return _write(look, {"phase": Phase.ASKED, "reason": reason, "message": message})


def _never_offered(look: _Look) -> Closing | None:
    if look.form.accepted_by:
        return Closed.ACCEPTED_TOO_EARLY, "it was accepted before it was offered: ask again without"
    if of_its_name(look.known, look.form) is not None and look.created is None:
        return Closed.NAME_TAKEN, f"there is a {look.title} already, which is not of this offer"
    return None


# ---- offered


def _start(look: _Look) -> OfferAction | None:
    """Start it, unless its room was lost meanwhile."""
    if not look.has_room:
        return _close(look, _room_lost(look))
    form, home = look.form, look.known.cache.home
    write = _write(look, {"phase": Phase.STARTED, "offeredAt": form.answer.offered_at})
    return StartOffer(look.key, write, home, form.manager, form.accepted_by)


def _go_on(look: _Look) -> OfferAction | None:
    """Close an offer whose room, or whose object, is gone, or has ended."""
    if look.phase is Phase.OFFERED and not look.has_room:
        return _close(look, _room_lost(look))
    if look.phase is not Phase.STARTED:
        return None
    stop, over = _noted_stop(look), _is_over(look)
    is_anew = look.is_gone and look.created is not None
    if over is not None and (over == stop or is_anew):
        return _close(look, over)
    if over is not None and not has_pods(look.known, look.form):
        return _write(look, {"phase": Phase.CLOSED, "reason": over[0], "message": over[1]})
    return _note_created(look)


def _is_over(look: _Look) -> Closing | None:
    started, end = look.progress.started_at, _end(look) or _noted_stop(look)
    if end is not None:
        return end
    if look.is_gone:
        return Closed.ENDED, f"{look.title} was deleted"
    if look.created is not None:
        return None
    if started is not None and look.moment.now >= started + CREATE_SECONDS:
        return Closed.NOT_CREATED, f"{look.title} was not created within {CREATE_SECONDS:.0f} s"
    return None


def _end(look: _Look) -> Closing | None:
    """Say how a job has ended, for good: also of one that is gone by now."""
    answer = look.form.answer
    end = end_of(look.known, look.form) or (answer.reason if answer.reason in ENDS else "")
    if end:
        return end, f"{look.title} has ended"
    if look.form.metadata.deletion_timestamp is not None or _noted_stop(look) is not None:
        return None  # where it is gone, it was deleted for that
    if look.form.kind in ENDING and look.is_gone:
        return JOB_GONE, f"{look.title} was deleted, and how it ended is not known"
    return None


def _noted_stop(look: _Look) -> Closing | None:
    """Return why what runs is to go, once that is written: it is deleted only then."""
    answer, noted = look.form.answer, (Closed.STOPPED, Closed.MANAGER_LOST)
    return (answer.reason, answer.message) if answer.reason in noted else None


def _note_created(look: _Look) -> OfferAction | None:
    """Write what was created, what it lacks or how it ended: a job may delete itself at any time.

    Of what was stopped that is written before it is deleted, or a later leader would not know why.
    """
    if look.created is None:
        return None
    uid = look.created.uid if look.form.kind != RAY_CLUSTER else ""
    answer, now = look.form.answer, look.moment.now
    reason, message = news_of(look.known, look.form, look.progress, now)
    if (answer.object_uid, answer.reason, answer.message) == (uid, reason, message):
        return None
    look.progress.told_at = now
    said = {"offeredAt": answer.offered_at, "objectUid": uid, "reason": reason, "message": message}
    return _write(look, {"phase": Phase.STARTED, **{k: v for k, v in said.items() if v}})


def _room_lost(look: _Look) -> Closing:
    view = look.known.views.get(look.key)
    said = view.record.written.get("message", "") if view is not None else ""
    return Closed.ROOM_LOST, said or "the room that was offered is there no more"


# ---- closed


def _why(look: _Look) -> Closing:
    """Say why the protocol has an offer closed; the end of a job comes before all."""
    end = _end(look) if look.phase is Phase.STARTED else None
    if end is not None:
        return end
    if look.form.metadata.deletion_timestamp is not None:
        return Closed.WITHDRAWN, "its deletion was asked for"
    if look.is_lost:
        said = f"it is lost after {look.form.lost_after} s"
        return Closed.MANAGER_LOST, f"the manager was not heard of for long: {said}"
    if look.form.accepted_by:
        return Closed.OTHER_LEADER, "it was accepted by a leader that has a successor by now"
    return Closed.NOT_ACCEPTED, f"it was not accepted within {OPEN_SECONDS:.0f} s"


def _close(look: _Look, why: Closing) -> OfferAction | None:
    """Write Closed once nothing is left that was created for it; that is final."""
    reason, message = why
    said = {"reason": reason, "message": message}
    if reason == Closed.MANAGER_LOST != look.form.answer.reason:
        return _write(look, {**_kept(look), "phase": look.phase, **said})
    stray = _leftover(look)
    if stray is None and look.is_lost:
        stray = stop_pods(look.known, look.key, look.form, look.progress.stopped)
    is_left = look.created is not None or has_pods(look.known, look.form)
    if stray is not None or is_left or look.known.blind:
        return stray
    if reason == Closed.WITHDRAWN and look.form.finalizers == (FINALIZER,):
        return _hold(look, Closed.WITHDRAWN)  # what is gone is over as what is Closed
    return _write(look, {"phase": Phase.CLOSED, **said})


def _kept(look: _Look) -> dict[str, str]:
    """Return what stays said of an offer while its phase is the same."""
    answer = look.form.answer
    found = {"offeredAt": answer.offered_at, "objectUid": answer.object_uid}
    return {key: value for key, value in found.items() if value}


def _leftover(look: _Look) -> OfferAction | None:
    """Delete what was created for it; nothing where it is gone or going."""
    form, found = look.form, look.created
    if found is None or found.deletion_timestamp is not None or look.deletes(found.uid):
        return None
    return DeleteCreated(look.key, form.kind, form.successor, found.uid, form.metadata.uid)


# ---- writes


def _write(look: _Look, status: dict[str, Any]) -> WriteOffer:
    meta = look.form.metadata
    name = gang_holder(look.key).name
    said = {key: str(value) for key, value in status.items()}
    return WriteOffer(look.key, name, meta.uid, meta.resource_version, said, look.form.answer)


def _hold(look: _Look, closes: str = "") -> HoldOffer:
    """Put the finalizer on, or take it off; `closes` as the action has it."""
    meta, name, held = look.form.metadata, gang_holder(look.key).name, look.form.finalizers
    others = tuple(each for each in held if each != FINALIZER)
    after = others if FINALIZER in held else (*held, FINALIZER)
    return HoldOffer(look.key, name, meta.uid, meta.resource_version, after, closes)
