"""Forms: what a person asks for of a Ray cluster, a job or a queue, in a command or on a page.

None means not given: a new object then gets the default, an existing one keeps its value.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kube.objects.base import Slim

GPU = "nvidia.com/gpu"
"""The accelerator that `gpus` counts where no other is named."""


class GroupForm(Slim, frozen=True):
    """The head, or one worker group: how many, and what each of its pods gets."""

    name: str = ""
    replicas: int | None = None
    min: int | None = None
    max: int | None = None
    hosts: int | None = None
    cpus: str | None = None
    memory: str | None = None
    gpus: int | None = None
    gpu: str | None = None
    image: str | None = None


class ClusterForm(Slim, frozen=True):
    """A Ray cluster; of one that exists, what is to become different."""

    gang: bool | None = None
    queue: str | None = None
    priority_class: str | None = None
    topology_required: str | None = None
    topology_preferred: str | None = None
    replica_topology_required: str | None = None
    expected_duration: str | None = None
    create_pods: str | None = None
    fault_tolerance: bool | None = None
    autoscaler: bool | None = None
    idle_timeout_seconds: int | None = None
    upscaling_mode: str | None = None
    image: str | None = None
    ray_version: str | None = None
    head: GroupForm | None = None
    groups: tuple[GroupForm, ...] = ()
    without_groups: tuple[str, ...] = ()
    workers_to_delete: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for."""
        return self == ClusterForm()


class JobForm(Slim, frozen=True):
    """A job: its command, and the RayCluster that runs already and takes it, if there is one."""

    entrypoint: str = ""
    cluster: str = ""
    runtime_env: str = ""
    entrypoint_cpus: float | None = None
    entrypoint_gpus: float | None = None
    retries: int | None = None
    keep_seconds: int | None = None


class QueueForm(Slim, frozen=True):
    """A GangQueue. Of amounts and labels an empty text takes one away."""

    parent: str | None = None
    quota: Mapping[str, str] = {}
    borrowing_limit: Mapping[str, str] = {}
    lending_limit: Mapping[str, str] = {}
    namespaces: tuple[str, ...] | None = None
    namespace_labels: Mapping[str, str] = {}
    node_labels: Mapping[str, str] = {}
    ordering: str | None = None
    when_blocked: str | None = None
    stop: str | None = None
    within_queue: str | None = None
    reclaim: str | None = None
    while_borrowing: str | None = None
    create_pods: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing is asked for."""
        return self == QueueForm()


@dataclass(frozen=True, slots=True)
class Target:
    """How many replicas a worker group is to have: so many, or from `least` to `most`."""

    group: str
    least: int
    most: int
