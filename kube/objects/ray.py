"""Decodes RayClusters, and the RayJobs and RayServices that made them."""

import msgspec

from kube.objects.base import Condition, Labels, ObjectMeta, OrNull, Part, Slim

ABSENT = msgspec.Raw(b"null")
"""Stands for JSON that is not there, or is not kept."""


class WorkerGroup(Slim, frozen=True):
    """The numbers of a worker group; None where the RayCluster is silent.

    `template` and `labels`, which its pods are made of, are kept until all pods were ready once.
    """

    group_name: str = ""
    replicas: int | None = None
    min_replicas: int | None = None
    max_replicas: int | None = None
    num_of_hosts: int | None = None
    suspend: bool | None = None
    template: msgspec.Raw = ABSENT
    labels: msgspec.Raw = ABSENT


class RayClusterSpec(Part, frozen=True):
    """What of a RayCluster makes its gang.

    The head group and the autoscaler's options, which pods are made of, are kept until all pods
    were ready once: from then on the pods themselves are read. Two are no fields of KubeRay:
    `groups_left_out` is how many worker groups there were, where they are too many to be kept, and
    `gpu_sharing` names annotations of pods by which other schedulers share GPUs.
    """

    worker_group_specs: OrNull[tuple[WorkerGroup, ...]] = ()
    enable_in_tree_autoscaling: bool | None = None
    suspend: bool | None = None
    managed_by: str | None = None
    groups_left_out: int = 0
    gpu_sharing: OrNull[tuple[str, ...]] = ()
    head_group_spec: msgspec.Raw = ABSENT
    autoscaler_options: msgspec.Raw = ABSENT


class RayClusterCondition(Condition, frozen=True):
    """A condition of a RayCluster, with the time since which it holds."""

    last_transition_time: str | None = None


class RayClusterStatus(Part, frozen=True):
    """What KubeRay says of a RayCluster, and of which generation of its spec."""

    conditions: OrNull[tuple[RayClusterCondition, ...]] = ()
    state: str = ""
    observed_generation: int = 0


class RayCluster(Slim, frozen=True):
    """A RayCluster, also when a RayJob or RayService made it."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RayClusterSpec = RayClusterSpec()
    status: RayClusterStatus = RayClusterStatus()


class RayJobSpec(Part, frozen=True):
    """What of a RayJob says how it can be stopped and started again, and how it is submitted."""

    suspend: bool | None = None
    shutdown_after_job_finishes: bool | None = None
    cluster_selector: OrNull[Labels] = {}
    backoff_limit: int | None = None
    submission_mode: str | None = None
    active_deadline_seconds: int | None = None
    pre_running_deadline_seconds: int | None = None
    submitter_pod_template: msgspec.Raw = ABSENT


class RayJobStatus(Slim, frozen=True):
    """How far KubeRay has come with a RayJob; `failed` are the tries that failed so far.

    Its deadlines run from `start_time` on.
    """

    job_deployment_status: str = ""
    ray_cluster_name: str = ""
    failed: int | None = None
    start_time: str | None = None


class RayJob(Slim, frozen=True):
    """A RayJob, which makes a RayCluster for each of its tries."""

    metadata: ObjectMeta = ObjectMeta()
    spec: RayJobSpec = RayJobSpec()
    status: RayJobStatus = RayJobStatus()


class RayServiceVersion(Slim, frozen=True):
    """A version of a RayService, and the RayCluster that it runs on."""

    ray_cluster_name: str = ""


class RayServiceStatus(Slim, frozen=True):
    """The version that serves, and the one that is to replace it."""

    active_service_status: OrNull[RayServiceVersion] = RayServiceVersion()
    pending_service_status: OrNull[RayServiceVersion] = RayServiceVersion()


class RayService(Slim, frozen=True):
    """A RayService, which makes a RayCluster for each of its versions."""

    metadata: ObjectMeta = ObjectMeta()
    status: RayServiceStatus = RayServiceStatus()


RayOwner = RayJob | RayService
