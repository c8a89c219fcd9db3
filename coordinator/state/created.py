"""Finds what was created for a GangOffer, and what is left of it. Pure.

That is a RayCluster, which is a gang itself; or a RayJob or RayService, which makes RayClusters.
"""

from collections.abc import Iterator

from coordinator.gang.source import followers_of
from coordinator.state.known import Known
from kube.gang.nested import RAY_CLUSTER
from kube.gang.offer import OfferForm
from kube.gang.source import Offered
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.clusters.dispatch import JOB_COMPLETE, JOB_FAILED
from kube.objects.ray import RayJob
from kube.ray.ray_owner import is_suspended_by_muster
from scheduling.model.gang import GangKey

_ENDS = {"Complete": JOB_COMPLETE, "Failed": JOB_FAILED, "ValidationFailed": JOB_FAILED}


def of_its_name(known: Known, form: OfferForm) -> ObjectMeta | None:
    """Return what is there of the name that an offer is about."""
    place, name = form.metadata.namespace, form.successor
    if form.kind == RAY_CLUSTER:
        source = known.cache.sources.get(GangKey(place, name))
        return source.metadata if source is not None else None
    owner = known.cache.owners.named(form.kind, place, name)
    return owner.metadata if owner is not None else None


def created_for(known: Known, form: OfferForm) -> ObjectMeta | None:
    """Return the object that was created for an offer; None where there is none."""
    found, uid = of_its_name(known, form), form.metadata.uid
    is_mine = found is not None and any(each.uid == uid for each in found.owner_references)
    return found if is_mine else None


def end_of(known: Known, form: OfferForm) -> str:
    """Say how the job has ended that was created for an offer; empty where it has not."""
    found = created_for(known, form)
    job = known.cache.owners.get(found.uid) if found is not None else None
    return _ENDS.get(job.status.job_deployment_status, "") if isinstance(job, RayJob) else ""


def followers(known: Known, form: OfferForm) -> list[GangKey]:
    """Return the RayClusters that are there of an offer."""
    return followers_of(
        form.metadata, Offered(form.kind, form.successor, is_started=True), known.cache
    )


def why_stopped(known: Known, form: OfferForm) -> str:
    """Say why nothing of an offer runs any more that had started; empty where something may."""
    found, made = created_for(known, form), followers(known, form)
    job = known.cache.owners.get(found.uid) if found is not None else None
    if isinstance(job, RayJob) and is_suspended_by_muster(job) and not made:
        return f"suspended for {job.metadata.annotations[names.SUSPENDED_FOR].partition(' ')[0]}"
    views = [known.views.get(key) for key in made]
    said = [view.eviction.last for view in views if view is not None and view.waits_stopped]
    return said[0].message if said and said[0] is not None and len(said) == len(views) else ""


def has_pods(known: Known, form: OfferForm) -> bool:
    """Say whether a RayCluster, or a pod, may be left of an offer.

    Pods that are of no RayCluster that is there may be those of one that was made for it.
    """
    if followers(known, form):
        return True
    return any(_is_orphan(known, key) for key in _keys(known, form))


def _keys(known: Known, form: OfferForm) -> Iterator[GangKey]:
    """Yield the names of the gangs that may be of an offer."""
    place, name = form.metadata.namespace, form.successor
    if form.kind == RAY_CLUSTER:
        yield GangKey(place, name)
        return
    for key in known.cache.keys_of_pods():
        if key.namespace == place and key.name.startswith(f"{name}-"):
            yield key


def _is_orphan(known: Known, key: GangKey) -> bool:
    found = known.cache.sources.get(key)
    uid = found.metadata.uid if found is not None else ""
    pods = known.cache.pods_of(key)
    return any(pod.member is not None and pod.member.cluster_uid != uid for pod in pods)
