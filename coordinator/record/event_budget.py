"""Limits which Events of a gang are written, and when.

A user reads Events with `kubectl describe`; the API server forgets each an hour after it was
written last. So the reason for which a gang waits is told when it begins to hold, again when its
message changed, and renewed while it holds. Whatever changes how often, a gang has a bucket of
tokens, and each Event takes one: what has none waits for the next, the newest of each reason.
Time is an argument.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from coordinator.messages.actions import Action, EmitEvent, Regarding
from scheduling.model.verdict import Reason

BURST = 3
"""Events of one gang that may be written at once."""

REFILL = 30.0
"""Seconds until one more may be: two a minute."""

SPACING = 30.0
"""Seconds for which a reason keeps its message, at least, although the numbers in it move."""

EDITED = (Reason.MISCONFIGURED,)
"""Reasons whose message changes because a user wrote something, so that it is told at once."""

RENEWAL = 1500.0
"""Seconds after which an Event whose reason holds is written again, at most.

Twice that is less than the hour for which an API server keeps Events by default: a write that
fails, or a new leader, which does not know when the last one was, leaves no gap.
"""

SPREAD = 0.25
"""The share of the renewal by which gangs differ, so that those told together do not stay so."""


@dataclass(frozen=True, slots=True)
class Told:
    """What was told last for a reason, and when."""

    event: EmitEvent
    at: float


@dataclass(frozen=True, slots=True)
class Lasting:
    """The Event of the reason that holds now.

    `others` are the objects that show it too, `not_before` is when it is told first: it may pass
    until then.
    """

    event: EmitEvent
    others: tuple[Regarding, ...] = ()
    not_before: float = 0.0


@dataclass(frozen=True, slots=True)
class Heard:
    """The last reason that was told while it held, and the objects that showed it.

    None where that is not known: an earlier leader told it.
    """

    reason: str = ""
    others: tuple[Regarding, ...] | None = ()


UNHEARD = Heard()
"""The user need not hear of the end of anything."""


@dataclass(slots=True)
class EventBudget:
    """What was told of one gang.

    `lasting` is None where no reason that holds is to be told. `passing` are Events of what
    happened once and that are not written yet, by reason.
    """

    lasting: Lasting | None = None
    heard: Heard = UNHEARD
    passing: dict[str, EmitEvent] = field(default_factory=dict)
    _told: dict[str, Told] = field(default_factory=dict)
    _full_at: float = 0.0  # when the bucket is full again

    def adopt(self, event: EmitEvent, now: float) -> None:
        """Take it that an earlier leader told this, at a time that is not known."""
        self.heard, uid = Heard(event.reason, None), event.cluster_uid
        self._told[event.reason] = Told(event, now - renewal_of(uid) * (1 - share_of(uid)))

    def silence(self) -> None:
        """Tell nothing more of what holds, nor what waits to be told."""
        self.lasting = None
        self.passing.clear()

    def sift(self, actions: Iterable[Action], now: float, spacing: float) -> list[Action]:
        """Return the actions, with those Events in place of the asked for that may be told now."""
        found: list[Action] = []
        for action in actions:
            if isinstance(action, EmitEvent):
                self._offer(action, now)
            else:
                found.append(action)
        for at, event in sorted(self._due(spacing), key=lambda each: each[0]):
            if max(at, self._token_at) <= now:
                self._full_at = max(self._full_at, now) + REFILL
                found += self._tell(event, now)
        return found

    def next_at(self, spacing: float) -> float | None:
        """When the next Event is to be written, after those of now were sifted."""
        left = (max(at, self._token_at) for at, _ in self._due(spacing))
        return min(left, default=None)

    def _offer(self, event: EmitEvent, now: float) -> None:
        """Keep what happened until there is budget for it, unless its user knows."""
        told = self._told.get(event.reason)
        if told is None or told.event != event or now >= told.at + renewal_of(event.cluster_uid):
            self.passing[event.reason] = event

    def _due(self, spacing: float) -> Iterator[tuple[float, EmitEvent]]:
        """When each Event is to be written, were there tokens enough."""
        if self.lasting is not None:
            yield self._lasting_at(self.lasting, spacing), self.lasting.event
        for reason, event in self.passing.items():
            told = self._told.get(reason)
            yield (0.0 if told is None else told.at + spacing), event

    def _lasting_at(self, lasting: Lasting, spacing: float) -> float:
        event, told = lasting.event, self._told.get(lasting.event.reason)
        if told is None or event.reason != self.heard.reason:
            return lasting.not_before
        same = told.event == event and self.heard.others in (None, lasting.others)
        if told.event != event and event.reason in EDITED:
            return 0.0
        return told.at + (max(renewal_of(event.cluster_uid), spacing) if same else spacing)

    def _tell(self, event: EmitEvent, now: float) -> list[Action]:
        self._told[event.reason] = Told(event, now)
        if self.lasting is None or event is not self.lasting.event:
            del self.passing[event.reason]
            return [event]
        others = self.lasting.others
        self.heard = Heard(event.reason, others)
        return [event, *(replace(event, regarding=each) for each in others)]

    @property
    def _token_at(self) -> float:
        """When there is a token. Sums of shares of one would fall short of it by a rounding."""
        return self._full_at - (BURST - 1) * REFILL


def renewal_of(uid: str) -> float:
    """Seconds after which an Event on an object is told again while it holds."""
    return RENEWAL * (1 - SPREAD * share_of(uid))


def share_of(uid: str) -> float:
    """Draw a number from 0 to 1 from a uid, always the same."""
    return zlib.crc32(uid.encode()) / 0xFFFFFFFF


def spacing_of(waiting: int) -> float:
    """Return the seconds for which a message stands, given how many gangs wait.

    So about one gang a second is told anew, of however many.
    """
    return max(SPACING, float(waiting))
