"""A gang of a thousand workers starts on a real control plane."""

import pytest

from testbed.nodes import NodeSpec, copies
from tests.controlplane.plot import PLENTY, Plot
from tests.controlplane.rayclusters import gang, group

WORKERS = 1_000
NODES = 100


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_gang_of_a_thousand_workers_starts_whole(plot: Plot) -> None:
    """It waits whole while one CPU is missing, and is on its nodes once that comes."""
    plot.add_nodes(*copies(NodeSpec("n", cpus=10, memory=PLENTY), NODES))
    plot.create(gang("large", group(replicas=WORKERS, most=WORKERS)))
    plot.wait(
        lambda: plot.status("large").get("reason") == "NeverFits",
        "the gang to be refused",
        300,
    )
    assert not plot.bound("large")
    plot.add_nodes(NodeSpec("last", cpus=1, memory=PLENTY))
    plot.wait(lambda: plot.status("large").get("phase") == "Running", "the gang to run", 300)
    assert len(plot.bound("large")) == WORKERS + 1
