"""The allocator against the real one's answers to its own tables, of two versions of Kubernetes."""

from collections import Counter
from typing import Any

import pytest

from kube.devices.capacity import thousandths
from scheduling.devices.allocator import allocate
from scheduling.devices.outcome import Allocated, NotAllocated, Outcome, Refusal, Unsupported
from scheduling.devices.search.constraints import DISTINCT
from scheduling.devices.steps import StepBudget
from scheduling.devices.wanted import FULL_SHARED
from scheduling.model.devices.resource_claim import AllocatedDevice
from tests.scheduling.devices.reading import question
from tests.scheduling.devices.recorded import records

RECORDS = list(records())
STEPS = 100_000

LEFT_OUT = {
    "adminAccess": 9,
    "allocationMode": 1,  # one that does not exist yet
    "attributes": 3,  # of a type that is behind an alpha gate
    "binding conditions of devices": 11,
    "capacities": 1,  # of a device, that are not counted in thousandths up to 2^62
    "capacity": 5,  # that is not counted in thousandths up to 2^62
    "compatibilityGroups": 2,  # behind an alpha gate
    "constraints": 1,  # one that does not exist yet
    "counters in pools of two drivers that have one name": 2,
    "counters of a device of which shares without capacity are taken": 1,
    "counters that devices of several nodes share": 5,
    DISTINCT: 3,
    FULL_SHARED: 1,
    "quantities beyond 64 bits, or with parts below 1n": 1,
    "selectors": 1,  # of a type that does not exist yet
    "steps of a capacity that are no whole numbers": 2,  # behind a gate of 1.37
}
"""How many of the inputs stay without an answer, by what they use."""

KINDS = {Refusal.NO_DEVICES: "", Refusal.POOL_INVALID: "node"}
"""What the real allocator makes of a refusal; all others are errors."""


def outcome(record: dict[str, Any], *, all_features: bool) -> Outcome:
    asked = question(record, all_features=all_features)
    return allocate(asked.claims, asked.pools, asked.in_use, asked.rules, StepBudget(STEPS))


def told(found: Outcome) -> dict[str, Any] | None:
    """Return an outcome as the recorder writes it; None where nothing is claimed."""
    match found:
        case Allocated(claims):
            devices = [[_row(each) for each in claim] for claim in claims]
            return {"Results": devices, "Error": ""}
        case NotAllocated(refusal):
            return {"Results": [], "Error": KINDS.get(refusal, "error")}
        case _:
            return None


def _row(given: AllocatedDevice) -> list[Any]:
    shares = [] if given.consumed is None else [dict(given.consumed)]
    return [given.request, *given.device, *shares]


def read(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a recorded answer with amounts in thousandths."""
    rows = [[[*map(_amounts, row)] for row in claim] for claim in answer["Results"]]
    return {**answer, "Results": rows}


def _amounts(part: Any) -> Any:
    return {k: thousandths(v) for k, v in part.items()} if isinstance(part, dict) else part


@pytest.mark.parametrize("all_features", [False, True], ids=["as in the case", "all features"])
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["Name"])
def test_answers_as_the_real_allocator(record: dict[str, Any], all_features: bool) -> None:
    found = outcome(record, all_features=all_features)
    if told(found) is None:
        assert isinstance(found, Unsupported), "these tables take few steps"
        return
    for answers in record["Answers"].values():
        assert told(found) == read(answers[all_features])


def test_leaves_out_what_is_not_modelled_and_nothing_else() -> None:
    left_out: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for record in RECORDS:
        found = outcome(record, all_features=True)
        if isinstance(found, Unsupported):
            left_out[found.feature] += 1
        else:
            judged.update(record["Answers"].keys())
    assert judged == {"1.36.3": 173, "1.37.2": 185}
    assert left_out == LEFT_OUT
