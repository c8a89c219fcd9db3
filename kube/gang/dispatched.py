"""Answers the questions of GangSource for a Ray object that another cluster runs.

Its `managedBy` keeps KubeRay from it here, so that it has no pods here, and needs no nodes. Its
gang takes quota for the amounts of its templates. Where it runs is in the Gang: the dispatcher
writes it there.
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import msgspec
from msgspec.structs import replace

from kube.foreseen.admission import Admission
from kube.foreseen.gang import NeverAdmitted, Outlook, foreseen_gang
from kube.gang.nested import RAY_CLUSTER, RAY_JOB, RAY_SERVICE, nested, nested_status
from kube.gang.sent import own_gang, typed
from kube.gang.source import Hindrance, Stage
from kube.gang.without_pods import WithoutPods, held
from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OwnerReference
from kube.objects.clusters.dispatch import NEVER_DISPATCHED, GangDispatch
from kube.objects.gang import Gang
from kube.objects.ray import (
    ABSENT,
    RayCluster,
    RayJob,
    RayJobSpec,
    RayJobStatus,
    RayService,
    RayServiceStatus,
)
from kube.ray import ray_cluster
from kube.ray.gang_terms import GangTerms, Misconfigured, Problem, gang_terms
from kube.ray.pod_templates import with_amounts_alone
from kube.ray.ray_cluster import Answer, OptIn
from kube.ray.ray_owner import ENDED, essential_job, essential_service
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder, sent_gang
from scheduling.model.verdict import Reason
from scheduling.queueing.membership import Selections

T = TypeVar("T")

_NO_MEMBER = "on a gang that runs on its own cluster: those that start together are not sent away"


class DispatchedForm(RayCluster, frozen=True):
    """An object that another cluster runs, as a RayCluster that is held here.

    Never decoded from API objects.
    """

    kind: str = RAY_CLUSTER
    stopped: bool = False
    """Its user suspended it."""
    ended: str = ""
    """The state of a RayJob that is over, by its own status."""
    problems: tuple[Problem, ...] = ()
    """Why it is sent nowhere."""
    fault: str = ""
    """What of its spec cannot be read."""
    priority: int = 0
    """What it adds to the priority of its pods, of kinds that say that."""
    priority_slope: float = 0.0
    """By how much that grows in a second."""
    dispatch: GangDispatch = NEVER_DISPATCHED


class RayOwnerObject(msgspec.Struct, frozen=True, gc=False):
    """A RayJob or RayService, its spec and status as they came."""

    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = ABSENT
    status: msgspec.Raw = ABSENT


class _Managed(msgspec.Struct, frozen=True, rename="camel", gc=False):
    managed_by: str | None = None


# ---- what watches keep


def as_watched(cluster: RayCluster) -> RayCluster:
    """Return what a watch keeps of a RayCluster; one with Kueue's queue name is left to Kueue."""
    if not _is_sent(cluster.metadata, cluster.spec.managed_by):
        return ray_cluster.essential(cluster)
    return _form(cluster, DispatchedForm(stopped=bool(cluster.spec.suspend)))


def job_as_watched(found: RayOwnerObject) -> RayJob | DispatchedForm:
    """Return what a watch keeps of a RayJob, under its own name: it finds it by that."""
    status = _read(found.status, RayJobStatus)
    if not _is_sent(found.metadata, _read(found.spec, _Managed).managed_by):
        return essential_job(RayJob(found.metadata, _read(found.spec, RayJobSpec), status))
    state = status.job_deployment_status
    return _sent(found, RAY_JOB, state if state in ENDED else "")


def service_as_watched(found: RayOwnerObject) -> RayService | DispatchedForm:
    """Return the same of a RayService."""
    if not _is_sent(found.metadata, _read(found.spec, _Managed).managed_by):
        status = _read(found.status, RayServiceStatus)
        return essential_service(RayService(found.metadata, status))
    return _sent(found, RAY_SERVICE)


def as_gang(kept: DispatchedForm) -> DispatchedForm:
    """Return it under the name of its gang."""
    meta = kept.metadata
    name = own_gang(kept.kind, meta.name) or sent_gang(kept.kind, meta.name)
    return replace(kept, metadata=replace(meta, name=name))


def _is_sent(meta: ObjectMeta, managed_by: str | None) -> bool:
    return managed_by == names.MANAGED_ELSEWHERE and names.KUEUE_QUEUE not in meta.labels


def _sent(found: RayOwnerObject, kind: str, ended: str = "") -> DispatchedForm:
    spec, stopped, problems, fault = nested(kind, found.spec)
    status = nested_status(kind, found.status)
    more = DispatchedForm(kind=kind, stopped=stopped, ended=ended, problems=problems, fault=fault)
    return _form(RayCluster(found.metadata, spec, status), more)


def _form(cluster: RayCluster, more: DispatchedForm) -> DispatchedForm:
    """Return it as one that is held."""
    spec = with_amounts_alone(replace(cluster.spec, suspend=True, managed_by=None))
    metadata = replace(cluster.metadata, annotations=held(cluster.metadata.annotations))
    found = ray_cluster.essential(replace(cluster, metadata=metadata, spec=spec))
    return replace(more, metadata=found.metadata, spec=found.spec, status=found.status)


def _read(written: msgspec.Raw, kind: type[T]) -> T:
    """Read a part of an object; ValueError says what of it cannot be read."""
    try:
        return kind() if written == ABSENT else msgspec.json.decode(written, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as fault:
        raise ValueError(str(fault)) from None


def as_recorded(told: RayCluster, gang: Gang | None) -> RayCluster:
    """Return one that another cluster runs with what its Gang says of that."""
    if not isinstance(told, DispatchedForm):
        return told
    mine = gang is not None and gang.spec.ray_cluster_uid == told.metadata.uid
    found = gang.status.dispatch if gang is not None and mine else None
    # Why clusters refuse it is for people to read.
    kept = (
        replace(found, term=0, refusals=(), stops_gangs=None)
        if found is not None
        else NEVER_DISPATCHED
    )
    return told if kept == told.dispatch else replace(told, dispatch=kept)


# ---- its gang


@dataclass(frozen=True, slots=True)
class DispatchedSource(WithoutPods[DispatchedForm]):
    """A gang that runs on another cluster; no pod of it is here, or ever will be."""

    offered: ClassVar = None
    no_pods: ClassVar = Hindrance(
        Reason.SUSPENDED, "the RayCluster is suspended: it asks for no pods"
    )
    stage: ClassVar = Stage.QUEUED
    own_retries: ClassVar = "another cluster runs it"
    end_reason: ClassVar = Reason.JOB_ENDED

    @property
    def dispatched(self) -> GangDispatch:
        """What the dispatcher has written of it."""
        return self.form.dispatch

    @property
    def owner(self) -> OwnerReference:
        """The object itself."""
        meta, said = self.form.metadata, typed(self.form.kind)
        name = gang_holder(GangKey("", meta.name)).name
        return OwnerReference(said["apiVersion"], said["kind"], name, meta.uid)

    @property
    def content(self) -> object:
        """What of it matters to its gang."""
        form = self.form
        kept = ray_cluster.content(form)
        rising = form.priority, form.priority_slope
        return kept, rising, form.stopped, form.ended, form.problems, form.fault, form.dispatch

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
        if self.form.problems:
            return Misconfigured(self.form.problems)
        return gang_terms(self.form, namespace_labels, selections, self.sets)

    def foresee(self, admission: Admission) -> Outlook:
        """Work out what its pods ask for; how the other cluster admits them is not known here."""
        if self.form.fault:
            return NeverAdmitted(self.form.fault)
        return self.pods(Admission(priority_classes=admission.priority_classes))

    def pods(self, admission: Admission) -> Outlook:
        """Work out its pods as they are admitted so."""
        meta = replace(self.form.metadata, name=self.owner.name)
        return foreseen_gang(replace(self.form, metadata=meta), admission)

    def resumed(self) -> "DispatchedSource":
        """Return it as it is once its pods may come."""
        return dataclasses.replace(self, form=ray_cluster.resumed(self.form))

    @property
    def over(self) -> Hindrance | None:
        """How its job has ended, for good; None while it may be sent to a cluster, or is on one."""
        found = self.form.dispatch
        if found.is_open or not (found.end or self.form.ended):
            return None
        where = f" on cluster {found.cluster}" if found.cluster else ""
        said = f"the {self.owner.kind} has ended{where} ({found.end or self.form.ended})"
        return Hindrance(self.end_reason, f"{said}: it is not sent anywhere again")

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

    @property
    def rises_every(self) -> float:
        """Nor does time change that."""
        return 0.0
