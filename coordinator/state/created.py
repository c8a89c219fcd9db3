"""Finds the object that was created for a GangOffer, and what is left of it. Pure.

The object is a gang itself, or a RayJob or RayService, which makes RayClusters.
"""

from collections.abc import Iterator, Mapping

from coordinator.gang.source import followers_of
from coordinator.messages.offer_actions import StopPods
from coordinator.state.known import Known
from dispatcher.protocol.offering import stop_seconds
from kube.codec.observed_pod import ObservedPod
from kube.gang.nested import RAY_CLUSTER
from kube.gang.offer import OfferForm
from kube.gang.sent import own_gang
from kube.gang.source import GangSource, Offered, Stage
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.clusters.dispatch import JOB_COMPLETE, JOB_FAILED
from kube.objects.ray import RayJob
from kube.ray.ray_owner import is_suspended_by_muster
from scheduling.model.gang import GangKey

LONGEST_GRACE = 60
"""Seconds that pods have to end in when their gang may run no longer."""

_ENDS = {"Complete": JOB_COMPLETE, "Failed": JOB_FAILED, "ValidationFailed": JOB_FAILED}
_BY_SUCCESS: Mapping[bool | None, str] = {True: JOB_COMPLETE, False: JOB_FAILED, None: ""}


def of_its_name(known: Known, form: OfferForm) -> ObjectMeta | None:
    """Return the object of the name that an offer is about."""
    place, name = form.metadata.namespace, form.successor
    if own_gang(form.kind, name):
        source = _itself(known, form)
        return source.metadata if source is not None else None
    owner = known.cache.owners.named(form.kind, place, name)
    return owner.metadata if owner is not None else None


def _itself(known: Known, form: OfferForm) -> GangSource | None:
    """Return the gang that is named as what an offer is about."""
    key = GangKey(form.metadata.namespace, own_gang(form.kind, form.successor))
    return known.cache.sources.get(key)


def created_for(known: Known, form: OfferForm) -> ObjectMeta | None:
    """Return the object that was created for an offer; None where there is none."""
    found, uid = of_its_name(known, form), form.metadata.uid
    is_mine = found is not None and any(each.uid == uid for each in found.owner_references)
    return found if is_mine else None


def end_of(known: Known, form: OfferForm) -> str:
    """Say how the job has ended that was created for an offer; empty where it has not."""
    found = created_for(known, form)
    if found is None:
        return ""
    job, itself = known.cache.owners.get(found.uid), _itself(known, form)
    if isinstance(job, RayJob):
        return _ENDS.get(job.status.job_deployment_status, "")
    return _BY_SUCCESS[itself.succeeded] if itself is not None else ""


def followers(known: Known, form: OfferForm) -> list[GangKey]:
    """Return the existing gangs of an offer."""
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


def may_have_pods(known: Known, form: OfferForm) -> bool:
    """Say whether a gang is left of an offer that is not over."""
    return any(known.cache.sources[each].stage is not Stage.OVER for each in followers(known, form))


def has_pods(known: Known, form: OfferForm) -> bool:
    """Say whether a gang that is not over, or a pod, may be left of an offer."""
    return may_have_pods(known, form) or next(pods_left(known, form), None) is not None


def pods_left(known: Known, form: OfferForm) -> Iterator[ObservedPod]:
    """Yield the pods that may be of an offer, but for those that have ended.

    Pods that are of no RayCluster that is there may be those of one that was made for it.
    """
    made = followers(known, form)
    for key in dict.fromkeys((*made, *_keys(known, form))):
        found = known.cache.sources.get(key)
        others = found.metadata.uid if found is not None and key not in made else ""
        for pod in known.cache.pods_of(key):
            if pod.member and pod.member.cluster_uid != others and not pod.terminal:
                yield pod


def stop_pods(known: Known, key: GangKey, form: OfferForm, stopped: set[str]) -> StopPods | None:
    """Have the pods deleted that are left of an offer, and what would make them again.

    None where all of that was asked for; `stopped` are the uids of all for which it was.
    """
    pods = [pod for pod in pods_left(known, form) if pod.uid not in stopped]
    made = (known.cache.sources[each] for each in followers(known, form))
    # What wraps objects is itself what was created, and is deleted first.
    ray = (each.metadata for each in made if each.owner.kind == RAY_CLUSTER)
    left = [each for each in ray if each.deletion_timestamp is None and each.uid not in stopped]
    clusters = tuple((each.name, each.uid) for each in left)
    if not pods and not clusters:
        return None
    stopped.update(pod.uid for pod in pods)
    stopped.update(each.uid for each in left)
    grace = min(LONGEST_GRACE, int(stop_seconds(form.lost_after) / 2))
    named = tuple((pod.name, pod.uid) for pod in pods)
    return StopPods(key, form.metadata.uid, clusters, named, grace)


def _keys(known: Known, form: OfferForm) -> Iterator[GangKey]:
    """Yield the names of the gangs that may be of an offer."""
    place, name = form.metadata.namespace, form.successor
    if own := own_gang(form.kind, name):
        yield GangKey(place, own)
        return
    for key in known.cache.keys_of_pods():
        if key.namespace == place and key.name.startswith(f"{name}-"):
            yield key
