"""Reports to show on the page."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from msgspec import structs

from cli.report.forecast.told import ToldReport
from cli.report.gangs import GangReport
from cli.report.queues import QueueReport, ResourceReport
from cli.report.room.nodes import NodeReport, NodesReport, PoolReport
from cli.report.status import StatusReport

GPU = "nvidia.com/gpu"
HOLES = {"1": 16, "2": 8, "4": 3, "8": 1}


def gang(name: str, phase: str = "Queued", message: str = "2 of 4 w fit") -> GangReport:
    holds: Mapping[str, str] = {} if phase == "Queued" else {GPU: "32"}
    return GangReport(
        namespace="team",
        name=name,
        queue="research",
        phase=phase,
        position=1,
        priority=0,
        ready="0/5",
        reason="InsufficientResources" if phase == "Queued" else "Running",
        message=message,
        created="2026-01-01T00:00:00Z",
        holds=holds,
    )


def hours_from_now(hours: int) -> str:
    return (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:00:00Z")


def expected(name: str) -> GangReport:
    """A gang that is said to start in 50 hours: in 30 at the earliest, in 100 at the latest."""
    told = ToldReport(
        at=hours_from_now(50),
        earliest=hours_from_now(30),
        latest=hours_from_now(100),
        sure="Forward",
        why="after RayCluster team/runs ends",
        told="2026-01-01T00:00:00Z",
    )
    return structs.replace(gang(name), expected_start=told)


def queue(name: str, depth: int = 0, fault: str = "") -> QueueReport:
    resources = (
        ResourceReport("amd.com/gpu", holes={"1": 3}),
        ResourceReport(GPU, "40", "64", "0", "8", "24"),
        ResourceReport("cpu", "3", "1000", may_take="997000m"),
        ResourceReport("memory", "1610612736"),
    )
    return QueueReport(name, "", depth, not fault, fault, 1, 2, resources)


def node(name: str, off: str = "") -> NodeReport:
    return NodeReport(name, "A100", GPU, 8, 4, 2, 2, off)


def status(
    waiting: tuple[GangReport, ...] = (),
    placed: tuple[GangReport, ...] = (),
    failed: tuple[GangReport, ...] = (),
    nodes: int = 2,
) -> StatusReport:
    pool = PoolReport("A100", GPU, nodes, 64, 40, 8, 16, 0, 2.5, HOLES)
    found = tuple(node(f"node-{at}", off="" if at else "cordoned") for at in range(nodes))
    return StatusReport(
        namespace="",
        gangs=len(waiting) + len(placed) + len(failed),
        phases={"Queued": len(waiting), "Running": len(placed)},
        reasons={"InsufficientResources": len(waiting)},
        waiting=waiting,
        placed=placed,
        failed=failed,
        queues=(
            queue("org"),
            queue("research", 1),
            queue("bad", 0, "spec.parent: no GangQueue gone"),
        ),
        nodes=NodesReport(is_known=True, pools=(pool,), nodes=found, nodes_without=4),
        unread=("not allowed to list events",),
    )
