"""No pod takes reserved room when a real scheduler moves to a real replica that lags behind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed.cluster import Cluster
from testbed.components import SCHEDULER
from testbed.muster import NAMESPACE, Extender, start_extender
from testbed.pytest_plugin import FolderCluster
from tests.extender.plot import BY_HAND, Plot, extending, plotted
from tests.extender.switchboard import Switchboard
from tests.extender.worlds import pod
from tests.faults.proxied import Call
from tests.faults.proxy import Proxy

pytestmark = [pytest.mark.controlplane, pytest.mark.versions]

DOUBT = {"SETTLE_SECONDS": "25", "WAKE_PAUSE_SECONDS": "0.3"}
"""Long enough for a busy machine to judge all that are late while the second one is in doubt."""
NODES = 4
GPUS, KEPT = 8, 4


def is_watch(call: Call) -> bool:
    return "watch=" in call.path


@dataclass(frozen=True)
class Pair:
    """Two replicas behind one address; the second one's watches go through a proxy."""

    cluster: Cluster
    first: Extender
    second: Extender
    board: Switchboard
    proxy: Proxy


@pytest.fixture
def pair(folder_cluster: FolderCluster) -> Iterator[Pair]:
    cluster = folder_cluster(BY_HAND)
    with (
        extending(cluster, "first", DOUBT) as first,
        Proxy(cluster.server, cluster.ca_file) as proxy,
        Switchboard(first.port) as board,
    ):
        own = cluster.service_account_kubeconfig(NAMESPACE, "muster-extender")
        second = start_extender(
            cluster,
            name="lagging",
            kubeconfig=proxy.kubeconfig(own, cluster.directory / "lagging.kubeconfig"),
            settings=DOUBT,
            certificates=first.certificates,
        )
        cluster.start_scheduler(first.scheduler_config(urlPrefix=board.url))
        yield Pair(cluster, first, second, board, proxy)
        for name in (SCHEDULER, "lagging"):
            cluster.process(name).kill()


@pytest.fixture
def plot(pair: Pair) -> Iterator[Plot]:
    with plotted(pair.cluster, pair.first, "turn") as plot:
        yield plot


@pytest.mark.long
def test_room_of_a_pod_passed_by_one_replica_is_not_given_away_by_the_other(
    pair: Pair, plot: Plot
) -> None:
    """The second one has not heard of the pods that the first one passed a moment ago."""
    nodes = plot.add_nodes(NODES)
    slots = dict.fromkeys(nodes, 1)
    plot.place("train", slots, gpu=KEPT)
    early = [pod(f"early-{i}", gpu=1) for i in range(10)]
    late = [pod(f"late-{i}", gpu=1) for i in range(12)]
    free = NODES * (GPUS - KEPT)
    plot.wait(
        lambda: pair.second.metric("muster_extender_reserved_pods") == NODES,
        "the second one to know of the gang",
    )
    frost = pair.proxy.freeze(is_watch)
    plot.create_all(early)
    plot.wait_bound(*(each["metadata"]["name"] for each in early))
    pair.board.turn_to(pair.second.port)
    plot.create_all(late)
    plot.wait_judged(len(early) + len(late))
    assert len(plot.bound()) == len(early)
    pair.proxy.lift(frost)
    plot.wait(lambda: len(plot.bound()) == free, "the end of doubt to give what is free")
    assert set(plot.gpus().values()) == {GPUS - KEPT}
    plot.create_all(plot.members("train", slots, gpu=KEPT))
    plot.wait(lambda: set(plot.gpus().values()) == {GPUS}, "the gang to be bound whole")
