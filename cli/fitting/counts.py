"""Asks about fewer replicas of a worker group, and searches for the most that fit."""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from kube.objects import names
from kube.objects.ray import RayCluster, WorkerGroup
from kube.ray.gang_terms import pod_sets_wanted
from kube.ray.ray_cluster import resumed


def replicas_asked(cluster: RayCluster) -> dict[str, int]:
    """Return the worker groups that ask for pods, with their replicas."""
    wanted = pod_sets_wanted(resumed(cluster))[1:]
    return {each.name: each.count // each.hosts for each in wanted if each.count}


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
