"""The certificates and tokens of a cluster's users and programs.

Each user has a bearer token from one static file; the group `system:masters` passes every check.
The certificates are made anew for each cluster and lie in its directory only.
"""

from __future__ import annotations

import csv
import datetime as dt
import ipaddress
import json
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

MASTERS = "system:masters"
_LIFETIME = dt.timedelta(days=30)


@dataclass(frozen=True)
class Identity:
    """A holder of a token: `name` in file names, `user` and `groups` to the API server."""

    name: str
    user: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))


def write_token_file(path: Path, identities: Iterable[Identity]) -> None:
    """Write the API server's list of static tokens."""
    with path.open("w", newline="") as handle:
        rows = csv.writer(handle)
        for identity in identities:
            groups = ",".join(identity.groups)
            rows.writerow([identity.token, identity.user, identity.user, groups])


def write_kubeconfig(path: Path, server: str, ca_file: Path, token: str) -> Path:
    """Write a kubeconfig for one token; JSON is YAML, and nothing is faster to write."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "testbed",
        "clusters": [
            {
                "name": "testbed",
                "cluster": {"server": server, "certificate-authority": str(ca_file)},
            }
        ],
        "users": [{"name": "testbed", "user": {"token": token}}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
    }
    path.write_text(json.dumps(config, indent=2))
    return path


@dataclass(frozen=True)
class Pki:
    """The files of one cluster's certificates."""

    directory: Path

    @property
    def ca(self) -> Path:
        """The certificate authority that clients trust."""
        return self.directory / "ca.crt"

    @property
    def certificate(self) -> Path:
        """What every server on loopback shows."""
        return self.directory / "server.crt"

    @property
    def key(self) -> Path:
        """The key of the servers' certificate."""
        return self.directory / "server.key"

    @property
    def service_accounts(self) -> Path:
        """The key that signs the tokens of service accounts."""
        return self.directory / "service-accounts.key"

    def write(self) -> None:
        """Make all keys and certificates anew."""
        self.directory.mkdir()
        ca_key, server_key, account_key = (ec.generate_private_key(ec.SECP256R1()) for _ in "123")
        ca_name = _name("testbed-ca")
        ca = _builder(ca_name, ca_name, ca_key)
        ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        server = _builder(_name("testbed"), ca_name, server_key)
        server = server.add_extension(x509.SubjectAlternativeName(names), critical=False)
        _write_certificate(self.ca, ca, ca_key)
        _write_certificate(self.certificate, server, ca_key)
        _write_key(self.key, server_key)
        _write_key(self.service_accounts, account_key)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # A clock that is a little behind must not refuse what was just made.
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + _LIFETIME)
    )


def _write_certificate(
    path: Path, builder: x509.CertificateBuilder, signer: ec.EllipticCurvePrivateKey
) -> None:
    certificate = builder.sign(signer, hashes.SHA256())
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    # SEC 1 rather than PKCS 8: only from this does the API server derive the public key itself.
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
