"""Credentials: they are asked for, kept, and replaced in time."""

import asyncio
import contextlib
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from kube.api.client import Client
from kube.api.credentials import ClusterAccess, Login, load_access
from kube.api.errors import NotFound, Unauthorized
from kube.api.resources import Resource
from tests.kube.api.kubeconfigs import write_kubeconfig
from tests.kube.fake_api import FakeApi, status

PODS = Resource("", "v1", "pods")


def write_plugin(directory: Path, lives: timedelta) -> dict[str, Any]:
    """Write an exec plugin whose tokens are called token-1, token-2, ... and live so long."""
    script = directory / "plugin.py"
    script.write_text(
        f"""#!{sys.executable}
import json, pathlib
runs = pathlib.Path(__file__).with_suffix(".runs")
count = int(runs.read_text()) + 1 if runs.exists() else 1
runs.write_text(str(count))
status = {{"token": f"token-{{count}}",
           "expirationTimestamp": "{(datetime.now(UTC) + lives).strftime("%Y-%m-%dT%H:%M:%SZ")}"}}
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1",
                  "kind": "ExecCredential", "status": status}}))
"""
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(script)}}


def runs(directory: Path) -> int:
    return int((directory / "plugin.runs").read_text())


def demand(fake: FakeApi, token: str) -> None:
    """Let the API server accept this token only."""

    async def check(request: Any) -> Any:
        if request.headers.get("Authorization") != f"Bearer {token}":
            return status(401, "Unauthorized", "Unauthorized")
        return None

    fake.always["get"] = check


async def test_a_token_that_expires_is_replaced_before_the_next_call(
    fake: FakeApi, tmp_path: Path
) -> None:
    fake.put("pods", "a")
    user = write_plugin(tmp_path, lives=timedelta(seconds=1))
    path = write_kubeconfig(tmp_path / "config", fake.url, user)
    access = await load_access(path, renew_after=0.0)
    async with Client(access) as client:
        demand(fake, "token-2")
        await client.get(PODS.path("ns", "a"))
        demand(fake, "token-3")
        await client.get(PODS.path("ns", "a"))
    assert fake.count("get") == 2, "no call was refused first"


async def test_a_token_that_lives_is_not_asked_for_again(fake: FakeApi, tmp_path: Path) -> None:
    fake.put("pods", "a")
    user = write_plugin(tmp_path, lives=timedelta(hours=1))
    access = await load_access(
        write_kubeconfig(tmp_path / "config", fake.url, user), renew_after=0.0
    )
    async with Client(access) as client:
        for _ in range(5):
            await client.get(PODS.path("ns", "a"))
    assert runs(tmp_path) == 1


async def test_calls_refused_together_run_the_plugin_once_and_succeed(
    fake: FakeApi, tmp_path: Path
) -> None:
    fake.put("pods", "a")
    user = write_plugin(tmp_path, lives=timedelta(hours=1))
    access = await load_access(write_kubeconfig(tmp_path / "config", fake.url, user))
    demand(fake, "token-2")
    async with Client(access) as client:
        await asyncio.gather(*(client.get(PODS.path("ns", "a")) for _ in range(20)))
    assert runs(tmp_path) == 2


async def test_a_refusal_of_what_was_replaced_already_costs_nothing(
    fake: FakeApi, tmp_path: Path
) -> None:
    user = write_plugin(tmp_path, lives=timedelta(hours=1))
    access = await load_access(write_kubeconfig(tmp_path / "config", fake.url, user))
    refused = await access.current()
    renewed = await access.after_refusal(refused)
    assert await access.after_refusal(refused) is renewed
    assert runs(tmp_path) == 2


async def test_a_call_refused_twice_is_unauthorized(fake: FakeApi, tmp_path: Path) -> None:
    user = write_plugin(tmp_path, lives=timedelta(hours=1))
    access = await load_access(write_kubeconfig(tmp_path / "config", fake.url, user))
    demand(fake, "never this one")
    async with Client(access) as client:
        with pytest.raises(Unauthorized):
            await client.get(PODS.path("ns", "a"))
    assert fake.count("get") == 2


async def test_a_plugin_that_fails_does_not_take_the_token_away(
    fake: FakeApi, tmp_path: Path
) -> None:
    fake.put("pods", "a")
    user = write_plugin(tmp_path, lives=timedelta(hours=1))
    access = await load_access(write_kubeconfig(tmp_path / "config", fake.url, user))
    (tmp_path / "plugin.py").unlink()
    held = await access.current()
    assert await access.after_refusal(held) is held
    assert held.authorization == "Bearer token-1"


async def test_in_cluster_files_are_read_again(fake: FakeApi, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("first\n")
    environ = {"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "6443"}
    access = await load_access(environ=environ, service_account=tmp_path, renew_after=0.0)
    assert access.server == "https://[::1]:6443"
    first = await access.current()
    assert first.authorization == "bearer first"

    (tmp_path / "token").write_text("second\n")
    second = await access.current()
    assert second.authorization == "bearer second"

    (tmp_path / "token").write_text("")
    assert (await access.current()).authorization == "bearer second", "half a write costs nothing"

    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    (tmp_path / "token").write_text("second\n")
    third = await access.current()
    assert third.ssl_context is not None
    assert third.ssl_context.get_ca_certs() != second.ssl_context.get_ca_certs()  # type: ignore[union-attr]


async def test_the_token_file_is_left_alone_for_a_minute(tmp_path: Path) -> None:
    now = 0.0
    reads = 0

    class Source:
        called = "a test"

        def due(self) -> Login:
            nonlocal reads
            reads += 1
            return Login("http://x", f"token-{reads}")

        anew = due

    access = ClusterAccess(Source(), Login("http://x", "token-0"), clock=lambda: now)
    now = 59.9
    assert (await access.current()).authorization == "token-0"
    now = 60.0
    assert (await access.current()).authorization == "token-1"
    assert (await access.current()).authorization == "token-1"


async def test_a_static_token_and_a_plain_server_work(fake: FakeApi, tmp_path: Path) -> None:
    fake.put("pods", "a")
    path = write_kubeconfig(tmp_path / "config", fake.url + "/", {"token": "t"})
    access = await load_access(environ={"KUBECONFIG": path})
    demand(fake, "t")
    async with Client(access) as client:
        await client.get(PODS.path("ns", "a"))


# ---- what else a kubeconfig may say: it counts, or is refused in one line

ACTS_AS = {
    "as": "jane",
    "as-uid": "7",
    "as-groups": ["devs", "ops"],
    "as-user-extra": {"example.com/Scopes": ["a", "b"]},
}


@pytest.mark.parametrize("way", ["token", "plugin"])
async def test_a_user_that_acts_as_another_says_so_in_each_request(
    fake: FakeApi, tmp_path: Path, way: str
) -> None:
    """Passed over, a command would run with more rights than it was given."""
    seen: list[list[tuple[str, str]]] = []

    async def note(request: Any) -> Any:
        seen.append([(k, v) for k, v in request.headers.items() if k.startswith("Impersonate")])

    fake.always["get"] = note
    plugin = write_plugin(tmp_path, timedelta(hours=1)) if way == "plugin" else {}
    user = {**({} if plugin else {"token": "t"}), **plugin, **ACTS_AS}
    path = write_kubeconfig(tmp_path / "config", fake.url, user)
    async with Client(await load_access(path, renew_after=0.0)) as client:
        for _ in range(2):  # the second one after the credentials were read again
            with contextlib.suppress(NotFound):
                await client.get(PODS.path("ns", "a"))
    expected = [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "devs"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.com%2FScopes", "a"),
        ("Impersonate-Extra-example.com%2FScopes", "b"),
    ]
    assert seen == [expected, expected]
