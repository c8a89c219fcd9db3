"""Devices that are free once pods are gone: none that another claim has as well."""

from coordinator.deployed import state_of
from coordinator.settings import Settings
from coordinator.state.cycle.preemptible import given_back
from coordinator.state.known import Known
from scheduling.model.devices.resource_slice import DeviceID
from tests.coordinator.claimed import put_claim
from tests.kube.devices.objects import given

GONE = "uid-gone"


def known_with(**devices: list[str]) -> Known:
    """Claims by name, each of a pod that is gone but for `alive`, with these devices."""
    known = state_of(Settings.model_validate({})).known
    for name, those in devices.items():
        owner = "" if name == "alive" else GONE
        put_claim(known.cache.devices, name, owner, status=given(*those))
    return known


def freed(known: Known) -> set[str]:
    found = (each for part in given_back(known) for each in part.devices)
    return {each.device for each in found if isinstance(each, DeviceID)}


def test_claims_of_pods_that_are_gone_give_their_devices_back() -> None:
    assert freed(known_with(c=["gpu-0", "gpu-1"], alive=["gpu-2"])) == {"gpu-0", "gpu-1"}


def test_a_device_that_another_claim_has_too_is_not_given_back() -> None:
    """Of shares whose amount is not read each takes the whole device."""
    assert freed(known_with(c=["gpu-0", "gpu-1"], alive=["gpu-0"])) == {"gpu-1"}
    assert freed(known_with(alive=["gpu-0"], c=["gpu-0"])) == set()
