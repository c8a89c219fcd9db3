"""Kubeconfigs that cannot be used are named in one line."""

from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme

from kube.api.credentials import load_access
from kube.api.errors import NoAccess
from kube.api.kubeconfig_entries import context_namespace
from tests.kube.api.kubeconfigs import write_kubeconfig
from tests.kube.fake_api import FakeApi


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
