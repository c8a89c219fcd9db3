"""The durations of a GangQueue's finished gangs, in its status."""

from collections.abc import Mapping
from typing import Annotated

from kube.objects.base import OrNull, Part
from kube.objects.gang import COUNT
from kube.objects.schema import ATOMIC_LIST, Allows

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
