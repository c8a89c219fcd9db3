"""Answers the questions of GangSource for a RayCluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from kube.foreseen.admission import Admission
from kube.foreseen.gang import Outlook, foreseen_gang
from kube.gang.form import InForm
from kube.gang.source import Hindrance
from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OwnerReference
from kube.objects.clusters.gang_offer import OFFER_KIND
from kube.objects.ray import RayCluster
from kube.ray import ray_cluster
from kube.ray.gang_terms import GangTerms, Misconfigured, gang_terms
from kube.ray.ray_cluster import Answer, OptIn
from kube.ray.together import Together, together_asked
from scheduling.model.verdict import Reason
from scheduling.queueing.membership import Selections

_NO_PODS = Hindrance(Reason.SUSPENDED, "the RayCluster is suspended: it asks for no pods")
_NO_COMPLETIONS: Mapping[str, int] = {}


@dataclass(frozen=True, slots=True)
class RayClusterSource(InForm[RayCluster]):
    """A RayCluster whose pods KubeRay makes, and makes again when they are deleted."""

    offered: ClassVar = None
    dispatched: ClassVar = None
    over: ClassVar = None
    completions: ClassVar = _NO_COMPLETIONS
    may_exceed: ClassVar = False
    no_pods: ClassVar = _NO_PODS
    stopped_by_user: ClassVar = False
    stage: ClassVar = None
    succeeded: ClassVar = None
    why_late: ClassVar = " (is KubeRay running?)"
    why_stopped: ClassVar = ""
    stops_whole: ClassVar = False
    own_retries: ClassVar = ""
    rises_every: ClassVar = 0.0

    @property
    def owner(self) -> OwnerReference:
        """The RayCluster itself."""
        meta = self.form.metadata
        return OwnerReference(names.RAY_API_VERSION, "RayCluster", meta.name, meta.uid)

    @property
    def content(self) -> object:
        """What is read of it; most of what KubeRay writes is for its own users."""
        return ray_cluster.content(self.form)

    @property
    def edition(self) -> int:
        """Its generation, unless Ray's autoscaler edits the spec too."""
        elastic = self.form.spec.enable_in_tree_autoscaling
        return 0 if elastic else self.form.metadata.generation

    @property
    def together(self) -> Together | None:
        """The group that its annotations name; KubeRay copies those of its RayJob or RayService."""
        return together_asked(self.form.metadata.annotations)

    def opt_in(self, home: str, namespace_labels: Labels) -> OptIn:
        """Read its label, its annotation or its namespace."""
        meta = self.form.metadata
        if not ray_cluster.may_be_gang(meta.namespace, home):
            return OptIn(Answer.NO)
        return ray_cluster.opt_in(meta.labels, meta.annotations, namespace_labels)

    @property
    def takes_over(self) -> OwnerReference | None:
        """The GangOffer that owns it, or its RayJob: it starts in the room of that one."""
        meta = self.form.metadata
        mine = next((each for each in meta.owner_references if is_offer(each)), None)
        return mine or made_for(meta)

    def terms(self, namespace_labels: Labels, selections: Selections) -> GangTerms | Misconfigured:
        """Read what it asks for."""
        return gang_terms(self.form, namespace_labels, selections)

    def foresee(self, admission: Admission) -> Outlook:
        """Work out its pods as KubeRay makes them."""
        return foreseen_gang(self.form, admission)

    def resumed(self) -> "RayClusterSource":
        """Return it as it is when it is suspended no longer."""
        return RayClusterSource(ray_cluster.resumed(self.form))

    @property
    def resumable(self) -> RayCluster:
        """The RayCluster itself."""
        return self.form

    @property
    def refused_pods(self) -> str:
        """Why KubeRay could not create a pod when it last tried."""
        return ray_cluster.refused_pods(self.form)

    @property
    def refuses_for_good(self) -> bool:
        """Whether the API server refuses what KubeRay creates."""
        return ray_cluster.is_answered(self.form)

    @property
    def makes_invalid_pods(self) -> bool:
        """Whether the API server calls a pod invalid as KubeRay makes it."""
        return ray_cluster.makes_invalid_pods(self.form)

    @property
    def makes_no_other_head(self) -> bool:
        """Whether KubeRay would leave it without a head."""
        return ray_cluster.makes_no_other_head(self.form)

    @property
    def was_provisioned(self) -> bool:
        """Whether KubeRay says that all pods were ready once."""
        return ray_cluster.was_provisioned(self.form)

    @property
    def provisioned_since(self) -> str:
        """Since when KubeRay says so."""
        return ray_cluster.provisioned_since(self.form)

    def added_priority(self, now: float) -> int:  # noqa: ARG002 - at any time
        """Its pods alone say how urgent it is."""
        return 0


def made_for(meta: ObjectMeta) -> OwnerReference | None:
    """Read which GangOffer an object, or what made it, was created for."""
    name, _, uid = meta.annotations.get(names.MADE_FOR, "").partition("/")
    return OwnerReference(names.API_VERSION, OFFER_KIND, name, uid) if uid else None


def is_offer(owner: OwnerReference) -> bool:
    """Say whether what is referred to is a GangOffer."""
    return owner.kind == OFFER_KIND and owner.api_version.partition("/")[0] == names.GROUP
