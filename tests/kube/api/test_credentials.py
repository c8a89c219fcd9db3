"""Credentials are found where kubectl users keep them, and stay good while a program runs."""

import asyncio
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme

from kube.api.client import Client, Resource
from kube.api.credentials import ClusterAccess, Login, load_access
from kube.api.errors import NoAccess, Unauthorized
from tests.kube.fake_api import FakeApi, status

PODS = Resource("", "v1", "pods")


def write_kubeconfig(path: Path, server: str, user: dict[str, Any], authority: str = "") -> str:
    trusted = {"certificate-authority": authority} if authority else {}
    cluster = {"name": "c", "cluster": {"server": server, **trusted}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "contexts": [context],
        "users": [{"name": "u", "user": user}],
        "current-context": "x",
    }
    path.write_bytes(orjson.dumps(config))
    return str(path)


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


async def test_a_kubeconfig_that_is_not_there_is_no_access_and_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    with pytest.raises(NoAccess, match=f"^kubeconfig {path} \\(SETTING\\): no such file$"):
        await load_access(path, setting="SETTING")
    by_environment = (
        f"^kubeconfig {path}:{path} \\(environment variable KUBECONFIG\\): no such file$"
    )
    with pytest.raises(NoAccess, match=by_environment):
        await load_access(environ={"KUBECONFIG": f"{path}:{path}"})


@pytest.mark.parametrize("text", ["", "- 1", "a: [", "current-context: x", None])
async def test_a_kubeconfig_that_cannot_be_read_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "config"
    if text is None:
        path.mkdir()
    else:
        path.write_text(text)
    with pytest.raises(NoAccess, match=f"^kubeconfig {path} \\(the path given\\): "):
        await load_access(str(path))


async def test_an_authority_that_is_none_is_said_of_its_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("no certificate")
    server = "https://127.0.0.1:1"
    path = write_kubeconfig(tmp_path / "config", server, {"token": "t"}, str(tmp_path / "ca.crt"))
    with pytest.raises(NoAccess, match=f"^kubeconfig {path} "):
        await load_access(path)


async def test_a_certificate_that_is_not_there_is_named_with_its_kubeconfig(tmp_path: Path) -> None:
    user = {"client-certificate": "/none.crt", "client-key": "/none.key"}
    path = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user)
    with pytest.raises(NoAccess, match=f"^kubeconfig {path} .*none"):
        await load_access(path)


async def test_a_service_account_that_is_not_there_is_no_access(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(NoAccess, match=f"^service account {tmp_path / 'none'}: "):
        await load_access(environ=environ, service_account=tmp_path / "none")
