"""Whom is to be told that a RayCluster has keys under muster.dev/ without a meaning?

Gangs and others alike: who misspells the very key that makes a gang has none, and no Gang that
could say so. What was told is forgotten with the term: the next leader tells it once more.
"""

from dataclasses import dataclass, field

from coordinator.actions import EmitEvent
from kube.known_keys import unknown_keys
from kube.objects import RayCluster
from scheduling.model import GangKey
from scheduling.verdict import Reason


@dataclass
class UnknownKeys:
    """What is to be said of which RayCluster, and what was told its owner."""

    _said: dict[GangKey, EmitEvent] = field(default_factory=dict)
    _told: dict[GangKey, EmitEvent] = field(default_factory=dict)

    def seen(self, key: GangKey, cluster: RayCluster) -> None:
        """Take in a RayCluster as it is now."""
        meta = cluster.metadata
        message = unknown_keys(meta.labels, meta.annotations)
        if message:
            reason = Reason.UNKNOWN_KEY
            self._said[key] = EmitEvent(key, meta.uid, True, reason, message)
        else:
            self.gone(key)

    def gone(self, key: GangKey) -> None:
        """Forget a RayCluster."""
        self._said.pop(key, None)
        self._told.pop(key, None)

    def of(self, key: GangKey) -> str:
        """Return what is to be said of a RayCluster; empty where all its keys are known."""
        said = self._said.get(key)
        return said.message if said is not None else ""

    def news(self, key: GangKey) -> list[EmitEvent]:
        """Return what the owner of a RayCluster was not told yet."""
        said = self._said.get(key)
        if said is None or said == self._told.get(key):
            return []
        self._told[key] = said
        return [said]

    def forget_told(self) -> None:
        """Begin anew with telling."""
        self._told.clear()
