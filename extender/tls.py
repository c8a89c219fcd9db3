"""Who may call, and which certificate does the extender show at this moment?

The context that listens demands a certificate of the caller and holds none of its own. Each
handshake is moved, in the callback that OpenSSL calls whether or not the caller names a host, to
the context built from the newest good pair of files. Whether a certificate is demanded is settled
before that, by the listening context, and who may have signed it after it, by the other: so both
are made alike. A pair is tried in a fresh context: loading a mismatched pair into a context in use
breaks that context.
"""

import asyncio
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from cryptography import x509

# What a caller sees while there is no certificate yet: a clean alert instead of a reset.
_NO_CERTIFICATE = ssl.AlertDescription.ALERT_DESCRIPTION_INTERNAL_ERROR

Stamp = tuple[tuple[int, int, int] | None, ...]


class Listener(Protocol):
    """Who is told about the certificate."""

    def certificate_loaded(self, expires: datetime) -> None:
        """Take note of a new certificate in use."""

    def certificate_refused(self, reason: str) -> None:
        """Take note of a pair that stays unused."""


class MutualTls:
    """The context to listen with; its certificate is replaced when the files change."""

    def __init__(
        self,
        pair: tuple[Path, Path],
        client_ca: Path,
        listener: Listener,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.context = _demanding(client_ca)
        self.context.sni_callback = self._choose
        self._pair = pair
        self._client_ca = client_ca
        self._listener = listener
        self._now = now
        self._shown: ssl.SSLContext | None = None
        self._expires = datetime.min.replace(tzinfo=UTC)
        self._loaded: Stamp | None = None
        self._refused: tuple[Stamp, str] | None = None

    @property
    def usable(self) -> bool:
        """Whether callers that verify would accept what is shown."""
        return self._shown is not None and self._now() < self._expires

    def refresh(self) -> None:
        """Load the files when they changed, or when the last attempt did not succeed."""
        stamp = tuple(_stamp(path) for path in self._pair)
        if stamp == self._loaded:
            return
        try:
            shown, expires = _load(self._pair, self._client_ca, self._now())
        except (OSError, ValueError) as error:
            self._refuse(stamp, str(error))
            return
        self._shown, self._expires, self._loaded, self._refused = shown, expires, stamp, None
        self._listener.certificate_loaded(expires)

    async def watch(self, seconds: float) -> None:
        """Look after the files for ever."""
        while True:
            self.refresh()
            await asyncio.sleep(seconds)

    def _refuse(self, stamp: Stamp, reason: str) -> None:
        # Tried again at each turn (a file may be written within one tick of its clock), told once.
        self._loaded = None
        if self._refused != (stamp, reason):
            self._refused = (stamp, reason)
            self._listener.certificate_refused(reason)

    def _choose(
        self, connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext
    ) -> int | None:
        if self._shown is None:
            return _NO_CERTIFICATE
        connection.context = self._shown
        return None


def caller_name(certificate: Any) -> str:
    """The common name in a verified certificate, as `ssl` gives it; empty where there is none."""
    subject = (certificate or {}).get("subject", ())
    names = [value for part in subject for key, value in part if key == "commonName"]
    return names[0] if len(names) == 1 else ""


def _load(
    pair: tuple[Path, Path], client_ca: Path, now: datetime
) -> tuple[ssl.SSLContext, datetime]:
    context, (certificate, key) = _demanding(client_ca), pair
    # An explicit password: OpenSSL would ask for one on the terminal.
    context.load_cert_chain(certificate, key, password=b"")
    leaf = x509.load_pem_x509_certificate(certificate.read_bytes())
    if not leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc:
        raise ValueError(f"{certificate}: not valid at {now}")
    return context, leaf.not_valid_after_utc


def _demanding(client_ca: Path) -> ssl.SSLContext:
    """A context without a certificate, which demands one that this authority signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(client_ca)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Go's client offers HTTP/2 first; the server here speaks HTTP/1.1 only.
    context.set_alpn_protocols(["http/1.1"])
    return context


def _stamp(path: Path) -> tuple[int, int, int] | None:
    # Followed through links: Kubernetes changes a mounted Secret by turning one of them.
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
