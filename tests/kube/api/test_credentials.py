"""Credentials are found where kubectl users keep them, and stay good while a program runs."""

import asyncio
import contextlib
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme

from kube.api.client import Client
from kube.api.credentials import ClusterAccess, Login, load_access
from kube.api.errors import NoAccess, NotFound, Unauthorized
from kube.api.kubeconfig_entries import context_namespace
from kube.api.resources import Resource
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


# ---- what else a kubeconfig may say: it counts, or is refused in one line

ACTS_AS = {
    "as": "jane",
    "as-uid": "7",
    "as-groups": ["devs", "ops"],
    "as-user-extra": {"example.com/Scopes": ["a", "b"]},
}


def changed(path: str, place: str, value: object) -> str:
    """Put a value into a kubeconfig: lists by number, what is not there is made."""
    file = Path(path)
    config = orjson.loads(file.read_bytes())
    *way, last = place.split("/")
    at = config
    for key in way:
        at = at[int(key)] if key.isdecimal() else at[key]
    at[int(last) if last.isdecimal() else last] = value
    file.write_bytes(orjson.dumps(config))
    return path


async def refused_as(path: str, context: str | None = None) -> str:
    with pytest.raises(NoAccess) as caught:
        await load_access(path, context)
    said = str(caught.value)
    assert "\n" not in said
    assert said.startswith(f"kubeconfig {path} (the path given): ")
    return said.partition("): ")[2]


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


@pytest.mark.parametrize(
    ("says", "refusal"),
    [
        ({"as-groups": ["devs"]}, "as-uid, as-groups and as-user-extra need as"),
        ({"as-uid": "7"}, "as-uid, as-groups and as-user-extra need as"),
        ({"as": 5}, "as: 5 is no text"),
        ({"as": "a\r\nAuthorization: Bearer x"}, "is no text that a header can have"),
        ({"as": "a", "as-groups": "devs"}, "as-groups: 'devs' is no list"),
        ({"as": "a", "as-groups": [1]}, "as-groups: 1 is no text"),
        ({"as": "a", "as-user-extra": ["x"]}, "is no mapping"),
        ({"as": "a", "as-user-extra": {"k": "v"}}, "as-user-extra.k: 'v' is no list"),
    ],
)
async def test_what_cannot_be_acted_as_is_refused(
    tmp_path: Path, says: dict[str, Any], refusal: str
) -> None:
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"token": "t", **says})
    assert refusal in await refused_as(path)


async def test_a_plugin_that_fails_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The package would log a line and go on as nobody."""
    plugin = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/none/x"}}
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", plugin)
    said = await refused_as(path)
    assert said.startswith("exec gave no credentials: ")
    assert "/none/x" in said
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("name", ["azure", "oidc", "gcp"])
async def test_a_provider_that_gives_nothing_is_refused(tmp_path: Path, name: str) -> None:
    provider = {"auth-provider": {"name": name, "config": {"id-token": "x"}}}
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", provider)
    assert await refused_as(path)


async def test_a_proxy_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"token": "t"})
    said = "proxy 'socks5://p:1': only http:// and https:// are supported"
    assert await refused_as(changed(path, "clusters/0/cluster/proxy-url", "socks5://p:1")) == said
    access = await load_access(changed(path, "clusters/0/cluster/proxy-url", "http://p:1"))
    assert (await access.current()).proxy == "http://p:1"


SERVERS = ["x", "", "http://", "http://[", "http://h:x", "https://h:99999", "ftp://h", "http://a\0"]


@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_that_is_no_address_is_refused(tmp_path: Path, server: str) -> None:
    path = write_kubeconfig(tmp_path / "config", server, {"token": "t"})
    assert await refused_as(path)


async def test_a_token_that_no_header_can_have_is_refused_and_not_told(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "config", "http://127.0.0.1:1", {"token": "abc\r\nX: y"})
    said = await refused_as(path)
    assert said == "the token, or the password, has a character that a header cannot have"


ODD: list[Any] = [None, 5, "x", [], [None], ["x"], {}, {"name": 5}, [{"name": ["x"]}], "a\0b"]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize(
    "place",
    [
        "clusters",
        "clusters/0",
        "clusters/0/cluster",
        "clusters/0/cluster/server",
        "clusters/0/cluster/certificate-authority",
        "clusters/0/cluster/certificate-authority-data",
        "clusters/0/cluster/tls-server-name",
        "clusters/0/cluster/proxy-url",
        "contexts",
        "contexts/0/context",
        "contexts/0/context/user",
        "users",
        "users/0/user",
        "users/0/user/exec",
        "users/0/user/auth-provider",
        "users/0/user/tokenFile",
        "users/0/user/client-certificate-data",
        "current-context",
    ],
)
async def test_an_odd_kubeconfig_is_read_or_refused_in_one_line(
    tmp_path: Path, place: str, odd: object
) -> None:
    path = write_kubeconfig(tmp_path / "config", "https://127.0.0.1:1", {})
    try:
        access = await load_access(changed(path, place, odd))
    except NoAccess as error:
        said = str(error)
    else:
        await access.close()
        said = context_namespace(path)
    assert said == "default" or (said.startswith("kubeconfig ") and "\n" not in said)


@pytest.mark.parametrize(
    "text", ["a: 2026-13-45", "? [a, b]\n: c", "a: [", "&a [*a]", "!!python/none x", "\x01"]
)
async def test_what_is_no_yaml_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    await refused_as(str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("some text", "text; allowed: a kubeconfig"),
        ("users: text", "users: text; allowed: a list"),
        ("users: [text]", "users[0]: text; allowed: an object"),
        ("clusters: [{name: c, cluster: [1]}]", "clusters[0].cluster: a list; allowed: an object"),
    ],
)
async def test_what_is_no_kubeconfig_is_told_by_its_part(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(NoAccess) as refused:
        await load_access(str(path))
    assert str(refused.value).endswith(f"{path}: {said}")


async def test_of_several_files_the_first_counts(fake: FakeApi, tmp_path: Path) -> None:
    """As with kubectl; the package would take the current context of the last of them."""
    write_kubeconfig(tmp_path / "a", fake.url, {"token": "a", "as": "jane"})
    other = orjson.loads((tmp_path / "a").read_bytes())
    other["current-context"] = "y"
    other["contexts"].append(
        {"name": "y", "context": {"cluster": "c", "user": "v", "namespace": "theirs"}}
    )
    other["users"] = [{"name": each, "user": {"token": "b"}} for each in ("u", "v")]
    (tmp_path / "b").write_bytes(orjson.dumps(other))
    both = f"{tmp_path / 'none'}:{tmp_path / 'a'}:{tmp_path / 'b'}"
    held = await (await load_access(both)).current()
    assert (held.authorization, held.acts_as) == ("Bearer a", (("Impersonate-User", "jane"),))
    assert context_namespace(both) == "default"
    held = await (await load_access(both, "y")).current()
    assert (held.authorization, held.acts_as) == ("Bearer b", ())
    assert context_namespace(both, "y") == "theirs"


async def test_an_empty_current_context_says_none(fake: FakeApi, tmp_path: Path) -> None:
    """`kubectl config unset current-context` leaves it, often in the first of several files."""
    write_kubeconfig(tmp_path / "b", fake.url, {"token": "b"})
    whole = orjson.loads((tmp_path / "b").read_bytes())
    whole["contexts"][0]["context"]["namespace"] = "theirs"
    (tmp_path / "b").write_bytes(orjson.dumps(whole))
    (tmp_path / "a").write_text('{"kind": "Config", "current-context": ""}')
    both = f"{tmp_path / 'a'}:{tmp_path / 'b'}"
    held = await (await load_access(both)).current()
    assert held.authorization == "Bearer b"
    assert context_namespace(both) == "theirs"


async def test_relative_paths_are_those_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    (tmp_path / "there").mkdir()
    authority.cert_pem.write_to_path(tmp_path / "there" / "ca.crt")
    path = tmp_path / "there" / "config"
    write_kubeconfig(path, "https://127.0.0.1:1", {"token": "t"}, "ca.crt")
    monkeypatch.chdir(tmp_path)
    for each in (str(path), "there/config", f"{path}:{tmp_path / 'none'}"):
        context = (await (await load_access(each)).current()).ssl_context
        assert context is not None
        assert context.cert_store_stats()["x509_ca"] == 1
