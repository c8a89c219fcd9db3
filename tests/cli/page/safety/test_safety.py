"""Who is answered with which rights, and what is refused before the API server hears of it."""

import asyncio
import logging
from contextlib import closing
from http.client import HTTPConnection

import aiohttp
import pytest

from cli.page.safety.guards import HEADERS, WRITE
from tests.cli.page.people import ADA, BEN, SECRET, People, Tab, tab

TRAIN = "/api/manage/clusters/team/train"
FORGED = {
    "Impersonate-User": "admin",
    "Impersonate-Group": "system:masters",
    "X-Remote-User": "admin",
    "X-Remote-Group": "system:masters",
    "X-Forwarded-User": "admin",
    "Cookie": "token=admin",
}


async def test_who_somebody_is_the_api_server_says(ada: Tab, ben: Tab) -> None:
    assert (await ada.get("/api/session"))[1]["user"] == "ada"
    assert (await ben.get("/api/session"))[1]["user"] == "ben"


async def test_forged_headers_are_neither_believed_nor_passed_on(people: People, ada: Tab) -> None:
    status, found = await ada.get("/api/session", **FORGED)
    assert (status, found["user"]) == (200, "ada")
    await ada.post(f"{TRAIN}/suspend", **{key.replace("-", "_"): v for key, v in FORGED.items()})
    assert people.heard
    for _, _, headers in people.heard:
        assert not FORGED.keys() & headers.keys()
        assert headers["Authorization"] == f"Bearer {ADA}"


async def test_without_a_token_nothing_is_asked(people: People, origin: str) -> None:
    for token in ("", "Basic YTpi", "Bearer", "Bearer a b", f"Bearer {'a' * 20_000}"):
        async with aiohttp.ClientSession(origin) as http:
            headers = {"Authorization": token} if token else {}
            async with http.get("/api/session", headers=headers) as answer:
                assert answer.status in (400, 401), token
                if answer.status == 401:
                    assert (await answer.json())["needs"] == "token"
                    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert people.heard == []


async def test_a_token_that_expires_is_asked_for_anew(people: People, ada: Tab) -> None:
    assert (await ada.get(TRAIN))[0] == 200
    del people.users[ADA]
    for status, found in (
        await ada.get(TRAIN),
        await ada.get("/api/session"),
        await ada.post(f"{TRAIN}/suspend", {"agreed": "x"}),
    ):
        assert (status, found["needs"]) == (401, "token"), found
    assert people.writes == []


async def test_people_at_the_same_time_each_have_their_own_rights(
    people: People, ada: Tab, ben: Tab
) -> None:
    people.denied.append((BEN, "GET /apis/ray.io"))
    answers = await asyncio.gather(*[who.get(TRAIN) for who in (ada, ben) * 10])
    assert [status for status, _ in answers] == [200, 403] * 10
    assert {found["fault"] for status, found in answers if status == 403} == {
        "not allowed to read rayclusters.ray.io in namespace team: ben may not patch them"
    }


FOREIGN = {
    "another origin": {"Origin": "https://evil.example"},
    "no origin": {"Origin": ""},
    "the origin of a sandbox": {"Origin": "null"},
    "another site": {"Sec_Fetch_Site": "cross-site"},
    "a page below the same name": {"Sec_Fetch_Site": "same-site"},
    "without our header": {WRITE.replace("-", "_"): ""},
    "a form": {"Content_Type": "text/plain"},
    "a form of another kind": {"Content_Type": "application/x-www-form-urlencoded"},
}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
async def test_a_write_that_no_page_of_ours_sends_is_refused(
    people: People, ada: Tab, laptop: Tab, headers: dict[str, str]
) -> None:
    people.heard.clear()
    for who in (ada, laptop):
        status, found = await who.post(f"{TRAIN}/delete", {"agreed": "x"}, **headers)
        assert status in (403, 415), found
    assert people.heard == []


async def test_a_page_of_others_may_not_even_ask_beforehand(origin: str) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    async with (
        aiohttp.ClientSession(origin) as http,
        http.options(f"{TRAIN}/delete", headers=asked) as answer,
    ):
        assert answer.status == 403
        assert not [each for each in answer.headers if each.startswith("Access-Control")]


async def test_on_a_laptop_writing_takes_the_secret_of_this_start(
    people: People, laptop: Tab
) -> None:
    assert (await laptop.post(f"{TRAIN}/suspend"))[0] == 200
    people.heard.clear()
    for wrong in ("", "1", "of-another-start", f"{SECRET}x", "ä"):
        async with tab(laptop.origin) as other:
            said = wrong.encode().decode("latin-1")
            status, found = await other.post(f"{TRAIN}/suspend", **{WRITE.replace("-", "_"): said})
            assert (status, found["needs"]) == (403, "secret"), wrong
    assert people.heard == []
    async with tab(laptop.origin) as reader:
        assert (await reader.get("/api/session"))[1]["user"] == "ada"


async def test_a_name_of_others_that_leads_to_a_laptop_is_refused(laptop: Tab) -> None:
    for path in ("/", "/api/session", "/report"):
        status, found = await laptop.get(path, Host="evil.example:8400")
        assert (status, "127.0.0.1" in found["fault"]) == (421, True)


PATHS = [
    "/../pyproject.toml",
    "/..%2f..%2fpyproject.toml",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/forms/../../server.py",
    "/forms/..%2f..%2fserver.py",
    "//etc/passwd",
    "/session.js%00.html",
]
NAMES = [
    "/api/manage/clusters/team/..%2f..%2fnodes",
    "/api/manage/clusters/..%2f..%2f..%2fapi/v1",
    "/api/manage/clusters/%2e%2e/train",
    "/api/manage/clusters/team/train%3fx=y",
    "/api/manage/clusters/team/train%23x",
    "/api/manage/clusters/team/Train",
    "/api/manage/choices/%2e%2e",
]


def raw(origin: str, path: str) -> int:
    """The status of a path as it is written: clients tidy it up otherwise."""
    with closing(HTTPConnection(origin.removeprefix("http://"), timeout=30)) as connection:
        connection.putrequest("GET", path, skip_accept_encoding=True)
        connection.putheader("Authorization", f"Bearer {ADA}")
        connection.endheaders()
        answer = connection.getresponse()
        assert b"import" not in answer.read()
        return answer.status


@pytest.mark.parametrize("path", PATHS)
async def test_no_path_leads_to_another_file(origin: str, path: str) -> None:
    assert await asyncio.to_thread(raw, origin, path) in (400, 404)


@pytest.mark.parametrize("path", NAMES)
async def test_no_name_leads_to_another_object(people: People, origin: str, path: str) -> None:
    assert await asyncio.to_thread(raw, origin, path) in (400, 404)
    assert people.heard == []


@pytest.mark.parametrize("path", ["/", "/session.js", "/api/session", TRAIN, "/none", f"{TRAIN}/x"])
async def test_every_answer_says_what_a_browser_may_make_of_it(
    origin: str, laptop: Tab, path: str
) -> None:
    assert "unsafe" not in HEADERS["Content-Security-Policy"]
    for where in (origin, laptop.origin):
        async with aiohttp.ClientSession(where) as http, http.get(path) as answer:
            assert {key: answer.headers[key] for key in HEADERS} == HEADERS
            assert "Set-Cookie" not in answer.headers


async def test_what_tenants_write_comes_as_json_and_as_nothing_else(
    people: People, ada: Tab
) -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    train = people.get("rayclusters", "train", "team")
    train["metadata"]["annotations"] = {"muster.dev/expected-duration": evil}
    train["metadata"]["labels"]["muster.dev/queue"] = evil
    async with ada.http.get(TRAIN, headers=ada.headers) as answer:
        assert answer.content_type == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        found = await answer.json()
    assert (found["form"]["queue"], found["form"]["expectedDuration"]) == (evil, evil)
    status, found = await ada.post(f"{TRAIN}/scale", {"targets": [f"{evil}=1"], "state": "x"})
    assert status in (400, 409)


async def test_neither_token_nor_secret_is_logged(
    people: People,
    ada: Tab,
    laptop: Tab,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    people.users = {}
    for who in (ada, laptop):
        await who.get(TRAIN)
        await who.post(f"{TRAIN}/suspend", {"agreed": "x"})
    out, err = capfd.readouterr()
    for said in (caplog.text, out, err):
        assert ADA not in said
        assert SECRET not in said
