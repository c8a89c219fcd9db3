"""Devices that no node has for itself: told of shared ones by capacity, of far ones once."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

from cli.endings import FINE
from cli.page.reading.room import room_report
from cli.report.room.nodes import nodes_report
from cli.report.room.totals import CapacityReport, FarReport, SharedReport, quantity
from kube.devices.device_facts import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from kube.objects.core import DeviceObject
from scheduling.devices.class_resources import class_resource
from tests.cli.fake_reader import FakeReader, run
from tests.cli.objects import node
from tests.cli.report.room.test_devices import read
from tests.kube.devices.objects import GPU, claim_spec, decoded, request
from tests.packaging.tree import ROOT

NIC = "nic.example.com"
SHARED, FAR = class_resource(GPU), class_resource(NIC)


MEMORY = "memory: 50Gi used, 0 reserved, 30Gi free of 80Gi"


def of_driver(driver: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]}


def slice_of(pool: str, driver: str, devices: Iterable[Any], **access: Any) -> DeviceObject:
    named = {"name": pool, "generation": 1, "resourceSliceCount": 1}
    return decoded(pool, {"driver": driver, "pool": named, "devices": [*devices], **access})


def given(name: str, driver: str, pool: str, device: str, memory: str = "") -> DeviceObject:
    """A claim that has a device, or a share of its memory."""
    result: dict[str, Any] = {"request": "gpu", "driver": driver, "pool": pool, "device": device}
    if memory:
        result |= {"shareID": f"id-{name}", "consumedCapacity": {"memory": memory}}
    status = {"allocation": {"devices": {"results": [result]}}}
    return decoded(name, claim_spec(request()), status)


def cluster() -> dict[str, list[Any]]:
    """Two GPUs of node a are shared, one of them is full; all nodes reach four NICs."""
    memory = {"memory": {"value": "40Gi"}}
    gpus = [
        {"name": each, "allowMultipleAllocations": True, "capacity": memory} for each in ("0", "1")
    ]
    return {
        "nodes": [node("a", gpus=0), node("b", gpus=0)],
        "pods": [],
        "gangs": [],
        DEVICE_CLASSES.plural: [decoded(each, of_driver(each)) for each in (GPU, NIC)],
        RESOURCE_SLICES.plural: [
            slice_of("a", GPU, gpus, nodeName="a"),
            slice_of("fabric", NIC, ({"name": f"{n}"} for n in range(4)), allNodes=True),
        ],
        RESOURCE_CLAIMS.plural: [
            given("c0", GPU, "a", "0", "40Gi"),
            given("c1", GPU, "a", "1", "10Gi"),
            given("c2", NIC, "fabric", "2"),
        ],
    }


def test_they_are_told_beside_the_nodes() -> None:
    report = nodes_report(read(cluster()))
    capacity = {"memory": CapacityReport("50Gi", "0", "30Gi", "80Gi")}
    assert report.shared == (SharedReport("none", SHARED, 1, 2, 1, capacity),)
    assert report.far == (FarReport("fabric", FAR, 2, 4, 1, 0, 3),)
    assert {each.resource for each in report.nodes} == {"cpu", "memory"}


def test_one_of_them_can_be_asked_for() -> None:
    report = nodes_report(read(cluster()), [FAR])
    assert (report.nodes, report.shared, len(report.far)) == ((), (), 1)
    done = run(FakeReader(cluster()), "nodes", "--resource", FAR)
    assert done.exit_code == FINE
    assert SHARED not in done.stdout
    assert "REACHED BY SEVERAL NODES" in done.stdout


def test_the_page_says_it_in_words() -> None:
    assert room_report(read(cluster())).beside == (
        f"{SHARED}, shared, pool none: 1 of 2 devices with room; {MEMORY}",
        f"{FAR}, pool fabric, reached by 2 nodes: 1 used, 0 reserved, 3 free of 4",
    )


def test_the_page_of_gpus_shows_what_the_command_prints() -> None:
    text = (ROOT / "docs" / "gpus.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```text\n(SHARED.*?)^```", text, re.MULTILINE | re.DOTALL)
    done = run(FakeReader(cluster()), "nodes")
    printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    assert shown.strip() in printed


@pytest.mark.parametrize(
    ("thousandths", "text"),
    [(0, "0"), (1500, "1500m"), (2**30 * 1000, "1Gi"), (1000 * 1000, "1000"), (2048_000, "2Ki")],
)
def test_capacity_is_written_as_kubernetes_does(thousandths: int, text: str) -> None:
    assert quantity(thousandths) == text
