"""The server changes its certificate while it runs, and keeps the good one when a bad one comes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from runtime.tls import HotCertificate
from tests.webhook.pki import HOST, Pki, shown


class News:
    """Collects what is told of the certificate."""

    def __init__(self) -> None:
        self.loaded: list[datetime] = []
        self.refused: list[str] = []
        self.told = asyncio.Event()

    def certificate_loaded(self, expires: datetime) -> None:
        self.loaded.append(expires)
        self.told.set()

    def certificate_refused(self, reason: str) -> None:
        self.refused.append(reason)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@pytest.fixture
def news() -> News:
    return News()


@pytest.fixture
def hot(pki: Pki, news: News) -> HotCertificate:
    return HotCertificate(pki.certificate, pki.key, news)


@pytest.fixture
async def port(hot: HotCertificate) -> AsyncIterator[int]:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, HOST, 0, ssl=hot.context)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


async def _connect(port: int, context: ssl.SSLContext, host: str = HOST) -> ssl.SSLObject:
    # An address is never sent as SNI: this is how the API server comes when called by a URL.
    _, writer = await asyncio.open_connection(HOST, port, ssl=context, server_hostname=host)
    connection: ssl.SSLObject = writer.get_extra_info("ssl_object")
    writer.close()
    return connection


@pytest.mark.parametrize("host", [HOST, "localhost"])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_new_pair_is_shown_with_and_without_sni(
    pki: Pki, hot: HotCertificate, port: int, host: str, version: ssl.TLSVersion
) -> None:
    client = pki.client()
    client.maximum_version = version
    first = pki.write()
    hot.refresh()
    assert shown(await _connect(port, client, host)) == first
    second = pki.write()
    hot.refresh()
    assert shown(await _connect(port, client, host)) == second != first


async def test_a_key_of_another_pair_never_replaces_a_good_one(
    pki: Pki, hot: HotCertificate, news: News, port: int
) -> None:
    good = pki.write()
    hot.refresh()
    pki.write_half()
    hot.refresh()
    hot.refresh()
    assert shown(await _connect(port, pki.client())) == good
    assert hot.usable
    assert len(news.refused) == 1, "told once, though tried at each turn"
    whole = pki.write()
    hot.refresh()
    assert shown(await _connect(port, pki.client())) == whole


@pytest.mark.parametrize("rubbish", [b"", b"rubbish", b"\xff" * 100])
@pytest.mark.parametrize("which", ["certificate", "key"])
async def test_rubbish_never_replaces_a_good_one(
    pki: Pki, hot: HotCertificate, news: News, port: int, rubbish: bytes, which: str
) -> None:
    good = pki.write()
    hot.refresh()
    (pki.certificate if which == "certificate" else pki.key).write_bytes(rubbish)
    hot.refresh()
    assert shown(await _connect(port, pki.client())) == good
    assert len(news.refused) == 1


async def test_a_key_with_a_password_is_refused_without_asking_for_it(
    pki: Pki, hot: HotCertificate, news: News
) -> None:
    pki.write()
    key = serialization.load_pem_private_key(pki.key.read_bytes(), password=None)
    pki.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
    )
    hot.refresh()
    assert not hot.usable
    assert len(news.refused) == 1


async def test_an_expired_pair_never_replaces_a_good_one(
    pki: Pki, hot: HotCertificate, news: News, port: int
) -> None:
    good = pki.write()
    hot.refresh()
    pki.write(days=-1)
    hot.refresh()
    assert shown(await _connect(port, pki.client())) == good
    assert "valid from" in news.refused[0]


def test_a_pair_from_the_future_is_taken_when_its_time_comes(pki: Pki, news: News) -> None:
    moment = datetime(1999, 1, 1, tzinfo=UTC)  # before the authority's certificates begin
    hot = HotCertificate(pki.certificate, pki.key, news, now=lambda: moment)
    pki.write()
    hot.refresh()
    assert not hot.usable
    moment = datetime.now(UTC)
    hot.refresh()
    assert hot.usable


def test_a_certificate_that_runs_out_is_no_longer_usable(pki: Pki, news: News) -> None:
    moment = datetime.now(UTC)
    hot = HotCertificate(pki.certificate, pki.key, news, now=lambda: moment)
    pki.write(days=1)
    hot.refresh()
    assert hot.usable
    moment += timedelta(days=1, seconds=1)
    assert not hot.usable


async def test_missing_files_are_waited_for(
    pki: Pki, hot: HotCertificate, news: News, port: int
) -> None:
    hot.refresh()
    assert not hot.usable
    assert "No such file" in news.refused[0]
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await _connect(port, pki.client())
    late = pki.write()
    hot.refresh()
    assert shown(await _connect(port, pki.client())) == late


def test_files_that_stay_are_read_once(pki: Pki, hot: HotCertificate, news: News) -> None:
    pki.write()
    hot.refresh()
    hot.refresh()
    assert len(news.loaded) == 1


def test_a_turned_link_is_seen(tmp_path: Path, news: News) -> None:
    """How the kubelet changes a mounted Secret: the files are links, only a directory turns."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        Pki(tmp_path / name).write()
    data = tmp_path / "..data"
    data.symlink_to("one")
    hot = HotCertificate(data / "tls.crt", data / "tls.key", news)
    hot.refresh()
    turned = tmp_path / "..data_tmp"
    turned.symlink_to("two")
    turned.replace(data)
    hot.refresh()
    assert len(news.loaded) == 2


async def test_the_files_are_looked_after(pki: Pki, hot: HotCertificate, news: News) -> None:
    task = asyncio.create_task(hot.watch(0.001))
    pki.write()
    async with asyncio.timeout(60):
        await news.told.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("kind", [trustme.KeyType.RSA, trustme.KeyType.ECDSA])
async def test_a_chain_with_intermediates_is_shown_whole(
    pki: Pki, hot: HotCertificate, port: int, kind: trustme.KeyType
) -> None:
    """As others make Secrets: the caller trusts the root alone."""
    root = trustme.CA()
    leaf = root.create_child_ca().create_child_ca().issue_cert(HOST, key_type=kind)
    pki.certificate.write_bytes(b"".join(each.bytes() for each in leaf.cert_chain_pems))
    pki.key.write_bytes(leaf.private_key_pem.bytes())
    hot.refresh()
    client = ssl.create_default_context()
    root.configure_trust(client)
    first = x509.load_pem_x509_certificate(pki.certificate.read_bytes())
    assert shown(await _connect(port, client)) == str(first.serial_number)


def test_a_chain_lasts_as_long_as_the_link_that_ends_first(pki: Pki, news: News) -> None:
    pki.write(days=30)
    short = trustme.CA()
    leaf = short.issue_cert(HOST, not_after=datetime.now(UTC) + timedelta(days=3))
    chain = pki.certificate.read_bytes() + leaf.cert_chain_pems[0].bytes()
    pki.certificate.write_bytes(chain)
    HotCertificate(pki.certificate, pki.key, news).refresh()
    assert news.loaded[0] < datetime.now(UTC) + timedelta(days=4)


async def test_old_protocols_are_refused(pki: Pki, hot: HotCertificate, port: int) -> None:
    pki.write()
    hot.refresh()
    assert hot.context.minimum_version == ssl.TLSVersion.TLSv1_2
    old = pki.client()
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await _connect(port, old)


async def test_http_1_is_agreed_on_where_http_2_is_offered_too(
    pki: Pki, hot: HotCertificate, port: int
) -> None:
    pki.write()
    hot.refresh()
    client = pki.client()
    client.set_alpn_protocols(["h2", "http/1.1"])
    assert (await _connect(port, client)).selected_alpn_protocol() == "http/1.1"
