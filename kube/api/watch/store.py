"""Compares objects from the server with the stored ones, and yields the changes. Pure."""

from collections.abc import Mapping
from typing import Generic, TypeVar

from kube.api.watch.events import Changed, Deleted, Key, ObjectMeta, Unreadable, Watched, WatchEvent

T = TypeVar("T", bound=Watched)


class Picture(Generic[T]):
    """A list under way, against what was there before; it touches nothing before it is whole.

    What did not change is only ticked off, so that to take the list over costs what it changes.
    """

    def __init__(self, before: Mapping[Key, T]) -> None:
        self._before = before
        self._untold = dict(before)
        self.changed: dict[Key, T] = {}
        self.unreadable: dict[Key, Unreadable] = {}

    @property
    def gone(self) -> list[T]:
        """Objects that were there before and that the list does not name."""
        told = self.changed.keys() | self.unreadable.keys()
        return [old for key, old in self._untold.items() if key not in told]

    def same(self, meta: ObjectMeta) -> bool:
        """Take an object in if it is as it was before."""
        key = _key(meta)
        old = self._before.get(key)
        if old is None or not _same(old.metadata, meta):
            return False
        self._forget(key)
        self._untold.pop(key, None)
        return True

    def change(self, obj: T) -> None:
        """Take an object in."""
        if not self.same(obj.metadata):
            self._forget(_key(obj.metadata))
            self.changed[_key(obj.metadata)] = obj

    def drop(self, meta: ObjectMeta) -> None:
        """Take an object out, or leave out one that the projection does not want."""
        self._forget(_key(meta))

    def confuse(self, bad: Unreadable) -> None:
        """Note an object that exists and can't be read."""
        self._forget((bad.namespace, bad.name))
        self.unreadable[bad.namespace, bad.name] = bad

    def _forget(self, key: Key) -> None:
        """Leave nothing of what the list has said of it so far."""
        self.changed.pop(key, None)
        self.unreadable.pop(key, None)
        if key in self._before:
            self._untold[key] = self._before[key]


class Store(Generic[T]):
    """The reported objects; each method returns the events of the change."""

    def __init__(self) -> None:
        self.objects: dict[Key, T] = {}

    def change(self, obj: T) -> list[WatchEvent[T]]:
        """Take a new state; the same name with another uid is a deletion and a creation."""
        key = _key(obj.metadata)
        old = self.objects.get(key)
        if old is not None and _same(old.metadata, obj.metadata):
            # The sink holds the old one: keeping the new would double the memory of a re-list.
            return []
        self.objects[key] = obj
        if old is not None and old.metadata.uid != obj.metadata.uid:
            return [Deleted(old), Changed(obj)]
        return [Changed(obj)]

    def drop(self, meta: ObjectMeta) -> list[WatchEvent[T]]:
        """Forget an object; nothing happens when the name belongs to another uid by now."""
        key = _key(meta)
        old = self.objects.get(key)
        if old is None or old.metadata.uid != meta.uid:
            return []
        del self.objects[key]
        return [Deleted(old)]

    def confuse(self, bad: Unreadable) -> list[WatchEvent[T]]:
        """Note an object that can't be read; what bore its name before is gone if it differs."""
        old = self.objects.get((bad.namespace, bad.name))
        if old is None or old.metadata.uid == bad.uid:
            return [bad]
        return [*self.drop(old.metadata), bad]

    def replace(self, picture: Picture[T]) -> list[WatchEvent[T]]:
        """Become the picture, and return what that changes, deletions first."""
        events: list[WatchEvent[T]] = []
        for old in picture.gone:
            events += self.drop(old.metadata)
        for bad in picture.unreadable.values():
            events += self.confuse(bad)
        for obj in picture.changed.values():
            events += self.change(obj)
        return events


def _key(meta: ObjectMeta) -> Key:
    return meta.namespace, meta.name


def _same(one: ObjectMeta, other: ObjectMeta) -> bool:
    return one.uid == other.uid and one.resource_version == other.resource_version
