"""Opens connections that notice a dead peer, and turns their failures into KubeErrors."""

import contextlib
import os
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from kube.api.errors import Timeout, Unreachable


@dataclass(slots=True)
class LineSplitter:
    """Cut a stream into lines, wherever its pieces end; linear in bytes for any line length."""

    _started: list[bytes] = field(default_factory=list)

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that this piece completes; blank ones say nothing and are dropped."""
        head, *rest = piece.split(b"\n")
        self._started.append(head)
        if not rest:
            return []
        lines = [b"".join(self._started), *rest]
        self._started = [lines.pop()]
        return [line for line in lines if line]


@contextlib.contextmanager
def only_kube_errors(what: str) -> Iterator[None]:
    """Turn what fails within into a KubeError that names what was asked."""
    try:
        yield
    except TimeoutError as error:
        raise Timeout(f"{what}: no answer in time") from error
    except aiohttp.ClientConnectorError as error:
        said = f"{what}: no connection to {error.host}:{error.port}: {_cause(error.os_error)}"
        raise Unreachable(said, sent=False) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Unreachable(f"{what}: {type(error).__name__}: {error}", sent=True) from error


def _cause(fault: OSError) -> str:
    """Say in the words of the system why there is no connection; aiohttp adds objects of Python."""
    match fault:
        case ssl.SSLCertVerificationError():
            return f"its certificate is not trusted: {fault.verify_message}"
        case ssl.SSLError():
            return f"TLS: {fault.reason or fault}"
        case socket.gaierror():
            return str(fault.strerror)
        case OSError(errno=int() as number) if number > 0:
            return os.strerror(number)
        case _:
            return str(fault)


# Seconds without traffic before the kernel asks whether the peer is there, seconds between two
# questions, how many go unanswered; and how long sent bytes may stay unacknowledged (ms).
_PROBES = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 60_000}


def guarded_socket(address: Any) -> socket.socket:
    """Make a socket that notices when its peer is gone without a word."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _PROBES.items():
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
