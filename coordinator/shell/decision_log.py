"""Writes decisions to the log, and their counts and durations to the metrics."""

from typing import Any

import structlog

from coordinator.messages.actions import LogDecision
from coordinator.metrics import (
    ADMISSION,
    ADMISSION_WAIT,
    GIVEN_UP_PLACEMENTS,
    LATE_STARTS,
    PREEMPTIONS,
    RELEASE,
    REPAIRS,
)
from coordinator.reconcile.decisions import DELETED, GANG_STOPPED, GIVEN_UP
from scheduling.model.verdict import Reason

log = structlog.get_logger()

MOST_NODES = 10
"""Names of nodes in a line; of a larger gang the placement in its Gang has them all."""


def write(decision: LogDecision) -> None:
    """Write the line, observe the times in it, and count what was stopped or repaired."""
    log.info(decision.what, **_fields(decision))
    _observe(decision)
    if decision.what == GANG_STOPPED and decision.reason == Reason.READY_TIMEOUT:
        LATE_STARTS.labels(decision.queue).inc()
    if decision.preempted:
        count = decision.replicas or 1
        PREEMPTIONS.labels(decision.queue, decision.preempted).inc(count)
    if decision.what == DELETED:
        REPAIRS.labels(decision.reason).inc(decision.pods)
    if decision.what == GIVEN_UP:
        GIVEN_UP_PLACEMENTS.labels(decision.reason).inc()


def _observe(decision: LogDecision) -> None:
    if decision.started and decision.seconds is not None:
        ADMISSION_WAIT.labels(decision.queue).observe(decision.seconds)
    if decision.asked_for is not None:
        ADMISSION.observe(decision.asked_for)
    if decision.released_in is not None:
        RELEASE.observe(decision.released_in)


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
