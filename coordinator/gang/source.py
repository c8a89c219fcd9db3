"""Picks the GangSource for a watched object, and says what its state means for the gang."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from appwrapper.gang.dispatched import SentWrapper, SentWrapperSource
from appwrapper.gang.offered import OfferedWrapper, OfferedWrapperSource
from appwrapper.gang.source import WrapperSource
from appwrapper.gang.stand_in import StandIn
from coordinator.cluster.cache import ClusterCache
from coordinator.gang.demand import NotReady
from kube.codec.observed_pod import ObservedPod
from kube.gang.dispatched import DispatchedForm, DispatchedSource
from kube.gang.offer import OfferForm, OfferSource
from kube.gang.ray_cluster import RayClusterSource
from kube.gang.sent import kind_referred
from kube.gang.source import GangSource, Offered
from kube.objects.base import ObjectMeta
from kube.objects.ray import RayCluster
from kube.ray.gang_terms import GangTerms, PodSetTerms
from kube.ray.ray_cluster import OptIn, is_terminating
from kube.ray.ray_owner import controller_of
from scheduling.model.gang import GangKey
from scheduling.model.holder import offer_gang
from scheduling.model.verdict import Reason

_SOURCES: Mapping[type[RayCluster], Callable[[Any], GangSource]] = {
    OfferForm: OfferSource,
    OfferedWrapper: OfferedWrapperSource,
    DispatchedForm: DispatchedSource,
    SentWrapper: SentWrapperSource,
    StandIn: WrapperSource,
}


def source_of(told: RayCluster) -> GangSource:
    """Return the GangSource of an object that a watch delivered; no other code asks its type."""
    return _SOURCES.get(type(told), RayClusterSource)(told)


def offer_of(source: GangSource, cache: ClusterCache) -> GangSource | None:
    """Return the offer whose room a source is to take over; None where there is none any more.

    An offer is about one object: what is of another takes nothing over.
    """
    meta, made_for = source.metadata, source.takes_over
    if made_for is None:
        return None
    found = cache.sources.get(GangKey(meta.namespace, offer_gang(made_for.name)))
    offered = found.offered if found is not None and found.metadata.uid == made_for.uid else None
    return found if offered is not None and _is_meant(source, offered) else None


def is_taken_over(source: GangSource, cache: ClusterCache) -> bool:
    """Say whether the room of an offer is that of another gang by now."""
    if source.offered is None or not source.offered.is_started:
        return False
    return bool(followers_of(source.metadata, source.offered, cache))


def followers_of(offer: ObjectMeta, offered: Offered, cache: ClusterCache) -> list[GangKey]:
    """Return the gangs of the RayClusters that were created for an offer."""
    found = ((key, cache.sources[key]) for key in cache.followers(offer.uid))
    place = offer.namespace
    return [key for key, each in found if key.namespace == place and _is_meant(each, offered)]


def _is_meant(source: GangSource, offered: Offered) -> bool:
    """Say whether a gang is what an offer is about, or was made by it."""
    found = source.owner, controller_of(source.metadata)
    meant = offered.kind, offered.name
    return any(each is not None and (kind_referred(each), each.name) == meant for each in found)


def opt_in_of(source: GangSource, cache: ClusterCache) -> OptIn:
    """Whether the Ray cluster is a gang."""
    return source.opt_in(cache.home, cache.namespace_labels(source.metadata.namespace))


def asks_no_more(source: GangSource, *, held: bool) -> bool:
    """Say whether a gang is being deleted, or was suspended by others; Muster may hold it."""
    return is_terminating(source.metadata) or (bool(source.suspended) and not held)


def hindrance_of(source: GangSource, unforeseeable: str) -> NotReady | None:
    """Say what keeps a gang from asking for room, whatever room there is."""
    if source.over is not None:
        return NotReady(*source.over)
    if source.stopped_by_user:
        return NotReady(
            Reason.SUSPENDED, f"spec.suspend is true: the {source.owner.kind} asks for no pods"
        )
    if unforeseeable and source.resumable is None:
        return NotReady(Reason.PODS_REFUSED, f"its pods cannot be foreseen: {unforeseeable}")
    return None


def without_succeeded(
    source: GangSource, terms: GangTerms | None, pods: Iterable[ObservedPod]
) -> GangTerms | None:
    """Expect no more pods than are still to come: a Job replaces none that succeeded."""
    if terms is None or not source.completions:
        return terms
    done = Counter(pod.member.pod_set for pod in pods if pod.succeeded and pod.member is not None)
    if not done:
        return terms
    left = {name: most - done[name] for name, most in source.completions.items()}
    sets = tuple(_at_most(each, left.get(each.name, each.count)) for each in terms.pod_sets)
    return replace(terms, pod_sets=sets)


def with_added(
    source: GangSource, terms: GangTerms | None, pods: Iterable[ObservedPod]
) -> GangTerms | None:
    """Expect the pods that exist beyond the number of the template, which have no place of right.

    Ray's autoscaler, a HorizontalPodAutoscaler and a rollout make more pods of a wrapped object
    than is written. A Job does not: what it makes beside those that failed is no more at a time.
    """
    if terms is None or not source.may_exceed:
        return terms
    alive = Counter(pod.member.pod_set for pod in pods if pod.alive and pod.member is not None)
    sets = tuple(
        each if each.name in source.completions else _at_least(each, alive[each.name])
        for each in terms.pod_sets
    )
    return replace(terms, pod_sets=sets)


def _at_least(terms: PodSetTerms, pods: int) -> PodSetTerms:
    """Expect so many pods, in whole replicas, where any are expected at all."""
    replicas = -(-pods // max(terms.hosts, 1))
    more = replicas * max(terms.hosts, 1)
    return replace(terms, count=max(terms.count, more)) if terms.count else terms


def _at_most(terms: PodSetTerms, most: int) -> PodSetTerms:
    most = max(0, most)
    return replace(terms, count=min(terms.count, most), minimum=min(terms.minimum, most))
