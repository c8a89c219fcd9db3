"""Takes in GangOffers, and how writes to them ended."""

from collections.abc import Iterator

from coordinator.gang.attempts import Attempts
from coordinator.messages.events import ClusterGone, ClusterSeen, OfferGone, OfferSeen
from coordinator.messages.write_ends import LeaseStamped, OfferWriteEnded
from coordinator.state.intake.gangs import cluster_gone, cluster_seen
from coordinator.state.known import Known
from coordinator.state.manager_leases import UNTIL_MADE, fenced, note_fence
from dispatcher.protocol.objects import Phase
from kube.gang.offer import OfferForm
from kube.gang.sent import own_gang
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey


def offer_seen(event: OfferSeen, known: Known, moment: Moment) -> None:
    """Take in a GangOffer; one that is closed, or withdrawn, asks for nothing any more."""
    meta, known_before = event.offer.metadata, known.cache.offers
    key = GangKey(meta.namespace, meta.name)
    known_before[key] = event.offer
    if asks(event.offer):
        cluster_seen(ClusterSeen(event.offer), known, moment)
    elif key in known.cache.sources:
        cluster_gone(ClusterGone(key, known.cache.sources[key].metadata.uid), known, moment)
    known.agenda.dirty |= {key, *_successors(known, event.offer)}
    note_fence(known, event.offer)


def offer_gone(event: OfferGone, known: Known, moment: Moment) -> None:
    """Forget a GangOffer."""
    found = known.cache.offers.get(event.key)
    if found is not None and found.metadata.uid == event.uid:
        del known.cache.offers[event.key]
        known.term.offers.pop(event.uid, None)
        known.agenda.dirty.update(_successors(known, found))
    cluster_gone(ClusterGone(event.key, event.uid), known, moment)


def _successors(known: Known, offer: OfferForm) -> Iterator[GangKey]:
    """Yield the gangs that go by what becomes of an offer."""
    own = own_gang(offer.kind, offer.successor)
    yield GangKey(offer.metadata.namespace, own or offer.successor)
    yield from known.cache.followers(offer.metadata.uid)


def write_ended(event: OfferWriteEnded, known: Known, moment: Moment) -> None:
    """Take in how a write ended, and which leader its manager has, where that was read."""
    progress = known.term.offers.get(event.uid)
    if progress is None:
        return
    progress.writing = False
    progress.term = max(progress.term, event.term)
    if event.error is None:
        progress.attempts.failures = 0
    else:
        progress.replaced = progress.deleted = ""
        progress.attempts.failed(moment.now, event.error)
        progress.stopped.clear()
    known.agenda.dirty.add(event.gang)


def lease_stamped(event: LeaseStamped, known: Known, moment: Moment) -> None:
    """Take in how long gangs of a manager may run on."""
    lease = known.term.manager_leases.get(event.manager)
    if lease is None:
        return
    lease.under_way = False
    if event.error is not None:
        lease.attempts.failed(moment.now, event.error)
        return
    if event.missing:
        lease.due = moment.now + UNTIL_MADE
    elif lease.copied is None:
        lease.due = moment.now  # it is stamped at once
    if event.copied != lease.copied:
        lease.read_at = moment.now
    lease.attempts, lease.copied, lease.answered = Attempts(), event.copied, lease.sent
    known.agenda.dirty |= fenced(known, event.manager).keys()


def asks(offer: OfferForm) -> bool:
    """Say whether an offer takes part in decisions."""
    return offer.answer.phase != Phase.CLOSED and offer.metadata.deletion_timestamp is None
