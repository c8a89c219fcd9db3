"""Reserves free ports of loopback for as long as a cluster lives.

A port that was only tried may be taken before its owner binds it: by another cluster, or as the
local end of any connection. So ports come from below the range that systems
hand out for connections, and each is claimed with a file lock, which ends with its holder. The
locks lie in the cache of the testbed: two programs may have two folders for temporary files.
"""

from __future__ import annotations

import errno
import fcntl
import random
import socket
from typing import IO

from testbed.build import cache_directory
from testbed.errors import TestbedError

# Linux hands out 32768 and up for connections, macOS 49152 and up.
_RANGE = range(20000, 32000)
_ATTEMPTS = 1000


class PortAllocator:
    """Claims free ports and gives all of them back at once."""

    def __init__(self) -> None:
        self._folder = cache_directory() / "ports"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._claims: list[IO[str]] = []

    def allocate(self) -> int:
        """Return a port that nothing listens on and no other allocator holds."""
        for port in random.sample(_RANGE, _ATTEMPTS):
            claim = self._claim(port)
            if claim is None:
                continue
            if _is_free(port):
                self._claims.append(claim)
                return port
            claim.close()
        raise TestbedError(f"no free port among {_ATTEMPTS} tried in {_RANGE.start}-{_RANGE.stop}")

    def close(self) -> None:
        """Give all ports back."""
        while self._claims:
            self._claims.pop().close()

    def _claim(self, port: int) -> IO[str] | None:
        handle = (self._folder / str(port)).open("w")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            handle.close()
            return None
        return handle


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: a connection of an earlier owner in TIME_WAIT is no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            return False
    return True
