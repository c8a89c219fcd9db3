"""Selects the Warnings of a member that are repeated on the objects on the manager. Pure.

A user of the manager may have no access to the member, and only the Events of pods there show a
missing Secret or an image that cannot be pulled.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from appwrapper.spec.names_of_wrapped import Named
from dispatcher.reading import Original, Warned
from kube.gang.nested import RAY_CLUSTER

REPEATED_AFTER = 600.0
"""Seconds after which the same Warning is told again."""

MOST_REASONS = 16
"""Of one object: whoever writes Events names the reasons."""

MADE = ("Pod", "ReplicaSet", "Job", RAY_CLUSTER)
"""Kinds that controllers make of an object."""


@dataclass(slots=True)
class Warnings:
    """The Warnings of one object: those reported, and those still to report."""

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

    Controllers begin the name of whatever they make with that of the object it is for.
    """
    about = [(length, each) for each in originals if (length := _matched(warned, each))]
    return max(about, key=lambda found: found[0], default=(0, None))[1]


def text(member: str, warned: Warned) -> str:
    """Word a Warning for a user of the manager."""
    return f"cluster {member}: {warned.kind} {warned.name}: {warned.message}"


def _matched(warned: Warned, original: Original) -> int:
    """Return how much of a name says that a Warning is about an object; 0 where it is not."""
    meta = original.metadata
    if meta.namespace != warned.metadata.namespace:
        return 0
    if warned.at < (meta.creation_timestamp or ""):
        return 0  # of another one that had its name
    own = Named(original.kind.partition(".")[0], meta.name)
    made = (own, *original.wrapped)
    return max((len(each.name) for each in made if _is_about(warned, each)), default=0)


def _is_about(warned: Warned, made: Named) -> bool:
    if (warned.kind, warned.name) == made:
        return True
    return warned.kind in MADE and warned.name.startswith(f"{made.name}-")
