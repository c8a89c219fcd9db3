"""Devices by claim: which clusters they are decided in, and which gangs a change concerns."""

import pytest

from coordinator.cluster.devices import Devices
from coordinator.deployed import state_of
from coordinator.messages.events import DeviceApiSeen
from coordinator.settings import Settings
from coordinator.shell.app import state_settings
from kube.devices.device_classes import device_class
from kube.devices.device_facts import DEVICE_WATCHES
from scheduling.model.gang import GangKey
from tests.coordinator.builders import TEAM
from tests.coordinator.claimed import known_devices, put_claim, worker
from tests.kube.devices.objects import decoded

GANG = GangKey(TEAM, "a")


@pytest.mark.parametrize(
    ("version", "served", "said"),
    [
        (
            "1.33",
            False,
            "resourceClaims on Kubernetes 1.33, which does not serve resource.k8s.io/v1",
        ),
        (
            "1.32",
            True,
            "resourceClaims on Kubernetes 1.32 (ask for the extended resource of a device",
        ),
        ("odd", True, "resourceClaims on Kubernetes odd"),
        ("1.34", True, ""),
        ("1.36", True, ""),
        ("1.37", True, ""),
        ("2.0", True, ""),
    ],
)
def test_claims_are_decided_from_kubernetes_1_34_on(version: str, served: bool, said: str) -> None:
    devices = Devices()
    assert devices.put_api(DeviceApiSeen(version, served))
    assert devices.unsupported.startswith(said)
    assert bool(devices.unsupported) == bool(said)
    assert not devices.put_api(DeviceApiSeen(version, served))


def test_a_class_gives_a_resource_from_kubernetes_1_36_on() -> None:
    devices = Devices()
    devices.index.put(device_class(decoded("gpu", {"extendedResourceName": "example.com/gpu"})))
    given = devices.index.classes_of_resources
    assert given["example.com/gpu"] == "gpu"
    devices.put_api(DeviceApiSeen("1.35", served=True))
    assert devices.index.classes_of_resources == {}
    devices.put_api(DeviceApiSeen("1.36", served=True))
    assert devices.index.classes_of_resources == given


def test_a_class_gives_none_where_kube_scheduler_runs_without_the_gate() -> None:
    settings = Settings.model_validate({"feature_gates_off": '["DRAExtendedResource"]'})
    for cache in (state_of(settings).known.cache, state_settings(settings).build().known.cache):
        cache.devices.index.put(
            device_class(decoded("gpu", {"extendedResourceName": "example.com/gpu"}))
        )
        cache.devices.put_api(DeviceApiSeen("1.37", served=True))
        assert cache.devices.index.classes_of_resources == {}


def test_what_is_not_known_yet_is_named() -> None:
    devices = Devices()
    assert devices.unseen == "the version of Kubernetes"
    devices.put_api(DeviceApiSeen("1.37", served=True))
    for watch in DEVICE_WATCHES[1:]:
        devices.index.see(watch.fact)
    assert devices.unseen == "resourceslices"
    devices.index.see(DEVICE_WATCHES[0].fact)
    assert devices.unseen == ""


def test_a_claim_concerns_the_gangs_whose_pods_name_it_until_they_are_gone() -> None:
    pods = worker(0, "w-0-gpu"), worker(1)
    devices = known_devices(*pods)
    put_claim(devices, "w-0-gpu", "uid-0")
    put_claim(devices, "other")
    claims, template = devices.index.claims, devices.index.templates[TEAM, "one"]
    assert devices.gangs_of(claims[TEAM, "w-0-gpu"]) == {GANG}
    assert devices.gangs_of(claims[TEAM, "other"]) == set()
    assert devices.gangs_of(template) == {GANG}
    assert devices.gangs == {GANG}
    for pod in pods:
        devices.count(pod, -1)
    assert devices.gangs == set()
    assert devices.gangs_of(template) == set()
    assert not devices._by_claim
    assert not devices._by_template


def test_pods_without_claims_leave_no_trace() -> None:
    assert known_devices(worker(0, None)).gangs == set()
