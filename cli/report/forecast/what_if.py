"""Reports what changes of a cluster would do: which gangs start, stop, or wait longer."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from forecast.expected import Sure


class Effect(StrEnum):
    """What changes do to one gang."""

    STARTS = "StartsNow"
    STOPS = "StopsNow"
    WAITS_FOR_PODS = "LosesPods"
    """It runs on, and waits for room for pods that it lost."""
    ENDS = "Ends"
    """It is what is stopped."""
    SOONER = "Sooner"
    LATER = "Later"
    """Also one that has to wait, and would start now without the changes."""
    NO_MORE_KNOWN = "NoMoreKnown"
    """Nothing tells any more when it starts."""
    KNOWN = "Known"
    """Nothing told before when it starts."""
    STOPS_LATER = "StopsLater"
    """Others make way for a gang that comes up."""


class EffectReport(msgspec.Struct, frozen=True, rename="camel"):
    """What becomes of one gang: when it starts `before` and `after` the changes, in RFC 3339.

    `later_seconds` is negative where it starts sooner. `sure` is the less sure of both estimates.
    """

    namespace: str
    name: str
    queue: str
    effect: Effect
    before: str = ""
    after: str = ""
    later_seconds: float | None = None
    sure: Sure | None = None
    why: str = ""


class DevicesReport(msgspec.Struct, frozen=True, rename="camel"):
    """The devices of one resource, before and after the changes, once all is decided.

    `off` are on nodes that take no pods, `stranded` are free and lack processor or memory.
    """

    resource: str
    before: int
    after: int
    free_before: int
    free_after: int
    off_before: int
    off_after: int
    stranded_before: float
    stranded_after: float


class WhatIfReport(msgspec.Struct, frozen=True, rename="camel"):
    """What changes of a picture do that was `taken` then; gangs that are not named do as before.

    `submitted` is when the objects of files start. What starts and stops at once is exact for that
    picture; `reached` is how far both forecasts came at least.
    """

    taken: str
    reached: str
    cpu_seconds: float
    changes: tuple[str, ...]
    effects: tuple[EffectReport, ...]
    devices: tuple[DevicesReport, ...]
    waiting: int
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
