"""Says which pods a held RayCluster will have, and whether its namespace admits all of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from kube.codec.observed_pod import ObservedPod
from kube.codec.scheduler_profiles import Profiles
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, Outlook, Unforeseeable, observed_pods
from kube.foreseen.namespace_quota import namespace_quota
from kube.objects.admission import ResourceQuota
from kube.objects.ray import RayCluster

Foresee = Callable[[RayCluster, Admission], Outlook]
"""From a RayCluster, and what its namespace admits pods by, to its pods, or why there are none."""


@dataclass(frozen=True, slots=True)
class Foresight:
    """What is known of pods before they exist; `pods` is empty where that is nothing.

    `refused` says why none can be created, and `unforeseeable` why they can only be known once they
    exist. `found` is what ResourceQuotas are held against.
    """

    pods: tuple[ObservedPod, ...] = ()
    refused: str = ""
    unforeseeable: str = ""
    found: Foreseen | None = None


NOTHING_FORESEEN = Foresight()


def foresight_of(outlook: Outlook, profiles: Profiles) -> Foresight:
    """List the pods of an outlook."""
    if isinstance(outlook, Foreseen):
        return Foresight(tuple(observed_pods(outlook, profiles)), found=outlook)
    if isinstance(outlook, Unforeseeable):
        return Foresight(unforeseeable=outlook.message)
    return Foresight(refused=outlook.message)


def quota_refusal(
    foresight: Foresight, others: Iterable[Foresight], quotas: Iterable[ResourceQuota]
) -> str:
    """Say which ResourceQuota does not suffice for all pods; `others` are to be created before."""
    if foresight.found is None:
        return ""
    before = [each.found for each in others if each.found is not None]
    pod_sets = (pod_set for found in (foresight.found, *before) for pod_set in found.pod_sets)
    together = replace(foresight.found, pod_sets=tuple(pod_sets))
    said = "; ".join(each.message for each in namespace_quota(together, quotas))
    count = len(before)
    beside = f" (with those of {count} other gangs that are being created)" if count else ""
    return f"{said}{beside}" if said else ""
