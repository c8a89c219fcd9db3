"""Defines what a reflector delivers to its sink, and makes sinks that feed a program's events."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

Key: TypeAlias = tuple[str, str]
"""Namespace and name."""


class ObjectMeta(Protocol):
    """What every object says about itself; the namespace is empty where there is none."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def namespace(self) -> str: ...  # noqa: D102
    @property
    def uid(self) -> str: ...  # noqa: D102
    @property
    def resource_version(self) -> str: ...  # noqa: D102


class Watched(Protocol):
    """Anything that was made from an object of the API."""

    @property
    def metadata(self) -> ObjectMeta: ...  # noqa: D102


T = TypeVar("T", bound=Watched)
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """The object is new or not what it was."""

    obj: T


@dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """The object, in its last reported state, is gone (or no longer selected)."""

    obj: T


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that is not of its type. The store keeps what it knew of the same uid.

    It is an event and no exception, because a tenant that may create objects must not be able to
    stop a program. It is not skipped, because it may take room that would then not be counted.
    """

    namespace: str
    name: str
    uid: str
    error: str


@dataclass(frozen=True, slots=True)
class Synced:
    """A list is complete: all events until here add up to a state that the server had."""


@dataclass(frozen=True, slots=True)
class Blind:
    """No watch is open: changes stay unseen from here on, until Sighted."""


@dataclass(frozen=True, slots=True)
class Sighted:
    """All changes that stayed unseen have been reported."""


WatchEvent: TypeAlias = Changed[T] | Deleted[T] | Unreadable | Synced | Blind | Sighted
Sink: TypeAlias = Callable[[list[WatchEvent[T]]], None]
Translate: TypeAlias = Callable[[WatchEvent[T]], E | None]
"""What a watch event is to a program; None where it is nothing."""


def translated(seen: Callable[[T], E], gone: Callable[[T], E]) -> Translate[T, E]:
    """Return what makes one event of an object that is there, another of one that is gone."""

    def event_of(told: WatchEvent[T]) -> E | None:
        match told:
            case Changed(obj=obj):
                return seen(obj)
            case Deleted(obj=obj):
                return gone(obj)
            case _:
                return None

    return event_of


def feeding(feed: Callable[[Iterable[Any]], None], translate: Translate[T, object]) -> Sink[T]:
    """Return a sink that feeds the events of each batch."""

    def sink(batch: list[WatchEvent[T]]) -> None:
        feed([event for told in batch if (event := translate(told)) is not None])

    return sink
