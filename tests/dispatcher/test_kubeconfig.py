"""Which kubeconfigs of members are used: none that runs a program, or reads a file."""

import base64
from typing import Any

import pytest
import trustme
import yaml

from dispatcher.shell.access import access_of
from dispatcher.shell.kubeconfig import RefusedKubeconfig, Target, target_of

Json = dict[str, Any]

CA = trustme.CA()
LEAF = CA.issue_cert("muster.test")


def b64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def written(cluster: Json | None = None, user: Json | None = None, **more: object) -> bytes:
    fields = {"server": "https://east.test:6443", "certificate-authority-data": b64(b"CA")}
    whole = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "east", "user": "muster"}}],
        "clusters": [{"name": "east", "cluster": {**fields, **(cluster or {})}}],
        "users": [{"name": "muster", "user": user if user is not None else {"token": "t\n"}}],
        **more,
    }
    return yaml.safe_dump(whole).encode()


def test_a_token_and_an_authority_are_taken() -> None:
    assert target_of(written()) == Target("https://east.test:6443", b"CA", "t")


def test_a_client_certificate_is_taken() -> None:
    user = {"client-certificate-data": b64(b"C"), "client-key-data": b64(b"K")}
    found = target_of(written({"tls-server-name": "api"}, user))
    assert (found.certificate, found.key, found.server_name) == (b"C", b"K", "api")


@pytest.mark.parametrize(
    ("cluster", "user", "said"),
    [
        ({}, {"exec": {"command": "sh"}}, "user.exec is refused: a program"),
        ({}, {"auth-provider": {"name": "gcp"}}, "user.auth-provider is refused"),
        ({}, {"tokenFile": "/etc/shadow"}, "user.tokenFile is refused: a file"),
        ({}, {"token": "t", "client-key": "/k"}, "user.client-key is refused: a file"),
        ({}, {"username": "u", "password": "p"}, "user.username is refused: a password"),
        ({}, {"token": "t", "as": "admin"}, "user.as is refused"),
        ({"insecure-skip-tls-verify": True}, None, "insecure-skip-tls-verify is refused"),
        ({"certificate-authority": "/ca"}, None, "certificate-authority is refused: a file"),
        ({"server": "http://east.test"}, None, "allowed: https://"),
        ({"server": ""}, None, "server is missing"),
        ({"server": "https://[::1"}, None, "server is no address"),
        ({"server": "https://u:p@east.test"}, None, "user or a password in it"),
        ({"proxy-url": "http://[::1"}, None, "proxy-url is no address"),
        ({"proxy-url": "socks5://p"}, None, "proxy-url"),
        ({"certificate-authority-data": "%%"}, None, "no base64"),
        ({}, {}, "neither a token nor a client certificate"),
        ({}, {"client-certificate-data": b64(b"C")}, "needs its key"),
        ({}, {"token": 5}, "token is missing, or no text"),
    ],
)
def test_what_is_refused_is_named(cluster: Json, user: Json | None, said: str) -> None:
    with pytest.raises(RefusedKubeconfig, match=said):
        target_of(written(cluster, user))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "no kubeconfig"),
        (b"[1]", "no kubeconfig"),
        (b"{", "no YAML"),
        (b"\xff\xfe\xff", "no YAML"),
        (b"clusters: 2026-13-45", "no YAML"),
        (b"[" * 1000, "no YAML"),
        (
            written().replace(b"current-context: here", b"current-context: there"),
            "contexts: there is no 'there'",
        ),
        (written(clusters=None), "clusters: there is no 'east'"),
        (written(users="x"), "users: there is no 'muster'"),
    ],
)
def test_what_is_no_kubeconfig_is_said(text: bytes, said: str) -> None:
    with pytest.raises(RefusedKubeconfig, match=said):
        target_of(text)


async def test_credentials_are_made_of_what_is_in_memory() -> None:
    key = LEAF.private_key_pem.bytes()
    certificate = LEAF.cert_chain_pems[0].bytes()
    authority = CA.cert_pem.bytes()
    target = Target("https://east.test", authority, "t", certificate, key)
    with access_of(target) as access:
        found = await access.current()
        assert found.headers == (("Authorization", "Bearer t"),)
        assert found.ssl_context is not None
        assert await access.after_refusal(found) is found


def test_certificates_that_are_none_are_refused() -> None:
    with (
        pytest.raises(RefusedKubeconfig),
        access_of(Target("https://east.test", authority=b"x", token="t")),
    ):
        pass
