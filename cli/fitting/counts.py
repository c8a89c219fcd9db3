"""Tries fewer replicas of a worker group, and searches for the most that fit."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from coordinator.gang.source import source_of
from kube.objects import names
from kube.objects.ray import RayCluster, WorkerGroup
from kube.ray.gang_terms import HEAD
from scheduling.model.gang import Group, Member, PendingGang


def groups_asked(cluster: RayCluster) -> dict[str, tuple[int, int]]:
    """Return the worker groups that ask for pods, with replicas and the pods of one replica.

    All pod sets of an AppWrapper are worker groups of its stand-in.
    """
    wanted = source_of(cluster).resumed().pod_sets_wanted
    return {
        each.name: (each.count // each.hosts, each.hosts)
        for each in wanted
        if each.count and each.name != HEAD
    }


def with_replicas(cluster: RayCluster, group: str, count: int) -> RayCluster:
    """Return the RayCluster with so many replicas of a group, none of its minimums above that."""
    spec, meta = cluster.spec, cluster.metadata
    groups = tuple(
        _lowered(each, count) if each.group_name == group else each
        for each in spec.worker_group_specs
    )
    said = meta.annotations.get(names.MIN_REPLICAS)
    if said is not None:
        lowered = ",".join(_minimums(said.split(","), group, count))
        meta = replace(meta, annotations={**meta.annotations, names.MIN_REPLICAS: lowered})
    return replace(cluster, metadata=meta, spec=replace(spec, worker_group_specs=groups))


def _lowered(group: WorkerGroup, count: int) -> WorkerGroup:
    least = None if group.min_replicas is None else min(group.min_replicas, count)
    return replace(group, replicas=count, min_replicas=least)


def _minimums(parts: Iterable[str], group: str, count: int) -> Iterator[str]:
    for part in parts:
        name, _, number = part.partition("=")
        mine = name.strip() == group and number.strip().isdecimal()
        yield f"{group}={min(int(number), count)}" if mine else part


def with_pods(asked: PendingGang, pod_set: str, pods: int) -> PendingGang:
    """Return what a gang asks for with so many pods of a pod set, in whole replicas."""
    minimum = tuple(_first_of(asked.minimum, pod_set, pods))
    left = pods - sum(each.count for each in minimum if each.pod_set == pod_set)
    surplus = []
    for unit in asked.surplus:
        mine = sum(each.count for each in unit if each.pod_set == pod_set)
        if mine <= left:
            surplus.append(unit)
            left -= mine
    members = tuple(_first_members(asked.members, pod_set, pods))
    return dataclasses.replace(asked, minimum=minimum, surplus=tuple(surplus), members=members)


def _first_of(groups: Iterable[Group], pod_set: str, pods: int) -> Iterator[Group]:
    """Yield the groups of other pod sets, and of this one as many pods as there may be."""
    for each in groups:
        count = min(each.count, pods) if each.pod_set == pod_set else each.count
        if each.pod_set == pod_set:
            pods -= count
        if count:
            yield Group(each.pod_set, each.replica, each.shape, count)


def _first_members(members: Iterable[Member], pod_set: str, pods: int) -> Iterator[Member]:
    for each in members:
        if each.pod_set != pod_set:
            yield each
        elif pods:
            pods -= 1
            yield each


def most_that_fit(refused: int, fits: Callable[[int], bool]) -> int | None:
    """Return the largest number below `refused` that fits; None where none does.

    What fits is taken to fit in smaller numbers too, so the search halves: some 15 questions for
    20,000. Where that does not hold, what is returned fits all the same.
    """
    fitting, beyond = -1, refused
    while beyond - fitting > 1:
        middle = (fitting + beyond) // 2
        if fits(middle):
            fitting = middle
        else:
            beyond = middle
    return None if fitting < 0 else fitting
