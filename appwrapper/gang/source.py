"""Answers the questions of GangSource for an AppWrapper.

The program `wrapper` creates and deletes the objects of an AppWrapper, and follows only the record
in the Gang: it creates them on a placement beside Waiting, and deletes them on Suspending. It
writes the phase before it acts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from appwrapper import phases
from appwrapper.gang.pod_sets import foreseen_pods, pod_sets
from appwrapper.gang.rising import added_priority, rises_every
from appwrapper.gang.stand_in import StandIn
from appwrapper.phases import Phase
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Outlook
from kube.gang.form import InForm
from kube.gang.ray_cluster import made_for
from kube.gang.source import Hindrance, Stage
from kube.objects import names
from kube.objects.base import Labels, OwnerReference
from kube.objects.ray import RayCluster
from kube.ray import ray_cluster
from kube.ray.gang_terms import GangTerms, Misconfigured, PodSetTerms, Problem, gang_terms
from kube.ray.ray_cluster import OptIn
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder
from scheduling.model.verdict import Reason
from scheduling.queueing.membership import Selections

_NO_MEMBER = "on a RayCluster, RayJob or RayService; an AppWrapper starts all that it wraps at once"

_ENDS: Mapping[str, bool] = {Phase.SUCCEEDED: True, Phase.FAILED: False}


@dataclass(frozen=True, slots=True)
class WrapperSource(InForm[StandIn]):
    """An AppWrapper, by what stands in for it; its generation counts changes of its phase."""

    together: ClassVar = None
    offered: ClassVar = None
    dispatched: ClassVar = None
    over: ClassVar = None
    may_exceed: ClassVar = True
    resumable: ClassVar = None
    refused_pods: ClassVar = ""
    refuses_for_good: ClassVar = False
    makes_invalid_pods: ClassVar = False
    makes_no_other_head: ClassVar = False
    was_provisioned: ClassVar = False
    provisioned_since: ClassVar = ""
    stops_whole: ClassVar = True
    own_retries: ClassVar = "an AppWrapper has retries of its own"

    @property
    def owner(self) -> OwnerReference:
        """The AppWrapper, in the version in which it is watched."""
        meta = self.form.metadata
        holder = gang_holder(GangKey("", meta.name))
        return OwnerReference(self.form.api_version, holder.kind, holder.name, meta.uid)

    @property
    def content(self) -> object:
        """All that is kept of it."""
        meta = self.form.metadata
        return replace(self.form, metadata=replace(meta, resource_version=""))

    @property
    def takes_over(self) -> OwnerReference | None:
        """The GangOffer that it was created for; what it wraps does not say so."""
        return made_for(self.form.metadata)

    @property
    def edition(self) -> int:
        """The generation of the AppWrapper itself."""
        return self.form.edited

    def opt_in(self, home: str, namespace_labels: Labels) -> OptIn:  # noqa: ARG002 - wherever it is
        """It waits for Muster in any namespace."""
        meta = self.form.metadata
        return ray_cluster.opt_in(meta.labels, meta.annotations, namespace_labels)

    def terms(self, namespace_labels: Labels, selections: Selections) -> GangTerms | Misconfigured:
        """Read what it asks for; it is no member of a group of gangs that start together."""
        group = self.form.metadata.annotations.get(names.TOGETHER)
        if group is not None:
            return Misconfigured((Problem(names.TOGETHER, group, _NO_MEMBER),))
        return gang_terms(self.form, namespace_labels, selections, self.sets)

    @staticmethod
    def sets(form: RayCluster, minimums: Mapping[str, int]) -> tuple[PodSetTerms, ...]:
        """Return the pod sets of its items."""
        return pod_sets(form, minimums)

    @property
    def completions(self) -> Mapping[str, int]:
        """How many pods its Jobs make in all."""
        return self.form.completions

    def replaces(self, pod_set: str) -> bool:
        """A controller makes pods again, but for those that are wrapped as Pods."""
        return pod_set not in self.form.bare or ray_cluster.is_terminating(self.form.metadata)

    @property
    def no_pods(self) -> Hindrance:
        """Why none of its objects has a pod, or none is to come."""
        if self.stage is Stage.OVER:
            said = f"the AppWrapper is {self.form.phase}: it asks for no pods"
            return Hindrance(Reason.WRAPPER_ENDED, said)
        if self.form.spec.worker_group_specs:
            said = "all pods have succeeded, or are of a kind that Muster does not gate"
            return Hindrance(Reason.SUSPENDED, said)
        said = "no wrapped object has pods: there is nothing to wait for"
        return Hindrance(Reason.NOT_REQUIRED, said)

    def foresee(self, admission: Admission) -> Outlook:
        """Work out its pods as they are created for its items."""
        return foreseen_pods(self.form, admission)

    @property
    def stopped_by_user(self) -> bool:
        """What its spec.suspend says."""
        return self.form.stopped_by_user

    def resumed(self) -> "WrapperSource":
        """Return it as it is once its objects are to be created."""
        return WrapperSource(ray_cluster.resumed(self.form))

    @property
    def stage(self) -> Stage:
        """How far `wrapper` is, by the phase."""
        phase = self.form.phase
        if phase in phases.QUEUED:
            return Stage.QUEUED
        if phase in phases.ACTIVE:
            return Stage.CREATING if phase == Phase.RESUMING else Stage.ACTIVE
        return Stage.LEAVING if phase in phases.LEAVING else Stage.OVER

    @property
    def succeeded(self) -> bool | None:
        """What its phase says of its end."""
        return _ENDS.get(self.form.phase)

    @property
    def why_stopped(self) -> str:
        """Why it is to be started anew; empty where its user asked for its end."""
        if self.stopped_by_user:
            return ""
        return self.form.said or "its objects could not be created, or were deleted again"

    @property
    def why_late(self) -> str:
        """What stops the creation of its objects, where that is so."""
        is_stuck = self.form.said and self.stage is Stage.CREATING
        return f": {self.form.said}" if is_stuck else ""

    def added_priority(self, now: float) -> int:
        """Return its priority with what its slope has added since it was created."""
        return added_priority(self.form, now)

    @property
    def rises_every(self) -> float:
        """A minute, unless its slope is flat."""
        return rises_every(self.form)
