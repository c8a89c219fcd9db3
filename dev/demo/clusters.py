"""Shows gangs that go to the cluster with room: `python -m demo.clusters`, by `make demo-clusters`.

A manager and two members run side by side on loopback, each member with room for one gang. Of three
Ray clusters that are created on the manager each member runs one, and the third says why it waits.
Then a member is cut off: what runs there goes on, and the third runs on the other one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from demo.claims import Claim
from demo.manifests import as_gang, gang_queue, ray_cluster
from testbed import components, fleet
from testbed.api import Json
from testbed.cluster import Cluster, prepare
from testbed.errors import TestbedError
from testbed.muster import start_dispatcher
from testbed.nodes import NodeSpec
from testbed.recorder import Recorder
from testbed.waiting import wait_until

T = TypeVar("T")

TEAM = "team"
QUEUE = "research"
NAMES = ("one", "two", "three")
WORKERS = 2
SIZE = WORKERS + 1
PATIENCE = 240.0
_RAY = f"/apis/ray.io/v1/namespaces/{TEAM}/rayclusters"
_QUEUES = "/apis/muster.dev/v1alpha1/gangqueues"


class Demo:
    """What is shown, in order."""

    def __init__(self, manager: Cluster, members: dict[str, Cluster]) -> None:
        self._manager, self._members = manager, members
        self._recorders = {name: Recorder(each) for name, each in members.items()}
        self._began = time.monotonic()
        self.claims: list[Claim] = []

    @property
    def holds(self) -> bool:
        """Whether all that was claimed was seen."""
        return all(each.holds for each in self.claims)

    def play(self) -> None:
        """Fill both members, cut one off, free the other, and bring the first back."""
        self._say(self._manager.kubectl("get", "memberclusters"))
        first, second = self._fill()
        self._wait_third(first, second)
        self._cut_off(first, second)
        self._claim_whole()

    def close(self) -> None:
        """End the watches."""
        for each in self._recorders.values():
            each.close()

    def _fill(self) -> tuple[str, str]:
        for name in NAMES:
            self._say(f"$ kubectl create -f {name}.yaml")
            self._manager.api.create(_RAY, as_gang(self._ray_cluster(name)))
        both = self._until(self._two_run, "two gangs to run")
        self._claim("two gangs run, one on each member: " + ", ".join(map(self._placed, both)))
        return both

    def _wait_third(self, first: str, second: str) -> None:
        third = self._third(first, second)
        said = self._until(partial(self._refusals, third), f"{third} to say why")
        self._say(self._muster("status"))
        for cluster in self._members:
            self._claim(f"{third} waits, {cluster}: {said[cluster]}", holds="fit" in said[cluster])

    def _cut_off(self, first: str, second: str) -> None:
        third = self._third(first, second)
        away, here = self._where(first), self._where(second)
        with self._members[away].process(components.API_SERVER).paused():
            self._say(f"the API server of {away} is stopped")
            message = self._until(partial(self._lost, away), f"{away} to be told lost")
            self._claim(f"the manager says of {away}: {message}")
            self._delete(second)
            freed = time.monotonic()
            self._until(partial(self._is_whole, here, third), f"{third} to run")
            took = time.monotonic() - freed
            self._claim(f"{third} runs on {here} {took:.2f} s after {second} was deleted")
            self._delete(first)
            self._say(f"{first} is deleted on the manager while {away} does not answer")
        self._until(partial(self._is_gone, away, first), f"{first} to be removed")
        self._claim(f"{away} is back: its {first} was removed there")

    def _claim_whole(self) -> None:
        expected = {(TEAM, name): SIZE for name in NAMES}
        found = [each for one in self._recorders.values() for each in one.partial_gangs(expected)]
        self._claim(f"gangs that held room in part: {len(found)}", holds=not found)
        twice = [name for name in NAMES if len(self._ran_on(name)) > 1]
        self._claim(f"gangs that ran on two members: {len(twice)}", holds=not twice)

    # ---- what is seen

    def _two_run(self) -> tuple[str, str] | None:
        running = [name for name in NAMES if self._where(name)]
        return (running[0], running[1]) if len(running) == 2 else None

    def _where(self, name: str) -> str:
        return next((each for each in self._members if self._is_whole(each, name)), "")

    def _is_whole(self, member: str, name: str) -> bool:
        pods = self._recorders[member].pods_of((TEAM, name))
        return sum(pod.phase == "Running" and not pod.deleting for pod in pods) == SIZE

    def _is_gone(self, member: str, name: str) -> bool:
        return not self._recorders[member].pods_of((TEAM, name))

    def _ran_on(self, name: str) -> set[str]:
        seen = {
            member: {pod.cluster for pod in recorder.events if pod.phase == "Running"}
            for member, recorder in self._recorders.items()
        }
        return {member for member, names in seen.items() if name in names}

    def _refusals(self, name: str) -> dict[str, str] | None:
        """What each member said; None until all did."""
        gang = self._manager.api.get(f"/apis/muster.dev/v1alpha1/namespaces/{TEAM}/gangs/{name}")
        said = (gang.get("status") or {}).get("dispatch", {}).get("refusals", ())
        found = {each["cluster"]: each.get("message", "") for each in said}
        return found if found.keys() == self._members.keys() else None

    def _lost(self, member: str) -> str:
        found = fleet.connected(self._manager, member)
        return str(found["message"]) if found.get("status") == "False" else ""

    def _placed(self, name: str) -> str:
        return f"{name} on {self._where(name)}"

    # ---- what is done

    def _ray_cluster(self, name: str) -> Json:
        made = ray_cluster(self._manager.samples, name, WORKERS)
        made["metadata"]["labels"] = {"muster.dev/queue": QUEUE}
        return made

    def _third(self, *others: str) -> str:
        return next(name for name in NAMES if name not in others)

    def _delete(self, name: str) -> None:
        self._say(f"$ kubectl delete raycluster {name}")
        self._manager.kubectl("delete", "raycluster", name, "-n", TEAM, "--wait=false")

    def _muster(self, *words: str) -> str:
        command = [str(Path(sys.executable).with_name("muster")), *words, "-n", TEAM]
        command += ["--kubeconfig", str(self._manager.kubeconfig)]
        self._say(f"$ muster {' '.join(words)} -n {TEAM}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    def _until(self, condition: Callable[[], T | None], what: str) -> T:
        return wait_until(condition, what, PATIENCE)

    def _claim(self, text: str, *, holds: bool = True) -> None:
        self.claims.append(Claim(text, holds))
        self._say(f"{'✓' if holds else '✗'} {text}")

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f} s  {text.rstrip()}", flush=True)


@contextmanager
def standing(folder: Path) -> Iterator[Demo]:
    """Start the three clusters and the dispatcher, with one node for one gang on each member."""
    with ExitStack() as stack:
        manager = fleet.start_manager(folder / "manager", stack)
        manager.create_namespace(TEAM)
        manager.api.create(_QUEUES, gang_queue(QUEUE, TEAM, clusters={}))
        members = {name: _member(folder, name, stack) for name in ("east", "west")}
        for name, member in members.items():
            fleet.join(manager, name, fleet.kubeconfig_of(member), namespaces=[TEAM])
        start_dispatcher(manager, "dispatcher", {"PROBE_SECONDS": "1"})
        for name in members:
            wait_until(partial(_is_connected, manager, name), f"{name} to be connected", PATIENCE)
        demo = Demo(manager, members)
        stack.callback(demo.close)
        yield demo


def _member(folder: Path, name: str, stack: ExitStack) -> Cluster:
    cluster = fleet.start_member(folder / name, stack)
    cluster.create_namespace(TEAM)
    fleet.admit_dispatcher(cluster, TEAM)
    cluster.api.create(_QUEUES, gang_queue(QUEUE, TEAM))
    cluster.add_nodes([NodeSpec(f"{name}-node", cpus=SIZE)])
    return cluster


def _is_connected(manager: Cluster, name: str) -> bool:
    return fleet.connected(manager, name).get("status") == "True"


def main() -> None:
    """Show it, and end with 1 where something was not as it must be."""
    try:
        prepare(print)
        with tempfile.TemporaryDirectory(prefix="muster-clusters-") as folder:
            print("starting a manager and two members, each with a control plane of its own")
            with standing(Path(folder)) as demo:
                demo.play()
    except TestbedError as error:
        sys.exit(str(error))
    sys.exit(0 if demo.holds else 1)


if __name__ == "__main__":
    main()
