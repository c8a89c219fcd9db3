"""What ResourceQuotas count of claims, as Kubernetes does."""

from typing import Any

import pytest

from kube.devices.claim_quota import charges_of_claim
from kube.devices.resource_claims import resource_claim
from scheduling.model.devices.resource_claim import DeviceClass
from tests.kube.devices.objects import claim_spec, decoded, request

CLASSES = {
    "gpu": DeviceClass("gpu", (), "example.com/gpu"),
    "gpu-too": DeviceClass("gpu-too", (), "example.com/gpu"),
    "nic": DeviceClass("nic"),
}
CLAIM = {"count/resourceclaims.resource.k8s.io": 1}
OF_GPU = "gpu.deviceclass.resource.k8s.io/devices"
OF_NIC = "nic.deviceclass.resource.k8s.io/devices"
AS_CLASS = "requests.deviceclass.resource.kubernetes.io/gpu"
AS_RESOURCE = "requests.example.com/gpu"


def of(name: str, **exactly: Any) -> dict[str, Any]:
    return request(f"r-{name}", deviceClassName=name, **exactly)


def either(*alternatives: tuple[str, int]) -> dict[str, Any]:
    options = [
        {"name": f"a{n}", "deviceClassName": name, "count": count}
        for n, (name, count) in enumerate(alternatives)
    ]
    return {"name": "either", "firstAvailable": options}


@pytest.mark.parametrize(
    ("requests", "charged"),
    [
        ([], {}),
        ([of("nic", count=2)], {OF_NIC: 2}),
        ([of("nic", count=2), of("nic", count=3)], {OF_NIC: 5}),
        ([of("nic", allocationMode="All", count=0)], {OF_NIC: 32}),
        ([of("gpu", count=2)], {OF_GPU: 2, AS_CLASS: 2, AS_RESOURCE: 2}),
        ([of("gone", count=1)], {"gone.deviceclass.resource.k8s.io/devices": 1}),
        # Of each class the greatest alternative, of all classes together.
        (
            [either(("gpu", 1), ("nic", 4), ("gpu", 3)), of("nic")],
            {OF_GPU: 3, AS_CLASS: 3, AS_RESOURCE: 3, OF_NIC: 5},
        ),
    ],
)
def test_a_claim_is_charged_with_what_it_may_be_given(
    requests: list[dict[str, Any]], charged: dict[str, int]
) -> None:
    spec = resource_claim(decoded("c", claim_spec(*requests))).spec
    assert charges_of_claim(spec, CLASSES) == {**CLAIM, **charged}


def test_of_two_classes_of_one_resource_the_greater_counts() -> None:
    spec = resource_claim(decoded("c", claim_spec(of("gpu", count=1), of("gpu-too", count=3)))).spec
    assert charges_of_claim(spec, CLASSES)[AS_RESOURCE] == 3


def test_what_the_pod_was_charged_with_is_not_counted_twice() -> None:
    """The claim that kube-scheduler makes for extended resources, at PreBind."""
    spec = resource_claim(decoded("c", claim_spec(of("gpu", count=2)))).spec
    as_resource = charges_of_claim(spec, CLASSES, {AS_RESOURCE: 2, "requests.cpu": 4000})
    as_class = charges_of_claim(spec, CLASSES, {AS_CLASS: 1})
    assert as_resource == {**CLAIM, OF_GPU: 2, AS_CLASS: 2}
    assert as_class == {**CLAIM, OF_GPU: 2, AS_CLASS: 1, AS_RESOURCE: 2}
