"""The fair sharing of a GangQueue; in its status what namespaces used, and how long gangs ran."""

from collections.abc import Mapping
from typing import Annotated, Any

from kube.objects.base import OrNull, Part
from kube.objects.gang import COUNT
from kube.objects.schema import ATOMIC_LIST, Allows

LEAST_HALF_LIFE, MOST_HALF_LIFE = 3600, 90 * 24 * 3600
MOST_WEIGHT = 1000
MOST_RESOURCES = 64

_WEIGHT: dict[str, Any] = {"minimum": 1, "maximum": MOST_WEIGHT}


class FairSharing(Part, frozen=True):
    """How what the queue and its namespaces held in the past counts in the order of gangs."""

    half_life_seconds: Annotated[
        int,
        Allows(
            "After so long it counts half; a week by default.",
            minimum=LEAST_HALF_LIFE,
            maximum=MOST_HALF_LIFE,
        ),
    ] = 7 * 24 * 3600
    weight: Annotated[
        int, Allows("Of the queue: one of 2 may hold twice as much as one of 1.", **_WEIGHT)
    ] = 1
    namespace_weights: Annotated[
        OrNull[Mapping[str, Annotated[int, Allows(**_WEIGHT)]]],
        Allows("Of namespaces within the queue; 1 for others.", maxProperties=200),
    ] = {}


Averages = Mapping[str, Annotated[str, Allows(pattern=r"^[0-9]{1,20}(\.[0-9]{1,9})?$")]]


class NamespaceShare(Part, frozen=True):
    """What gangs of one namespace have used of the queue."""

    name: Annotated[str, Allows("The namespace.", required=True)] = ""
    share: Annotated[str, Allows("As it counts, of its dominant resource, by weight.")] = ""
    usage: Annotated[
        OrNull[Averages],
        Allows("What they held on average, CPU in cores.", maxProperties=MOST_RESOURCES),
    ] = {}


class FairShare(Part, frozen=True):
    """What was used of the queue over time; only with spec.fairSharing."""

    at: Annotated[str, Allows("When it was so.")] = ""
    share: Annotated[
        str, Allows("Of the queue as it counts, of its dominant resource, by weight.")
    ] = ""
    namespaces: Annotated[
        OrNull[tuple[NamespaceShare, ...]],
        Allows("The largest share first.", maxItems=200, **ATOMIC_LIST),
    ] = ()
    rest: Annotated[
        OrNull[Averages],
        Allows("What all other namespaces held on average, as one.", maxProperties=MOST_RESOURCES),
    ] = {}


MOST_NAMESPACES = 200
MOST_TIMES = 64
MOST_COUNTED = 64

Times = Annotated[
    OrNull[Mapping[str, Annotated[int, Allows(minimum=1, maximum=MOST_COUNTED)]]],
    Allows("How many ran for about so many seconds.", maxProperties=MOST_TIMES),
]


class NamespaceDurations(Part, frozen=True):
    """How long gangs of one namespace ran."""

    name: Annotated[str, Allows("The namespace.", required=True)] = ""
    ended: Annotated[int, Allows("How many are remembered.", **COUNT)] = 0
    typical: Annotated[str, Allows("Half of them ended by then.")] = ""
    seconds: Times = {}


class LearnedDurations(Part, frozen=True):
    """How long gangs ran that ended by themselves; forecasts alone go by it."""

    namespaces: Annotated[
        OrNull[tuple[NamespaceDurations, ...]],
        Allows("By name.", maxItems=MOST_NAMESPACES, **ATOMIC_LIST),
    ] = ()
    rest: Times = {}
