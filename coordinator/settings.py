"""The settings of the coordinator: environment variables with the prefix MUSTER_COORDINATOR_."""

import re
from pathlib import Path

from pydantic import Field, Json, field_validator
from pydantic_settings import SettingsConfigDict

from coordinator.gang.nominations import Guard
from coordinator.gang.priority import EVERY_NAMESPACE
from coordinator.queues.waiting_limit import MOST
from kube.codec.profiles.written_profiles import SchedulerProfile, named_twice
from kube.devices.feature_gates import GatesOff
from kube.objects import names
from kube.objects.namespace import NamespaceName, is_namespace
from runtime.leader_settings import LeaderSettings
from scheduling.diagnosis.holes import GpuPools

PREFIX = "MUSTER_COORDINATOR_"
LONGEST = 30 * 24 * 3600.0
"""Seconds that any patience may last: what is never to end would keep room for ever."""
_CLASS = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
)


class Settings(LeaderSettings):
    """The settings, validated together at the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True)

    kubeconfig: Path | None = None
    """Path of a kubeconfig; unset: KUBECONFIG, then the service account of the pod."""

    namespace: NamespaceName = names.DEFAULT_NAMESPACE
    """Namespace of the Lease."""

    debounce: float = Field(default=0.01, ge=0, le=5)
    """Seconds between the first reason for a cycle and the cycle, and between two looks at what
    came in: pods come in bursts."""

    concurrency: int = Field(default=16, ge=1, le=500)
    """Writes under way at once; the API server's fairness queues start above some dozens."""

    request_timeout: float = Field(default=10.0, gt=0, le=3600)
    """Seconds for one request."""

    bind_patience: float = Field(default=30.0, gt=0, le=LONGEST)
    """Seconds until a released pod that cannot be scheduled is deleted."""

    torn_patience: float = Field(default=300.0, gt=0, le=LONGEST)
    """Seconds until a gang that lost a part before it ran whole gives the rest back."""

    slot_patience: float = Field(default=600.0, gt=0, le=LONGEST)
    """Seconds until the slot of a lost pod ends for which no replacement comes."""

    refusal_memory: float = Field(default=600.0, gt=0, le=LONGEST)
    """Seconds until a node on which kube-scheduler refused a pod is tried again for such pods."""

    profiles: Json[tuple[SchedulerProfile, ...]] = Field(
        default=(SchedulerProfile(),),
        validate_default=False,
        description='a list of profiles, as JSON: [{"schedulerName": "default-scheduler"}]',
    )
    """The schedulers that gangs are decided for, as JSON; the `profiles` of their configuration."""

    waiting_per_namespace: int = Field(default=MOST, ge=1, le=1_000_000)
    """Waiting gangs of one namespace that are decided, the oldest; the others wait their turn."""

    priority_classes: Json[dict[str, list[str]]] = Field(
        default={},
        validate_default=False,
        description='lists of names of classes by namespace, as JSON: {"team-a": ["urgent"]}',
    )
    """Priority classes that may raise a gang above its pods, as JSON: namespace, or *, to names."""

    guard: Guard = Guard.NOMINATION
    """What keeps others out of reserved room: Nomination, Extender or None."""

    scheduler_forgets: bool = True
    """Whether nominations are written again for each kube-scheduler that starts: up to 1.36 it
    knows none of gated pods until then."""

    feature_gates_off: GatesOff = Field(default=(), validate_default=False)
    """Feature gates for devices by claim that kube-scheduler runs without, as JSON: no API tells
    them. The extender has a setting of this name too."""

    gpu_resources: Json[tuple[str, ...]] = Field(
        default=GpuPools().resources,
        validate_default=False,
        description='a list of names of resources, as JSON: ["nvidia.com/gpu"]',
    )
    """Resources that metrics count as GPUs, as JSON."""

    pool_labels: Json[tuple[str, ...]] = Field(
        default=GpuPools().labels,
        validate_default=False,
        description='a list of labels, as JSON: ["nvidia.com/gpu.product"]',
    )
    """Labels of nodes, as JSON; the first that a node has names its pool in metrics."""

    app_wrappers: bool = False
    """Whether AppWrappers are gangs, of every API group that is served; the program `wrapper` has
    to be installed. The extender has a setting of this name too."""

    app_wrapper_priorities: Json[list[str]] = Field(
        default=[],
        validate_default=False,
        description='a list of names of namespaces, or *, as JSON: ["team-a"]',
    )
    """Namespaces, or *, in which spec.priority and priorityslope of AppWrappers count, as JSON:
    there they add to the priority of the pods, and elsewhere they are ignored."""

    dispatch: bool = False
    """Whether objects that another cluster runs are gangs, in queues with `clusters`."""

    gang_offers: bool = False
    """Whether GangOffers are answered, by which other clusters ask for room; the component `member`
    brings their definition and the rights."""

    record: Path | None = None
    """File that every event and every action is written to; unset: none are."""

    record_limit: int = Field(default=1024, ge=1, le=1_048_576)
    """MiB at which the recording ends; one of an earlier start may take as much beside it."""

    provisioning: bool = False
    """Whether Cluster Autoscaler is asked for nodes, by ProvisioningRequests, for gangs whose
    queue says so (`spec.provisioning`); the component `provisioning` gives the rights."""

    listen_address: str = "127.0.0.1"
    """Address of the health and metrics endpoint; the manifests set 0.0.0.0."""

    listen_port: int = Field(default=8081, ge=0, le=65535)
    """Port of the health and metrics endpoint."""

    @field_validator("profiles")
    @classmethod
    def _told_apart(cls, profiles: tuple[SchedulerProfile, ...]) -> tuple[SchedulerProfile, ...]:
        twice = named_twice(profiles)
        if twice or not profiles:
            fault = f"named twice: {', '.join(twice)}" if twice else "empty"
            raise ValueError(f"{fault}; allowed: one or more profiles, each schedulerName once")
        return profiles

    @field_validator("app_wrapper_priorities")
    @classmethod
    def _of_namespaces(cls, namespaces: list[str]) -> list[str]:
        for each in namespaces:
            if each != EVERY_NAMESPACE and not is_namespace(each):
                allowed = f"names of namespaces, or {EVERY_NAMESPACE}"
                raise ValueError(f"{each!r} is not valid; allowed: {allowed}")
        return namespaces

    @field_validator("priority_classes")
    @classmethod
    def _named(cls, classes: dict[str, list[str]]) -> dict[str, list[str]]:
        for namespace, allowed in classes.items():
            if namespace != EVERY_NAMESPACE and not is_namespace(namespace):
                fault = f"{namespace!r} is not valid"
                raise ValueError(f"{fault}; allowed: the name of a namespace, or {EVERY_NAMESPACE}")
            bad = next((name for name in allowed if not _CLASS.fullmatch(name)), None)
            if bad is not None:
                raise ValueError(f"{namespace}: {bad!r} is not valid; allowed: names of classes")
        return classes
