"""Writes a certificate and its key to disk, each file at once and readable for its owner alone."""

from __future__ import annotations

import os
from pathlib import Path

from certs.chain import Pair

CA_FILE = "ca.crt"
CERTIFICATE_FILE = "tls.crt"
KEY_FILE = "tls.key"
CLIENT_CERTIFICATE_FILE = "client.crt"
CLIENT_KEY_FILE = "client.key"

_PRIVATE_DIRECTORY = 0o700
_PRIVATE_FILE = 0o600


def write_pair(directory: Path, leaf: Pair, authority_certificate: bytes) -> None:
    """Write ca.crt, tls.key and tls.crt, each one at once.

    The certificate comes last: a server that watches it reads a pair that belongs together.
    """
    directory.mkdir(mode=_PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    # mkdir leaves the mode of a directory that was there, and the umask bends that of a new one.
    directory.chmod(_PRIVATE_DIRECTORY)
    _write(directory / CA_FILE, authority_certificate)
    _write(directory / KEY_FILE, leaf.key)
    _write(directory / CERTIFICATE_FILE, leaf.certificate)


def write_client(directory: Path, pair: Pair) -> None:
    """Write client.key and client.crt beside the server's pair."""
    _write(directory / CLIENT_KEY_FILE, pair.key)
    _write(directory / CLIENT_CERTIFICATE_FILE, pair.certificate)


def _write(path: Path, content: bytes) -> None:
    """Replace the file at once: a reader sees the old content or the new, nothing between."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    # O_EXCL: never write a key into a file that another process made and holds open.
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
