"""Chooses the Warnings of a member that are told of the Ray objects on the manager. Pure.

A user of the manager may have no access to the member. A Secret that is missing there, or an image
that cannot be pulled, is seen in the Events of pods alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from dispatcher.reading import Original, Warned
from kube.gang.nested import RAY_CLUSTER

REPEATED_AFTER = 600.0
"""Seconds after which the same Warning is told again."""

MOST_REASONS = 16
"""Of one object: whoever writes Events names the reasons."""

POD = "Pod"


@dataclass(slots=True)
class Warnings:
    """What is told of one object."""

    told: dict[str, tuple[str, float]] = field(default_factory=dict)
    """By reason the text that was told last, and when."""
    pending: dict[str, str] = field(default_factory=dict)
    """By reason what is to be told."""

    def take(self, reason: str, text: str, now: float) -> bool:
        """Note a Warning; says whether it is to be told."""
        before, at = self.told.get(reason, ("", 0.0))
        if before == text and now - at < REPEATED_AFTER:
            return False
        is_one_more = reason not in self.told and len(self.told) >= MOST_REASONS
        if not reason or is_one_more:
            return False
        self.told[reason] = text, now
        self.pending[reason] = text
        return True


def subject(warned: Warned, originals: Iterable[Original]) -> Original | None:
    """Return the object whose copy a Warning is about: the copy, or what was made of it.

    KubeRay begins the name of whatever it makes with that of the object it is for.
    """
    about = [each for each in originals if _is_about(warned, each)]
    return max(about, key=lambda each: len(each.metadata.name), default=None)


def text(member: str, warned: Warned) -> str:
    """Word a Warning for a user of the manager."""
    return f"cluster {member}: {warned.kind} {warned.name}: {warned.message}"


def _is_about(warned: Warned, original: Original) -> bool:
    meta, name = original.metadata, original.metadata.name
    if meta.namespace != warned.metadata.namespace:
        return False
    if warned.at < (meta.creation_timestamp or ""):
        return False  # of another one that had its name
    if (warned.kind, warned.name) == (original.kind.partition(".")[0], name):
        return True
    return warned.kind in (POD, RAY_CLUSTER) and warned.name.startswith(f"{name}-")
