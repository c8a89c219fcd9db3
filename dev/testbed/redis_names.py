"""Names of servers whose addresses change, as those of pods do: for their processes, and here."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

NAMES = tuple(f"server-{number}.redis.test" for number in range(3))
_OWN_HOSTS = 'mount --bind "$1" /etc/hosts && exec sh "$2"'


def missing() -> str:
    """Say why processes cannot have names of their own here; empty where they can."""
    tried = subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True)
    return "" if tried.returncode == 0 else "no mount namespaces: they need root"


class Names:
    """Three names, and a file of hosts that tells where on loopback each is now."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "hosts"
        self._addresses: dict[str, str] = {}
        self.move(1)

    def move(self, network: int) -> None:
        """Give all names addresses in another network."""
        self._addresses = {name: f"127.0.{network}.{n}" for n, name in enumerate(NAMES, 1)}
        lines = ["127.0.0.1 localhost", *(f"{at} {name}" for name, at in self._addresses.items())]
        # Written in place: processes have this file, not this name of it.
        self._file.write_text("".join(f"{line}\n" for line in lines))

    def address(self, name: str) -> str:
        """Return where a name leads now."""
        return self._addresses[name]

    def command(self, script: Path) -> list[str]:
        """Return what runs a script whose process, and no other, has these names."""
        return ["unshare", "-m", "sh", "-c", _OWN_HOSTS, "sh", str(self._file), str(script)]

    @contextlib.contextmanager
    def known_here(self) -> Iterator[None]:
        """Have this process know the names."""
        before = socket.getaddrinfo

        def resolved(host: Any, *more: Any, **named: Any) -> Any:
            name = os.fsdecode(host) if isinstance(host, str | bytes) else host
            return before(self._addresses.get(name, host), *more, **named)

        with mock.patch.object(socket, "getaddrinfo", resolved):
            yield
