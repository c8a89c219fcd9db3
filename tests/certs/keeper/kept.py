"""A keeper of certificates and its clock, for the tests beside it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from certs.cluster import MUTATING as MUTATING_KIND
from certs.cluster import VALIDATING as VALIDATING_KIND
from certs.cluster import Place
from tests.certs.api import SECRET

START = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)
NAME = "muster-webhook"
PLACE = Place("muster-system", SECRET, NAME, ((MUTATING_KIND, NAME), (VALIDATING_KIND, NAME)))


@dataclass
class Clock:
    """A time that moves when it is told to."""

    now: datetime = START

    def __call__(self) -> datetime:
        return self.now
