"""Nodes with the gangs on their GPUs, queues and jobs, and the rights that are missing."""

from typing import Any

import msgspec
from aiohttp import ClientSession

from tests.cli.page.reading.fake_api import FakeApi, Json, gang
from tests.cli.report.room.test_devices import CLASS, device_objects
from tests.cli.report.room.test_devices import claim as device_claim

GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 8, **spec: Any) -> Json:
    allocatable = {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: str(gpus)}
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(name: str, on: str, gpus: int, of: str = "") -> Json:
    meta: Json = {"name": name, "namespace": "team", "uid": name}
    if of:
        owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": of, "uid": f"uid-{of}"}
        meta["ownerReferences"] = [{**owner, "controller": True}]
    requests = {"cpu": "4", GPU: str(gpus)}
    spec = {"nodeName": on, "containers": [{"name": "c", "resources": {"requests": requests}}]}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running"}}


def placed(name: str, **nodes: int) -> Json:
    """A gang that has its place, and no pod yet."""
    assignment = {"shape": "s", "requests": {GPU: "2"}, "nodes": nodes}
    sets = [{"name": "w", "assignments": [assignment]}]
    found = gang(name, phase="Admitted", placement={"queue": "research", "podSets": sets})
    found["spec"]["rayClusterUid"] = f"uid-{name}"
    return found


def filled(api: FakeApi) -> FakeApi:
    api.objects["nodes"] = [node("n1"), node("n2", unschedulable=True), node("cpu", 0)]
    api.objects["pods"] = [pod("p", "n1", 3, "train"), pod("q", "n1", 1)]
    api.objects["gangs"] = [placed("next", n1=1)]
    spec = {"quota": {GPU: 16}, "parent": "company"}
    status = {"usage": {GPU: "18"}, "borrowed": {GPU: "2"}}
    api.objects["gangqueues"] = [
        {"metadata": {"name": "research"}, "spec": spec, "status": status},
        {"metadata": {"name": "company"}, "spec": {}, "status": {}},
    ]
    return api


async def room(page: ClientSession, query: str = "") -> Any:
    async with page.get(f"room{query}") as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_each_gpu_is_used_reserved_or_free(api: FakeApi, page: ClientSession) -> None:
    filled(api)
    found = await room(page)
    first, second = found["nodes"]
    assert (first["name"], first["allocatable"], first["free"]) == ("n1", 8, 2)
    assert [(e["holder"], e["gang"], e["amount"], e["reserved"]) for e in first["uses"]] == [
        ("Namespace team", "", 1, False),
        ("RayCluster team/train", "team/train", 3, False),
        ("RayCluster team/next", "team/next", 2, True),
    ]
    assert (second["off"], second["uses"]) == ("cordoned", [])
    assert (found["nodesWithout"], found["lacks"], found["unread"]) == (1, [], [])


async def test_a_device_by_claim_is_used_or_free_by_its_class(
    api: FakeApi, page: ClientSession
) -> None:
    """Who has it is the holder of the pod that its claim is of."""
    claim = device_claim("c", of="p", on="n1", devices=("d0",))
    api.objects |= {
        plural: [msgspec.to_builtins(each) for each in found]
        for plural, found in device_objects(claim, a="n1").items()
    }
    filled(api)
    found = await room(page)
    [devices] = [each for each in found["nodes"] if each["resource"] == CLASS]
    assert (devices["name"], devices["allocatable"], devices["free"]) == ("n1", 4, 3)
    uses = [(each["holder"], each["gang"], each["amount"]) for each in devices["uses"]]
    assert uses == [("RayCluster team/train", "team/train", 1)]


async def test_the_right_to_devices_is_named_where_it_is_missing(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects |= {
        plural: [msgspec.to_builtins(each) for each in found]
        for plural, found in device_objects(a="n1").items()
    }
    filled(api).forbidden = {("resourceslices", "")}
    found = await room(page)
    assert len(found["nodes"]) == 2
    [lacks] = found["lacks"]
    assert "resourceslices" in lacks
    assert "muster-viewer" in lacks


async def test_queues_are_a_tree_with_quota_usage_and_what_is_borrowed(
    api: FakeApi, page: ClientSession
) -> None:
    filled(api)
    found = await room(page)
    assert [(each["name"], each["depth"]) for each in found["queues"]] == [
        ("company", 0),
        ("research", 1),
    ]
    (gpus,) = found["queues"][1]["resources"]
    assert (gpus["used"], gpus["quota"], gpus["borrowed"]) == ("18", "16", "2")


async def test_without_the_right_to_nodes_it_is_named_and_the_queues_are_there(
    api: FakeApi, page: ClientSession
) -> None:
    filled(api).forbidden = {("nodes", ""), ("pods", "")}
    found = await room(page)
    assert (found["nodesKnown"], found["nodes"]) == (False, [])
    assert found["lacks"] == ["list nodes and pods of all namespaces (ClusterRole muster-viewer)"]
    assert len(found["queues"]) == 2


async def test_who_may_get_a_queue_of_its_gangs_sees_that_one(
    api: FakeApi, page: ClientSession
) -> None:
    """Lists are refused; single queues are read by name."""
    filled(api).forbidden = {("gangs", ""), ("nodes", ""), ("pods", "")}
    found = await room(page)
    assert any("only gangs of namespace team" in each for each in found["unread"])
    assert "list Gangs of all namespaces (ClusterRole muster-viewer)" in found["lacks"]


async def test_who_may_read_no_gang_still_sees_the_rest(api: FakeApi, page: ClientSession) -> None:
    filled(api).forbidden = {("gangs", ""), ("gangs", "team")}
    found = await room(page)
    assert len(found["nodes"]) == 2
    assert any("not allowed to read gangs" in each for each in found["unread"])


async def test_jobs_say_how_far_they_are_and_why_they_wait(
    api: FakeApi, page: ClientSession
) -> None:
    meta: Json = {"name": "nightly", "namespace": "team"}
    spec = {"entrypoint": "python train.py", "clusterSelector": {"ray.io/cluster": "a"}}
    api.objects["rayjobs"] = [{"metadata": meta, "spec": spec, "status": {}}]
    api.objects["gangs"] = [gang("a")]
    async with page.get("jobs", params={"namespace": "team"}) as answer:
        (found,) = (await answer.json())["jobs"]
    assert (found["cluster"], found["reason"]) == ("a", "InsufficientResources")
    async with page.get("jobs", params={"namespace": "team,lab"}) as answer:
        assert answer.status == 400
