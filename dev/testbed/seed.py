"""Keeps what every cluster's start has in common, so that it is done once.

An API server's first start fills an empty etcd, and taking in KubeRay's CRDs, four megabytes of
schemas, costs it more processor time than all else. So this is done once, and the state of etcd
after it is kept beside the programs: the seed, with which later clusters begin. There is nothing
in it that belongs to one cluster: no keys, no addresses, no nodes.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed import components
from testbed.build import Artifacts, Say, cache_directory, locked
from testbed.crds import Served
from testbed.errors import TestbedError

_DATA = "etcd"
_SERVED = "served.json"
_ETCD_SECONDS = 10.0

Grow = Callable[[Artifacts, Path], list[Served]]


@dataclass(frozen=True)
class Seed:
    """The state that a cluster with KubeRay begins with."""

    folder: Path

    @property
    def served(self) -> list[Served]:
        """What the API server serves once it has taken the seed in."""
        return [Served(*pair) for pair in json.loads((self.folder / _SERVED).read_text())]

    def plant(self, directory: Path) -> None:
        """Copy the state to where an etcd will start on it."""
        shutil.copytree(self.folder / _DATA, directory)


def renew_identity(etcd_port: int) -> None:
    """Take the namespace kube-system out of an etcd, before an API server starts on it.

    That makes it again, with a uid of its own: by that uid clusters are told apart.
    """
    key = base64.b64encode(b"/registry/namespaces/kube-system").decode()
    connection = http.client.HTTPConnection("127.0.0.1", etcd_port, timeout=_ETCD_SECONDS)
    try:
        connection.request("POST", "/v3/kv/deleterange", json.dumps({"key": key}))
        answer = connection.getresponse()
        deleted = json.loads(answer.read()).get("deleted")
    finally:
        connection.close()
    if deleted != "1":
        raise TestbedError(f"etcd did not give up kube-system: {answer.status} {deleted}")


def ensure_seed(programs: Artifacts, grow: Grow, say: Say) -> Seed:
    """Return the seed for these programs; `grow` makes one where there is none."""
    folder = cache_directory() / _key(programs)
    if not folder.exists():
        with locked(folder.with_name(f".{folder.name}.lock"), "seed", say):
            if not folder.exists():
                _grow(programs, grow, folder, say)
    return Seed(folder)


def _grow(programs: Artifacts, grow: Grow, folder: Path, say: Say) -> None:
    started = time.monotonic()
    say("seed: starting the API server once, to keep what every start has in common")
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    served = grow(programs, partial / _DATA)
    (partial / _SERVED).write_text(json.dumps(served))
    partial.rename(folder)
    say(f"seed: made in {time.monotonic() - started:.0f} s")


def _key(programs: Artifacts) -> str:
    """Name the seed by the programs and by how they are started."""
    names = sorted(path.name for path in programs.folders.values())
    how = Path(components.__file__).read_bytes()
    digest = hashlib.sha256("\n".join(names).encode() + how).hexdigest()
    return f"seed-{digest[:24]}"
