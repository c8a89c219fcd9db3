"""Holds the requirements of a gang, as read from its RayCluster."""

from dataclasses import dataclass

from kube.gang.source import GangSource
from kube.objects.clusters.dispatch import GangDispatch
from kube.ray.gang_terms import GangTerms, Misconfigured
from scheduling.model.queue import DEFAULT_QUEUE


@dataclass(slots=True)
class Understood:
    """What the RayCluster asks for, as understood. Written by `reconcile.terms`."""

    read: tuple[GangSource, *tuple[object, ...]] | None = None
    """The objects that it was read from last."""
    said: GangTerms | Misconfigured | None = None
    """What was read last."""
    terms: GangTerms | None = None
    """Those that the gang goes on with; None where there are none."""
    problem: str = ""
    """Why the RayCluster's own cannot be used."""
    queue: str = DEFAULT_QUEUE
    """Of the terms; without any, the one that the RayCluster asks for."""
    priority: int = 0
    has_quota: bool = False
    """Its queue holds it to a quota."""
    provisioned: bool = False
    """KubeRay says that all pods were ready once, and said so before Muster deleted any."""
    dispatched: GangDispatch | None = None
    """Where it runs, of a gang that runs on another cluster."""
    terminating: bool = False
    """The RayCluster is being deleted."""
    head_lost: bool = False
    """The head is gone, and KubeRay makes no other for this RayCluster."""
