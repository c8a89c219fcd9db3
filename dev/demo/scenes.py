"""The scenes, and what must be seen in each.

A scene is a function over a stage that returns its claims; the tests play the same functions.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from demo.app_wrapper import wrapped_pair
from demo.claims import Claim
from demo.devices import claimed_devices
from demo.foretold import told_when_they_start
from demo.giving_way import gives_way
from demo.held_start import waits_without_pods
from demo.managing import managed_by_commands
from demo.manifests import as_gang, filler, ray_cluster, with_cpus, with_worker_gpus
from demo.stage import Stage
from testbed.api import Json
from testbed.history import Gang
from testbed.nodes import GPU, NodeSpec, copies

_NUMBERS = re.compile(r"\d+ of \d+ .*fits?( beside .*)?: .*\d+ (is|are) free")
_SCATTERED = re.compile(r"needs 8 nvidia\.com/gpu on one node; 8 are free, at most 4 on one node")

_GANGS = 20
_NODES = 10
_NODES_OF_EACH = 6


@dataclass(frozen=True)
class Scene:
    """One scene with what to look at."""

    number: int
    title: str
    look: str
    play: Callable[[Stage], list[Claim]]


# ---- a gang that waits until there is room


@dataclass(frozen=True)
class _Wait:
    """What was seen of a gang that had to wait."""

    gang: Gang
    said: str
    freed: float
    whole: float


def _wait_for_room(stage: Stage, gang: Gang, size: int, free: Callable[[], float]) -> _Wait:
    """See a gang wait, free room, and see it start."""
    said = stage.wait_refused(gang)
    stage.display.say(f"{gang[1]} waits: {said}")
    stage.display.pause()
    freed = free()
    whole = stage.wait_whole(gang, size)
    stage.display.pause()
    return _Wait(gang, said, freed, whole)


def _claims_of_wait(stage: Stage, wait: _Wait, numbers: re.Pattern[str]) -> list[Claim]:
    name, held = wait.gang[1], stage.bound_before(wait.gang, wait.freed)
    return [
        Claim(f"{name} held nothing while it waited: {held} pods bound", holds=held == 0),
        Claim(f"{name} said why: {wait.said}", holds=bool(numbers.search(wait.said))),
        Claim(f"{name} fully Running {wait.whole - wait.freed:.2f} s after room was freed"),
    ]


# ---- scene 1: a head and four workers of one CPU each, twice, on eight CPUs

_SIZE = 5
_PAIR = ("alpha", "beta")


def stock_pair(stage: Stage) -> list[Claim]:
    """Play what happens without Muster: no label, so both are left to kube-scheduler."""
    stage.set_up("stock", [NodeSpec("stock", cpus=8)])
    stage.display.say("Without the label, as kube-scheduler does it:")
    pair = [stage.create_ray_cluster(manifest) for manifest in _pair(stage)]
    stage.wait_until(lambda: _is_stuck(stage, pair), "8 pods bound and 2 refused")
    stage.display.pause()
    recorder = stage.world.recorder
    held = [sum(pod.holds_room for pod in recorder.pods_of(gang)) for gang in pair]
    found = recorder.partial_gangs(dict.fromkeys(pair, _SIZE))
    shares = " and ".join(f"{count} of {_SIZE}" for count in sorted(held, reverse=True))
    text = f"without the label {shares} pods hold CPUs and {2 * _SIZE - sum(held)} wait for ever"
    return [Claim(f"{text} (found by the same check as below)", holds=bool(found))]


def _is_stuck(stage: Stage, pair: Sequence[Gang]) -> bool:
    pods = [pod for gang in pair for pod in stage.world.recorder.pods_of(gang)]
    bound = sum(pod.holds_room for pod in pods)
    return bound == 8 and sum(bool(pod.unschedulable) for pod in pods) == 2


def two_clusters(stage: Stage) -> list[Claim]:
    """Play both with the label: one runs whole, the other waits whole until it has gone."""
    stage.set_up("scene-1", [NodeSpec("eight-cpus-1", cpus=8)])
    stage.display.say("With the label muster.dev/gang on both:")
    created = time.monotonic()
    pair = [stage.create_ray_cluster(as_gang(manifest)) for manifest in _pair(stage)]
    first = stage.wait_until(lambda: _first_whole(stage, pair, _SIZE), "one to run whole")
    ran = stage.whole_since(first) - created
    second = next(gang for gang in pair if gang != first)
    wait = _wait_for_room(stage, second, _SIZE, lambda: stage.delete_ray_cluster(first))
    everyone = dict.fromkeys(pair, _SIZE)
    return [
        Claim(f"{first[1]} ran whole {ran:.2f} s after both were created"),
        *_claims_of_wait(stage, wait, _NUMBERS),
        stage.never_partial(everyone),
        stage.never_together(everyone),
    ]


def _pair(stage: Stage) -> list[Json]:
    return [ray_cluster(stage.cluster.samples, name, workers=_SIZE - 1) for name in _PAIR]


def _first_whole(stage: Stage, gangs: Iterable[Gang], size: int) -> Gang | None:
    return next((gang for gang in gangs if stage.world.is_whole(gang, size)), None)


# ---- scene 2: eight GPUs are free and the one worker that wants eight does not fit


def scattered_gpus(stage: Stage) -> list[Claim]:
    """Play a worker that needs all GPUs of a node while half of each of two nodes is taken."""
    stage.set_up("scene-2", copies(NodeSpec("gpu", cpus=96, memory="768Gi", gpus=8), 2))
    fillers = [stage.create_pod(filler(f"filler-{n}", f"gpu-{n}", {GPU: "4"})) for n in range(2)]
    stage.wait_until(lambda: _all_run(stage, fillers), "the fillers to take 4 GPUs of each node")
    cluster = ray_cluster(stage.cluster.samples, "train", workers=1)
    train = stage.create_ray_cluster(as_gang(with_worker_gpus(cluster, 8)))
    wait = _wait_for_room(stage, train, 2, lambda: stage.delete_pod(fillers[1]))
    return [*_claims_of_wait(stage, wait, _SCATTERED), stage.never_partial({train: 2})]


def _all_run(stage: Stage, pods: Sequence[Gang]) -> bool:
    running = [row.gang for row in stage.world.rows() if row.running]
    return all(pod in running for pod in pods)


# ---- scene 3: twenty gangs of six pods that take a node each, on ten nodes


def many_in_turn(stage: Stage, count: int = _GANGS) -> list[Claim]:
    """Play gangs of which no two fit together, each deleted as soon as it runs, but the last."""
    stage.set_up("scene-3", copies(NodeSpec("node", cpus=8), _NODES))
    began = time.monotonic()
    gangs = [stage.create_ray_cluster(manifest) for manifest in _crowd(stage, count)]
    stage.display.say(f"{len(gangs)} gangs are created")
    gang_runs = _run_in_turn(stage, gangs)
    everyone = dict.fromkeys(gangs, _NODES_OF_EACH)
    return [
        _all_ran(stage, gang_runs, count, gang_runs[-1].whole - began),
        _pace(gang_runs),
        stage.never_partial(everyone),
        stage.never_together(everyone),
    ]


@dataclass(frozen=True)
class _GangRun:
    """When a gang was whole, and when it was deleted."""

    gang: Gang
    whole: float
    deleted: float


def _crowd(stage: Stage, count: int) -> list[Json]:
    samples = stage.cluster.samples
    names = [f"gang-{number:02}" for number in range(1, count + 1)]
    clusters = [ray_cluster(samples, name, workers=_NODES_OF_EACH - 1) for name in names]
    return [as_gang(with_cpus(cluster, 8)) for cluster in clusters]


def _run_in_turn(stage: Stage, gangs: Iterable[Gang]) -> list[_GangRun]:
    waiting, gang_runs = list(gangs), list[_GangRun]()
    while waiting:
        runs = _wait_turn(stage, waiting)
        waiting.remove(runs)
        whole = stage.whole_since(runs)
        deleted = stage.delete_ray_cluster(runs) if waiting else math.inf
        gang_runs.append(_GangRun(runs, whole, deleted))
    return gang_runs


def _wait_turn(stage: Stage, waiting: Sequence[Gang]) -> Gang:
    what = f"one of the {len(waiting)} gangs that wait to run whole"
    return stage.wait_until(lambda: _first_whole(stage, waiting, _NODES_OF_EACH), what)


def _all_ran(stage: Stage, gang_runs: Sequence[_GangRun], count: int, seconds: float) -> Claim:
    """Claim that each of so many ran, with no pod more than it has: none had to be made twice."""
    pods = sum(stage.bound_before(run.gang, math.inf) for run in gang_runs)
    ran = f"{len(gang_runs)} gangs, {pods} pods, one gang after another, in {seconds:.1f} s"
    return Claim(ran, holds=len(gang_runs) == count and pods == count * _NODES_OF_EACH)


def _pace(gang_runs: Sequence[_GangRun]) -> Claim:
    gaps = [run.whole - before.deleted for before, run in pairwise(gang_runs)]
    median = statistics.median(gaps)
    return Claim(f"the next one fully Running {median:.2f} s after one was deleted (p50)")


def scene_1(stage: Stage) -> list[Claim]:
    """Play the same two clusters without and with the label."""
    return [*stock_pair(stage), *two_clusters(stage)]


SCENES = (
    Scene(
        1,
        "Two Ray clusters that do not both fit",
        "A head and 4 workers of 1 CPU, twice, on 8 CPUs: see what each holds, and which starts.",
        scene_1,
    ),
    Scene(
        2,
        "Enough GPUs, in the wrong places",
        "A worker wants 8 GPUs, 8 are free, 4 on each of two nodes: look at what the gang says.",
        scattered_gpus,
    ),
    Scene(
        3,
        "Twenty gangs at once, each wanting 60 % of the room",
        "Six pods each, a node for every pod, ten nodes: look for two that run, or a part of one.",
        many_in_turn,
    ),
    Scene(
        4,
        "A gang of low priority gives way, and comes back",
        "8 CPUs: batch has 7 pods and needs 3; two urgent gangs of 4 pods follow, and go again.",
        gives_way,
    ),
    Scene(
        5,
        "A gang that waits without a pod",
        "Five pods run on 8 CPUs; five more are held: see how many pods of those exist meanwhile.",
        waits_without_pods,
    ),
    Scene(
        6,
        "AppWrappers, as users of MCAD write them",
        "Two on one node of 8 CPUs, of which the first takes 3.5: see what exists of the second.",
        wrapped_pair,
    ),
    Scene(
        7,
        "Ray clusters, managed by commands",
        "Two on 8 CPUs: see what is said before each is created, and what scaling the first does.",
        managed_by_commands,
    ),
    Scene(
        8,
        "Gangs that are told when they will start",
        "Two wait for one that runs for 2 h, on 8 CPUs: see what they are told, and how it moves.",
        told_when_they_start,
    ),
    Scene(
        9,
        "Devices by claim",
        "Two gangs of 3 workers that claim a device each, on 4 devices: see what the second says.",
        claimed_devices,
    ),
)
