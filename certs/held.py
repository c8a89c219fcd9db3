"""Reads and writes the certificates in a Secret, and the state of their roll-over.

The whole state of the certificates lies in one Secret, so that each step is one write, and a new
process goes on where another one was killed. Unreadable parts count as missing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from certs.chain import CertificateError, Pair, anchor, belong_together, certificates_in
from certs.files import (
    CA_FILE,
    CERTIFICATE_FILE,
    CLIENT_CERTIFICATE_FILE,
    CLIENT_KEY_FILE,
    KEY_FILE,
)
from kube.objects.names import CERT_MANAGERS

AUTHORITY_KEY_FILE = "ca.key"
NEXT_CERTIFICATE_FILE = "next.crt"
NEXT_KEY_FILE = "next.key"

OWNER_LABEL = "app.kubernetes.io/part-of"
OWNER = "muster"
"""A Secret without this label was made by others, and is theirs to change; so is one that
cert-manager writes, whatever its labels."""

TRUSTED_SINCE = "certs.muster.dev/trusted-since"
SERVED_SINCE = "certs.muster.dev/served-since"


@dataclass(frozen=True, slots=True)
class Held:
    """The certificates of one server, and how far their roll-over is."""

    authorities: tuple[bytes, ...] = ()
    """What callers are to trust, the oldest first; each a PEM certificate."""
    served: Pair | None = None
    following: Pair | None = None
    """What is served next; its authority is to be trusted first."""
    authority_key: bytes | None = field(default=None, repr=False)
    """The key of one of the authorities, where it is kept."""
    client: Pair | None = None
    trusted_since: datetime | None = None
    """Since when everything that was asked has had all of the authorities."""
    served_since: datetime | None = None
    """Since when `served` has been in the Secret."""
    ours: bool = True
    writer: str = ""
    """Who else writes the Secret, where that is known; then it is not ours."""
    faults: tuple[str, ...] = ()
    """What is there and cannot be used."""

    @property
    def theirs(self) -> str:
        """Whose Secret it is, where it is not ours: half a sentence."""
        return f"written by {self.writer}" if self.writer else "not made by muster-certs"

    @property
    def anchor(self) -> bytes | None:
        """The authority of what is served, among those that are trusted."""
        return anchor_of(self.served, self.authorities)


def anchor_of(pair: Pair | None, authorities: tuple[bytes, ...]) -> bytes | None:
    """Return the authority that a pair goes back to."""
    return None if pair is None else anchor(pair.certificate, authorities)


# ---- read


def read_held(
    data: Mapping[str, str] | None, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Held:
    """Read the fields of a Secret as the API server gives them."""
    reader = _Reader(data or {})
    certificate = annotations.get(CERT_MANAGERS)
    # cert-manager takes over a Secret of ours with the labels that it has.
    is_ours = labels.get(OWNER_LABEL) == OWNER and certificate is None
    return Held(
        reader.authorities(),
        reader.pair(CERTIFICATE_FILE, KEY_FILE),
        reader.pair(NEXT_CERTIFICATE_FILE, NEXT_KEY_FILE),
        reader.content(AUTHORITY_KEY_FILE),
        reader.pair(CLIENT_CERTIFICATE_FILE, CLIENT_KEY_FILE),
        _moment(annotations.get(TRUSTED_SINCE)),
        _moment(annotations.get(SERVED_SINCE)),
        is_ours,
        "" if certificate is None else f"cert-manager (Certificate {certificate})",
        tuple(reader.faults),
    )


class _Reader:
    """Reads what can be read, and notes what cannot."""

    def __init__(self, data: Mapping[str, str]) -> None:
        self._data = data
        self.faults: list[str] = []

    def content(self, name: str) -> bytes | None:
        encoded = self._data.get(name)
        if not encoded:
            return None
        try:
            return base64.b64decode(encoded, validate=True)
        except binascii.Error:
            self.faults.append(f"{name} is not base64")
            return None

    def authorities(self) -> tuple[bytes, ...]:
        content = self.content(CA_FILE)
        try:
            return () if content is None else certificates_in(content)
        except CertificateError as error:
            self.faults.append(f"{CA_FILE}: {error}")
            return ()

    def pair(self, certificate: str, key: str) -> Pair | None:
        chain, secret = self.content(certificate), self.content(key)
        if chain is None and secret is None:
            return None
        if chain is None or secret is None:
            self.faults.append(f"{certificate if chain is None else key} is missing")
            return None
        try:
            certificates_in(chain)
            if belong_together(Pair(chain, secret)):
                return Pair(chain, secret)
            self.faults.append(f"{key} is not the key of {certificate}")
        except CertificateError as error:
            self.faults.append(f"{certificate} and {key}: {error}")
        return None


def _moment(text: str | None) -> datetime | None:
    try:
        found = None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found is not None and found.tzinfo is not None else None


# ---- written


def files_of(held: Held) -> dict[str, bytes]:
    """Return the contents of the Secret by the names of the files."""
    files = {CA_FILE: b"".join(held.authorities)}
    if held.authority_key is not None:
        files[AUTHORITY_KEY_FILE] = held.authority_key
    pairs = (
        (held.served, CERTIFICATE_FILE, KEY_FILE),
        (held.following, NEXT_CERTIFICATE_FILE, NEXT_KEY_FILE),
        (held.client, CLIENT_CERTIFICATE_FILE, CLIENT_KEY_FILE),
    )
    for pair, certificate, key in pairs:
        if pair is not None:
            files |= {certificate: pair.certificate, key: pair.key}
    return files


FILES = (
    CA_FILE,
    AUTHORITY_KEY_FILE,
    CERTIFICATE_FILE,
    KEY_FILE,
    NEXT_CERTIFICATE_FILE,
    NEXT_KEY_FILE,
    CLIENT_CERTIFICATE_FILE,
    CLIENT_KEY_FILE,
)


def data_of(held: Held) -> dict[str, str | None]:
    """Return the data of the Secret as a merge patch; what is not there any more is None."""
    files = files_of(held)
    return {
        name: base64.b64encode(files[name]).decode() if name in files else None for name in FILES
    }


def notes_of(held: Held) -> dict[str, str | None]:
    """Return the annotations of the Secret, likewise."""
    return {
        TRUSTED_SINCE: None if held.trusted_since is None else held.trusted_since.isoformat(),
        SERVED_SINCE: None if held.served_since is None else held.served_since.isoformat(),
    }
