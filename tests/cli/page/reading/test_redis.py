"""The report of the built-in Redis, or what is missing."""

import json

from aiohttp import ClientSession

from tests.cli.page.reading.fake_api import FakeApi, Json


def reported(name: str = "train") -> Json:
    """The ConfigMap with a report: a primary, a replica that is behind, and one that is away."""
    state = {"answers": True, "memory": 2048, "maxMemory": 4096}
    report = {
        "at": "2026-11-27T12:00:00Z",
        "primary": "a:1",
        "servers": [
            {"name": "a:1", "role": "master", **state},
            {"name": "b:1", "role": "slave", "lag": 1024, **state},
            {"name": "c:1", "answers": False},
        ],
        "clusters": [{"namespace": "team", "name": name, "bytes": 512}],
    }
    meta = {"name": "muster-redis-report", "namespace": "muster-system"}
    return {"metadata": meta, "data": {"report.json": json.dumps(report)}}


async def test_primary_lag_memory_and_clusters_are_told(api: FakeApi, page: ClientSession) -> None:
    api.objects["configmaps"] = [reported()]
    async with page.get("redis") as answer:
        assert answer.status == 200, await answer.text()
        found = await answer.json()
    assert found["primary"] == "a:1"
    told = [(each["answers"], each["memory"], each["lag"]) for each in found["servers"]]
    assert told == [(True, 2048, None), (True, 2048, 1024), (False, 0, None)]
    assert found["clusters"] == [{"namespace": "team", "name": "train", "bytes": 512}]


async def test_where_there_is_none_it_says_so(page: ClientSession) -> None:
    async with page.get("redis") as answer:
        assert answer.status == 404
        assert "muster-redis-report" in (await answer.json())["fault"]


async def test_whoever_may_not_read_it_is_told(api: FakeApi, page: ClientSession) -> None:
    api.forbidden.add(("configmaps", "muster-system"))
    async with page.get("redis") as answer:
        assert answer.status == 403
