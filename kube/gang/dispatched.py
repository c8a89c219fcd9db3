"""Answers the questions of GangSource for a RayCluster that another cluster runs.

Its `managedBy` keeps KubeRay from it here, so that it has no pods here, and needs no nodes. Its
gang takes quota for the amounts of its templates. Where it runs is in the Gang: the dispatcher
writes it there.
"""

from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from kube.foreseen.admission import Admission
from kube.foreseen.gang import Outlook, foreseen_gang
from kube.gang.source import Hindrance, Stage
from kube.gang.without_pods import WithoutPods, held
from kube.objects import names
from kube.objects.base import Labels, OwnerReference
from kube.objects.clusters.dispatch import NEVER_DISPATCHED, GangDispatch
from kube.objects.gang import Gang
from kube.objects.ray import RayCluster
from kube.ray import ray_cluster
from kube.ray.gang_terms import GangTerms, Misconfigured, Problem, gang_terms
from kube.ray.pod_templates import with_amounts_alone
from kube.ray.ray_cluster import Answer, OptIn
from scheduling.model.verdict import Reason
from scheduling.queueing.membership import Selections

_NO_MEMBER = "on a gang that runs on its own cluster: those that start together are not sent away"


class DispatchedForm(RayCluster, frozen=True):
    """A RayCluster that another cluster runs, as one that is held here.

    Never decoded from API objects.
    """

    stopped: bool = False
    """Its user suspended it."""
    dispatch: GangDispatch = NEVER_DISPATCHED


def as_watched(cluster: RayCluster) -> RayCluster:
    """Return what a watch keeps of a RayCluster; one with Kueue's queue name is left to Kueue."""
    elsewhere = cluster.spec.managed_by == names.MANAGED_ELSEWHERE
    if not elsewhere or names.KUEUE_QUEUE in cluster.metadata.labels:
        return ray_cluster.essential(cluster)
    spec = with_amounts_alone(replace(cluster.spec, suspend=True, managed_by=None))
    metadata = replace(cluster.metadata, annotations=held(cluster.metadata.annotations))
    found = ray_cluster.essential(replace(cluster, metadata=metadata, spec=spec))
    return DispatchedForm(
        metadata=found.metadata,
        spec=found.spec,
        status=found.status,
        stopped=bool(cluster.spec.suspend),
    )


def as_recorded(told: RayCluster, gang: Gang | None) -> RayCluster:
    """Return one that another cluster runs with what its Gang says of that."""
    if not isinstance(told, DispatchedForm):
        return told
    mine = gang is not None and gang.spec.ray_cluster_uid == told.metadata.uid
    found = gang.status.dispatch if gang is not None and mine else None
    # Why clusters refuse it is for people to read.
    kept = replace(found, term=0, refusals=()) if found is not None else NEVER_DISPATCHED
    return told if kept == told.dispatch else replace(told, dispatch=kept)


@dataclass(frozen=True, slots=True)
class DispatchedSource(WithoutPods[DispatchedForm]):
    """A gang that runs on another cluster; no pod of it is here, or ever will be."""

    offered: ClassVar = None
    no_pods: ClassVar = Hindrance(
        Reason.SUSPENDED, "the RayCluster is suspended: it asks for no pods"
    )
    stage: ClassVar = Stage.QUEUED
    own_retries: ClassVar = "another cluster runs it"

    @property
    def dispatched(self) -> GangDispatch:
        """What the dispatcher has written of it."""
        return self.form.dispatch

    @property
    def owner(self) -> OwnerReference:
        """The RayCluster."""
        meta = self.form.metadata
        return OwnerReference(names.RAY_API_VERSION, "RayCluster", meta.name, meta.uid)

    @property
    def content(self) -> object:
        """What of it matters to its gang."""
        form = self.form
        kept = ray_cluster.content(form)
        return kept, form.stopped, form.dispatch

    def opt_in(self, home: str, namespace_labels: Labels) -> OptIn:
        """Read its label, its annotation or its namespace; it stays a gang while it runs."""
        meta = self.form.metadata
        if not ray_cluster.may_be_gang(meta.namespace, home):
            return OptIn(Answer.NO)
        found = ray_cluster.opt_in(meta.labels, meta.annotations, namespace_labels)
        if found.answer is Answer.NO and self.form.dispatch.is_open:
            return OptIn(Answer.YES, "true", "dispatch")
        return found

    def terms(self, namespace_labels: Labels, selections: Selections) -> GangTerms | Misconfigured:
        """Read what it asks for; the members of a group would have to be on one cluster."""
        group = self.form.metadata.annotations.get(names.TOGETHER)
        if group is not None:
            return Misconfigured((Problem(names.TOGETHER, group, _NO_MEMBER),))
        return gang_terms(self.form, namespace_labels, selections)

    def foresee(self, admission: Admission) -> Outlook:
        """Work out what its pods ask for; how the other cluster admits them is not known here."""
        return foreseen_gang(
            self.form, Admission(priority_classes=admission.priority_classes, makes_claims=True)
        )

    def resumed(self) -> "DispatchedSource":
        """Return it as it is once its pods may come."""
        return DispatchedSource(ray_cluster.resumed(self.form))

    @property
    def stopped_by_user(self) -> bool:
        """Whether its user suspended it; what runs is suspended where it runs."""
        return self.form.stopped and not self.form.dispatch.is_open

    @property
    def was_provisioned(self) -> bool:
        """Whether all its pods were ready once where it runs."""
        return self.form.dispatch.is_open and ray_cluster.was_provisioned(self.form)

    @property
    def provisioned_since(self) -> str:
        """Since when that is said."""
        return ray_cluster.provisioned_since(self.form)

    def added_priority(self, now: float) -> int:  # noqa: ARG002 - at any time
        """Its pods alone say how urgent it is."""
        return 0
