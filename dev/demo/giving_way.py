"""The scene of a gang that gives way to others of higher priority, and comes back."""

from __future__ import annotations

from demo.claims import Claim
from demo.manifests import as_gang, ray_cluster, with_minimum, with_priority
from demo.stage import Stage
from demo.world import is_running
from testbed.history import Gang
from testbed.nodes import NodeSpec

_BATCH, _URGENT = "batch", "urgent"
_WORKERS, _MINIMUM, _URGENT_WORKERS = 6, 2, 3
_WHOLE, _LEAST, _URGENT_SIZE = 1 + _WORKERS, 1 + _MINIMUM, 1 + _URGENT_WORKERS
_LEFT = 8 - _URGENT_SIZE
"""Pods that are left of the gang that gave its surplus: so many CPUs are."""


def gives_way(stage: Stage) -> list[Claim]:
    """Play one gang of low priority and two of high priority, on CPUs for one and a part."""
    stage.set_up("scene-4", [NodeSpec("eight-cpus-4", cpus=8)])
    stage.create_priority_class(_BATCH, 10)
    stage.create_priority_class(_URGENT, 1000)
    stage.create_queue("lab", preemption={"withinQueue": "LowerPriority"})
    batch = _create_batch(stage)
    head = _uids(stage, batch, "headgroup")
    first = _create_urgent(stage, "urgent-1")
    gave = _gave_surplus(stage, batch, head)
    stage.display.pause()
    second = _create_urgent(stage, "urgent-2")
    waits = _waits_whole(stage, batch)
    stage.display.pause()
    return [gave, *waits, *_comes_back(stage, batch, (first, second))]


def _create_batch(stage: Stage) -> Gang:
    cluster = ray_cluster(stage.cluster.samples, "batch", workers=_WORKERS)
    batch = stage.create_ray_cluster(
        as_gang(with_minimum(with_priority(cluster, _BATCH), _MINIMUM))
    )
    stage.wait_whole(batch, _WHOLE)
    stage.display.say(f"batch runs with {_WORKERS} workers, of which it needs {_MINIMUM}")
    return batch


def _create_urgent(stage: Stage, name: str) -> Gang:
    """Create a gang of high priority, and wait until it runs."""
    cluster = ray_cluster(stage.cluster.samples, name, workers=_URGENT_WORKERS)
    gang = stage.create_ray_cluster(as_gang(with_priority(cluster, _URGENT)))
    stage.wait_whole(gang, _URGENT_SIZE)
    return gang


def _uids(stage: Stage, gang: Gang, group: str) -> set[str]:
    """The pods of a group that run now."""
    pods = stage.world.recorder.pods_of(gang)
    return {pod.uid for pod in pods if pod.group == group and is_running(pod)}


def _gave_surplus(stage: Stage, batch: Gang, head: set[str]) -> Claim:
    running = sum(map(is_running, stage.world.recorder.pods_of(batch)))
    same = _uids(stage, batch, "headgroup") == head
    text = f"batch gave {_WHOLE - running} surplus workers and runs on with its head and the rest"
    return Claim(text, holds=running == _LEFT and same)


def _waits_whole(stage: Stage, batch: Gang) -> list[Claim]:
    said = stage.wait_stopped(batch)
    held = sum(pod.holds_room for pod in stage.world.recorder.pods_of(batch))
    return [
        Claim(f"then batch gave all its room: {held} of its pods hold any", holds=held == 0),
        Claim(f"batch says why: {said}", holds="urgent-2" in said),
    ]


def _comes_back(stage: Stage, batch: Gang, urgent: tuple[Gang, Gang]) -> list[Claim]:
    freed = max(stage.delete_ray_cluster(each) for each in urgent)
    back = stage.wait_whole(batch, _WHOLE) - freed
    expected = {batch: _LEAST, **dict.fromkeys(urgent, _URGENT_SIZE)}
    return [
        Claim(f"batch is back with all {_WHOLE} pods {back:.2f} s after both were deleted"),
        stage.never_partial(expected),
    ]
