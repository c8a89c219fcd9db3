"""Devices by claim on nodes: by class, who has them, and which are promised."""

import asyncio
import re
from typing import Any, cast

import msgspec
import pytest

from cli.endings import FINE, NotAllowed, NotServed
from cli.read.cluster import read_snapshot
from cli.read.devices import NOT_BOUND, with_devices
from cli.read.reader import Reader
from cli.report.room.nodes import NodeReport, nodes_report
from cli.report.room.sums import room_of
from cli.report.snapshot import GANGS, NODES, PODS, Snapshot
from kube.api.resources import Resource
from kube.codec.observed_pod import observe
from kube.devices.device_facts import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIMS,
)
from kube.devices.device_facts import RESOURCE_SLICES as SLICES
from kube.objects.core import DeviceObject, Pod
from scheduling.devices.class_resources import class_resource
from scheduling.model.holder import Holder
from tests.cli.fake_reader import FakeReader, run
from tests.cli.objects import GPU as PLUGIN
from tests.cli.objects import Json, Placed, gang, node, pod
from tests.kube.devices.objects import GPU, claim_spec, decoded, request
from tests.packaging.tree import ROOT

CLASS = class_resource(GPU)


def device_objects(
    *claims: DeviceObject, a: str = "a", b: str = "b"
) -> dict[str, list[DeviceObject]]:
    """Four devices on node a and two on b, a class of all of them, and these claims."""
    pool = {"generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "pool": pool, "devices": []}
    slices = [
        decoded(
            name,
            {
                **spec,
                "nodeName": name,
                "pool": {**pool, "name": name},
                "devices": [{"name": f"d{n}"} for n in range(count)],
            },
        )
        for name, count in ((a, 4), (b, 2))
    ]
    return {
        SLICES.plural: slices,
        DEVICE_CLASSES.plural: [decoded(GPU, {"selectors": []})],
        RESOURCE_CLAIMS.plural: list(claims),
    }


def claim(name: str, of: str = "", on: str = "", devices: tuple[str, ...] = ()) -> DeviceObject:
    """A claim of one device, or of those that it was given on a node, of a pod by its uid."""
    owner = [{"kind": "Pod", "name": of, "uid": of, "controller": True}] if of else []
    result = {"request": "gpu", "driver": GPU, "pool": on}
    results = [{**result, "device": each} for each in devices]
    status = {"allocation": {"devices": {"results": results}}} if devices else None
    return decoded(name, claim_spec(request()), status, ownerReferences=owner)


def claiming(name: str, on: str, claim: str, **fields: Any) -> Pod:
    """A pod of the gang `train` that has this claim from a template."""
    body = msgspec.to_builtins(pod(name, on, 0, of="train", **fields))
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    body["status"]["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": claim}]
    return msgspec.convert(body, Pod)


def placement(like: Pod, **nodes: int) -> Json:
    """So many pods on each node that are like this one."""
    member = observe(like).member
    assert member is not None
    assert member.shape is not None
    requests = {"cpu": "4", "memory": "16Gi", "pods": "1"}
    placed = {"shape": member.shape.key, "requests": requests, "nodes": nodes}
    return {
        "epoch": 1,
        "queue": "research",
        "podSets": [{"name": "workers", "assignments": [placed]}],
    }


def cluster() -> dict[str, list[Any]]:
    """One worker runs with a device of a, one is pinned there, one is still to come to b.

    A claim of nobody known has two more devices of a.
    """
    claims = [
        claim("c1", of="w-1", on="a", devices=("d0",)),
        claim("c2", of="w-2"),
        claim("lone", on="a", devices=("d1", "d2")),
    ]
    bound = claiming("w-1", "a", "c1", pinned="a")
    return {
        **device_objects(*claims),
        "nodes": [node("a", gpus=0), node("b", gpus=0), node("cpu", gpus=0)],
        "pods": [bound],
        f"pods {NOT_BOUND}": [claiming("w-2", "", "c2", pinned="a")],
        "gangs": [gang("train", "Admitted", placement=placement(bound, a=2, b=1))],
    }


def snapshot() -> Snapshot:
    found = read(cluster())
    assert found.devices is not None
    return found


def read(lists: dict[str, list[Any]]) -> Snapshot:
    """Read a cluster that has these objects."""
    return asyncio.run(_read(FakeReader(lists)))


async def _read(reader: FakeReader) -> Snapshot:
    found = await read_snapshot(cast(Reader, reader), GANGS, NODES, PODS)
    return await with_devices(cast(Reader, reader), found)


def numbers(each: NodeReport) -> tuple[int, int, int, int]:
    return each.used, each.reserved, each.free, each.allocatable


def test_a_share_of_a_device_that_is_shared_no_more_is_all_of_it() -> None:
    lists = cluster()
    lone = claim("lone", on="a", devices=("d1", "d2"))
    for each in lone.status["allocation"]["devices"]["results"]:
        each.update({"shareID": "x", "consumedCapacity": {"memory": "1Gi"}})
    lists[RESOURCE_CLAIMS.plural][-1] = lone
    found = read(lists)
    assert {each.name: numbers(each) for each in nodes_report(found).nodes}["a"] == (3, 1, 0, 4)
    room = room_of(found)
    assert room is not None
    lone_ones = Holder("ResourceClaim", "team", "lone")
    assert [dict(each.requests)[CLASS] for each in room.uses if each.holder == lone_ones] == [2]


def test_nodes_have_devices_of_a_class_that_are_used_promised_and_free() -> None:
    report = nodes_report(snapshot())
    assert {each.resource for each in report.nodes} == {CLASS}
    found = {each.name: numbers(each) for each in report.nodes}
    assert found == {"a": (3, 1, 0, 4), "b": (0, 1, 1, 2)}
    assert report.nodes_without == 1


def tainted_cluster() -> dict[str, list[Any]]:
    """The same with a taint on all devices of a, which keeps claims from those not in use."""
    lists = cluster()
    for each in lists[SLICES.plural][0].spec["devices"]:
        each["taints"] = [{"key": "broken", "effect": "NoSchedule"}]
    return lists


def there_is_on_a(reader: FakeReader) -> int:
    found = nodes_report(asyncio.run(_read(reader)))
    return next(each.allocatable for each in found.nodes if each.name == "a")


def test_devices_count_as_the_version_of_kubernetes_gives_them() -> None:
    reader = FakeReader(tainted_cluster())
    assert there_is_on_a(reader) == 3, "those that claims have"
    reader.kubernetes = "1.35"  # does nothing about taints
    assert there_is_on_a(reader) == 4


def test_devices_are_not_counted_where_the_version_is_not_told() -> None:
    reader = FakeReader(cluster())
    reader.kubernetes = ""
    found = asyncio.run(_read(reader))
    assert found.devices is None
    assert [each.message for each in found.unread] == [
        "no version here; devices of DeviceClasses are not counted"
    ]


def test_devices_count_without_the_gates_that_are_off() -> None:
    variable = {"name": "MUSTER_COORDINATOR_FEATURE_GATES_OFF", "value": '["DRADeviceTaints"]'}
    spec = {"template": {"spec": {"containers": [{"name": "coordinator", "env": [variable]}]}}}
    meta = {"name": "muster-coordinator", "namespace": "muster-system"}
    coordinator = msgspec.convert({"metadata": meta, "spec": spec}, Placed)
    lists = {**tainted_cluster(), "deployments": [coordinator]}
    assert there_is_on_a(FakeReader(lists)) == 4


def test_pools_say_how_many_pods_with_so_many_devices_fit() -> None:
    [pool] = nodes_report(snapshot()).pools
    assert (pool.resource, pool.nodes, pool.allocatable) == (CLASS, 2, 6)
    assert (pool.used, pool.reserved, pool.free) == (3, 2, 1)
    assert pool.holes == {"1": 1, "2": 0, "4": 0, "8": 0}


def test_who_has_a_device_is_said_by_the_pod_of_its_claim() -> None:
    room = room_of(snapshot())
    assert room is not None
    mine = Holder("RayCluster", "team", "train")
    found = {
        (each.holder, each.node, dict(each.requests)[CLASS], each.reserved)
        for each in room.uses
        if CLASS in dict(each.requests)
    }
    assert found >= {
        (mine, "a", 1, False),
        (mine, "a", 1, True),
        (Holder("ResourceClaim", "team", "lone"), "a", 2, False),
    }


def test_devices_of_a_plugin_and_by_claim_are_told_beside_each_other() -> None:
    lists: dict[str, list[Any]] = {**device_objects()}
    lists["nodes"] = [node("a", gpus=8), node("b", gpus=0)]
    found = asyncio.run(_read(FakeReader(lists)))
    rows = {(each.name, each.resource): each.free for each in nodes_report(found).nodes}
    assert rows == {("a", PLUGIN): 8, ("a", CLASS): 4, ("b", CLASS): 2}


def test_without_a_class_one_list_is_asked_for_and_nothing_else_is_told() -> None:
    lists = {**cluster(), DEVICE_CLASSES.plural: []}
    reader = FakeReader(lists)
    found = asyncio.run(_read(reader))
    assert found.devices is None
    assert not found.unread
    asked = {plural for plural, _, _ in reader.asked}
    assert asked == {"gangs", "nodes", "pods", DEVICE_CLASSES.plural}


@pytest.mark.parametrize("kind", [SLICES, RESOURCE_CLAIMS, DEVICE_CLASSES])
def test_a_right_that_is_missing_is_named_and_the_rest_is_shown(kind: Resource) -> None:
    no = NotAllowed(f"not allowed to read {kind.plural}")
    done = run(FakeReader(cluster(), {(kind.plural, ""): no}), "nodes")
    assert done.exit_code == FINE
    assert f"{no}; devices of DeviceClasses are not counted" in done.stderr
    assert CLASS not in done.stdout
    assert "cpu" in done.stdout


def test_who_may_not_read_the_settings_of_the_coordinator_sees_devices_by_the_defaults() -> None:
    no = NotAllowed("not allowed")
    refused = {(each, ""): no for each in ("clusterrolebindings", "deployments")}
    found = run(FakeReader(cluster(), {**refused, ("deployments", "muster-system"): no}), "nodes")
    assert found.exit_code == FINE
    assert CLASS in found.stdout


def test_where_taint_rules_are_not_served_there_are_none() -> None:
    no = NotServed("the cluster does not serve devicetaintrules")
    found = run(FakeReader(cluster(), {(DEVICE_TAINT_RULES.plural, ""): no}), "nodes")
    assert CLASS in found.stdout


def test_status_shows_the_devices_too() -> None:
    assert CLASS in run(FakeReader(cluster()), "status").stdout


def test_the_page_of_gpus_shows_what_the_command_prints() -> None:
    text = (ROOT / "docs" / "gpus.md").read_text(encoding="utf-8")
    [shown] = re.findall(r"^```\n\$ muster nodes\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    done = run(FakeReader(cluster()), "nodes")
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    assert printed[: len(shown.splitlines())] == shown.splitlines()
