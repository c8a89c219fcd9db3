"""Tells the owner of a RayCluster of keys under muster.dev/ without a meaning.

Gangs and others alike: where the very key that makes a gang is misspelt there is none, and no Gang
that could say so. What was told is forgotten with the term: the next leader tells it once more.
"""

from dataclasses import dataclass, field

from coordinator.messages.actions import EmitEvent
from coordinator.record.event_budget import renewal_of
from kube.gang.source import GangSource
from kube.ray.known_keys import unknown_keys
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason

SPACING = 60.0
"""Seconds between Events on one RayCluster, however often its keys are changed."""


@dataclass
class UnknownKeys:
    """What is to be said of which RayCluster, and what its owner was told when."""

    _said: dict[GangKey, EmitEvent] = field(default_factory=dict)
    _told: dict[GangKey, tuple[EmitEvent, float]] = field(default_factory=dict)

    def seen(self, key: GangKey, source: GangSource) -> None:
        """Take in a RayCluster as it is now."""
        meta = source.metadata
        message = unknown_keys(meta.labels, meta.annotations)
        if message:
            reason = Reason.UNKNOWN_KEY
            self._said[key] = EmitEvent(key, meta.uid, warning=True, reason=reason, message=message)
        else:
            self._said.pop(key, None)

    def gone(self, key: GangKey) -> None:
        """Forget a RayCluster."""
        self._said.pop(key, None)
        self._told.pop(key, None)

    def of(self, key: GangKey) -> str:
        """Return what is to be said of a RayCluster; empty where all its keys are known."""
        said = self._said.get(key)
        return said.message if said is not None else ""

    def news(self, key: GangKey, now: float) -> list[EmitEvent]:
        """Return what the owner of a RayCluster is to be told at once."""
        at = self.due_at(key)
        if at is None or at > now:
            return []
        said = self._said[key]
        self._told[key] = said, now
        return [said]

    def due_at(self, key: GangKey) -> float | None:
        """When the owner is to be told, or told again; None where there is nothing to tell."""
        said = self._said.get(key)
        told, at = self._told.get(key, (None, float("-inf")))
        if said is None:
            return None
        return at + (renewal_of(said.cluster_uid) if said == told else SPACING)

    def forget_told(self) -> None:
        """Begin anew with telling."""
        self._told.clear()
