"""Finds the pods of a wrapped object: where their templates are, and how many its kind makes."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from appwrapper.spec.faults import MOST_POD_SETS, MOST_PODS, Fault, shown
from appwrapper.spec.paths import Json, Path, at, is_pod_template, written
from kube.objects import names
from kube.objects.ray import RayCluster, RayClusterSpec
from kube.ray.gang_terms import pod_sets_wanted


@dataclass(frozen=True, slots=True)
class PodsOfKind:
    """Pods of one template: where it is, how many there are, and how many must start at once.

    `part` tells the pod sets of an object apart. `ray` is where the RayCluster's spec is that
    KubeRay makes these pods of. `in_order` says that pods are created only when others are ready or
    have succeeded: these cannot start at once. `completions` counts the pods that are made in all,
    where one that succeeds is not replaced; None where it is. `later` names labels that pods get as
    they are created.
    """

    path: Path | None
    count: int
    minimum: int
    part: str = ""
    hosts: int = 1
    ray: Path | None = None
    in_order: bool = False
    completions: int | None = None
    later: tuple[str, ...] = ()


@dataclass(slots=True)
class Reading:
    """A wrapped object that is read, where it stands, and the faults found in it so far."""

    where: str
    found: Json
    faults: list[Fault] = field(default_factory=list)

    def at(self, *path: str | int) -> Any:
        """Return what stands at a path."""
        return at(self.found, path)

    def number(self, path: Path, usual: int, most: int = MOST_PODS) -> int:
        """Read a number of pods; what cannot be one is a fault, and counts as none."""
        value = at(self.found, path)
        if value is None:
            return usual
        number = int(value) if isinstance(value, float) and value.is_integer() else value
        if isinstance(number, int) and not isinstance(value, bool) and 0 <= number <= most:
            return number
        self.fault(path, value, f"a whole number from 0 to {most}")
        return 0

    def fault(self, path: Path, value: Any, allowed: str) -> None:
        """Note a fault in the object."""
        self.faults.append(Fault(self.where, written(path), shown(value), allowed))


Reader = Callable[[Reading], Iterator[PodsOfKind]]


def group_of(api_version: str) -> str:
    """Return the API group; empty for the core."""
    group, slash, _version = api_version.partition("/")
    return group if slash else ""


def pods_of_kind(reading: Reading, api_version: str, kind: str) -> list[PodsOfKind] | None:
    """List the pods of an object of a kind that is known; None of any other kind."""
    reader = KNOWN.get((group_of(api_version), kind))
    return None if reader is None else list(reader(reading))


# --- kinds of Kubernetes ----------------------------------------------------------------------


def _pod(_reading: Reading) -> Iterator[PodsOfKind]:
    yield PodsOfKind((), 1, 1, completions=1)


def _none(_reading: Reading) -> Iterator[PodsOfKind]:
    """Make no pods, or those of other gangs."""
    yield from ()


def _replicated(*later: str) -> Reader:
    def read(reading: Reading) -> Iterator[PodsOfKind]:
        count = reading.number(("spec", "replicas"), 1)
        yield PodsOfKind(_TEMPLATE, count, count, later=later)

    return read


def _stateful_set(reading: Reading) -> Iterator[PodsOfKind]:
    count = reading.number(("spec", "replicas"), 1)
    in_order = reading.at("spec", "podManagementPolicy") != "Parallel"
    least = min(count, 1) if in_order else count
    yield PodsOfKind(_TEMPLATE, count, least, in_order=in_order, later=_OF_STATEFUL_SET)


def _job(reading: Reading) -> Iterator[PodsOfKind]:
    count, completions = _pods_of_job(reading, ())
    yield PodsOfKind(_TEMPLATE, count, count, completions=completions, later=_OF_JOB)


def _pods_of_job(reading: Reading, path: Path) -> tuple[int, int]:
    """Count the pods that run at once, as kube-controller-manager does, and those made in all."""
    parallelism = reading.number((*path, "spec", "parallelism"), 1)
    completions = reading.number((*path, "spec", "completions"), parallelism, _MOST_COMPLETIONS)
    suspended = at(reading.found, (*path, "spec", "suspend")) is True
    return (0 if suspended else min(parallelism, completions)), completions


def _job_set(reading: Reading) -> Iterator[PodsOfKind]:
    suspended = reading.at("spec", "suspend") is True
    in_order = reading.at("spec", "startupPolicy", "startupPolicyOrder") == "InOrder"
    for index, job in enumerate(_list(reading, ("spec", "replicatedJobs"))):
        path: Path = ("spec", "replicatedJobs", index)
        replicas = reading.number((*path, "replicas"), 1)
        pods, completions = _pods_of_job(reading, (*path, "template"))
        count = 0 if suspended else replicas * pods
        waits = (in_order and index > 0) or bool(at(job, ("dependsOn",)))
        part = _text(at(job, ("name",))) or str(index)
        yield PodsOfKind(
            (*path, "template", *_TEMPLATE),
            count,
            0 if waits else count,
            part,
            in_order=waits,
            completions=replicas * completions,
            later=(*_OF_JOB, *_OF_JOB_SET),
        )


def _py_torch_job(reading: Reading) -> Iterator[PodsOfKind]:
    for role in ("Master", "Worker"):
        path: Path = ("spec", "pytorchReplicaSpecs", role)
        if at(reading.found, path) is not None:
            count = reading.number((*path, "replicas"), 1)
            where = (*path, "template")
            yield PodsOfKind(
                where, count, count, role.lower(), completions=count, later=_OF_TRAINING
            )


_MOST_COMPLETIONS = 2**31 - 1  # of a Job, one after another
_TEMPLATE: Path = ("spec", "template")
_OF_STATEFUL_SET = (
    "apps.kubernetes.io/pod-index",
    "controller-revision-hash",
    "statefulset.kubernetes.io/pod-name",
)
_OF_JOB = (
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
    "batch.kubernetes.io/job-name",
    "controller-uid",
    "job-name",
)
_OF_JOB_SET = tuple(
    f"jobset.sigs.k8s.io/{key}"
    for key in (
        "global-replicas",
        "group-name",
        "group-replicas",
        "job-global-index",
        "job-group-index",
        "job-index",
        "job-key",
        "jobset-name",
        "jobset-uid",
        "replicatedjob-name",
        "replicatedjob-replicas",
        "restart-attempt",
    )
)
_OF_TRAINING = tuple(
    f"training.kubeflow.org/{key}"
    for key in ("job-name", "job-role", "operator-name", "replica-index", "replica-type")
)


# --- kinds of KubeRay -------------------------------------------------------------------------


def _ray_cluster(reading: Reading) -> Iterator[PodsOfKind]:
    return _ray(reading, ("spec",), _OF_RAY)


def _ray_job(reading: Reading) -> Iterator[PodsOfKind]:
    """Read the RayCluster that the RayJob makes, whose name is drawn; the submitter runs freely."""
    if reading.at("spec", "clusterSelector") or reading.at("spec", "suspend") is True:
        return iter(())
    return _ray(reading, ("spec", "rayClusterSpec"), (*_OF_RAY, *_OF_DRAWN_NAME))


def _ray_service(reading: Reading) -> Iterator[PodsOfKind]:
    later = (*_OF_RAY, *_OF_DRAWN_NAME, "ray.io/serve")
    return _ray(reading, ("spec", "rayClusterConfig"), later)


def _ray(reading: Reading, path: Path, later: tuple[str, ...]) -> Iterator[PodsOfKind]:
    spec = _ray_spec(reading, path)
    if spec is None:
        return
    head: Path = (*path, "headGroupSpec", "template")
    groups = ((*path, "workerGroupSpecs", index, "template") for index in range(len(_groups(spec))))
    for where, terms in zip((head, *groups), pod_sets_wanted(RayCluster(spec=spec)), strict=True):
        count, hosts = min(terms.count, MOST_PODS + 1), terms.hosts
        minimum = min(terms.minimum, count)
        yield PodsOfKind(where, count, minimum, terms.name, hosts, path, later=later)


def _ray_spec(reading: Reading, path: Path) -> RayClusterSpec | None:
    """Read the spec of a RayCluster, with a fault for each number and name that cannot be used."""
    before, groups = len(reading.faults), (*path, "workerGroupSpecs")
    names_seen = Counter(_text(at(each, ("groupName",))) for each in _list(reading, groups))
    if sum(names_seen.values()) > MOST_POD_SETS:
        reading.fault(groups, f"{sum(names_seen.values())} groups", f"at most {MOST_POD_SETS}")
    for index in range(min(sum(names_seen.values()), MOST_POD_SETS)):
        for key in ("replicas", "minReplicas", "numOfHosts"):
            reading.number((*groups, index, key), 0)
        _check_group_name(reading, (*groups, index, "groupName"), names_seen)
    if len(reading.faults) > before:
        return None
    found = at(reading.found, path)
    try:
        return msgspec.json.decode(msgspec.json.encode(found), type=RayClusterSpec)
    except (msgspec.ValidationError, RecursionError) as error:
        reading.fault(path, found, f"the spec of a RayCluster ({error})")
        return None


def _groups(spec: RayClusterSpec) -> tuple[object, ...]:
    return spec.worker_group_specs


def _check_group_name(reading: Reading, path: Path, names_seen: Counter[str]) -> None:
    name = at(reading.found, path)
    usable = isinstance(name, str) and 0 < len(name) <= _LABEL and name != _HEAD
    if not usable or names_seen[name] > 1:
        allowed = f"a name of 1 to {_LABEL} characters that no other group has, nor {_HEAD}"
        reading.fault(path, name, allowed)


_LABEL = 63
_HEAD = names.RAY_HEAD_GROUP
_OF_RAY = (
    names.RAY_REPLICA_NAME,
    "ray.io/worker-group-replica-index",
    "ray.io/replica-host-index",
)
_OF_DRAWN_NAME = (names.RAY_CLUSTER, "ray.io/identifier")


# --- any kind ---------------------------------------------------------------------------------


def replicas_and_template(reading: Reading) -> PodsOfKind | None:
    """Read an object of an unknown kind as MCAD does: spec.replicas pods of spec.template."""
    if not is_pod_template(reading.at(*_TEMPLATE)):
        return None
    count = reading.number(("spec", "replicas"), 1)
    return PodsOfKind(_TEMPLATE, count, count)


def _list(reading: Reading, path: Path) -> list[Any]:
    found = at(reading.found, path)
    if found is None or isinstance(found, list):
        return found or []
    reading.fault(path, found, "a list")
    return []


def _text(found: Any) -> str:
    return found if isinstance(found, str) else ""


KNOWN: Mapping[tuple[str, str], Reader] = {
    ("", "Pod"): _pod,
    ("", "PodTemplate"): _none,
    ("", "ReplicationController"): _replicated(),
    ("apps", "ReplicaSet"): _replicated(),
    ("apps", "Deployment"): _replicated("pod-template-hash"),
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _none,
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _none,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("kubeflow.org", "PyTorchJob"): _py_torch_job,
    ("ray.io", "RayCluster"): _ray_cluster,
    ("ray.io", "RayJob"): _ray_job,
    ("ray.io", "RayService"): _ray_service,
}
