"""The page of one Ray cluster: what it shows at once, what it asks for apart, what is refused."""

from typing import Any

import pytest
from aiohttp import ClientSession
from yarl import URL

from tests.cli.page.reading.fake_api import FakeApi, Json, gang, ray_cluster

HTML = "<img src=x onerror=alert(1)>"


def pod(name: str, group: str = "w", node: str = "", **status: Any) -> Json:
    kind = "head" if group == "headgroup" else "worker"
    labels = {"ray.io/cluster": "a", "ray.io/group": group, "ray.io/node-type": kind}
    spec: Json = {"containers": [{"name": "ray"}, {"name": "autoscaler"}]}
    spec["initContainers"] = [{"name": "wait-gcs-ready"}]
    spec |= {"nodeName": node} if node else {"schedulingGates": [{"name": "muster.dev/gang"}]}
    meta = {"name": name, "namespace": "team", "labels": labels}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending", **status}}


def event(uid: str, reason: str, message: str = "") -> Json:
    return {
        "metadata": {"name": f"{uid}-{reason}", "namespace": "team"},
        "involvedObject": {"uid": uid},
        "reason": reason,
        "message": message,
        "lastTimestamp": "2026-01-01T00:05:00Z",
    }


@pytest.fixture
def api(api: FakeApi) -> FakeApi:
    api.objects["rayclusters"] = [ray_cluster("a")]
    api.objects["gangs"] = [gang("a", podSets=[{"name": "w", "count": 4, "message": "2 of 4 fit"}])]
    ready: Json = {"containerStatuses": [{"name": "ray", "ready": True}]}
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": HTML}}
    pulls: Json = {"containerStatuses": [{"name": "ray", "ready": False, "state": waiting}]}
    api.objects["pods"] = [
        pod("a-w-10", node="n-2", **pulls),
        pod("a-w-2"),
        pod("a-head", "headgroup", "n-1", phase="Running", **ready),
    ]
    api.objects["events"] = [event("uid-a", "Created", HTML), event("gang-a", "QuotaExceeded")]
    return api


async def got(page: ClientSession, path: str, status: int = 200) -> Any:
    async with page.get(path) as answer:
        assert answer.status == status, await answer.text()
        assert answer.content_type == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        return await answer.json()


async def test_it_shows_the_gang_the_pods_their_nodes_and_what_happened(
    api: FakeApi, page: ClientSession
) -> None:
    found = await got(page, "clusters/team/a")
    assert (found["state"], found["gang"]["phase"], found["gang"]["waits"]) == (
        "ready",
        "Queued",
        True,
    )
    assert found["gang"]["message"] == "2 of 4 w fit"
    assert found["gang"]["podSets"][0]["message"] == "2 of 4 fit"
    assert [(each["name"], each["node"], each["ready"]) for each in found["pods"]] == [
        ("a-head", "n-1", True),
        ("a-w-2", "", False),
        ("a-w-10", "n-2", False),
    ]
    assert [each["gated"] for each in found["pods"]] == [False, True, False]
    assert found["pods"][0]["containers"] == ["ray", "autoscaler", "wait-gcs-ready"]
    assert found["groups"][0]["replicas"] == 4
    assert [each["of"] for each in found["timeline"]["moments"]] == ["RayCluster", "Gang"]
    assert found["links"] == [{"name": "ray", "address": "https://ray.example.com/team/a"}]
    assert found["unread"] == []


async def test_what_tenants_write_comes_as_it_is_for_texts_of_the_page(
    api: FakeApi, page: ClientSession
) -> None:
    found = await got(page, "clusters/team/a")
    assert found["pods"][2]["reason"] == f"ImagePullBackOff: {HTML}"
    assert HTML in [each["message"] for each in found["timeline"]["moments"]]


async def test_it_asks_for_nothing_of_the_whole_cluster(api: FakeApi, page: ClientSession) -> None:
    """It is quick however much there is beside it; who holds the room is asked for apart."""
    await got(page, "clusters/team/a")
    assert all("/namespaces/team/" in each.path for each in api.asked)
    await got(page, "gangs/team/a/why")
    assert any(each.path.endswith("/v1alpha1/gangqueues") for each in api.asked)


async def test_one_that_is_no_gang_says_what_would_make_it_one(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects["gangs"] = []
    api.objects["namespaces"] = [{"metadata": {"name": "team"}}]
    found = await got(page, "clusters/team/a")
    assert found["gang"] is None
    assert found["noGang"] == (
        'is no gang; set label muster.dev/gang: "true" on it or on its namespace'
    )


@pytest.mark.parametrize("plural", ["gangs", "pods", "events"])
async def test_what_may_not_be_read_is_said_and_the_rest_is_there(
    api: FakeApi, page: ClientSession, plural: str
) -> None:
    api.forbidden = {(plural, "team")}
    found = await got(page, "clusters/team/a")
    assert found["name"] == "a"
    assert len(found["unread"]) == 1
    assert f"not allowed to read {plural}" in found["unread"][0]
    assert found["noGang"] == ""


async def test_one_that_is_not_there_or_may_not_be_read_is_a_fault(
    api: FakeApi, page: ClientSession
) -> None:
    assert (await got(page, "clusters/team/none", 404))["fault"] == (
        "no RayCluster none in namespace team"
    )
    api.forbidden = {("rayclusters", "team")}
    assert "not allowed to read rayclusters" in (await got(page, "clusters/team/a", 403))["fault"]


@pytest.mark.parametrize(
    "path",
    [
        "clusters/team/%2e%2e",
        "clusters/%2e%2e/a",
        "clusters/team/..%2f..%2fsecrets",
        "clusters/team/a%2fstatus",
        "clusters/team/a%00",
        "clusters/team/a%3fwatch=true",
        "clusters/team/%3Cscript%3E",
        "gangs/team/..%2fx/why",
        "logs/team/..%2f..%2fkube-system%2fpods%2fetcd?container=c",
        "logs/team/a?container=..%2fx",
        "jobs/team/a%5cb/log",
    ],
)
async def test_no_path_leads_elsewhere(
    api: FakeApi, page: ClientSession, address: str, path: str
) -> None:
    raw = URL(f"{address}api/{path}", encoded=True)  # as it stands here, and not tidied up
    async with page.get(raw) as answer:
        assert answer.status in (400, 404)
        assert answer.content_type in ("application/json", "text/plain")
    assert api.asked == []
