"""Answers the questions of GangSource for a GangOffer that is about an AppWrapper.

Its pods are those that `wrapper` would create. The AppWrapper that is created once the offer is
accepted is a gang of its own, and takes the room over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec.structs import replace

from appwrapper.gang.pod_sets import foreseen_pods, pod_sets
from appwrapper.gang.stand_in import StandIn, stand_in
from appwrapper.gang.unseen import problems
from appwrapper.remembered import Remembered
from appwrapper.spec.items import read
from appwrapper.spec.quota_names import counted
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Outlook
from kube.gang.offer import OfferForm, OfferSource, Reader
from kube.gang.sent import WRAPPER_RESOURCES, own_gang, typed
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta
from kube.objects.clusters.gang_offer import GangOffer
from kube.objects.ray import RayCluster
from kube.ray.gang_terms import PodSetTerms


class OfferedWrapper(OfferForm, frozen=True):
    """A GangOffer about an AppWrapper, in the form of the RayCluster that stands in for that."""

    unforeseeable: str = ""
    objects: dict[str, int] = msgspec.field(default_factory=dict)


def readers_of_offers() -> Mapping[str, Reader]:
    """Return what reads the templates of GangOffers, by kind; each is read once."""
    known: Remembered[OfferedWrapper] = Remembered()
    return {kind: partial(_read, kind, known) for kind in WRAPPER_RESOURCES}


def _read(kind: str, known: Remembered[OfferedWrapper], offer: GangOffer) -> OfferedWrapper:
    state = offer.spec.template
    return known.of(offer.metadata.uid, state, lambda: _read_once(kind, offer))


def _read_once(kind: str, offer: GangOffer) -> OfferedWrapper:
    asked, given = offer.spec.template, offer.metadata
    named = ObjectMeta(asked.name, given.namespace, given.uid)
    meta = replace(named, labels=asked.labels, annotations=asked.annotations)
    said = typed(kind)
    wrapper = AppWrapper(said["apiVersion"], said["kind"], meta, asked.spec)
    wrapped = read(wrapper)
    found = stand_in(wrapper, wrapped)
    return OfferedWrapper(
        spec=found.spec,
        problems=problems(found),
        refused=found.refused,
        unforeseeable=found.unforeseeable,
        objects=counted(wrapped),
    )


@dataclass(frozen=True, slots=True)
class OfferedWrapperSource(OfferSource):
    """A gang that another cluster asks about, of which nothing exists here."""

    form: OfferedWrapper

    @staticmethod
    def sets(form: RayCluster, minimums: Mapping[str, int]) -> tuple[PodSetTerms, ...]:
        """Return the pod sets of its items."""
        return pod_sets(form, minimums)

    def foresee(self, admission: Admission) -> Outlook:
        """Work out its pods as they are created for its items."""
        form = self.form
        meta = replace(form.metadata, name=own_gang(form.kind, form.successor))
        wrapped = StandIn(metadata=meta, spec=form.spec, refused=form.refused)
        more = {"unforeseeable": form.unforeseeable, "objects": form.objects}
        return foreseen_pods(replace(wrapped, **more), admission)
