"""Answers GangOffers as their gangs are decided: the member's side of several clusters.

What may be done next with an offer is `dispatcher.protocol.offering`'s to say. Here is only what it
takes to do that: the placement behind an offer, and what is left of the RayCluster that was created
for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from coordinator.messages.offer_actions import (
    DeleteRayCluster,
    HoldOffer,
    OfferAction,
    StartOffer,
    WriteOffer,
)
from coordinator.state.agenda import LATER
from coordinator.state.known import Known, OfferProgress
from dispatcher.protocol import offering
from dispatcher.protocol.objects import Lease, Offer, Phase
from dispatcher.protocol.offering import OPEN_SECONDS, Move, Terms, next_move
from kube.gang.offer import OfferForm
from kube.objects.clusters.gang_offer import FINALIZER
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder

CREATE_SECONDS = 60.0
"""How long room is kept for a RayCluster that is to be created for an offer that was accepted."""

NAME_TAKEN = "NameTaken"
ACCEPTED_TOO_EARLY = "AcceptedTooEarly"
NOT_ACCEPTED = "NotAccepted"
OTHER_LEADER = "OtherLeader"
ROOM_LOST = "RoomLost"
NOT_CREATED = "NotCreated"
ENDED = "Ended"
WITHDRAWN = "Withdrawn"
"""Reasons for which an offer is closed."""

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
    def successor(self) -> GangKey:
        """The gang of the RayCluster that is created for it."""
        return GangKey(self.key.namespace, self.form.successor)

    @property
    def phase(self) -> Phase:
        return Phase(self.form.answer.phase or Phase.ASKED)

    @property
    def has_room(self) -> bool:
        """Whether there is a placement on record: its room is reserved."""
        view = self.known.views.get(self.key)
        return view is not None and view.reservation.placement is not None and view.survey.durable


def see_to_offer(known: Known, key: GangKey, moment: Moment) -> Iterator[OfferAction]:
    """Yield the write that an offer lacks, and have it looked at when time alone changes it."""
    form = known.cache.offers.get(key)
    if form is None or known.blind:
        return
    progress = known.term.offers.setdefault(form.metadata.uid, OfferProgress())
    look = _Look(known, key, form, progress, moment)
    _note(look)
    if progress.writing or moment.now < progress.attempts.not_before:
        known.agenda.wake_by(key, max(progress.attempts.not_before, moment.now + LATER))
        return
    action = _next(look)
    if action is not None:
        progress.writing = True
        yield action
    for at in _due(look):
        known.agenda.wake_by(key, at)


def _note(look: _Look) -> None:
    """Remember what only time, or the end of the RayCluster, makes use of."""
    progress, now = look.progress, look.moment.now
    if look.phase is Phase.STARTED and progress.started_at is None:
        progress.started_at = now
    progress.had_object |= _is_there(look)


def _due(look: _Look) -> Iterator[float]:
    progress, now = look.progress, look.moment.now
    if look.phase is Phase.OFFERED and progress.offered_at is not None:
        yield max(progress.offered_at + OPEN_SECONDS, now + LATER)
    if look.phase is Phase.STARTED and not _is_there(look) and progress.started_at is not None:
        yield max(progress.started_at + CREATE_SECONDS, now + LATER)
    if look.form.metadata.deletion_timestamp is not None:
        yield now + LATER


def _next(look: _Look) -> OfferAction | None:
    """Return the next write, by the rules of the protocol."""
    held = FINALIZER in look.form.finalizers
    withdrawn = look.form.metadata.deletion_timestamp is not None
    if not held and not withdrawn:
        return _hold(look, (*look.form.finalizers, FINALIZER))
    stray = _leftover(look) if look.phase is Phase.CLOSED else None
    return stray or _moved(look)


def _moved(look: _Look) -> OfferAction | None:
    match next_move(*_asked(look)):
        case Move.OFFER:
            return _offer(look)
        case Move.START:
            return _start(look)
        case Move.CLOSE:
            return _close(look, _why(look))
        case Move.FORGET:
            return _hold(look, tuple(each for each in look.form.finalizers if each != FINALIZER))
        case None:
            return _go_on(look)


def _asked(look: _Look) -> tuple[Offer, Terms, offering.Moment, float | None]:
    """Put the offer into the words of the protocol."""
    form, moment = look.form, look.moment
    withdrawn = form.metadata.deletion_timestamp is not None
    offer = Offer(
        form.attempt, form.metadata.uid, 0, look.phase, form.accepted_by, withdrawn=withdrawn
    )
    now = offering.Moment(moment.now, moment.wall)
    return offer, Terms(Lease(look.progress.term)), now, look.progress.offered_at


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
        return ACCEPTED_TOO_EARLY, "it was accepted before it was offered: ask again without"
    other = look.known.cache.sources.get(look.successor)
    if other is not None and not _is_there(look):
        said = f"there is a RayCluster {look.form.successor} already, which is not of this offer"
        return NAME_TAKEN, said
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
    """Close an offer whose room, or whose RayCluster, is gone."""
    if look.phase is Phase.OFFERED and not look.has_room:
        return _close(look, _room_lost(look))
    if look.phase is Phase.STARTED and not _is_there(look):
        over = _is_over(look)
        return _close(look, over) if over is not None else None
    return None


def _is_over(look: _Look) -> Closing | None:
    started = look.progress.started_at
    if look.progress.had_object:
        return ENDED, f"RayCluster {look.form.successor} was deleted"
    if started is not None and look.moment.now >= started + CREATE_SECONDS:
        said = f"RayCluster {look.form.successor} was not created within {CREATE_SECONDS:.0f} s"
        return NOT_CREATED, said
    return None


def _room_lost(look: _Look) -> Closing:
    view = look.known.views.get(look.key)
    said = view.record.written.get("message", "") if view is not None else ""
    return ROOM_LOST, said or "the room that was offered is there no more"


# ---- closed


def _why(look: _Look) -> Closing:
    """Say why the protocol has an offer closed."""
    if look.form.metadata.deletion_timestamp is not None:
        return WITHDRAWN, "its deletion was asked for"
    if look.form.accepted_by:
        return OTHER_LEADER, "it was accepted by a leader that has a successor by now"
    return NOT_ACCEPTED, f"it was not accepted within {OPEN_SECONDS:.0f} s"


def _close(look: _Look, why: Closing) -> OfferAction | None:
    """Write Closed once nothing is left that was created for it; that is final."""
    stray = _leftover(look)
    if stray is not None or _has_pods(look):
        return stray
    reason, message = why
    return _write(look, {"phase": Phase.CLOSED, "reason": reason, "message": message})


def _leftover(look: _Look) -> OfferAction | None:
    """Delete the RayCluster that was created for it; nothing where it is gone or going."""
    found = look.known.cache.sources.get(look.successor)
    if found is None or not _is_there(look) or found.metadata.deletion_timestamp is not None:
        return None
    return DeleteRayCluster(
        look.key, look.successor.name, found.metadata.uid, look.form.metadata.uid
    )


def _is_there(look: _Look) -> bool:
    """Say whether the RayCluster that was created for it is there."""
    found = look.known.cache.sources.get(look.successor)
    made_for = found.takes_over if found is not None else None
    return made_for is not None and made_for.uid == look.form.metadata.uid


def _has_pods(look: _Look) -> bool:
    """Say whether a pod, or the RayCluster, may be left of it.

    Pods that are of no RayCluster that is there may be those of the one that was created for it.
    """
    if _is_there(look):
        return True
    found = look.known.cache.sources.get(look.successor)
    uid = found.metadata.uid if found is not None else ""
    pods = look.known.cache.pods_of(look.successor)
    return any(pod.member is not None and pod.member.cluster_uid != uid for pod in pods)


# ---- writes


def _write(look: _Look, status: dict[str, Any]) -> WriteOffer:
    meta = look.form.metadata
    name = gang_holder(look.key).name
    said = {key: str(value) for key, value in status.items()}
    return WriteOffer(look.key, name, meta.uid, meta.resource_version, said, look.form.answer)


def _hold(look: _Look, finalizers: tuple[str, ...]) -> HoldOffer:
    meta, name = look.form.metadata, gang_holder(look.key).name
    return HoldOffer(look.key, name, meta.uid, meta.resource_version, finalizers)
