"""The settings and counters of a reflector: which objects it reads, and how long it waits."""

from dataclasses import dataclass
from typing import Any

from kube.api.backoff import Backoff


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of the resource, and how much of each.

    `may_be_absent`: a server that does not know the resource has none of it, and is asked again
    in a while. `bare` is a type that asks for less: what is not of its kind is read as that.
    """

    namespace: str | None = None
    label_selector: str = ""
    field_selector: str = ""
    metadata_only: bool = False
    may_be_absent: bool = False
    bare: type[Any] | None = None


EVERYTHING = Selection()


_BACKOFF = Backoff(initial=0.8, maximum=30.0, factor=2.0, jitter=1.0)


@dataclass(frozen=True, slots=True)
class Pace:
    """The reflector's times, in seconds."""

    backoff: Backoff = _BACKOFF
    """client-go's numbers; the jitter keeps our reflectors from coming back in step."""
    healthy: float = 30.0
    """A watch that lived so long ends the row of failures: the longest delay, so that a
    connection that breaks regularly is not reopened more often than a broken one."""
    shortest: float = 1.0
    """A watch that ends sooner without a word counts as a failure."""
    silence: float = 150.0
    """No byte for so long means that the peer is dead: two bookmarks and a half."""
    call_timeout: float = 30.0
    """For one page of a list, and for the answer to begin."""
    settle: float = 1.0
    """A server sends what a watch has missed as soon as it is open; so long it may take."""
    duration: tuple[float, float] = (300.0, 600.0)
    """How long the server is asked to keep a watch open; random between these, as in client-go, so
    that not all watches move to another server at once."""
    absence: float = 60.0
    """Until a server that does not know the resource is asked again."""


USUAL = Pace()


@dataclass(slots=True)
class Counters:
    """What metrics read."""

    relists: int = 0
    events: int = 0
    failures: int = 0
    unreadable: int = 0
    reopened: int = 0
