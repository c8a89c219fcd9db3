"""Decides what a member's coordinator does with a GangOffer, and until when its gang may run.

Only that coordinator moves the phase of an offer. Where the manager's queue says `whenClusterLost:
Requeue`, a gang may run for a limited time. The manager renews it by writing the member's own stamp
back.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from dispatcher.protocol.objects import Lease, Offer, Phase

OPEN_SECONDS = 60.0
"""How long an offer keeps room before it is accepted."""
STOP_SECONDS = 120.0
"""From the end of what a gang may run for until none of its pods is left, at most."""
STAMP_SECONDS = 20.0
"""From one stamp to the next, at most."""


class Move(Enum):
    """What is done with an offer next."""

    OFFER = "reserve room, if there is any"
    START = "create the gang"
    CLOSE = "delete its pods, and write Closed when none is left"
    FORGET = "let the offer go"


@dataclass(frozen=True, slots=True)
class Moment:
    """Now, by the clocks of the member's coordinator."""

    monotonic: float
    of_day: float
    """The one that stamps are taken from, in seconds."""


def next_move(offer: Offer, lease: Lease, now: Moment, offered_at: float | None) -> Move | None:
    """Return what to do next with an offer, None for nothing.

    The lease is read afresh before a start. `offered_at` is when this coordinator reserved its room
    (monotonic seconds); None where another one did: how long ago is not known then.
    """
    if offer.phase is Phase.CLOSED:
        return Move.FORGET if offer.withdrawn else None
    if offer.withdrawn or has_run_out(offer, lease, now):
        return Move.CLOSE
    if offer.phase is Phase.STARTED or (offer.lost_after and lease.copied is None):
        return None  # it runs; or whether it may is not known
    if offer.phase is Phase.ASKED:
        return Move.OFFER
    if may_start(offer, lease):
        return Move.START
    return Move.CLOSE if is_stale(offered_at, now) else None


# ---- the rules: without any of them two may run (tests/dispatcher/test_rules.py)


def may_start(offer: Offer, lease: Lease) -> bool:
    """Whether the newest leader that the member knows has accepted it."""
    return offer.accepted_by > 0 and lease.term <= offer.accepted_by


def is_stale(offered_at: float | None, now: Moment) -> bool:
    """Whether an offer that was not started has been open for long enough."""
    return offered_at is None or now.monotonic - offered_at >= OPEN_SECONDS


def may_run_until(lease: Lease, lost_after: float) -> float:
    """Return until when gangs may run, in seconds of the member's time of day."""
    return (lease.copied or 0.0) + lost_after - stop_seconds(lost_after)


def has_run_out(offer: Offer, lease: Lease, now: Moment) -> bool:
    """Whether an accepted offer is over because the manager was not heard of."""
    if not (offer.lost_after and offer.accepted_by) or lease.copied is None:
        return False
    return seconds_left(lease, offer.lost_after, now) <= 0


def may_stamp(moves: Iterable[Move | None]) -> bool:
    """Whether the coordinator may tell the manager that it is there, given what offers need next.

    What ran out or got old while it was away is closed first: with a stamp that is written back it
    could start, or run on, though the gang is elsewhere by then.
    """
    return Move.CLOSE not in moves


# ---- times


def seconds_left(lease: Lease, lost_after: float, now: Moment) -> float:
    """Return for how long gangs may run on.

    The time of day may be set back, and then says more than is left: it was written back no later
    than it was read.
    """
    by_reading = lease.read_at + lost_after - stop_seconds(lost_after) - now.monotonic
    return min(may_run_until(lease, lost_after) - now.of_day, by_reading)


def stop_seconds(lost_after: float) -> float:
    """Return how long before the manager goes on elsewhere a gang begins to stop."""
    return min(STOP_SECONDS, 0.4 * lost_after)


def stamp_seconds(lost_after: float) -> float:
    """Return how often a coordinator stamps the lease, and a leader writes that back."""
    return min(STAMP_SECONDS, lost_after / 15)
