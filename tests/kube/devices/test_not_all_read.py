"""Devices of which not all is read: what is not known of them is never taken for a no."""

from typing import Any

import pytest

from kube.devices.resource_claims import claim_spec as read_claim
from kube.devices.resource_slices import resource_slice
from kube.devices.selectors import CelSelectors
from scheduling.devices.allocator import allocate
from scheduling.devices.outcome import Allocated, Outcome, Unsupported
from scheduling.devices.pools import SliceIndex, gather_pools
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.in_use import NOTHING
from scheduling.model.devices.resource_claim import DeviceClass
from scheduling.model.node import Node
from tests.kube.devices.objects import GPU, claim_spec, decoded, gpu, request, slice_spec

NODE = Node("node-1", {}, (), False, {})
RULES = Rules({GPU: DeviceClass(GPU)}, CelSelectors())


def outcome(asked: dict[str, Any], *devices: dict[str, Any]) -> Outcome:
    """Return what a claim is given on a node with these devices."""
    found = resource_slice(decoded("s", slice_spec(*devices))).resource_slice
    pools = gather_pools(NODE, SliceIndex([found]), RULES.features)
    return allocate([read_claim(asked, "spec")], pools, NOTHING, RULES, StepBudget(1000))


def shared(name: str, **memory: Any) -> dict[str, Any]:
    return gpu(name, allowMultipleAllocations=True) | {"capacity": {"memory": memory}}


@pytest.mark.parametrize("mode", ["All", "ExactCount"])
@pytest.mark.parametrize(
    ("memory", "said"),
    [
        ({"value": "80000000000000001n"}, "capacity[memory].value is not counted"),
        ({}, "capacity[memory] has no value"),
        ({"value": "8", "requestPolicy": {"unit": "1"}}, "requestPolicy.unit is not known"),
    ],
)
def test_a_shared_device_whose_capacity_is_not_read_is_not_left_out(
    mode: str, memory: dict[str, Any], said: str
) -> None:
    """kube-scheduler may well give it, or refuse the node as it is among all."""
    asked = claim_spec(request(allocationMode=mode, capacity={"requests": {"memory": "10Gi"}}))
    found = outcome(asked, shared("odd", **memory), shared("even", value="80Gi"))
    assert isinstance(found, Unsupported), found
    assert said in found.feature


@pytest.mark.parametrize("mode", ["All", "ExactCount"])
@pytest.mark.parametrize("kind", ["matchAttribute", "distinctAttribute"])
@pytest.mark.parametrize("value", [{"ints": [1]}, {"int": 1, "unit": "GB"}, {"float": 0.5}])
@pytest.mark.parametrize("name", ["numa", f"{GPU}/numa"])
def test_an_attribute_that_is_not_read_is_not_absent(
    mode: str, kind: str, value: dict[str, Any], name: str
) -> None:
    """kube-scheduler takes the value that it reads, whatever constraint is on it."""
    odd = gpu("odd", attributes={name: value})
    even = gpu("even", attributes={"numa": {"int": 1}})
    constraint = {kind: f"{GPU}/numa"}
    found = outcome(claim_spec(request(allocationMode=mode), constraints=[constraint]), odd, even)
    assert isinstance(found, Unsupported), found
    assert found.feature.startswith(f"attributes[{name}]")


def test_a_device_is_passed_over_for_what_is_read_of_it() -> None:
    odd = gpu("odd", attributes={"ids": {"ints": [1]}})
    even = gpu("even", attributes={"numa": {"int": 1}})
    constraint = {"matchAttribute": f"{GPU}/numa"}
    assert isinstance(
        outcome(claim_spec(request(), constraints=[constraint]), odd, even), Allocated
    )
