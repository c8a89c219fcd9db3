"""Serves with the certificate on disk, and changes it while it runs.

The context that listens holds no certificate. Each handshake is moved, in the callback that
OpenSSL calls whether or not the caller names a host, to the context built from the newest good
pair of files. A pair is tried in a fresh context: loading a mismatched pair into a context in use
breaks that context. Whether a caller must show a certificate is settled by the listening context,
and which authority must have signed it by the other, so one function makes both.
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

    `blank` makes the contexts, without a certificate; by default callers need none either.
    """

    def __init__(
        self,
        certificate: Path,
        key: Path,
        listener: Listener,
        *,
        blank: Callable[[], ssl.SSLContext] | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._blank = blank or server_context
        self.context = self._blank()
        self.context.sni_callback = self._choose
        self._certificate = certificate
        self._key = key
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
        stamp = _stamp(self._certificate, self._key)
        if stamp == self._loaded:
            return
        try:
            shown = load_pair(self._blank(), self._certificate, self._key, self._now())
        except UnusablePairError as error:
            self._refuse(stamp, str(error))
        else:
            self._shown, self._loaded, self._refused = shown, stamp, None
            self._listener.certificate_loaded(shown.expires)

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
        leaf = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise UnusablePairError(f"{certificate} with {key}: {error}") from error
    if not leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc:
        raise UnusablePairError(
            f"{certificate}: valid from {leaf.not_valid_before_utc} to"
            f" {leaf.not_valid_after_utc}, and now it is {now}"
        )
    return Shown(context, leaf.not_valid_after_utc)


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
