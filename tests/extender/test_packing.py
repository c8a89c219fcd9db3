"""Whole nodes that the extender keeps free, against the scheduler's own profiles.

360 pods of 1, 2 and 4 GPUs (600 of 800) come in random order to 100 nodes of 8; at best 25 nodes
stay free for gangs. The same five orders go to each way of scheduling.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import Extender, start_extender, with_muster
from testbed.options import Options
from tests.extender.plot import QUICK, Plot
from tests.extender.worlds import pod

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(900)]

NODES = 100
SEEDS = (1, 2, 3, 4, 5)
SIZES = [1] * 200 + [2] * 120 + [4] * 40
STRATEGY = {"type": "MostAllocated", "resources": [{"name": "nvidia.com/gpu", "weight": 1}]}
ARGS = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "NodeResourcesFitArgs",
    "scoringStrategy": STRATEGY,
}
MOST_ALLOCATED = {
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "pluginConfig": [{"name": "NodeResourcesFit", "args": ARGS}],
        }
    ]
}


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Extender]]:
    directory = tmp_path_factory.mktemp("packing") / "root"
    options = with_muster(Options(scheduler=False, kuberay=False, node_lease_seconds=400))
    with Cluster.start(directory, options) as cluster:
        yield cluster, start_extender(cluster, settings=QUICK)


def free_nodes(plot: Plot, seed: int) -> int:
    """Schedule all pods in one order, count the nodes that none of them began, and clear up."""
    sizes = random.Random(seed).sample(SIZES, len(SIZES))
    pods = [pod(f"s{seed}-{i}", gpu=gpus) for i, gpus in enumerate(sizes)]
    for each in pods:
        plot.create(each)
    plot.wait(lambda: len(plot.bound()) == len(pods), "all pods to be bound", 120.0)
    free = NODES - len(plot.gpus())
    path = f"/api/v1/namespaces/{plot.name}/pods?gracePeriodSeconds=0"
    with plot.cluster.api.session() as session:
        session.call("DELETE", path)
    plot.wait(lambda: not plot.pods(), "all pods to be gone", 60.0)
    return free


def test_whole_nodes_stay_free(started: tuple[Cluster, Extender], record_property: Any) -> None:
    cluster, extender = started
    plot = Plot(cluster, extender, "pack")
    plot.add_nodes(NODES)
    ways: Mapping[str, Mapping[str, Any] | None] = {
        "extender": extender.scheduler_config(),
        "MostAllocated": MOST_ALLOCATED,
        "default": None,
    }
    found: dict[str, list[int]] = {}
    for way, configuration in ways.items():
        cluster.start_scheduler(configuration)
        found[way] = [free_nodes(plot, seed) for seed in SEEDS]
        record_property(way, found[way])
        cluster.process(SCHEDULER).kill()
    print(found)  # noqa: T201 - the figures are what one runs this for
    assert min(found["extender"]) >= 24  # 25 at best
    assert min(found["extender"]) > max(found["default"])
