"""The page in the cluster as the command serves it: over TLS, with what it is told."""

import ssl
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
import trustme
from click.testing import CliRunner

from cli.__main__ import main
from cli.endings import WRONG_USE, Unusable
from cli.page.in_cluster import InCluster, serving_in_cluster
from cli.page.safety.guards import HEADERS, WRITE


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def at(authority: trustme.CA, tmp_path: Path) -> InCluster:
    pair = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    pair.cert_chain_pems[0].write_to_path(certificate)
    pair.private_key_pem.write_to_path(key)
    proxies = ("https://muster.example.com",)
    return InCluster(
        "127.0.0.1", 0, certificate, key, "http://127.0.0.1:1", None, 1.0, origins=proxies
    )


async def test_it_speaks_tls_alone_and_shows_its_files_to_all(
    at: InCluster, authority: trustme.CA
) -> None:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    async with serving_in_cluster(at) as (port, _), aiohttp.ClientSession() as http:
        address = f"https://127.0.0.1:{port}"
        async with http.get(f"{address}/", ssl=context) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
            assert {key: answer.headers[key] for key in HEADERS} == HEADERS
        async with http.get(f"{address}/api/session", ssl=context) as answer:
            assert answer.status == 401
        with pytest.raises(aiohttp.ClientError):
            await http.get(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("{address}", 401),
        ("https://muster.example.com", 401),
        ("http://muster.example.com", 403),
        ("https://evil.example.com", 403),
    ],
)
async def test_a_write_comes_from_the_page_itself_or_from_a_proxy_that_is_named(
    at: InCluster, authority: trustme.CA, origin: str, status: int
) -> None:
    """What comes from us is asked for its token."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    async with serving_in_cluster(at) as (port, _), aiohttp.ClientSession() as http:
        address = f"https://127.0.0.1:{port}"
        path = f"{address}/api/manage/clusters/team/train/delete"
        headers = {"Origin": origin.format(address=address), WRITE: "1"}
        async with http.post(path, json={}, headers=headers, ssl=context) as answer:
            assert answer.status == status


async def test_a_pair_that_cannot_be_used_is_told(at: InCluster) -> None:
    at.key.write_text("no key")
    with pytest.raises(Unusable, match=r"--certificate .* cannot be used"):
        async with serving_in_cluster(at):
            pass


@pytest.mark.parametrize("wrong", [{"ca": "/none"}, {"server": "nowhere"}])
async def test_an_api_server_that_no_request_would_reach_is_told(
    at: InCluster, wrong: dict[str, str]
) -> None:
    changed = replace(at, **wrong)  # type: ignore[arg-type]
    with pytest.raises(Unusable, match="--api-server "):
        async with serving_in_cluster(changed):
            pass


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--in-cluster needs --certificate and --key"),
        (("--certificate", "a", "--key", "b"), "outside a pod needs --api-server"),
        (
            ("--certificate", "a", "--key", "b", "--api-server", "https://x"),
            "--certificate a with --key b cannot be used",
        ),
    ],
)
def test_what_is_missing_on_the_command_line_is_named(
    arguments: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    found = CliRunner().invoke(main, ["dashboard", "--in-cluster", "--port", "0", *arguments])
    assert (found.exit_code, said in found.stderr) == (WRONG_USE, True), found.stderr
