"""The actions of the coordinator on GangOffers, and on the objects that were created for them."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kube.objects.clusters.gang_offer import GangOfferStatus
from scheduling.model.gang import GangKey


class Closed(StrEnum):
    """Reasons for which an offer is closed."""

    NAME_TAKEN = "NameTaken"
    ACCEPTED_TOO_EARLY = "AcceptedTooEarly"
    NOT_ACCEPTED = "NotAccepted"
    OTHER_LEADER = "OtherLeader"
    ROOM_LOST = "RoomLost"
    NOT_CREATED = "NotCreated"
    STOPPED = "Stopped"
    MANAGER_LOST = "ManagerLost"
    ENDED = "Ended"
    WITHDRAWN = "Withdrawn"


NO_ANSWER = GangOfferStatus()


@dataclass(frozen=True, slots=True)
class WriteOffer:
    """Write all that is known of a GangOffer's status; `before` is it as it was read."""

    gang: GangKey
    name: str
    uid: str
    resource_version: str
    status: dict[str, Any]
    before: GangOfferStatus = NO_ANSWER


@dataclass(frozen=True, slots=True)
class StartOffer:
    """Write that an accepted offer is Started, unless its manager has a newer leader by now.

    Which leader the manager has is read first, of its Lease in the namespace `home`.
    """

    gang: GangKey
    write: WriteOffer
    home: str
    manager: str
    accepted_by: int


@dataclass(frozen=True, slots=True)
class HoldOffer:
    """Hold a GangOffer back from its deletion, or let it go: `finalizers` are all that it has.

    `closes` is the reason for which one that was not Closed before is over by that.
    """

    gang: GangKey
    name: str
    uid: str
    resource_version: str
    finalizers: tuple[str, ...]
    closes: str = ""


@dataclass(frozen=True, slots=True)
class DeleteCreated:
    """Delete what was created for a GangOffer which is being closed."""

    gang: GangKey
    kind: str
    name: str
    uid: str
    offer_uid: str


@dataclass(frozen=True, slots=True)
class StopPods:
    """Delete what is left of a gang that may run no longer, and ask no disruption budget.

    RayClusters and pods are given by name and uid; pods have `grace` seconds at most.
    """

    gang: GangKey
    offer_uid: str
    clusters: tuple[tuple[str, str], ...]
    pods: tuple[tuple[str, str], ...]
    grace: int


@dataclass(frozen=True, slots=True)
class StampLease:
    """Read the Lease of a manager in the namespace of Muster, which names the gang's namespace.

    Where there is a stamp, the member's own time of day, it is written there.
    """

    gang: GangKey
    manager: str
    stamp: str


OfferAction = WriteOffer | StartOffer | HoldOffer | DeleteCreated | StopPods | StampLease
