"""Decides what a GangOffer reports of the gang created for it: its end, or what it lacks. Pure.

The manager shows its user what a member reports, so a gang that is merely starting costs no write.
"""

from collections.abc import Iterator

from coordinator.messages.offer_actions import Closed
from coordinator.record.urgency import PREEMPTING, RUNNING
from coordinator.state.created import end_of, followers, why_stopped
from coordinator.state.known import Known, OfferProgress
from kube.gang.offer import OfferForm
from kube.objects.gang import GangStatus
from scheduling.model.verdict import Reason

STARTS_SECONDS = 30.0
"""For which it is no news that a gang does not run yet, unless an earlier leader has said so."""
NUMBERS_EVERY = 15.0
"""Seconds from one message to the next of the same reason."""

_HAS_RUN = (RUNNING, PREEMPTING)
"""Phases of gangs that have run."""
_WELL = ("", Reason.RUNNING, Reason.ADMITTED, Reason.PENDING, Reason.TERMINATING)
"""Reasons of gangs that lack nothing, or are about to say more."""


def news_of(known: Known, form: OfferForm, progress: OfferProgress, now: float) -> tuple[str, str]:
    """Return the reason and message that an offer is to have; both empty where all is well."""
    end, stop = end_of(known, form), why_stopped(known, form)
    if end or stop:
        return (end, "") if end else (Closed.STOPPED, stop)
    answer, since = form.answer, progress.started_at
    is_new = not answer.reason and (since is None or now < since + STARTS_SECONDS)
    found = (each for each in _on_record(known, form) if each.phase in _HAS_RUN or not is_new)
    lack = next(((each.reason, each.message) for each in found if each.reason not in _WELL), None)
    reason, message = lack or ("", "")
    if reason == answer.reason and now < progress.told_at + NUMBERS_EVERY:
        return reason, answer.message
    return reason, message


def news_due(progress: OfferProgress, now: float) -> Iterator[float]:
    """Yield when time alone changes what it says."""
    if progress.started_at is not None:
        moments = (progress.started_at + STARTS_SECONDS, progress.told_at + NUMBERS_EVERY)
        yield from (at for at in moments if at > now)


def _on_record(known: Known, form: OfferForm) -> Iterator[GangStatus]:
    """Yield what is on record of the gangs that are there of an offer."""
    for key in followers(known, form):
        gang, uid = known.cache.gangs.get(key), known.cache.sources[key].metadata.uid
        if gang is not None and gang.spec.ray_cluster_uid == uid:
            yield gang.status
