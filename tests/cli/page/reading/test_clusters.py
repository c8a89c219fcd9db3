"""The list of Ray clusters: in pieces, with what each gang says, and as far as the person may."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import ClientSession, web

from cli.page.reading.clusters import cluster_pieces
from tests.cli.page.reading.fake_api import FakeApi, Json, client_of, gang, ray_cluster

TABLE = "application/json;as=Table;g=meta.k8s.io;v=v1"


async def listed(page: ClientSession, query: str = "") -> list[Json]:
    async with page.get(f"clusters{query}") as answer:
        assert (answer.status, answer.content_type) == (200, "application/x-ndjson")
        return [json.loads(each) for each in (await answer.text()).splitlines()]


def joined(pieces: list[Json], of: str) -> list[Any]:
    return [row for piece in pieces for row in piece.get(of, [])]


def unread(pieces: list[Json]) -> list[str]:
    return [each["unread"] for each in pieces if "unread" in each]


async def test_clusters_and_gangs_come_as_tables_and_no_object_is_asked_for(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects["rayclusters"] = [ray_cluster("a"), ray_cluster("plain", "lab")]
    api.objects["gangs"] = [gang("a")]
    pieces = await listed(page)
    assert joined(pieces, "clusters")[0] == {
        "namespace": "team",
        "name": "a",
        "gang": "a",
        "state": "ready",
        "desired": 4,
        "ready": 2,
        "gpus": "32",
        "created": "2026-01-01T00:00:00Z",
        "owner": "",
    }
    assert joined(pieces, "gangs") == [
        {
            "namespace": "team",
            "name": "a",
            "phase": "Queued",
            "queue": "research",
            "position": 1,
            "ready": "0/5",
            "reason": "InsufficientResources",
            "message": "2 of 4 w fit",
        }
    ]
    assert pieces[-1] == {"whole": True}
    assert {each.headers["Accept"] for each in api.asked} == {TABLE}


async def test_a_long_list_comes_in_pages_the_first_one_small(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects["rayclusters"] = [ray_cluster(f"c-{at}") for at in range(700)]
    pieces = await listed(page)
    assert [len(each["clusters"]) for each in pieces if "clusters" in each] == [100, 500, 100]
    assert [each["name"] for each in joined(pieces, "clusters")] == [f"c-{at}" for at in range(700)]
    assert joined(pieces, "clusters")[-1]["gpus"] == "32"  # columns stand in the first page alone


async def test_the_first_rows_are_sent_before_the_rest_is_read(api: FakeApi) -> None:
    rest = asyncio.Event()

    class Slow(FakeApi):
        async def handle(self, request: web.Request) -> web.StreamResponse:
            if "continue" in request.query:
                await rest.wait()
            return await super().handle(request)

    slow = Slow()
    slow.objects["rayclusters"] = [ray_cluster(f"c-{at}") for at in range(300)]
    async with client_of(slow) as client:
        pieces = cluster_pieces(client, (), "")
        seen = [await anext(pieces), await anext(pieces)]  # of both lists
        assert sum(len(each.clusters) for each in seen) == 100
        rest.set()
        assert sum([len(each.clusters) async for each in pieces]) == 200


async def test_one_of_an_app_wrapper_is_joined_with_the_gang_of_that(
    api: FakeApi, page: ClientSession
) -> None:
    owner = {"kind": "AppWrapper", "name": "aw", "uid": "u", "controller": True}
    labels = {"muster.dev/app-wrapper": "aw", "muster.dev/app-wrapper-uid": "u"}
    wrapped = ray_cluster("w", metadata={"labels": labels, "ownerReferences": [owner]})
    forged = ray_cluster("f", metadata={"labels": labels})
    api.objects["rayclusters"] = [wrapped, forged]
    rows = joined(await listed(page), "clusters")
    assert [(each["gang"], each["owner"]) for each in rows] == [
        ("appwrapper.aw", "AppWrapper aw"),
        ("f", ""),
    ]


async def test_an_app_wrapper_is_named_as_the_owner_though_it_is_no_controller(
    api: FakeApi, page: ClientSession
) -> None:
    """As the commands say whose it is, which change nothing of it."""
    owner = {"kind": "AppWrapper", "name": "aw", "uid": "u"}
    api.objects["rayclusters"] = [ray_cluster("w", metadata={"ownerReferences": [owner]})]
    assert [each["owner"] for each in joined(await listed(page), "clusters")] == ["AppWrapper aw"]


async def test_who_may_list_one_namespace_gets_that_one_and_is_told(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects["rayclusters"] = [ray_cluster("a"), ray_cluster("b", "lab")]
    api.forbidden = {("rayclusters", ""), ("gangs", "")}
    pieces = await listed(page)
    assert [each["name"] for each in joined(pieces, "clusters")] == ["a"]
    assert any(each.get("choose") for each in pieces)
    said = unread(pieces)
    assert any("rayclusters.ray.io in all namespaces: ada may not list them" in e for e in said)
    assert all(each.endswith("only those of namespace team are shown") for each in said)


async def test_namespaces_that_are_named_are_asked_one_by_one(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects["rayclusters"] = [ray_cluster("a"), ray_cluster("b", "lab"), ray_cluster("c", "x")]
    api.forbidden = {("rayclusters", ""), ("rayclusters", "x"), ("gangs", "x")}
    pieces = await listed(page, "?namespace=lab,team,%20x")
    assert [each["name"] for each in joined(pieces, "clusters")] == ["b", "a"]
    assert len(unread(pieces)) == 2
    assert all("in namespace x" in each for each in unread(pieces))


async def test_without_the_right_to_gangs_the_clusters_are_there(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects["rayclusters"] = [ray_cluster("a")]
    api.forbidden = {("gangs", ""), ("gangs", "team")}
    pieces = await listed(page)
    assert len(joined(pieces, "clusters")) == 1
    assert len(unread(pieces)) == 2


@pytest.mark.parametrize(
    "query", ["?namespace=..", "?namespace=Team", "?namespace=a/b", "?namespace=" + "a," * 60 + "b"]
)
async def test_a_name_that_is_none_reaches_no_api_server(
    api: FakeApi, page: ClientSession, query: str
) -> None:
    query = query if "a,a" not in query else "?namespace=" + ",".join(f"n{at}" for at in range(51))
    async with page.get(f"clusters{query}") as answer:
        assert answer.status == 400
        assert (await answer.json())["fault"].startswith("namespace: ")
    assert api.asked == []


async def test_a_token_that_expired_is_an_answer_and_no_piece(
    api: FakeApi, page: ClientSession
) -> None:
    api.refused = 401
    async with page.get("clusters") as answer:
        assert answer.status == 401
        assert "log in again" in (await answer.json())["fault"]


async def test_a_browser_that_goes_ends_the_reading(api: FakeApi) -> None:
    api.objects["rayclusters"] = [ray_cluster(f"c-{at}") for at in range(5000)]
    async with client_of(api) as client:
        pieces = cluster_pieces(client, (), "")
        await anext(pieces)
        await pieces.aclose()  # type: ignore[attr-defined] # a generator
        asked = len(api.asked)
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(api.asked) == asked < 12


@pytest.mark.long
async def test_ten_thousand_clusters_are_listed_in_bounded_pieces(
    api: FakeApi, page: ClientSession
) -> None:
    api.objects["rayclusters"] = [ray_cluster(f"c-{at}") for at in range(10_000)]
    api.objects["gangs"] = [gang(f"c-{at}") for at in range(10_000)]
    pieces = await listed(page)
    assert len(joined(pieces, "clusters")) == len(joined(pieces, "gangs")) == 10_000
    assert max(len(each.get("clusters", [])) for each in pieces) == 500
