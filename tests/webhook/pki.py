"""Certificates for the tests of the server."""

from __future__ import annotations

import os
import ssl
import time
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import trustme

HOST = "127.0.0.1"


class Pki:
    """An authority, and pairs written to where the server looks for them."""

    def __init__(self, directory: Path) -> None:
        self.certificate = directory / "tls.crt"
        self.key = directory / "tls.key"
        self._authority = trustme.CA()
        self._seconds = time.time()

    def write(self, days: float = 30) -> str:
        """Write a new pair and return its serial number as clients see it."""
        leaf = self._leaf(days)
        self._put(self.key, leaf.private_key_pem.bytes())
        self._put(self.certificate, leaf.cert_chain_pems[0].bytes())
        return self.serial()

    def write_half(self) -> None:
        """Write the certificate of a new pair, and leave the key of the old one."""
        self._put(self.certificate, self._leaf(30).cert_chain_pems[0].bytes())

    def _put(self, path: Path, content: bytes) -> None:
        """Write a file as if a second after the last: clocks of file systems may be coarse."""
        path.write_bytes(content)
        self._seconds += 1
        os.utime(path, (self._seconds, self._seconds))

    def serial(self) -> str:
        """Return the serial number of the certificate in the file."""
        return _shown(ssl.PEM_cert_to_DER_cert(self.certificate.read_text()))

    def client(self) -> ssl.SSLContext:
        """Return the context of a client that trusts the authority."""
        context = ssl.create_default_context()
        self._authority.configure_trust(context)
        return context

    def _leaf(self, days: float) -> trustme.LeafCert:
        return self._authority.issue_cert(
            str(ip_address(HOST)), "localhost", not_after=datetime.now(UTC) + timedelta(days=days)
        )


def shown(connection: ssl.SSLObject) -> str:
    """Return the serial number of the certificate that the other side showed."""
    der = connection.getpeercert(binary_form=True)
    assert der is not None
    return _shown(der)


def _shown(der: bytes) -> str:
    from cryptography import x509  # noqa: PLC0415

    return str(x509.load_der_x509_certificate(der).serial_number)
