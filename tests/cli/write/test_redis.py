"""`muster redis`: the report as it is shown, and a rotation that ends when nothing needs it."""

from __future__ import annotations

import base64
import json

import pytest

from cli.endings import FINE, NO, NOT_READ
from cli.report.redis import RedisReport, read_report
from headstate.plan import ServerState, report_of
from headstate.shell.cluster import REPORT, REPORT_KEY
from headstate.shell.keys import ALLOWED, FORM, NEXT, SECRET_OF
from testbed.heads import head, uid_of
from tests.cli.write.cluster import Double, Json
from tests.cli.write.conftest import HOME, Run

KEYS, PASSWORDS = SECRET_OF["key"], SECRET_OF["password"]


def report(keys: int = 2, written: tuple[int, int] = (2, 2), silent: bool = False) -> Json:
    states = {
        "a:1": ServerState("master", 2048, 4096, 100),
        "b:1": None if silent else ServerState("slave", 1024, 0, 90),
    }
    heads = {uid_of(number): head(number) for number in (1, 2)}
    used = {uid_of(1): 10, uid_of(2): 500}
    return {"at": "2026-11-27T06:00:00Z", "keys": keys} | report_of(
        states, "a:1", heads, used, written
    )


def put(cluster: Double, found: Json | str) -> None:
    text = found if isinstance(found, str) else json.dumps(found)
    cluster.add("configmaps", REPORT, HOME, data={REPORT_KEY: text})


@pytest.fixture
def redis(cluster: Double) -> Double:
    for name, entry in ((KEYS, "key"), (PASSWORDS, "password")):
        cluster.add("secrets", name, HOME, data={entry: encoded("1" * 64)})
    return cluster


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def held(cluster: Double, name: str) -> dict[str, str]:
    (found,) = [each for each in cluster.all("secrets") if each["metadata"]["name"] == name]
    return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}


async def test_the_status_shows_servers_and_what_uses_most(redis: Double, muster: Run) -> None:
    put(redis, report(silent=True))
    done = await muster("redis", "status")
    assert (done.exit_code, done.stderr) == (FINE, ""), done.output
    assert "primary a:1; Secrets 2 of 2" in done.stdout
    assert "no answer" in done.stdout
    lines = done.stdout.splitlines()
    assert [line.split() for line in lines if "team/" in line] == [
        ["team/c2", "500"],
        ["team/c1", "10"],
    ]
    as_json = json.loads((await muster("redis", "status", "-o", "json")).stdout)
    assert as_json["servers"][0]["maxMemory"] == 4096
    assert as_json["primary"] == "a:1"


def test_what_the_program_writes_is_what_the_command_reads() -> None:
    found = read_report(json.dumps(report()))
    assert isinstance(found, RedisReport)
    assert (found.servers[1].name, found.servers[1].lag) == ("b:1", 10)
    assert (found.secrets.newest_key, found.secrets.all) == (2, 2)


@pytest.mark.parametrize(("text", "code"), [(None, NO), ("{", NOT_READ)])
async def test_without_a_report_it_says_what_is_missing(
    redis: Double, muster: Run, text: str | None, code: int
) -> None:
    if text is not None:
        put(redis, text)
    done = await muster("redis", "status")
    assert done.exit_code == code
    assert REPORT in done.stderr


async def test_the_first_call_adds_and_the_second_drops(redis: Double, muster: Run) -> None:
    put(redis, report())
    done = await muster("redis", "rotate", "--yes")
    assert done.exit_code == FINE, done.output
    for name, entry in ((KEYS, "key"), (PASSWORDS, "password")):
        found = held(redis, name)
        assert found[entry] == "1" * 64
        assert FORM.fullmatch(found[f"{entry}{NEXT}"]), ALLOWED
    added = held(redis, KEYS)[f"key{NEXT}"], held(redis, PASSWORDS)[f"password{NEXT}"]
    assert added[0] != added[1]
    done = await muster("redis", "rotate", "--yes")
    assert done.exit_code == FINE, done.output
    assert held(redis, KEYS) == {"key": added[0]}
    assert held(redis, PASSWORDS) == {"password": added[1]}


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (report(keys=1), "does not know the second key yet"),
        (report(written=(1, 2)), "1 of 2 Secrets have the new password"),
        (report(silent=True), "b:1 does not answer"),
    ],
)
async def test_the_first_key_stays_as_long_as_anything_may_need_it(
    redis: Double, muster: Run, found: Json, why: str
) -> None:
    put(redis, found)
    await muster("redis", "rotate", "--yes")
    before = held(redis, KEYS)
    done = await muster("redis", "rotate", "--yes")
    assert done.exit_code == NO
    assert why in done.stderr
    assert held(redis, KEYS) == before


async def test_a_call_that_broke_off_between_the_two_is_completed(
    redis: Double, muster: Run
) -> None:
    put(redis, report())
    redis.refused = [f"PATCH .*{PASSWORDS}"]
    assert (await muster("redis", "rotate", "--yes")).exit_code == NO
    redis.refused = []
    await muster("redis", "rotate", "--yes")
    assert f"key{NEXT}" in held(redis, KEYS)
    assert f"password{NEXT}" in held(redis, PASSWORDS)


async def test_without_a_terminal_or_yes_nothing_is_changed(redis: Double, muster: Run) -> None:
    done = await muster("redis", "rotate")
    assert "add --yes" in done.stderr
    assert held(redis, KEYS) == {"key": "1" * 64}


async def test_where_there_is_no_redis_it_says_so(cluster: Double, muster: Run) -> None:
    done = await muster("redis", "rotate", "--yes")
    assert done.exit_code == NO
    assert KEYS in done.stderr
    assert cluster.writes == []
