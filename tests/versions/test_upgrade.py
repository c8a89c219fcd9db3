"""The control plane goes from one minor version to the next while gangs start."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path

import pytest

from testbed.build import Artifacts, build
from testbed.cluster import Cluster
from testbed.components import API_SERVER, CONTROLLER_MANAGER, KUBERAY, KWOK, SCHEDULER
from testbed.errors import TestbedError
from testbed.muster import Muster, start_muster, with_muster
from testbed.options import Options
from testbed.recipes import KUBERNETES
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot, plotted
from tests.controlplane.rayclusters import Json
from tests.faults.chronicle import Chronicle
from tests.faults.crew import Crew, account_of
from tests.faults.ledger import never_whole, problems
from tests.faults.traffic import GANG_SECONDS, Traffic
from tests.versions.plan import WHOLE

pytestmark = [pytest.mark.controlplane, pytest.mark.long, pytest.mark.timeout(3600)]

TO, FROM = WHOLE
ORDER = (API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
"""None may be newer than the API server, which goes first."""
NODES, CPUS = 5, 2
GANGS, BETWEEN = 12, 3
"""Gangs at least, and how many of them begin before each program is replaced."""
ELECTION = {
    "leaderElect": True,
    "leaseDuration": "9s",
    "renewDeadline": "8s",
    "retryPeriod": "500ms",
}
PACE = {"LEASE_DURATION": "15", "RENEW_DEADLINE": "10", "RETRY_PERIOD": "2"}
"""The coordinators' election as it is installed."""
_AWAY = (OSError, HTTPException, TestbedError)
"""What a client sees of an API server that is being replaced."""


class Patient(Traffic):
    """Asks again where the API server is away."""

    def __init__(self, plot: Plot) -> None:
        super().__init__(plot, random.Random(31))
        self._plot = plot

    def _submit(self, manifest: Json) -> None:
        path = self._plot.path("RayCluster", manifest["metadata"]["name"])
        there = self._plot.cluster.api.exists
        again = super()._submit
        wait_until(lambda: tried(lambda: again(manifest)) or there(path), f"{path} to be created")

    def _delete_running(self) -> bool:
        deleted: list[bool] = []
        return tried(lambda: deleted.append(super(Patient, self)._delete_running())) and deleted[0]


def tried(call: Callable[[], object]) -> bool:
    """Whether a call of the API server succeeds."""
    try:
        call()
    except _AWAY:
        return False
    return True


class Upgrade:
    """Replaces the programs of the control plane, each while a gang is about to start."""

    def __init__(self, cluster: Cluster, chronicle: Chronicle, traffic: Traffic) -> None:
        self.caught: dict[str, int] = {}
        """By program: the pods that were released and not bound when it ended."""
        self._cluster, self._chronicle, self._traffic = cluster, chronicle, traffic

    def run(self, programs: Artifacts) -> None:
        for name in ORDER:
            begun = len(self._traffic.minimum) + BETWEEN
            wait_until(lambda most=begun: len(self._traffic.minimum) >= most, "more gangs")  # type: ignore[misc]
            self._replace(name, str(programs.program(name)))

    def _replace(self, name: str, program: str) -> None:
        """Kube-scheduler stands still until pods were released to it that it does not know."""
        process = self._cluster.process(name)
        if name == SCHEDULER:
            process.pause()
            wait_until(self._under_way, "a release to kube-scheduler", GANG_SECONDS)
        else:
            before = len(self._chronicle.ledger.releases())
            wait_until(lambda: len(self._chronicle.ledger.releases()) > before, "a release")
        self.caught[name] = len(self._under_way())
        process.kill()
        process.argv[0] = program
        process.restart()
        self._cluster.wait_healthy(name)
        self._revive()

    def _revive(self) -> None:
        """Start what has given up without an API server, as a kubelet does."""
        for name in (*ORDER, KUBERAY, KWOK):
            if not self._cluster.process(name).running:
                self._cluster.process(name).restart()
                self._cluster.wait_healthy(name)

    def _under_way(self) -> list[str]:
        last = [life[-1] for life in self._chronicle.ledger.lives().values()]
        return [
            each.at.name
            for each in last
            if each.released_to and not each.at.node and not each.at.deleting
        ]


@pytest.fixture
def muster(tmp_path: Path) -> Iterator[Muster]:
    options = Options(kubernetes=FROM, scheduler_config={"leaderElection": ELECTION})
    with Cluster.start(tmp_path / "root", with_muster(options)) as cluster:
        yield start_muster(cluster, coordinators=0)


def test_no_gang_is_torn_and_no_pod_released_twice_while_programs_are_replaced(
    muster: Muster,
) -> None:
    programs = build((KUBERNETES[TO],), print)
    cluster = muster.cluster
    with (
        plotted(cluster, "upgrade") as plot,
        Chronicle(cluster, plot.name) as chronicle,
        Crew(muster, account_of(muster)) as crew,
        ThreadPoolExecutor(1) as beside,
    ):
        plot.add_equal_nodes(NODES, CPUS)
        crew.start(2, PACE)
        traffic = Patient(plot)
        upgrade = Upgrade(cluster, chronicle, traffic)
        done = beside.submit(upgrade.run, programs)
        traffic.flow(GANGS, lambda: not done.done())
        done.result()
        assert cluster.api.get("/version")["gitVersion"] == f"v{TO}"
        room = {plot.node(f"n-{number}"): CPUS for number in range(NODES)}
        expected = {(plot.name, name): count for name, count in traffic.minimum.items()}
        assert problems(chronicle.ledger, room) == []
        assert never_whole(chronicle.ledger, traffic.minimum) == []
        assert chronicle.partial_gangs(expected, GANG_SECONDS) == []
        assert upgrade.caught[SCHEDULER], "no gang was under way: it tests nothing"
