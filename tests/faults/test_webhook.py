"""No pod slips through when the webhook is down while its cluster is created."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.muster import Muster
from testbed.processes import Process
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import gang, group
from tests.faults.chronicle import Chronicle
from tests.faults.crew import Crew
from tests.faults.ledger import never_whole, problems

CLUSTERS, PODS = 4, 3


@pytest.fixture
def webhook(muster: Muster) -> Iterator[Process]:
    """The webhook's process; it runs at the end."""
    yield muster.webhook
    if not muster.webhook.running:
        muster.webhook.restart()


def test_no_pod_slips_through_while_the_webhook_is_killed(
    plot: Plot, chronicle: Chronicle, crew: Crew, webhook: Process
) -> None:
    """Were its failure ignored, the pods that KubeRay creates meanwhile would start one by one.

    Room is short, so a pod without our gate would take what is promised to another gang.
    """
    plot.add_node(PODS)
    crew.start_leader()
    names = [f"c{number}" for number in range(CLUSTERS)]
    for name in names:
        webhook.kill()
        plot.create(gang(name, group(replicas=PODS - 1)))
        plot.wait(lambda name=name: refused(plot, name), "KubeRay to be refused")  # type: ignore[misc]
        webhook.restart()
        plot.wait_pods(name, PODS)
    for _ in names:
        running = plot.wait(lambda: [n for n in plot.gangs() if whole(plot, n)], "a gang to run")
        plot.delete_whole(running[0])
        plot.wait_no_gang(running[0])
    assert problems(chronicle.ledger, {plot.node("node"): PODS}) == []
    assert never_whole(chronicle.ledger, dict.fromkeys(names, PODS)) == []


def refused(plot: Plot, cluster: str) -> bool:
    """Whether KubeRay has said that it could not create a pod of a RayCluster."""
    return any(
        event["regarding"]["name"] == cluster and "failed calling webhook" in event["note"]
        for event in plot.all("Event")
    )


def whole(plot: Plot, name: str) -> bool:
    return bool(plot.status(name).get("phase") == "Running")
