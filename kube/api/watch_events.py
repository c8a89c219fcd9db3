"""Defines what a reflector delivers to its sink, and the few fields of an object that it needs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

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


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """The object is new or not what it was."""

    obj: T


@dataclass(frozen=True, slots=True)
class Deleted(Generic[T]):
    """The object, as it was last told, is gone (or no longer selected)."""

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
    """A list is complete: what was told until here is a state that the server had."""


@dataclass(frozen=True, slots=True)
class Blind:
    """No watch is open: from here on changes stay unseen, until Sighted is told."""


@dataclass(frozen=True, slots=True)
class Sighted:
    """What stayed unseen has been told."""


WatchEvent: TypeAlias = Changed[T] | Deleted[T] | Unreadable | Synced | Blind | Sighted
Sink: TypeAlias = Callable[[list[WatchEvent[T]]], None]
