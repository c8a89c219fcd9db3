"""Applies watch events and listed objects to the store, or to the list in progress."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, assert_never

from structlog.typing import FilteringBoundLogger

from kube.api.errors import error_from_status
from kube.api.watch.events import Unreadable, Watched, WatchEvent
from kube.api.watch.pace import Counters
from kube.api.watch.store import Picture, Store
from kube.api.watch.wire import (
    Added,
    Bookmark,
    Failed,
    Meta,
    Modified,
    Removed,
    Told,
    unreadable_object,
)

INITIAL_END = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends the initial events; other bookmarks may come first."""

T = TypeVar("T", bound=Watched)


class Intake(Generic[T]):
    """The objects as they were told, and how far.

    `position` is the version to watch from; empty when only a list can tell. `picture` is the list
    under way in a watch, `take_over` what is called once that is complete. `heard` says that the
    watch that is open has told anything, were it a bookmark; `bookmarks` that one came beside that
    which ends its list.
    """

    def __init__(
        self,
        project: Callable[[Any], T | None],
        counters: Counters,
        log: FilteringBoundLogger,
        take_over: Callable[[Picture[T], str], None],
    ) -> None:
        self._project, self._counters, self._log = project, counters, log
        self._take_over = take_over
        self.store: Store[T] = Store()
        self.position = ""
        self.picture: Picture[T] | None = None
        self.heard = self.bookmarks = False

    def take(self, told: Told[Any]) -> list[WatchEvent[T]]:
        """Take in one event of the watch; return what changed in the store."""
        match told:
            case Added() | Modified():
                return self._changed(told.object, told.object.metadata.resource_version)
            case Unreadable():
                return self._changed(told, self.position)
            case Removed():
                return self._dropped(told.object.metadata)
            case Bookmark():
                return self._bookmarked(told.object.metadata)
            case Failed():
                raise error_from_status(told.object, 500)
            case _:
                assert_never(told)

    def _changed(self, item: Any, version: str) -> list[WatchEvent[T]]:
        self.heard = True
        if self.picture is not None:
            self.gather(self.picture, item)
            return []
        self.position = version
        match self._kept(item):
            case Unreadable() as bad:
                self._complain(bad)
                return self.store.confuse(bad)
            case None:
                return self.store.drop(item.metadata)
            case obj:
                return self.store.change(obj)

    def _dropped(self, meta: Meta) -> list[WatchEvent[T]]:
        self.heard = True
        if self.picture is not None:
            self.picture.drop(meta)
            return []
        self.position = meta.resource_version
        return self.store.drop(meta)

    def _bookmarked(self, meta: Meta) -> list[WatchEvent[T]]:
        self.heard = True
        if self.picture is None:
            self.position = meta.resource_version
            self.bookmarks = True
        elif (meta.annotations or {}).get(INITIAL_END) == "true":
            self._take_over(self.picture, meta.resource_version)
        return []

    def gather(self, picture: Picture[T], item: Any) -> None:
        """Take in one object of a list."""
        if not isinstance(item, Unreadable) and picture.same(item.metadata):
            return  # in a new list that is nearly all of it
        match self._kept(item):
            case Unreadable() as bad:
                self._complain(bad)
                picture.confuse(bad)
            case None:
                picture.drop(item.metadata)
            case obj:
                picture.change(obj)

    def _kept(self, item: Any) -> T | Unreadable | None:
        if isinstance(item, Unreadable):
            return item
        try:
            return self._project(item)
        except ValueError as error:
            return unreadable_object(item.metadata, error)

    def _complain(self, bad: Unreadable) -> None:
        self._counters.unreadable += 1
        self._log.warning("unreadable", namespace=bad.namespace, name=bad.name, error=bad.error)
