"""Defines the moment at which a state machine handles events."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Moment:
    """When events are handled: monotonic seconds for deadlines, an RFC 3339 stamp for people.

    `wall` is the same moment in seconds since 1970, to be held against the stamps of others.
    """

    now: float
    stamp: str
    wall: float = 0.0
