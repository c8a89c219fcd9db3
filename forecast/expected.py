"""Reports when waiting gangs are expected to start, how sure that is, and why."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Sure(StrEnum):
    """How an estimate was come by."""

    NOW = "Now"
    """The next cycle admits it."""
    FORWARD = "Forward"
    """The state machine was run forward to its start."""
    RATE = "Rate"
    """It was not: only how fast its queue moves, and how many are before it."""
    UNKNOWN = "Unknown"
    """Nothing can be said; `why` says why."""


class ExpectedReport(msgspec.Struct, frozen=True, rename="camel"):
    """When one waiting gang is expected to start, in RFC 3339; empty where that is not known.

    It starts `earliest` if what runs ends sooner than it says, `latest` if later; of both the
    report says by how much.
    """

    namespace: str
    name: str
    queue: str
    position: int
    sure: Sure
    why: str
    at: str = ""
    earliest: str = ""
    latest: str = ""
    in_seconds: float | None = None

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


class ForecastReport(msgspec.Struct, frozen=True, rename="camel"):
    """The estimates of a picture that was `taken` then; it was run forward to `reached`.

    `shorter` and `longer` are the shares of what durations say for which `earliest` and `latest`
    were worked out; 0 where the time did not suffice. `unread` is what the picture lacks.
    """

    taken: str
    reached: str
    finished: bool
    cpu_seconds: float
    gangs: tuple[ExpectedReport, ...] = ()
    shorter: float = 0.0
    longer: float = 0.0
    unread: tuple[str, ...] = ()

    @property
    def by_key(self) -> Mapping[str, ExpectedReport]:
        """Return the estimates by namespace and name."""
        return {each.key: each for each in self.gangs}
