"""Answers the questions of GangSource for a GangOffer: a gang that another cluster asks about.

Nothing of it exists until the offer is accepted, so that it is decided on foreseen pods as a held
RayCluster is. The RayCluster that is created then is a gang of its own, and takes the room over.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from msgspec.structs import replace

from kube.codec.fields import moment_of
from kube.foreseen.admission import Admission
from kube.foreseen.gang import NeverAdmitted, Outlook, foreseen_gang
from kube.gang.nested import RAY_CLUSTER, nested
from kube.gang.sent import WRAPPER_RESOURCES, kind_of
from kube.gang.source import Hindrance, Offered, Stage
from kube.gang.without_pods import WithoutPods, held
from kube.objects import names
from kube.objects.base import Labels, OwnerReference
from kube.objects.clusters.gang_offer import OFFER_KIND, GangOffer, GangOfferStatus, OfferMeta
from kube.objects.ray import RayCluster
from kube.ray import ray_cluster
from kube.ray.gang_terms import (
    GangTerms,
    Misconfigured,
    Problem,
    gang_terms,
)
from kube.ray.pod_templates import without_templates
from kube.ray.ray_cluster import Answer, OptIn
from scheduling.model.gang import GangKey
from scheduling.model.holder import gang_holder, offer_gang
from scheduling.model.verdict import Reason
from scheduling.queueing.membership import Selections

ASKED, STARTED, CLOSED = "Asked", "Started", "Closed"
"""Phases of a GangOffer, as far as they matter to its gang."""

_NO_MEMBER = "on a gang that stays on its own cluster: those that start together are not offered"


class OfferForm(RayCluster, frozen=True):
    """A GangOffer in the form of the RayCluster that is to run, under the name of its gang.

    Never decoded from API objects. `refused` says what of the template cannot be read.
    """

    kind: str = RAY_CLUSTER
    successor: str = ""
    """The name of what is to be created."""
    manager: str = ""
    attempt: int = 0
    accepted_by: int = 0
    may_stop_until: float = 0.0
    """Until when gangs may be stopped for it (seconds of the time of day); 0 for never."""
    lost_after: int = 0
    """Seconds without its manager until it stops; 0 where it never does."""
    answer: GangOfferStatus = GangOfferStatus()
    finalizers: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    """Why it can be run on no cluster that is asked."""
    refused: str = ""


Reader: TypeAlias = Callable[[GangOffer], OfferForm]
"""Reads the template of a GangOffer: the spec of a RayCluster, and what is wrong with it."""

NO_READERS: Mapping[str, Reader] = {}


def form_of(offer: GangOffer, readers: Mapping[str, Reader] = NO_READERS) -> OfferForm:
    """Return what is kept of a GangOffer; `readers` has those of other kinds, by kind."""
    asked, over = offer.spec.template, offer.status.phase == CLOSED
    kind = kind_of(asked.api_version, asked.kind)
    read = readers.get(kind, _unread if kind in WRAPPER_RESOURCES else _of_ray)(offer)
    metadata = _metadata(offer.metadata, asked.labels, asked.annotations)
    metadata = replace(metadata, generation=_generation(offer))
    spec = replace(read.spec, suspend=True, managed_by=None)
    found = ray_cluster.essential(replace(read, metadata=metadata, spec=spec))
    return replace(
        found,
        spec=without_templates(found.spec) if over else found.spec,
        kind=kind,
        successor=asked.name,
        manager=offer.spec.manager,
        attempt=offer.spec.attempt,
        accepted_by=offer.spec.accepted_by,
        may_stop_until=moment_of(offer.spec.may_stop_gangs_until),
        lost_after=offer.spec.lost_after_seconds,
        answer=offer.status,
        finalizers=offer.metadata.finalizers,
        refused=found.refused and f"spec.template.{found.refused}",
    )


def _of_ray(offer: GangOffer) -> OfferForm:
    asked = offer.spec.template
    spec, _, problems, fault = nested(asked.kind, asked.spec)
    return OfferForm(spec=spec, problems=problems, refused=fault)


def _unread(offer: GangOffer) -> OfferForm:  # noqa: ARG001 - whatever it asks about
    return OfferForm(refused="kind: AppWrappers are not switched on here (component app-wrapper)")


def as_listed(offer: GangOffer, readers: Mapping[str, Reader] = NO_READERS) -> OfferForm:
    """Return what a watch keeps of a GangOffer, under its own name: it finds it by that."""
    form = form_of(offer, readers)
    return replace(form, metadata=replace(form.metadata, name=offer.metadata.name))


def as_gang(kept: OfferForm) -> OfferForm:
    """Return it under the name of its gang."""
    meta = kept.metadata
    return replace(kept, metadata=replace(meta, name=offer_gang(meta.name)))


def _metadata(meta: OfferMeta, labels: Labels, annotations: Labels) -> OfferMeta:
    """Have it opted in and held, whatever its template says."""
    return OfferMeta(
        name=offer_gang(meta.name),
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        labels={**labels, names.OPT_IN: "true"},
        annotations=held(annotations),
    )


def _generation(offer: GangOffer) -> int:
    """Return the generation of what it asks for: its acceptance is one of the GangOffer alone."""
    return offer.metadata.generation - (offer.spec.accepted_by > 0)


@dataclass(frozen=True, slots=True)
class OfferSource(WithoutPods[OfferForm]):
    """A gang that another cluster asks about; no pod of it exists, or ever will under its name."""

    dispatched: ClassVar = None
    over: ClassVar = None
    no_pods: ClassVar = Hindrance(Reason.NOT_REQUIRED, "its template asks for no pods")
    stopped_by_user: ClassVar = False
    was_provisioned: ClassVar = False
    provisioned_since: ClassVar = ""
    own_retries: ClassVar = "another cluster asks again"
    rises_every: ClassVar = 0.0

    @property
    def owner(self) -> OwnerReference:
        """The GangOffer itself."""
        meta = self.form.metadata
        name = gang_holder(GangKey("", meta.name)).name
        return OwnerReference(names.API_VERSION, OFFER_KIND, name, meta.uid)

    @property
    def content(self) -> object:
        """What of it matters to its gang."""
        meta = replace(self.form.metadata, resource_version="")
        answer = GangOfferStatus(phase=self.form.answer.phase)
        return replace(self.form, metadata=meta, answer=answer, finalizers=())

    @property
    def offered(self) -> Offered:
        """What it asks about."""
        form = self.form
        is_started = form.answer.phase == STARTED
        return Offered(form.kind, form.successor, is_started, form.may_stop_until)

    def opt_in(self, home: str, namespace_labels: Labels) -> OptIn:  # noqa: ARG002 - it asks itself
        """It is a gang wherever RayClusters may be."""
        is_gang = ray_cluster.may_be_gang(self.form.metadata.namespace, home)
        return OptIn(Answer.YES if is_gang else Answer.NO, "true", "label")

    def terms(self, namespace_labels: Labels, selections: Selections) -> GangTerms | Misconfigured:
        """Read what it asks for; the members of a group would have to be on one cluster."""
        group = self.form.metadata.annotations.get(names.TOGETHER)
        if group is not None:
            return Misconfigured((Problem(names.TOGETHER, group, _NO_MEMBER),))
        if self.form.problems:
            return Misconfigured(self.form.problems)
        return gang_terms(self.form, namespace_labels, selections, self.sets)

    def foresee(self, admission: Admission) -> Outlook:
        """Work out its pods as KubeRay will make them for its RayCluster."""
        if self.form.refused:
            return NeverAdmitted(self.form.refused)
        meta = replace(self.form.metadata, name=self.form.successor)
        return foreseen_gang(replace(self.form, metadata=meta), admission)

    def resumed(self) -> "OfferSource":
        """Return it as it is once its pods may come."""
        return dataclasses.replace(self, form=ray_cluster.resumed(self.form))

    @property
    def stage(self) -> Stage:
        """It waits until it is over: what is created for it is another gang."""
        return Stage.OVER if self.form.answer.phase == CLOSED else Stage.QUEUED

    def added_priority(self, now: float) -> int:  # noqa: ARG002 - at any time
        """Its pods alone say how urgent it is."""
        return 0
