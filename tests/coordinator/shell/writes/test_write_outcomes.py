"""How a failed write is counted: by whether it may yet have been carried out."""

import pytest
from prometheus_client import REGISTRY

from coordinator.shell.writes.write_outcomes import Outcomes
from kube.api.errors import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    ServerError,
    Timeout,
    Unreachable,
)
from tests.metrics import total


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Timeout("late"), "unknown"),
        (ServerError(500, "InternalError"), "unknown"),
        (Unreachable("broken", sent=True), "unknown"),
        (Unreachable("no connection", sent=False), "error"),
        (Forbidden(403, "Forbidden", "no right"), "error"),
        (Conflict(409, "Conflict"), "conflict"),
        (Invalid(422, "Invalid"), "conflict"),
    ],
    ids=str,
)
def test_a_failed_write_is_counted_by_its_outcome(error: KubeError, outcome: str) -> None:
    def counted() -> float:
        return total(REGISTRY, "muster_writes_total", what="gang_status", outcome=outcome)

    before, outcomes = counted(), Outcomes()
    outcomes.failed("gang_status", error)
    assert counted() == before + 1
    assert outcomes.in_doubt is (outcome == "unknown")
