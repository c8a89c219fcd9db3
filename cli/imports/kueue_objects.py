"""Decodes Kueue's objects: `kueue.x-k8s.io`, v1beta1 and later.

Fields that were renamed are there under both names (`cohort` and `cohortName`, `parent` and
`parentName`): an object has one of them.
"""

from typing import Any

from cli.imports.objects import Foreign
from kube.objects.base import Labels, LabelSelector, OrNull, Part, Quantity, Slim


class ResourceQuota(Slim, frozen=True):
    """Quota of one resource in one flavor."""

    name: str = ""
    nominal_quota: Quantity = 0
    borrowing_limit: Quantity | None = None
    lending_limit: Quantity | None = None


class FlavorQuotas(Part, frozen=True):
    """Quota of the resources of a group in one flavor."""

    name: str = ""
    resources: OrNull[tuple[ResourceQuota, ...]] = ()


class ResourceGroup(Part, frozen=True):
    """Resources that come in the same flavors."""

    flavors: OrNull[tuple[FlavorQuotas, ...]] = ()


class BorrowWithinCohort(Slim, frozen=True):
    """Whether a gang that borrows may stop others."""

    policy: str = "Never"
    max_priority_threshold: int | None = None


class QueuePreemption(Slim, frozen=True):
    """What of running workloads may be stopped."""

    within_cluster_queue: str = "Never"
    reclaim_within_cohort: str = "Never"
    borrow_within_cohort: BorrowWithinCohort | None = None


class FairSharing(Slim, frozen=True):
    """The weight of a queue among others."""

    weight: Quantity | None = None


class ClusterQueueSpec(Part, frozen=True):
    """The rules of a ClusterQueue; what is not mapped is read to be named."""

    resource_groups: OrNull[tuple[ResourceGroup, ...]] = ()
    cohort: str = ""
    cohort_name: str = ""
    queueing_strategy: str = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = None
    preemption: QueuePreemption | None = None
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    flavor_fungibility: Any = None
    admission_checks: Any = None
    admission_checks_strategy: Any = None
    admission_scope: Any = None
    concurrent_admission_policy: Any = None


class ClusterQueue(Foreign, frozen=True):
    """A queue with quota."""

    spec: ClusterQueueSpec = ClusterQueueSpec()

    @property
    def cohort(self) -> str:
        """The cohort that it borrows from, empty if none."""
        return self.spec.cohort_name or self.spec.cohort


class CohortSpec(Part, frozen=True):
    """The quota that a cohort adds to that of its members."""

    parent: str = ""
    parent_name: str = ""
    resource_groups: OrNull[tuple[ResourceGroup, ...]] = ()
    fair_sharing: FairSharing | None = None


class Cohort(Foreign, frozen=True):
    """ClusterQueues that lend to each other."""

    spec: CohortSpec = CohortSpec()

    @property
    def parent(self) -> str:
        """The cohort above, empty if none."""
        return self.spec.parent_name or self.spec.parent


class LocalQueueSpec(Slim, frozen=True):
    """The ClusterQueue behind a LocalQueue."""

    cluster_queue: str = ""
    stop_policy: str | None = None
    fair_sharing: FairSharing | None = None
    wall_time_policy: Any = None


class LocalQueue(Foreign, frozen=True):
    """The name of a ClusterQueue in one namespace."""

    spec: LocalQueueSpec = LocalQueueSpec()


class ResourceFlavorSpec(Part, frozen=True):
    """The nodes of a flavor."""

    node_labels: OrNull[Labels] = {}
    tolerations: OrNull[tuple[Any, ...]] = ()
    topology_name: str | None = None


class ResourceFlavor(Foreign, frozen=True):
    """A kind of nodes."""

    spec: ResourceFlavorSpec = ResourceFlavorSpec()


class WorkloadPriorityClass(Foreign, frozen=True):
    """A priority of workloads that is not that of their pods."""

    value: int = 0
