"""Decodes Volcano's objects: `scheduling.volcano.sh/v1beta1`."""

from typing import Any

from cli.imports.objects import Foreign
from kube.objects.base import OrNull, Part, Quantities, Slim


class Guarantee(Part, frozen=True):
    """The share that is kept for a queue."""

    resource: OrNull[Quantities] = {}


class NodeGroups(Part, frozen=True):
    """Groups of nodes by name."""

    required_during_scheduling_ignored_during_execution: OrNull[tuple[str, ...]] = ()
    preferred_during_scheduling_ignored_during_execution: OrNull[tuple[str, ...]] = ()


class Affinity(Slim, frozen=True):
    """The groups of nodes that a queue uses, or avoids."""

    node_group_affinity: NodeGroups | None = None
    node_group_anti_affinity: NodeGroups | None = None


class QueueSpec(Part, frozen=True):
    """The rules of a Queue; what is not mapped is read to be named."""

    weight: int = 1
    capability: OrNull[Quantities] = {}
    deserved: OrNull[Quantities] = {}
    guarantee: Guarantee | None = None
    reclaimable: bool | None = None
    parent: str = ""
    priority: int = 0
    dequeue_strategy: str = ""
    affinity: Affinity | None = None
    extend_clusters: Any = None
    dra: Any = None


class QueueStatus(Slim, frozen=True):
    """Whether a Queue takes jobs."""

    state: str = ""


class Queue(Foreign, frozen=True):
    """A queue of PodGroups."""

    spec: QueueSpec = QueueSpec()
    status: QueueStatus | None = None


class PodGroupSpec(Part, frozen=True):
    """What a gang asks for."""

    min_member: int = 0
    min_task_member: OrNull[dict[str, int]] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: OrNull[Quantities] = {}
    network_topology: Any = None
    sub_group_policy: Any = None


class PodGroup(Foreign, frozen=True):
    """A gang."""

    spec: PodGroupSpec = PodGroupSpec()
