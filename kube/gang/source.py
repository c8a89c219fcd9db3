"""Defines the questions that decisions ask of a gang's source, whatever its kind.

A kind more is a class more that answers all of this, and a line where sources are made of what
watches tell (`coordinator.gang.source`). What a kind cannot answer is a type error there.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from kube.foreseen.admission import Admission
from kube.foreseen.gang import Outlook
from kube.objects.base import Labels, ObjectMeta, OwnerReference
from kube.objects.clusters.dispatch import GangDispatch
from kube.objects.ray import RayCluster
from kube.ray.gang_terms import GangTerms, Misconfigured, PodSetTerms
from kube.ray.ray_cluster import OptIn
from kube.ray.together import Together
from scheduling.model.verdict import Reason
from scheduling.queueing.membership import Selections


class Stage(Enum):
    """How far a source is whose objects another program creates and deletes."""

    QUEUED = "Queued"
    """No object and no pod of it is left."""
    CREATING = "Creating"
    """Its objects are being created."""
    ACTIVE = "Active"
    """Its objects exist."""
    LEAVING = "Leaving"
    """Its objects are being deleted."""
    OVER = "Over"
    """It asks for nothing any more."""


class Hindrance(NamedTuple):
    """Why a gang asks for no pods, whatever room there is."""

    reason: Reason
    message: str


class Offered(NamedTuple):
    """What is to stand in the place of a gang that is only asked about."""

    kind: str
    """Of what is created for it: itself a gang, or what makes one."""
    name: str
    is_started: bool
    """Whether that may start: the offer was accepted, and the member's coordinator said so."""
    may_stop_until: float = 0.0
    """Until when for it gangs may be stopped, and nodes asked for, as for one of this cluster, in
    seconds of the time of day; 0 where they never may."""

    def may_stop_gangs(self, wall: float) -> bool:
        """Say whether they may at a time of day."""
        return wall < self.may_stop_until


class GangSource(Protocol):
    """The object that a gang is read of."""

    # --- what it is

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata, under the name of its Gang."""

    @property
    def owner(self) -> OwnerReference:
        """What owns its Gang, so that the Gang goes with it."""

    @property
    def content(self) -> object:
        """All that is read of it: equal for versions that say the same."""

    @property
    def edition(self) -> int:
        """The generation of what its user wrote; 0 where others edit it too."""

    @property
    def gpu_sharing(self) -> tuple[str, ...]:
        """Annotations of its pods by which other schedulers share GPUs."""

    @property
    def is_ours(self) -> bool:
        """Whether it names no controller that Muster leaves it to."""

    @property
    def together(self) -> Together | None:
        """The group of gangs that it is to start with; None where it starts alone."""

    def opt_in(self, home: str, namespace_labels: Labels) -> OptIn:
        """Say whether it is a gang, where Muster is in the namespace `home`."""

    @property
    def offered(self) -> Offered | None:
        """What may follow it, of a gang that another cluster asks about; None of all others."""

    @property
    def dispatched(self) -> GangDispatch | None:
        """Where it runs, of one that runs on another cluster; None of all others."""

    @property
    def takes_over(self) -> OwnerReference | None:
        """The GangOffer whose room it takes over; None where it has none."""

    # --- its pod sets

    def terms(self, namespace_labels: Labels, selections: Selections) -> GangTerms | Misconfigured:
        """Read what it asks for."""

    @property
    def pod_sets_wanted(self) -> tuple[PodSetTerms, ...]:
        """The pod sets that it asks for, whatever its annotations say."""

    @property
    def templates(self) -> object:
        """What its pods are made of: equal where they are made the same."""

    @property
    def completions(self) -> Mapping[str, int]:
        """How many pods a set makes in all, of sets that replace none that succeeded."""

    @property
    def may_exceed(self) -> bool:
        """Whether others make more pods of it than it says."""

    def replaces(self, pod_set: str) -> bool:
        """Say whether pods of a set are made again when they are deleted."""

    @property
    def no_pods(self) -> Hindrance:
        """Why it has no pods, of one that has none."""

    def foresee(self, admission: Admission) -> Outlook:
        """Work out its pods before they exist."""

    # --- whether its pods may exist

    @property
    def suspended(self) -> bool | None:
        """Whether it is to have no pods; None where it does not say."""

    @property
    def stopped_by_user(self) -> bool:
        """Whether its user keeps it from asking for room."""

    @property
    def is_held(self) -> bool:
        """Whether it is Muster that suspended it, by what it says itself."""

    def resumed(self) -> "GangSource":
        """Return it as it is when it is suspended no longer."""

    @property
    def resumable(self) -> RayCluster | None:
        """What Muster itself suspends and resumes; None where another program does as Gangs say."""

    @property
    def over(self) -> Hindrance | None:
        """Why it never starts again, of one that ran elsewhere and ended there; None of others."""

    @property
    def succeeded(self) -> bool | None:
        """How it ended, by the word of the other program; None while it has not, and of others."""

    @property
    def stage(self) -> Stage | None:
        """How far the other program is; None where there is none."""

    @property
    def why_stopped(self) -> str:
        """Why the other program stopped it, where its user did not ask for that."""

    # --- what the maker of its pods says

    @property
    def why_late(self) -> str:
        """What may keep its pods from coming: the end of a sentence, or nothing."""

    @property
    def refused_pods(self) -> str:
        """Why no pod could be made, the last time; empty where it could."""

    @property
    def refuses_for_good(self) -> bool:
        """Whether the API server itself refuses its pods, so that they are not soon tried again."""

    @property
    def makes_invalid_pods(self) -> bool:
        """Whether its pods will be invalid until it is changed."""

    @property
    def makes_no_other_head(self) -> bool:
        """Whether its head would not be made again."""

    @property
    def was_provisioned(self) -> bool:
        """Whether all its pods were ready once."""

    @property
    def provisioned_since(self) -> str:
        """Since when that is said (RFC 3339); empty where that is unknown."""

    # --- how it ends

    @property
    def stops_whole(self) -> bool:
        """Whether it is stopped with all its pods, as its Gang says, and never pod by pod."""

    @property
    def own_retries(self) -> str:
        """What starts it again when it is broken; empty where Muster does."""

    # --- its priority

    def added_priority(self, now: float) -> int:
        """Return what it adds to the priority of its pods (`now`: seconds since 1970)."""

    @property
    def rises_every(self) -> float:
        """After how many seconds its priority is another one; 0 where time does not change it."""
