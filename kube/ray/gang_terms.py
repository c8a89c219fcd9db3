"""Reads the gang of a RayCluster: pod sets, minimum and topology, and the faults in its values."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

from kube.objects import names
from kube.objects.base import Labels, ObjectMeta
from kube.objects.ray import RayCluster, RayClusterSpec, WorkerGroup
from kube.ray.ray_cluster import MOST_GROUPS, Answer, OptIn, opt_in
from kube.ray.together import together_faults
from scheduling.queueing.membership import NO_SELECTIONS, NotAllowed, Selections, choose_queue

HEAD = names.RAY_HEAD_GROUP


# KubeRay's defaults for a worker group that says nothing (its CRD has the same).
DEFAULT_MAX_REPLICAS = 2**31 - 1


DEFAULT_HOSTS = 1
_SHOWN = 120  # an annotation may be 256 KiB long, a message should not
_NAMES_SHOWN = 10
_PROBLEMS_SHOWN = 5
_LABEL_VALUE = 63  # KubeRay writes the name into a label; no pod can have a longer one
_PREFIX = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"((?=[^/]{{1,253}}/){_PREFIX}/)?{_NAME}")
_WHOLE_NUMBER = re.compile(r"[0-9]{1,10}")
_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")

_SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # micro sign
    "μs": 1e-6,  # Greek mu, which Go takes too
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
}

_LONGEST = 2**63 / 1e9  # a Go duration is an int64 of nanoseconds
_TOPOLOGY = (names.TOPOLOGY_REQUIRED, names.TOPOLOGY_PREFERRED, names.REPLICA_TOPOLOGY_REQUIRED)


@dataclass(frozen=True, slots=True)
class Problem:
    """A value that a tenant wrote and that cannot be used."""

    key: str
    value: str
    allowed: str

    @property
    def message(self) -> str:
        """Say what is wrong in the form that all messages about bad values have."""
        return f'{self.key}: "{_shortened(self.value)}" is not valid; allowed: {self.allowed}'


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The problems of a RayCluster, the first few of them, so that they can be mended in one go."""

    problems: tuple[Problem, ...]

    @property
    def message(self) -> str:
        """Join what is wrong."""
        return "; ".join(problem.message for problem in self.problems)


@dataclass(frozen=True, slots=True)
class PodSetTerms:
    """One pod set: how many pods it has, how many must start at once, pods per replica."""

    name: str
    count: int
    minimum: int
    hosts: int


@dataclass(frozen=True, slots=True)
class TopologyTerms:
    """The labels within one value of which workers, and the pods of a replica, are to be."""

    required: str = ""
    preferred: str = ""
    replica: str = ""


@dataclass(frozen=True, slots=True)
class GangTerms:
    """What a RayCluster asks for; `topology` is None where it names no topology.

    `create_pods` says when its pods are to be created; empty where its queue says that.
    `grows_whole`: what is added while it runs is placed all at once.
    """

    queue: str
    priority_class: str
    pod_sets: tuple[PodSetTerms, ...]
    expected_duration: float | None = None
    topology: TopologyTerms | None = None
    create_pods: str = ""
    grows_whole: bool = False


PodSetsOf: TypeAlias = Callable[[RayCluster, Mapping[str, int]], tuple[PodSetTerms, ...]]
"""Makes pod sets of the groups of a RayCluster, and the replicas that must start at once."""


def ray_pod_sets(cluster: RayCluster, minimums: Mapping[str, int]) -> tuple[PodSetTerms, ...]:
    """List the pod sets that KubeRay makes: the head, and one of each worker group."""
    head = PodSetTerms(name=HEAD, count=1, minimum=1, hosts=1)
    usual = least if cluster.spec.enable_in_tree_autoscaling else _replicas
    workers = (
        worker_set(group, minimums.get(group.group_name, usual(group)))
        for group in cluster.spec.worker_group_specs
    )
    return as_suspended((head, *workers), cluster.spec)


def gang_terms(
    cluster: RayCluster,
    namespace_labels: Labels,
    selections: Selections = NO_SELECTIONS,
    pod_sets: PodSetsOf = ray_pod_sets,
) -> GangTerms | Misconfigured:
    """Read what a RayCluster asks for; `selections` has the GangQueues there are.

    `pod_sets` makes pod sets of the groups, where KubeRay does not.
    """
    meta, labels, annotations = (
        cluster.metadata,
        cluster.metadata.labels,
        cluster.metadata.annotations,
    )
    minimums = _minimums(annotations.get(names.MIN_REPLICAS, ""))
    asked, queue = queue_named(meta), queue_asked(meta, namespace_labels, selections)
    duration = annotations.get(names.EXPECTED_DURATION)
    found = chain(
        _opt_in_problems(opt_in(labels, annotations, namespace_labels)),
        _queue_problems(asked, queue),
        _group_count_problems(cluster.spec),
        _group_name_problems(cluster.spec.worker_group_specs),
        _minimum_problems(minimums, cluster),
        _duration_problems(duration),
        _topology_problems(annotations),
        _create_pods_problems(annotations.get(names.CREATE_PODS)),
        _growth_problems(annotations.get(names.GROWTH)),
        (Problem(*each) for each in together_faults(annotations)),
    )
    problems = tuple(islice(found, _PROBLEMS_SHOWN))
    if problems or isinstance(queue, NotAllowed):
        return Misconfigured(problems)
    return GangTerms(
        queue=queue,
        priority_class=priority_class_asked(meta),
        pod_sets=pod_sets(cluster, {each.group: int(each.number) for each in minimums}),
        expected_duration=None if duration is None else parse_duration(duration),
        topology=_topology(annotations),
        create_pods=annotations.get(names.CREATE_PODS, ""),
        grows_whole=annotations.get(names.GROWTH) == names.GROWTH_WHOLE,
    )


def queue_asked(
    meta: ObjectMeta, namespace_labels: Labels, selections: Selections
) -> str | NotAllowed:
    """Return the queue that a RayCluster names, or that its namespace has."""
    return choose_queue(queue_named(meta), namespace_labels, selections)


def priority_class_asked(meta: ObjectMeta) -> str:
    """Return the priority class that an object names; empty where it names none."""
    return _said(names.PRIORITY_CLASS, meta.labels, meta.annotations)


def queue_counted_in(meta: ObjectMeta, namespace_labels: Labels, selections: Selections) -> str:
    """Return the queue that a RayCluster asks for, or the built-in one where it may not use it."""
    queue = queue_asked(meta, namespace_labels, selections)
    return names.DEFAULT_QUEUE if isinstance(queue, NotAllowed) else queue


def pod_sets_wanted(cluster: RayCluster) -> tuple[PodSetTerms, ...]:
    """List the pod sets that KubeRay makes for a RayCluster, whatever its annotations say."""
    return ray_pod_sets(cluster, {})


def bad_priority_class(
    name: str, namespace: str, usable: Collection[str], lowest: int | None, setting: str
) -> Misconfigured:
    """Say that a RayCluster names a priority class that it may not use, or that does not exist.

    `lowest` is that of the gang's pods, where the class is above it; None where there is no such
    class. `setting` is where the operator allows classes.
    """
    allowed = _one_of(usable)
    if lowest is None:
        allowed += "; there is no PriorityClass of that name"
    else:
        allowed += (
            f"; it is above {lowest}, the lowest priority of the gang's pods: name it as "
            f"priorityClassName in every pod template, where ResourceQuota guards it, or have the "
            f"operator allow it for namespace {namespace} in {setting}"
        )
    return Misconfigured((Problem(names.PRIORITY_CLASS, name, allowed),))


def fixed_queue(meta: ObjectMeta, queue: str) -> str:
    """Say that a RayCluster names another queue than the one that its gang was admitted in."""
    asked = queue_named(meta)
    if asked in ("", queue):
        return ""
    allowed = f"{queue}: the queue of an admitted gang cannot be changed"
    return Problem(names.QUEUE, asked, allowed).message


def parse_duration(text: str) -> float | None:
    """Read a positive duration as Go writes it (2h30m, 90s), in seconds; None if it is none."""
    if len(text) > _SHOWN:  # before anything else looks at it
        return None
    seconds, at = 0.0, 0
    while at < len(text):
        part = _DURATION_PART.match(text, at)
        if part is None:
            return None
        seconds += float(part[1]) * _SECONDS[part[2]]
        at = part.end()
    return seconds if 0 < seconds < _LONGEST else None


def queue_named(meta: ObjectMeta) -> str:
    """Return the queue that an object itself names; empty where it names none."""
    return _said(names.QUEUE, meta.labels, meta.annotations)


def _said(key: str, labels: Labels, annotations: Labels) -> str:
    return labels.get(key) or annotations.get(key, "")


def as_suspended(sets: tuple[PodSetTerms, ...], spec: RayClusterSpec) -> tuple[PodSetTerms, ...]:
    """Return the pod sets without pods, where they have none for now."""
    return (
        tuple(PodSetTerms(each.name, 0, 0, each.hosts) for each in sets) if spec.suspend else sets
    )


def worker_set(group: WorkerGroup, minimum: int) -> PodSetTerms:
    """Return the pod set of a group of which so many replicas must start at once."""
    replicas = _replicas(group)
    # The autoscaler may take a group below what the annotation asks for, and a group may be
    # suspended: pods that KubeRay will not make must not be waited for.
    hosts = _hosts(group)
    return PodSetTerms(group.group_name, replicas * hosts, min(minimum, replicas) * hosts, hosts)


def _replicas(group: WorkerGroup) -> int:
    return 0 if group.suspend else _desired(group)


def _desired(group: WorkerGroup) -> int:
    """Clamp the replicas of a group, suspended or not."""
    if group.replicas is None or group.replicas < least(group):
        return least(group)
    return min(group.replicas, _most(group))


def least(group: WorkerGroup) -> int:
    """Return the fewest replicas of a group that KubeRay makes."""
    return max(group.min_replicas or 0, 0)


def _most(group: WorkerGroup) -> int:
    return DEFAULT_MAX_REPLICAS if group.max_replicas is None else max(group.max_replicas, 0)


def _hosts(group: WorkerGroup) -> int:
    return DEFAULT_HOSTS if group.num_of_hosts is None else max(group.num_of_hosts, 0)


def _opt_in_problems(said: OptIn) -> Iterator[Problem]:
    if said.answer is Answer.BAD:
        yield Problem(f"{said.where} {names.OPT_IN}", said.value, '"true" or "false"')


def _queue_problems(asked: str, queue: str | NotAllowed) -> Iterator[Problem]:
    if isinstance(queue, NotAllowed):
        yield Problem(names.QUEUE, asked, queue.allowed)


def _group_count_problems(spec: RayClusterSpec) -> Iterator[Problem]:
    if spec.groups_left_out:
        yield Problem("workerGroupSpecs", f"{spec.groups_left_out}", f"at most {MOST_GROUPS}")


def _group_name_problems(groups: Iterable[WorkerGroup]) -> Iterator[Problem]:
    """A pod set is known by its name alone, also in the labels of its pods."""
    seen = {HEAD, ""}
    for group in groups:
        if group.group_name in seen or len(group.group_name) > _LABEL_VALUE:
            allowed = (
                f"a name of 1 to {_LABEL_VALUE} characters that no other group has, nor {HEAD}"
            )
            yield Problem("workerGroupSpecs.groupName", group.group_name, allowed)
        seen.add(group.group_name)


class _Minimum(NamedTuple):
    """One part of the annotation, not yet checked."""

    text: str
    group: str
    number: str


def _minimums(annotation: str) -> list[_Minimum]:
    """Split `a=4,b=1`."""
    parts = [part.strip() for part in annotation.split(",")] if annotation else []
    split = ((part, part.partition("=")) for part in parts)
    return [_Minimum(part, group.strip(), number.strip()) for part, (group, _, number) in split]


def _minimum_problems(minimums: Iterable[_Minimum], cluster: RayCluster) -> Iterator[Problem]:
    groups = {group.group_name: group for group in cluster.spec.worker_group_specs}
    seen = set()
    for each in minimums:
        allowed = _minimum_refusal(each, groups, cluster)
        if each.group in seen:
            allowed = "each worker group once"
        if allowed:
            yield Problem(names.MIN_REPLICAS, each.text, allowed)
        seen.add(each.group)


def _minimum_refusal(part: _Minimum, groups: Mapping[str, WorkerGroup], cluster: RayCluster) -> str:
    """Say what would be allowed instead of this part of the annotation; empty where it is fine."""
    group = groups.get(part.group)
    if group is None:
        return f"GROUP=NUMBER[,...] with GROUP a worker group: {_one_of(groups)}"
    if not _WHOLE_NUMBER.fullmatch(part.number):
        return f"a whole number from 0 on for {_shortened(part.group)}"
    if cluster.spec.enable_in_tree_autoscaling:
        return _above(int(part.number), _most(group), "maxReplicas")
    return _above(int(part.number), _desired(group), "replicas")


def _above(minimum: int, limit: int, what: str) -> str:
    return f"0 to {limit} (minimum above {what})" if minimum > limit else ""


def _duration_problems(duration: str | None) -> Iterator[Problem]:
    if duration is not None and parse_duration(duration) is None:
        yield Problem(names.EXPECTED_DURATION, duration, "a positive duration such as 2h30m or 90s")


def _create_pods_problems(value: str | None) -> Iterator[Problem]:
    if value not in (None, names.CREATE_ALWAYS, names.CREATE_WHEN_ADMITTED):
        allowed = f'"{names.CREATE_WHEN_ADMITTED}" or "{names.CREATE_ALWAYS}"'
        yield Problem(names.CREATE_PODS, value or "", allowed)


def _growth_problems(value: str | None) -> Iterator[Problem]:
    if value not in (None, names.GROWTH_BY_REPLICA, names.GROWTH_WHOLE):
        allowed = f'"{names.GROWTH_BY_REPLICA}" or "{names.GROWTH_WHOLE}"'
        yield Problem(names.GROWTH, value or "", allowed)


def _topology_problems(annotations: Labels) -> Iterator[Problem]:
    for key in _TOPOLOGY:
        value = annotations.get(key)
        if value is not None and not _LABEL_KEY.fullmatch(value):
            yield Problem(key, value, "the key of a node label, e.g. topology.kubernetes.io/zone")


def _topology(annotations: Labels) -> TopologyTerms | None:
    if not any(key in annotations for key in _TOPOLOGY):
        return None
    return TopologyTerms(*(annotations.get(key, "") for key in _TOPOLOGY))


def _one_of(known: Iterable[str]) -> str:
    ordered = sorted(known)
    shown = ", ".join(_shortened(name) for name in ordered[:_NAMES_SHOWN])
    more = len(ordered) - _NAMES_SHOWN
    return (shown or "(there is none)") + (f" and {more} more" if more > 0 else "")


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
