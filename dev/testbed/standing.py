"""Lists clusters left standing by `up`, and whether their processes still live.

A record names each process by number and time of birth: numbers are used again, and nothing is
to be ended or called healthy that merely has the number of a process that died.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.cluster import Cluster
from testbed.components import Ports
from testbed.errors import TestbedError
from testbed.health import endpoint, is_healthy
from testbed.waiting import wait_until

_RECORD = "testbed.json"


@dataclass(frozen=True)
class Member:
    """One process of a standing cluster."""

    name: str
    pid: int
    born: str

    @property
    def alive(self) -> bool:
        """Tell whether this very process still runs."""
        return birth(self.pid) == self.born


@dataclass(frozen=True)
class Standing:
    """A cluster that outlives the command that started it."""

    name: str
    directory: Path
    kubeconfig: Path
    ca_file: Path
    ports: Ports
    members: tuple[Member, ...]

    @property
    def alive(self) -> bool:
        """Tell whether any of its processes still runs."""
        return any(member.alive for member in self.members)


def directory_of(name: str) -> Path:
    """Return the folder of the cluster with this name."""
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name):
        raise TestbedError(f"a cluster's name is of a-z, 0-9 and -, not {name!r}")
    return _state_directory() / name


def all_standing() -> list[Standing]:
    """Read the records of all clusters, by name."""
    folders = sorted(path.parent for path in _state_directory().glob(f"*/{_RECORD}"))
    return [found for folder in folders if (found := find(folder.name))]


def find(name: str) -> Standing | None:
    """Read the record of one cluster, if there is one."""
    directory = directory_of(name)
    try:
        record = json.loads((directory / _RECORD).read_text())
    except FileNotFoundError:
        return None
    return Standing(
        name=name,
        directory=directory,
        kubeconfig=Path(record["kubeconfig"]),
        ca_file=Path(record["ca_file"]),
        ports=Ports(**record["ports"]),
        members=tuple(Member(**member) for member in record["members"]),
    )


def leave_standing(cluster: Cluster) -> None:
    """Write the record of a running cluster, then let go of it."""
    members = [
        Member(name, process.pid, birth(process.pid) or "")
        for name, process in cluster.processes.items()
        if process.running  # some only had something to do at the start
    ]
    record = {
        "kubeconfig": str(cluster.kubeconfig),
        "ca_file": str(cluster.ca_file),
        "ports": asdict(cluster.site.ports),
        "members": [asdict(member) for member in members],
    }
    (cluster.directory / _RECORD).write_text(json.dumps(record, indent=2))
    cluster.release()


def take_down(standing: Standing) -> None:
    """End what is left of a cluster and delete its files."""
    for member in standing.members:
        if member.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(member.pid, signal.SIGKILL)
    wait_until(lambda: not standing.alive, f"the processes of {standing.name} to end")
    shutil.rmtree(standing.directory)


def condition(standing: Standing, member: Member) -> str:
    """Say how one process is: gone, running, healthy or unhealthy."""
    if not member.alive:
        return "gone"
    asked = endpoint(member.name, standing.ports)
    if asked is None:
        return "running"
    return "healthy" if is_healthy(asked, standing.ca_file) else "unhealthy"


def birth(pid: int) -> str | None:
    """Return when a process was born, in the system's own terms, or None when it has ended."""
    if Path("/proc/self/stat").exists():
        return _birth_by_proc(pid)
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    state, _, born = subprocess.run(
        command, capture_output=True, text=True, check=False
    ).stdout.partition(" ")
    return born.strip() if state and not state.startswith("Z") else None


def _birth_by_proc(pid: int) -> str | None:
    try:
        # The second field, the program's name in brackets, may hold blanks; count after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started


def _state_directory() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "muster" / "testbed"
