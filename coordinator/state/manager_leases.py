"""Reads and stamps the Leases of managers whose gangs stop here without contact to them. Pure.

A manager writes the stamp back. The newest stamp that it has read, by this cluster's own time of
day, decides until when its gangs may run.
"""

from collections.abc import Iterator

from coordinator.messages.offer_actions import StampLease
from coordinator.state.agenda import LATER
from coordinator.state.known import Known, ManagerLease
from coordinator.state.offers import planned
from dispatcher.protocol.objects import Phase
from dispatcher.protocol.offering import may_stamp, stamp_seconds
from kube.gang.offer import OfferForm
from kube.objects.names import DISPATCHER_LEASE
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

UNTIL_MADE = 1.0
"""Seconds from one look to the next for a Lease that its manager has not made yet."""


def note_fence(known: Known, offer: OfferForm) -> None:
    """Keep the Lease of the manager of an offer that stops without it."""
    if known.term.epoch and _is_fenced(offer):
        known.term.manager_leases.setdefault(offer.manager, ManagerLease())


def stamp_leases(known: Known, moment: Moment) -> Iterator[StampLease]:
    """Yield the reads and the stamps that are due.

    A Lease is read before all else, and what ran out is closed before it is stamped.
    """
    for manager, lease in list(known.term.manager_leases.items()):
        if lease.next_at is not None and lease.next_at <= moment.now:
            yield from _stamp(known, manager, lease, moment)


def _stamp(known: Known, manager: str, lease: ManagerLease, moment: Moment) -> Iterator[StampLease]:
    offers = fenced(known, manager)
    if not offers:
        del known.term.manager_leases[manager]
        return
    accepted = [each.lost_after for each in offers.values() if each.accepted_by]
    lease.lost_after = min(accepted, default=0)
    plans = [planned(known, key, moment) for key in offers]
    stamps = may_stamp(move for _, move in plans) and all(is_known for is_known, _ in plans)
    every = stamp_seconds(min(each.lost_after for each in offers.values()))
    lease.due = moment.now + (every if stamps else LATER)
    lease.under_way, lease.sent = True, lease.sent + 1
    key = GangKey(known.cache.home, f"{DISPATCHER_LEASE}-{manager}")
    yield StampLease(key, manager, f"{moment.wall:.3f}" if stamps else "")


def fenced(known: Known, manager: str) -> dict[GangKey, OfferForm]:
    """Return the offers of a manager that stop without it, and are not over."""
    found = known.cache.offers.items()
    return {key: each for key, each in found if each.manager == manager and _is_fenced(each)}


def silences(known: Known, wall: float) -> Iterator[tuple[tuple[str], float]]:
    """Yield for how long managers were not heard of, as a share of what their gangs outlast."""
    for manager, lease in known.term.manager_leases.items():
        if lease.lost_after and lease.copied is not None:
            yield (manager,), (wall - lease.copied) / lease.lost_after


def _is_fenced(offer: OfferForm) -> bool:
    return bool(offer.lost_after) and offer.answer.phase != Phase.CLOSED
