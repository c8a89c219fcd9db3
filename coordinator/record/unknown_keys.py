"""Warns the owner of a RayCluster about unknown keys of Muster, and about keys that share GPUs.

It covers RayClusters that are no gangs as well: a misspelt opt-in makes no gang, and so no Gang
could report it. The next leader warns once more, because the list of warnings lives as long as a
term.
"""

from dataclasses import dataclass, field

from coordinator.messages.actions import EmitEvent
from coordinator.record.event_budget import renewal_of
from kube.gang.source import GangSource
from kube.ray.gpu_sharing import sharing_in_words
from kube.ray.known_keys import unknown_keys
from kube.ray.ray_cluster import Answer, OptIn
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason

SPACING = 60.0
"""Seconds between Events on one RayCluster, however often its keys are changed."""


@dataclass
class UnknownKeys:
    """What is to be said of which RayCluster, and what its owner was told when."""

    _read: dict[GangKey, tuple[GangSource, OptIn]] = field(default_factory=dict)
    _said: dict[GangKey, EmitEvent] = field(default_factory=dict)
    _told: dict[GangKey, tuple[EmitEvent, float]] = field(default_factory=dict)

    def seen(self, key: GangKey, source: GangSource, opted_in: OptIn) -> None:
        """Take in a RayCluster as it is now; one that is no gang may be another scheduler's."""
        read, under = self._read.get(key, (None, None))
        if read is source and under == opted_in:
            return
        self._read[key] = source, opted_in
        meta = source.metadata
        sharing = source.gpu_sharing if opted_in.answer is not Answer.NO else ()
        said = unknown_keys(meta.labels, meta.annotations), sharing_in_words(sharing)
        message = "; ".join(each for each in said if each)
        if message:
            reason = Reason.UNKNOWN_KEY
            self._said[key] = EmitEvent(key, meta.uid, warning=True, reason=reason, message=message)
        else:
            self._said.pop(key, None)

    def gone(self, key: GangKey) -> None:
        """Forget a RayCluster."""
        for each in (self._read, self._said, self._told):
            each.pop(key, None)

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
