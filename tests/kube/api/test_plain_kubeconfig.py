"""A kubeconfig that says all itself is read as the `kubernetes` package reads it; no other is."""

import base64
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube.api.plain_kubeconfig import read_plain
from tests.packaging.tree import ROOT

Json = dict[str, Any]


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def config_of(user: Json, cluster: Json | None = None, **context: str) -> Json:
    server = {"server": "https://host:6443/"}
    return {
        "clusters": [{"name": "c", "cluster": {**server, **(cluster or {})}}],
        "contexts": [
            {"name": "x", "context": {"cluster": "c", "user": "u", **context}},
            {"name": "other", "context": {"cluster": "c", "user": "u", "namespace": "there"}},
        ],
        "users": [{"name": "u", "user": user}],
        "current-context": "x",
    }


def by_the_package(path: Path, context: str | None) -> tuple[object, ...]:
    """What the package makes of it; files by what is in them."""
    from kubernetes.client import Configuration  # noqa: PLC0415 - it takes long to import
    from kubernetes.config import list_kube_config_contexts, load_kube_config  # noqa: PLC0415

    found = Configuration()
    load_kube_config(str(path), context, found)
    contexts, active = list_kube_config_contexts(str(path))
    chosen = next((each for each in contexts if each["name"] == context), active)
    return (
        found.host,
        chosen["context"].get("namespace") or "default",
        (found.api_key.get("BearerToken") or "").removeprefix("Bearer ") or None,
        *(content(each) for each in (found.ssl_ca_cert, found.cert_file, found.key_file)),
        bool(found.verify_ssl),
        found.tls_server_name or None,
    )


def content(path: str | None) -> str | None:
    return Path(path).read_text() if path else None


def by_us(path: Path, context: str | None) -> tuple[object, ...] | None:
    found = read_plain(str(path), context)
    if found is None:
        return None
    files = (found.authority, found.certificate, found.key)
    return (
        found.server.rstrip("/"),
        found.namespace,
        found.token,
        *map(content, files),
        found.verify,
        found.server_name,
    )


PLAIN = {
    "nothing": config_of({}),
    "a token": config_of({"token": "t"}, namespace="team"),
    "a file with a token": config_of({"tokenFile": "token"}),
    "a certificate": config_of(
        {"client-certificate": "crt", "client-key": "key"}, {"certificate-authority": "ca"}
    ),
    "certificates inside": config_of(
        {"client-certificate-data": encoded("crt"), "client-key-data": encoded("key")},
        {"certificate-authority-data": encoded("ca"), "tls-server-name": "other"},
    ),
    "no trust": config_of({"token": "t"}, {"insecure-skip-tls-verify": True}),
    "plain HTTP": config_of({"token": "t"}, {"server": "http://h", "certificate-authority": "/no"}),
}


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("context", [None, "other"])
@pytest.mark.parametrize("name", PLAIN)
def test_it_says_what_the_package_says(name: str, context: str | None, tmp_path: Path) -> None:
    for file in ("ca", "crt", "key", "token"):
        (tmp_path / file).write_text(file)
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(PLAIN[name]))
    assert by_us(path, context) == by_the_package(path, context)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: [",
        "- 1",
        yaml.safe_dump(config_of({"exec": {"command": "x"}})),
        yaml.safe_dump(config_of({"auth-provider": {"name": "oidc"}})),
        yaml.safe_dump(config_of({"username": "u", "password": "p"})),
        yaml.safe_dump(config_of({"as-uid": "without a name"})),
        yaml.safe_dump(config_of({"client-certificate-data": "\u00e9"})),
        "a: 2026-13-45",  # a date of no calendar
        "? [a, b]\n: c",  # a key that is none
        yaml.safe_dump(config_of({"tokenFile": "a\0b"})),
        yaml.safe_dump(config_of({"token": 5})),
        yaml.safe_dump(config_of({"client-certificate": "/none"})),
        yaml.safe_dump(config_of({"client-certificate-data": "%"})),
        yaml.safe_dump(config_of({}, {"proxy-url": "http://p"})),
        yaml.safe_dump(config_of({}, {"server": None})),
        yaml.safe_dump({**config_of({}), "current-context": "none"}),
        yaml.safe_dump({**config_of({}), "users": []}),
        yaml.safe_dump({**config_of({}), "clusters": config_of({})["clusters"] * 2}),
    ],
)
def test_anything_else_is_left_to_the_package(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    assert read_plain(str(path), None) is None
    assert read_plain(str(tmp_path / "none"), None) is None
    assert read_plain(str(tmp_path), None) is None


def test_a_proxy_of_the_environment_is_left_to_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(PLAIN["a token"]))
    assert read_plain(str(path), None) is not None
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert read_plain(str(path), None) is None


def test_a_command_that_lists_imports_neither_the_package_nor_pydantic(tmp_path: Path) -> None:
    """They would take a quarter of its start."""
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config_of({"token": "t"}, {"server": "http://127.0.0.1:1"})))
    script = (
        "import sys; from cli.__main__ import main\n"
        "try: main()\n"
        "finally: print(*{'kubernetes', 'pydantic'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", script, "nodes", "--kubeconfig", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "the API server cannot be reached" in done.stderr
    assert (done.returncode, done.stdout.split()) == (3, [])
