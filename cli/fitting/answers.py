"""What is answered about one Ray object."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from scheduling.model.placement import Placement
from scheduling.model.verdict import Reason


class Fits(StrEnum):
    """Whether it fits now. UNKNOWN: nothing that could be read is against it."""

    YES = "Yes"
    NO = "No"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer for a gang, in the words of its status.

    `placement` is by pod set: nodes with pods. `asks` says that fewer replicas could change it.
    """

    fits: Fits
    reason: str
    message: str
    queue: str = ""
    position: int = 0
    placement: Mapping[str, Mapping[str, int]] | None = None
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Most:
    """Of `asked` replicas of a group so many fit, all else as asked; None: not even none of them.

    `searched` is False where there were too many groups to search for all.
    """

    group: str
    asked: int
    fit: int | None
    searched: bool = True


@dataclass(frozen=True, slots=True)
class Fit:
    """The whole answer about one object; `unjudged` is what could not be judged, and why."""

    kind: str
    namespace: str
    name: str
    verdict: Verdict
    most: tuple[Most, ...] = ()
    notes: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()


def by_pod_set(placement: Placement) -> Mapping[str, Mapping[str, int]]:
    """Return how many pods of each pod set go to each node."""
    found: dict[str, Counter[str]] = {}
    for each in placement.assignments:
        found.setdefault(each.pod_set, Counter()).update(dict(each.nodes))
    return found


def unforeseeable(message: str) -> Verdict:
    """Say that the pods can only be known once they exist."""
    return Verdict(Fits.UNKNOWN, "", f"its pods can only be known once they exist: {message}")


def not_created(message: str) -> Verdict:
    """Say that the API server would not create the pods; fewer replicas may change that."""
    return Verdict(Fits.NO, Reason.PODS_REFUSED, message)


def over_resource_quota(message: str) -> Verdict:
    """Say which ResourceQuota does not suffice for all pods of the gang."""
    return replace(not_created(message), asks=True)
