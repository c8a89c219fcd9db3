"""A client certificate is good for a client, and for nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.__main__ import main
from certs.chain import (
    CLIENT_LIFETIME,
    CertificateError,
    belong_together,
    issue_client,
    load_certificate,
    new_authority,
    signed_by,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_it_bears_the_name_and_is_for_clients_only() -> None:
    authority = new_authority("ca", NOW)
    pair = issue_client(authority, "system:kube-scheduler", NOW)
    found = load_certificate(pair.certificate)
    (name,) = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    usage = found.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert name.value == "system:kube-scheduler"
    assert list(usage) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    assert found.not_valid_after_utc == NOW + CLIENT_LIFETIME
    assert signed_by(pair.certificate, authority.certificate)
    assert belong_together(pair)


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_name_that_no_certificate_holds_is_refused(name: str) -> None:
    with pytest.raises(CertificateError):
        issue_client(new_authority("ca", NOW), name, NOW)


def test_a_wrong_address_is_said_before_anything_is_made() -> None:
    done = CliRunner().invoke(main, ["secret", "--ip", "127.0.0"])
    assert done.exit_code == 1
    assert "--ip '127.0.0'" in done.output


def test_it_is_written_beside_the_servers(tmp_path: Path) -> None:
    asked = ["issue", "--ip", "127.0.0.1", "--client", "somebody", "--dir", str(tmp_path / "tls")]
    assert CliRunner().invoke(main, asked).exit_code == 0
    written = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "tls").iterdir()}
    assert {*written} == {"ca.crt", "tls.crt", "tls.key", "client.crt", "client.key"}
    assert {*written.values()} == {0o600}
