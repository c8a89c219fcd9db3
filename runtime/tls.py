"""Serves with the certificate on disk, and takes up a new one while the server runs.

The listening context holds no certificate. OpenSSL calls back in each handshake, whether or not the
caller names a host. The callback moves the handshake to the context built from the newest good pair
of files. A pair is tried in a fresh context: loading a mismatched pair into a context in use breaks
that context. The listening context settles whether a caller must show a certificate, and the other
one which authorities may have signed it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from cryptography import x509

# What a caller sees while there is no certificate yet: a clean alert instead of a reset.
_NO_CERTIFICATE = ssl.AlertDescription.ALERT_DESCRIPTION_INTERNAL_ERROR


class UnusablePairError(Exception):
    """A certificate and key that must not be shown; the text says why."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The pair that callers get."""

    context: ssl.SSLContext
    expires: datetime


class Listener(Protocol):
    """Receives news of the certificate."""

    def certificate_loaded(self, expires: datetime) -> None:
        """Take note of a new certificate in use."""

    def certificate_refused(self, reason: str) -> None:
        """Take note of a pair that stays unused."""


class HotCertificate:
    """The certificate in use, replaced when its files change.

    With `client_ca`, a file with the certificates of one or more authorities, callers have to show
    a certificate of one of them; the file is read again like the others. `blank` makes the
    contexts, without a certificate.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        listener: Listener,
        *,
        client_ca: Path | None = None,
        blank: Callable[[], ssl.SSLContext] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._blank = blank or server_context
        self.context = self._blank()
        self.context.sni_callback = self._choose
        if client_ca is not None:
            self.context.verify_mode = ssl.CERT_REQUIRED
        self._certificate = certificate
        self._key = key
        self._client_ca = client_ca
        self._listener = listener
        self._now = now
        self._shown: Shown | None = None
        self._loaded: object = None
        self._refused: object = None

    @property
    def usable(self) -> bool:
        """Whether callers that verify would accept what is shown."""
        return self._shown is not None and self._now() < self._shown.expires

    def refresh(self) -> None:
        """Load the files when they changed, or when the last attempt did not succeed."""
        files = (self._certificate, self._key, self._client_ca)
        stamp = _stamp(*(each for each in files if each is not None))
        if stamp == self._loaded:
            return
        try:
            shown = self._load()
        except UnusablePairError as error:
            self._refuse(stamp, str(error))
        else:
            self._shown, self._loaded, self._refused = shown, stamp, None
            self._listener.certificate_loaded(shown.expires)

    def _load(self) -> Shown:
        context = self._blank()
        if self._client_ca is not None:
            demand_certificate(context, self._client_ca)
        return load_pair(context, self._certificate, self._key, self._now())

    async def watch(self, seconds: float) -> None:
        """Look after the files for ever."""
        while True:
            self.refresh()
            await asyncio.sleep(seconds)

    def _refuse(self, stamp: object, reason: str) -> None:
        # Tried again each time (a file may be written within one tick of its clock), told once.
        self._loaded = None
        if self._refused != (stamp, reason):
            self._refused = (stamp, reason)
            self._listener.certificate_refused(reason)

    def _choose(
        self, connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext
    ) -> int | None:
        if self._shown is None:
            return _NO_CERTIFICATE
        connection.context = self._shown.context
        return None


def load_pair(context: ssl.SSLContext, certificate: Path, key: Path, now: datetime) -> Shown:
    """Load a pair into a fresh context, or say why it must not be shown."""
    try:
        # An explicit password: OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password=b"")
        chain = x509.load_pem_x509_certificates(certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise UnusablePairError(f"{certificate} with {key}: {error}") from error
    # A caller needs every link: a chain lasts as long as the one that ends first.
    begins = max(each.not_valid_before_utc for each in chain)
    ends = min(each.not_valid_after_utc for each in chain)
    if not begins <= now < ends:
        raise UnusablePairError(
            f"{certificate}: valid from {begins} to {ends}, and now it is {now}"
        )
    return Shown(context, ends)


def demand_certificate(context: ssl.SSLContext, client_ca: Path) -> None:
    """Require callers to show a certificate of one of the authorities in a file."""
    try:
        context.load_verify_locations(client_ca)
    except OSError as error:  # ssl.SSLError is one, too
        raise UnusablePairError(f"{client_ca}: {error}") from error
    context.verify_mode = ssl.CERT_REQUIRED


def server_context() -> ssl.SSLContext:
    """Make a context without a certificate, whose callers need none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Go's clients offer HTTP/2 first; the server here speaks HTTP/1.1 only.
    context.set_alpn_protocols(["http/1.1"])
    return context


def _stamp(*paths: Path) -> tuple[tuple[int, int, int] | None, ...]:
    return tuple(map(_stamp_of, paths))


def _stamp_of(path: Path) -> tuple[int, int, int] | None:
    # Followed through links: Kubernetes changes a mounted Secret by turning one of them.
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
