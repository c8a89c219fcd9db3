"""Holds the requirements of a gang, as read from its RayCluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kube.gang.source import GangSource
from kube.objects.clusters.dispatch import GangDispatch
from kube.ray.gang_terms import GangTerms, Misconfigured
from kube.ray.ray_cluster import is_terminating
from scheduling.model.queue import DEFAULT_QUEUE
from scheduling.queueing.membership import Selections


class Read(NamedTuple):
    """What a source says, and the objects that this was read from."""

    source: GangSource
    labels: Mapping[str, str]
    """Of the namespace."""
    selections: Selections
    said: GangTerms | Misconfigured


@dataclass(frozen=True, slots=True)
class Understood:
    """What the RayCluster asks for, as understood in the last look. Made by `reconcile.terms`."""

    read: Read | None = None
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
    head_lost: bool = False
    """The head is gone, and KubeRay makes no other for this RayCluster."""

    @property
    def dispatched(self) -> GangDispatch | None:
        """Where it runs, of a gang that runs on another cluster."""
        return self.read.source.dispatched if self.read is not None else None

    @property
    def terminating(self) -> bool:
        """Whether the RayCluster is being deleted."""
        return self.read is not None and is_terminating(self.read.source.metadata)


NOT_READ = Understood()
