"""Gangs, queues and parts, for the tests of cycles that preempt."""

from scheduling.model.queue import (
    Queue,
    Reclaim,
    WithinQueue,
)
from tests.builders import GPU
from tests.scheduling.preemption.cluster import Cluster

LOWER = WithinQueue.LOWER_PRIORITY


def taken(cluster: Cluster) -> dict[str, list[str]]:
    """What the next cycle would stop: gangs by name, replicas of surplus as name/replica."""
    return {
        each.preemptor.name: sorted(
            f"{p.gang.name}/{p.replica}" if p.replica else p.gang.name for p in each.parts
        )
        for each in cluster.cycle()
    }


# ---- reclaim


def company(a: Reclaim = Reclaim.ANY, quota: int = 8) -> list[Queue]:
    return [
        Queue("company"),
        Queue("a", "company", quota={GPU: quota}, reclaim=a, within_queue=LOWER),
        Queue("b", "company", quota={GPU: quota}),
    ]
