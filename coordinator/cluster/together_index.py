"""Indexes the gangs of each start-together group by namespace and name, the oldest first.

Where a group is too large, a change in it requeues only its first few gangs. So a thousand gangs
that name one group cost no more than their number.
"""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

from kube.codec.fields import created_at
from kube.gang.source import GangSource
from kube.ray.ray_cluster import is_terminating
from kube.ray.ray_owner import controller_of
from kube.ray.together import MOST, Together
from scheduling.model.gang import GangKey

MOST_HEARD = MOST + 1
"""Of a group: one more than it may have, so that it is seen that it is too large."""

Group = tuple[str, str]
"""Its namespace and its name."""


class Mate(NamedTuple):
    """A gang that names a group, ordered as it came."""

    created: float
    name: str
    key: GangKey
    member: str
    """The uid that it counts by: of the RayJob or RayService that made it, or its own."""
    asked: Together


class TogetherIndex:
    """The gangs that name a group; a gang that is being deleted has left its group."""

    def __init__(self) -> None:
        self._mates: dict[GangKey, Mate] = {}
        self._groups: dict[Group, list[Mate]] = {}
        self._moved: set[GangKey] = set()

    def __bool__(self) -> bool:
        """Say whether any gang names a group."""
        return bool(self._mates)

    def put(self, key: GangKey, source: GangSource) -> None:
        """Take in the source of a gang."""
        asked = source.together
        if asked is None or is_terminating(source.metadata):
            self.drop(key)
            return
        reference = controller_of(source.metadata)
        uid = reference.uid if reference is not None else source.metadata.uid
        mate = Mate(created_at(source.metadata), key.name, key, uid, asked)
        if self._mates.get(key) == mate:
            return
        self.drop(key)
        self._mates[key] = mate
        insort(self._groups.setdefault((key.namespace, asked.name), []), mate)

    def drop(self, key: GangKey) -> None:
        """Forget a gang; one that names no group is no matter."""
        mate = self._mates.pop(key, None)
        if mate is None:
            return
        self._note_move(mate)
        group = key.namespace, mate.asked.name
        line = self._groups[group]
        del line[bisect_left(line, mate)]
        if line:
            self._note_move(mate)  # one more is heard in its place
        else:
            del self._groups[group]

    def of(self, key: GangKey) -> Mate | None:
        """Return what a gang says; None where it starts alone."""
        return self._mates.get(key)

    def mates(self, key: GangKey) -> Sequence[Mate]:
        """Return the first gangs of the group of a gang, mostly itself among them."""
        mate = self._mates.get(key)
        return () if mate is None else self._heard((key.namespace, mate.asked.name))

    def take_moved(self) -> set[GangKey]:
        """Return, once, the gangs of groups from which one went; one that came is looked at."""
        moved, self._moved = self._moved, set()
        return moved

    def _heard(self, group: Group) -> Sequence[Mate]:
        return self._groups.get(group, [])[:MOST_HEARD]

    def _note_move(self, mate: Mate) -> None:
        heard = self._heard((mate.key.namespace, mate.asked.name))
        self._moved.update(each.key for each in heard)
