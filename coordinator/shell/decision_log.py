"""Writes decisions to the log, and how long gangs waited to the metrics."""

from typing import Any

import structlog

from coordinator.messages.actions import LogDecision
from coordinator.metrics import ADMISSION_WAIT, LATE_STARTS, PREEMPTIONS
from coordinator.reconcile.decisions import GANG_STOPPED
from scheduling.model.verdict import Reason

log = structlog.get_logger()

MOST_NODES = 10
"""Names of nodes in a line; of a larger gang the placement in its Gang has them all."""


def write(decision: LogDecision) -> None:
    """Write the line, observe the wait that has ended, and count what was preempted."""
    log.info(decision.what, **_fields(decision))
    if decision.started and decision.seconds is not None:
        ADMISSION_WAIT.observe(decision.seconds)
    if decision.what == GANG_STOPPED and decision.reason == Reason.READY_TIMEOUT:
        LATE_STARTS.labels(decision.queue).inc()
    if decision.preempted:
        count = decision.replicas or 1
        PREEMPTIONS.labels(decision.queue, decision.preempted).inc(count)


def _fields(decision: LogDecision) -> dict[str, Any]:
    """The fields that say something; the number of nodes beside the names where some are left out.

    Strings are those of users and of the API server: they stay values, never part of the line.
    """
    fields = {
        "pods": decision.pods,
        "nodes": decision.nodes[:MOST_NODES],
        "more_nodes": len(decision.nodes[MOST_NODES:]),
        "reason": str(decision.reason),
        "message": decision.message,
    }
    found = {key: value for key, value in fields.items() if value}
    if decision.seconds is not None:
        found["seconds"] = round(decision.seconds, 3)
    return {"gang": str(decision.gang), "queue": decision.queue, **found}
