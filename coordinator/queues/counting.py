"""Decides which pods of a RayCluster count against quota.

Every comparison with quota must count the same pods: the ledger, the resources that preemption
could take from running gangs, and the resources that come free when gangs end.
"""

from coordinator.cluster.cache import ClusterCache
from coordinator.gang.source import is_taken_over, opt_in_of
from kube.codec.observed_pod import STRAYS, ObservedPod
from kube.gang.source import GangSource
from kube.ray.ray_cluster import Answer
from reservation.slots import is_released
from scheduling.model.gang import GangKey
from scheduling.model.verdict import Reason


def pods_that_count(cache: ClusterCache, key: GangKey, uid: str) -> list[ObservedPod]:
    """Return the pods that may hold quota: of a RayCluster that is no gang those Muster placed.

    An opt-out gives no quota back that pods still use.
    """
    pods = cache.members(key, uid)
    return [pod for pod in pods if is_released(pod)] if is_not_managed(cache, key) else pods


def is_not_managed(cache: ClusterCache, key: GangKey) -> bool:
    """Say whether there is a RayCluster of this name and it is no gang; strays are none.

    The record of one that was opted out may stay, for the queue that its pods count in.
    """
    if key.name == STRAYS:
        return True
    source, gang = cache.sources.get(key), cache.gangs.get(key)
    if source is None:
        return False
    if gang is not None and gang.status.reason == Reason.OPTED_OUT:
        return opt_in_of(source, cache).answer is Answer.NO
    return not concerns_us(cache, key, source)


def concerns_us(cache: ClusterCache, key: GangKey, source: GangSource) -> bool:
    """Say whether a RayCluster is a gang, or was one and is not let go yet."""
    if opt_in_of(source, cache).answer is not Answer.NO:
        return source.is_ours and not is_taken_over(source, cache)
    ours = cache.members(key, source.metadata.uid)
    return source.is_held or key in cache.gangs or any(pod.gated for pod in ours)
