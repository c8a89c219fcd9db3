"""Holds the writes to the pods of one gang: releases, fences, deletions."""

from dataclasses import dataclass, field
from typing import Any

from coordinator.gang.attempts import Attempts


@dataclass(slots=True)
class PodWrites:
    """The writes to pods of the gang, by uid.

    Written by `reconcile.pod_writes`, which asks for them, and by `state.intake`, which hears how
    they ended.
    """

    targets: dict[str, str] = field(default_factory=dict)
    """Nodes of releases that were sent: the node of such a pod never changes without a fence."""
    fences: dict[str, str] = field(default_factory=dict)
    """The tokens that pods must carry before they are released."""
    inflight: set[str] = field(default_factory=set)
    """Pods with a patch or a deletion under way."""
    deleted: set[str] = field(default_factory=set)
    """Pods whose deletion was asked for and not refused; the watch will tell."""
    unsure: set[str] = field(default_factory=set)
    """Pods with a patch of unknown outcome: until another one is done it may still arrive."""
    leaving: set[str] = field(default_factory=set)
    """`deleted`, and those that are to be deleted as soon as may be; none is a member any more."""
    removed_any: bool = False
    """A pod of the gang was ever to be deleted, or an earlier leader may have done so."""
    attempts: dict[str, Attempts] = field(default_factory=dict)
    withdrawn_since: float | None = None
    """No release of the gang was sent since then, and none is to arrive any more."""
    doubted_since: float | None = None
    """When the last release ended of which it is not known what became of it. One of an earlier
    leader ended before the view was opened. None: there was no such release."""

    def attempts_at(self, uid: str) -> Attempts:
        """The failed tries at a pod; made on first use."""
        return self.attempts.setdefault(uid, Attempts())

    def note_deletion(self, uid: str) -> None:
        """Note that the deletion of a pod is asked for."""
        self.removed_any = True
        for pods in (self.inflight, self.deleted, self.leaving):
            pods.add(uid)

    def forget_pods(self, alive: set[str]) -> None:
        """Drop what is known of pods that are gone."""
        forget(alive, self.targets, self.fences, self.attempts)
        self.inflight &= alive
        self.unsure &= alive
        self.deleted &= alive


def forget(alive: set[str], *notes: dict[str, Any]) -> None:
    """Drop from each of the notes the pods that are gone."""
    for each in notes:
        for uid in each.keys() - alive:
            del each[uid]
