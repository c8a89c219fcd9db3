"""Foresees the pods of a held RayCluster, and whether its namespace admits all of them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kube.codec.observed_pod import ObservedPod
from kube.codec.profiles.scheduler_profiles import Profiles
from kube.foreseen.admission import Admission
from kube.foreseen.gang import Foreseen, Outlook, Unforeseeable, observed_pods
from kube.foreseen.namespace_quota import Charges, namespace_quota
from kube.gang.source import GangSource
from kube.objects.admission import ResourceQuota

Foresee = Callable[[GangSource, Admission], Outlook]
"""From a source, and what its namespace admits pods by, to its pods, or why there are none."""


def foresee(source: GangSource, admission: Admission) -> Outlook:
    """Let the source itself work out its pods."""
    return source.foresee(admission)


@dataclass(frozen=True, slots=True)
class Foresight:
    """What is known of pods before they exist; `pods` is empty where that is nothing.

    `refused` says why none can be created, and `unforeseeable` why they can only be known once they
    exist. `found` is what ResourceQuotas are held against. `put_off` says that too many pods of
    others are foreseen already.
    """

    pods: tuple[ObservedPod, ...] = ()
    refused: str = ""
    unforeseeable: str = ""
    found: Foreseen | None = None
    put_off: str = ""


NOTHING_FORESEEN = Foresight()


def pods_of(outlook: Outlook) -> int:
    """Count the pods of an outlook."""
    return sum(each.count for each in outlook.pod_sets) if isinstance(outlook, Foreseen) else 0


def foresight_of(outlook: Outlook, profiles: Profiles) -> Foresight:
    """List the pods of an outlook."""
    if isinstance(outlook, Foreseen):
        return Foresight(tuple(observed_pods(outlook, profiles)), found=outlook)
    if isinstance(outlook, Unforeseeable):
        return Foresight(unforeseeable=outlook.message)
    return Foresight(refused=outlook.message)


def quota_refusal(
    found: Foreseen, others: int, claimed: Charges, quotas: Iterable[ResourceQuota]
) -> str:
    """Say which ResourceQuota does not suffice for all pods beside what other gangs will take."""
    said = "; ".join(each.message for each in namespace_quota(found, quotas, claimed))
    gangs = "1 other gang that is" if others == 1 else f"{others} other gangs that are"
    beside = f" (with those of {gangs} being created)" if others else ""
    return f"{said}{beside}" if said else ""
