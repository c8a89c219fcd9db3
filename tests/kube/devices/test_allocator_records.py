"""The tables of the real allocator, read as a watch reads them and selected by our own CEL.

tests/scheduling/devices has the same with the answers of the real CEL: what differs is of the
reading or of the selectors.
"""

from collections import Counter
from typing import Any

import pytest

from kube.devices.device_classes import device_class
from kube.devices.resource_claims import resource_claim
from kube.devices.resource_slices import resource_slice
from kube.devices.selectors import CelSelectors
from kube.objects.core import DeviceObject
from scheduling.devices.allocator import allocate
from scheduling.devices.outcome import Outcome, Unsupported
from scheduling.devices.pools import SliceIndex, gather_pools
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.node import Node
from tests.kube.devices.objects import decoded
from tests.scheduling.devices.reading import question
from tests.scheduling.devices.recorded import records
from tests.scheduling.devices.test_allocator_records import STEPS, read, told

RECORDS = list(records())


def objects(record: dict[str, Any], kind: str) -> list[DeviceObject]:
    found = record["Input"][kind] or ()
    return [decoded(each["metadata"]["name"], each["spec"]) for each in found]


def outcome(record: dict[str, Any], *, all_features: bool) -> Outcome:
    asked = question(record, all_features=all_features)
    slices = [resource_slice(each).resource_slice for each in objects(record, "Slices")]
    read = [device_class(each).device_class for each in objects(record, "Classes")]
    claims = [resource_claim(each).spec for each in objects(record, "Claims")]
    rules = Rules({each.name: each for each in read}, CelSelectors(), asked.rules.features)
    node: Node = asked.node
    pools = gather_pools(node, SliceIndex(slices), rules.features)
    return allocate(claims, pools, asked.in_use, rules, StepBudget(STEPS))


@pytest.mark.parametrize("all_features", [False, True], ids=["as in the case", "all features"])
def test_answers_as_the_real_allocator(all_features: bool) -> None:
    judged: Counter[str] = Counter()
    wrong = []
    for record in RECORDS:
        found = outcome(record, all_features=all_features)
        if isinstance(found, Unsupported):
            continue
        for version, answers in record["Answers"].items():
            judged[version] += 1
            if told(found) != read(answers[all_features]):
                wrong.append((record["Name"], version, found, answers[all_features]))
    assert wrong == []
    if all_features:
        assert judged == {"1.36.3": 172, "1.37.2": 184}
