"""OpenSSL and the API server accept the certificates, and they are renewed in time."""

from __future__ import annotations

import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from certs.chain import (
    CertificateError,
    Pair,
    ServerNames,
    anchor,
    belong_together,
    certificates_in,
    expires_at,
    issue_leaf,
    load_certificate,
    needs_renewal,
    new_authority,
    serves,
    service_names,
    signed_by,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
NAMES = ServerNames(dns=("localhost",), addresses=(ip_address("127.0.0.1"), ip_address("::1")))


@pytest.fixture(scope="module")
def authority() -> Pair:
    return new_authority("muster test", NOW)


@pytest.fixture(scope="module")
def leaf(authority: Pair) -> Pair:
    return issue_leaf(authority, NAMES, NOW)


def test_the_authority_signs_servers_and_nothing_else(authority: Pair) -> None:
    certificate = load_certificate(authority.certificate)
    basic = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    usage = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    assert basic.critical
    assert (basic.value.ca, basic.value.path_length) == (True, 0)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert not usage.value.digital_signature
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)


def test_the_authority_lives_ten_years_from_an_hour_ago(authority: Pair) -> None:
    certificate = load_certificate(authority.certificate)
    assert certificate.not_valid_before_utc == NOW - timedelta(hours=1)
    assert certificate.not_valid_after_utc == NOW + timedelta(days=3650)


def test_a_leaf_is_a_server_certificate_for_its_names(leaf: Pair, authority: Pair) -> None:
    certificate = load_certificate(leaf.certificate)
    held = certificate.extensions
    basic = held.get_extension_for_class(x509.BasicConstraints).value
    purposes = held.get_extension_for_class(x509.ExtendedKeyUsage).value
    names = held.get_extension_for_class(x509.SubjectAlternativeName).value
    assert not basic.ca
    assert list(purposes) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert names.get_values_for_type(x509.IPAddress) == list(NAMES.addresses)
    assert expires_at(leaf.certificate) == NOW + timedelta(days=90)
    assert signed_by(leaf.certificate, authority.certificate)


def test_another_authority_did_not_sign_it(leaf: Pair) -> None:
    # The name is the same: only the key differs.
    assert not signed_by(leaf.certificate, new_authority("muster test", NOW).certificate)


def test_a_chain_goes_back_to_its_authority_by_way_of_its_intermediates(leaf: Pair) -> None:
    root = trustme.CA()
    made = root.create_child_ca().issue_cert("localhost", key_type=trustme.KeyType.RSA)
    chain = b"".join(each.bytes() for each in made.cert_chain_pems)
    (authority,) = certificates_in(root.cert_pem.bytes())
    (stranger,) = certificates_in(trustme.CA().cert_pem.bytes())
    assert anchor(chain, (stranger, authority)) == authority
    assert anchor(chain, (stranger,)) is None
    assert anchor(leaf.certificate + chain, (authority,)) is None, "the first is of another chain"
    assert belong_together(Pair(chain, made.private_key_pem.bytes()))


def test_two_leaves_share_neither_key_nor_serial(authority: Pair, leaf: Pair) -> None:
    other = issue_leaf(authority, NAMES, NOW)
    assert other.key != leaf.key
    assert (
        load_certificate(other.certificate).serial_number
        != load_certificate(leaf.certificate).serial_number
    )
    assert belong_together(leaf)
    assert not belong_together(Pair(leaf.certificate, other.key))


@pytest.mark.parametrize(
    ("days", "expected"),
    [(0, False), (59, False), (61, True), (89, True), (91, True), (-1, True)],
)
def test_a_leaf_is_renewed_after_two_thirds_of_its_life(
    leaf: Pair, days: int, expected: bool
) -> None:
    assert needs_renewal(leaf.certificate, NOW + timedelta(days=days)) is expected


def test_the_names_of_a_service_hold_the_one_the_api_server_calls() -> None:
    names = service_names("muster-webhook", "muster-system")
    assert "muster-webhook.muster-system.svc" in names.dns


def test_a_certificate_serves_the_names_it_holds(leaf: Pair) -> None:
    assert serves(leaf.certificate, NAMES)
    assert serves(leaf.certificate, ServerNames(dns=("localhost",)))
    assert not serves(leaf.certificate, ServerNames(dns=("localhost", "elsewhere")))
    assert not serves(leaf.certificate, ServerNames(addresses=(ip_address("10.0.0.1"),)))


def test_a_certificate_without_a_name_is_refused() -> None:
    with pytest.raises(CertificateError, match="at least one"):
        ServerNames()


def test_a_name_that_no_certificate_can_hold_is_refused(authority: Pair) -> None:
    with pytest.raises(CertificateError, match="DNS name"):
        issue_leaf(authority, ServerNames(dns=("grün.example",)), NOW)


@pytest.mark.parametrize("pem", [b"", b"rubbish", b"-----BEGIN CERTIFICATE-----\nAAAA\n"])
def test_what_is_no_certificate_is_refused(pem: bytes) -> None:
    with pytest.raises(CertificateError, match="not a PEM certificate"):
        load_certificate(pem)


def test_an_unreadable_key_is_refused_without_being_quoted(leaf: Pair) -> None:
    with pytest.raises(CertificateError) as caught:
        belong_together(Pair(leaf.certificate, b"not quite a s3cret"))
    assert "s3cret" not in str(caught.value)


def test_a_pair_does_not_show_its_key(leaf: Pair) -> None:
    assert "PRIVATE" not in repr(leaf)
    assert "key" not in repr(leaf).replace("_key", "")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_openssl_accepts_the_chain(tmp_path: Path, host: str) -> None:
    """A real handshake: what the standard library's client verifies, the API server does too."""
    moment = datetime.now(UTC)
    authority = new_authority("muster test", moment)
    leaf = issue_leaf(authority, NAMES, moment)
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    certificate.write_bytes(leaf.certificate)
    key.write_bytes(leaf.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cadata=authority.certificate.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    assert _handshake(server, client, host) == "TLSv1.3"


def _handshake(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> str | None:
    ours, theirs = socket.socketpair()

    def serve() -> None:
        with ours, server.wrap_socket(ours, server_side=True) as secured:
            secured.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with theirs, client.wrap_socket(theirs, server_hostname=host) as secured:
            secured.send(b"x")
            return secured.version()
    finally:
        thread.join()
