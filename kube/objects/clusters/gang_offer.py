"""GangOffer: its fields, as they are read, and what the API server allows in them.

A manager asks a member by one whether a whole gang fits there. The member's coordinator answers in
its status, and keeps the room for a minute. Who may move the phase is `dispatcher.protocol`'s.
"""

from typing import Annotated, Any, ClassVar

import msgspec

from kube.objects.base import Labels, ObjectMeta, OrNull, Part, Slim
from kube.objects.ray import ABSENT
from kube.objects.schema import Allows, rules

OFFER_KIND = "GangOffer"

FINALIZER = "muster.dev/offer"
"""Holds a GangOffer until no pod is left of the gang that it was accepted for."""

PHASES = ("Asked", "Offered", "Started", "Closed")

LONGEST_NAME = 63
"""Of what is created: KubeRay makes names and labels of it."""

_ANY: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_POSITIVE: dict[str, Any] = {"minimum": 1, "format": "int64"}
_UID: dict[str, Any] = {"minLength": 1, "maxLength": 128}

_ACCEPTED_RULE = (
    "!has(oldSelf.acceptedBy) || (has(self.acceptedBy) && self.acceptedBy >= oldSelf.acceptedBy)",
    "acceptedBy cannot be taken back, nor be that of an earlier leader",
)
_SAME_RULE = (
    (
        "self.manager == oldSelf.manager && self.uid == oldSelf.uid && "
        "self.attempt == oldSelf.attempt && self.template.name == oldSelf.template.name"
    ),
    "manager, uid, attempt and template.name cannot be changed: create another GangOffer",
)
_FENCE_RULE = (
    "self.?lostAfterSeconds.orValue(0) == oldSelf.?lostAfterSeconds.orValue(0)",
    "lostAfterSeconds cannot be changed: create another GangOffer",
)


class OfferedObject(Part, frozen=True):
    """The object that is created on the member once its offer is accepted."""

    api_version: Annotated[
        str, Allows("Its apiVersion; absent is ray.io/v1, and of an AppWrapper CodeFlare's.")
    ] = ""
    kind: Annotated[
        str, Allows("Its kind.", enum=["RayCluster", "RayJob", "RayService", "AppWrapper"])
    ] = "RayCluster"
    name: Annotated[
        str, Allows("Its name.", required=True, minLength=1, maxLength=LONGEST_NAME)
    ] = ""
    labels: Annotated[OrNull[Labels], Allows("Its labels; muster.dev/queue is one.")] = {}
    annotations: Annotated[OrNull[Labels], Allows("Its annotations.")] = {}
    spec: Annotated[msgspec.Raw, Allows("Its spec, whole.", required=True, **_ANY)] = ABSENT


class GangOfferSpec(Part, frozen=True):
    """What is asked for, and whether the answer was accepted."""

    schema_extra: ClassVar[dict[str, Any]] = rules(_ACCEPTED_RULE, _SAME_RULE, _FENCE_RULE)

    manager: Annotated[
        str,
        Allows(
            "The uid of the namespace kube-system of the cluster that asks.", required=True, **_UID
        ),
    ] = ""
    uid: Annotated[
        str, Allows("The uid of the object there that is to run here.", required=True, **_UID)
    ] = ""
    attempt: Annotated[
        int, Allows("Counts the tries to run it, on any cluster.", required=True, **_POSITIVE)
    ] = 0
    template: Annotated[OfferedObject, Allows("What is to run.", required=True)] = OfferedObject()
    accepted_by: Annotated[
        int,
        Allows(
            "The term of the leader that accepted the offer. Written when the offer is read, never "
            "when it is asked for.",
            **_POSITIVE,
        ),
    ] = 0
    may_stop_gangs_until: Annotated[
        str,
        Allows(
            "Until when for it running gangs may be stopped, and nodes asked for, by the rules of "
            "its queue and the clock of the member. The manager lets one cluster at a time.",
            format="date-time",
        ),
    ] = ""
    lost_after_seconds: Annotated[
        int,
        Allows(
            "Seconds for which the manager may be away; then what was accepted is stopped, its "
            "pods are deleted. Absent means for ever.",
            **_POSITIVE,
        ),
    ] = 0


class GangOfferStatus(Part, frozen=True):
    """The answer; the coordinator of the member alone writes it."""

    phase: Annotated[
        str,
        Allows(
            "Asked: there is no room yet. Offered: room for all of it is kept, for 60 s. Started: "
            "its object may be created. Closed: nothing of it runs, or ever will.",
            enum=list(PHASES),
        ),
    ] = ""
    offered_at: Annotated[
        str, Allows("Since when room is kept, by the clock of the member.", format="date-time")
    ] = ""
    object_uid: Annotated[
        str,
        Allows(
            "The uid of what was created for it, unless that is a RayCluster. Where it is there no "
            "more, a job was run.",
            maxLength=128,
        ),
    ] = ""
    reason: Annotated[
        str, Allows("Why it waits, what its gang lacks, or why it was closed.", maxLength=1024)
    ] = ""
    message: Annotated[str, Allows("The same in numbers.", maxLength=32768)] = ""


class OfferMeta(ObjectMeta, frozen=True):
    """What a GangOffer says about itself, with what holds it when it is deleted."""

    finalizers: OrNull[tuple[str, ...]] = ()


class GangOffer(Slim, frozen=True):
    """A question of a manager whether a gang fits, and the answer with the room kept for it."""

    metadata: OfferMeta = OfferMeta()
    spec: Annotated[GangOfferSpec, Allows(required=True)] = GangOfferSpec()
    status: GangOfferStatus = GangOfferStatus()
