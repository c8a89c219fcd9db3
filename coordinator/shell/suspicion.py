"""Reopens watches that seem to be dead although their connection reports no error.

A connection may die so that neither side hears of it. To find that out costs one request and no
list, for the watch goes on from its last version, so a suspicion is enough:

- a write of our own was answered, and the watch that must tell of it has heard nothing since;
- a placement is about to be used that rests on a watch which was silent for a while;
- no bookmark came, which the API server sends each minute.

In a healthy cluster only the second of these happens: once a minute at most, while nothing else
changes. A watch that hears nothing after it was reopened is listed the next time.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import structlog

log = structlog.get_logger()

LOOK_EVERY = 2.0
"""Seconds between two looks at all watches; a look compares some twenty numbers."""

OWN_WRITE = 5.0
"""Seconds in which a watch tells of a write of our own; mostly it takes some milliseconds."""

PLACED_ON = ("nodes", "pods")
"""The watches that tell what room there is, and of no write of ours."""

STALE = 20.0
"""Seconds of silence after which nothing is placed on what such a watch told last."""

OVERDUE = 75.0
"""Seconds without a byte: the API server sends a bookmark each 60."""

FIRST_OVERDUE = 135.0
"""Seconds without a byte before the first one: of some watches that comes after 120 (measured)."""


class Watch(Protocol):
    """What is asked of a reflector."""

    @property
    def last_contact(self) -> float | None:
        """When it heard anything last (monotonic seconds)."""

    @property
    def heard(self) -> bool:
        """Whether it heard anything since it was opened."""

    @property
    def bookmarks(self) -> bool:
        """Whether a bookmark came since, beside the one that ends a list."""

    def reopen(self) -> bool:
        """Open it again from its last version, by a list if it never heard; False if not open."""


class Suspicion:
    """Watches over the watches, by name."""

    def __init__(
        self, watches: Mapping[str, Watch], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._watches = watches
        self._clock = clock
        self._owed: dict[str, float] = {}

    async def run(self) -> None:
        """Look at all watches again and again, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.look()

    def wrote(self, watch: str, sent: float) -> None:
        """Note that a write was sent at `sent`, and answered: the watch must tell of it."""
        self._owed.setdefault(watch, sent)

    def placed(self) -> None:
        """Note that a placement is being written: what it rests on must be news.

        One that was opened again for it and is quiet since is left to its bookmark.
        """
        for name in PLACED_ON:
            watch = self._watches.get(name)
            if watch is not None and watch.heard and self._silent_for(watch) > STALE:
                self._reopen(name, "a placement rests on it")

    def look(self) -> None:
        """Open those again that are suspected."""
        for name, watch in self._watches.items():
            if self._owes(name, watch):
                del self._owed[name]
                self._reopen(name, "it does not tell of a write of our own")
            elif self._silent_for(watch) > (OVERDUE if watch.bookmarks else FIRST_OVERDUE):
                self._reopen(name, "its bookmark is overdue")

    def _owes(self, name: str, watch: Watch) -> bool:
        sent, heard = self._owed.get(name), watch.last_contact
        if sent is None:
            return False
        if heard is not None and heard > sent:
            del self._owed[name]
            return False
        return self._clock() >= sent + OWN_WRITE

    def _silent_for(self, watch: Watch) -> float:
        """Return the seconds since it heard anything; none where it never did."""
        heard = watch.last_contact
        return self._clock() - heard if heard is not None else 0.0

    def _reopen(self, name: str, why: str) -> None:
        if self._watches[name].reopen():
            log.info("watch suspected", watch=name, why=why)


UNSUSPECTED: Final = Suspicion({})
"""For an executor whose writes no watch is to tell of."""
