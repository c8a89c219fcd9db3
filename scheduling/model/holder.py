"""A holder of room: a gang, another controller, or a namespace; and its share."""

from dataclasses import dataclass
from typing import NamedTuple

from scheduling.model.gang import GangKey

APP_WRAPPER_GANGS = ("appwrapper.", "appwrapper-mcad.")
"""Begin the names of gangs of AppWrappers; no RayCluster that KubeRay takes has such a name.

Each API group of AppWrappers has one. Messages do not tell the groups apart.
"""

OFFER_GANGS = "gangoffer."
"""Begins the names of gangs that another cluster asks about; nor has a RayCluster such a name."""

SENT_GANGS = {"RayJob": "rayjob.", "RayService": "rayservice."}
"""Begin, by kind, the names of gangs that another cluster runs; nor has a RayCluster such a name.

On its own cluster such an object has RayClusters, whose names their gangs have.
"""

_KINDS = {
    OFFER_GANGS: "GangOffer",
    **dict.fromkeys(APP_WRAPPER_GANGS, "AppWrapper"),
    **{begin: kind for kind, begin in SENT_GANGS.items()},
}


class Holder(NamedTuple):
    """Kind, namespace and name; the name of a Namespace stands for its pods without controller."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """Print it as kubectl asks for it: kind, then namespace/name."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}"


def gang_holder(key: GangKey) -> Holder:
    """Return the object whose pods a gang is."""
    begin = _begin_of(key)
    kind = _KINDS.get(begin, "RayCluster")
    return Holder(kind, key.namespace, key.name.removeprefix(begin))


def is_of_ray_cluster(key: GangKey) -> bool:
    """Say whether a gang is named as the RayCluster is that it is of."""
    return not _begin_of(key)


def _begin_of(key: GangKey) -> str:
    """Return how the name begins that is not a RayCluster's; empty where it is one."""
    begin = f"{key.name.partition('.')[0]}."
    return begin if begin in _KINDS else ""


def is_wrapper_gang(key: GangKey) -> bool:
    """Say whether a gang is that of an AppWrapper."""
    return key.name.startswith(APP_WRAPPER_GANGS)


@dataclass(frozen=True, slots=True)
class Share:
    """What one holder has of a resource."""

    holder: Holder
    amount: int


@dataclass(frozen=True, slots=True)
class Held:
    """Of all there is of a resource on some nodes: the largest shares, and what the others hold."""

    total: int
    shares: tuple[Share, ...] = ()
    rest: int = 0
    others: int = 0


def offer_gang(name: str) -> str:
    """Name the gang of a GangOffer."""
    return f"{OFFER_GANGS}{name}"


def sent_gang(kind: str, name: str) -> str:
    """Name the gang of an object that another cluster runs."""
    return f"{SENT_GANGS.get(kind, '')}{name}"


def is_offer_gang(key: GangKey) -> bool:
    """Say whether a gang is one that another cluster asks about."""
    return key.name.startswith(OFFER_GANGS)
