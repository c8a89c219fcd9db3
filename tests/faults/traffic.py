"""Makes gangs come and go while the coordinators are killed."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Callable
from typing import Self

from kube.objects import names
from testbed.closing import Closing
from testbed.errors import TestbedError
from testbed.processes import Process
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group, template
from tests.faults.calls import releases_after
from tests.faults.crew import Crew, Member

_WAITING = 5
"""Gangs that exist at once: two fit, so some always wait for room."""
_LEAST, _MOST = 3, 5
"""Pods of a gang: a head and two to four workers."""
GANG_SECONDS = 120.0
_AIM_SECONDS = 10.0
_MOST_TIMES = 4
"""So many times the kills asked for are enough in any case."""


class Traffic:
    """Gangs that are created one after another and deleted when they run."""

    def __init__(self, plot: Plot, chance: random.Random) -> None:
        self.minimum: dict[str, int] = {}
        """The gangs so far, with the pods of each."""
        self._plot = plot
        self._chance = chance
        self._alive: dict[str, float] = {}

    def flow(self, least: int, more: Callable[[], bool]) -> None:
        """Let `least` gangs come and go, and further ones for as long as `more` says."""
        while self._alive or self._wanted(least, more):
            while len(self._alive) < _WAITING and self._wanted(least, more):
                self._create()
            wait_until(self._delete_running, f"one of {sorted(self._alive)} to run", GANG_SECONDS)

    def _wanted(self, least: int, more: Callable[[], bool]) -> bool:
        return len(self.minimum) < least or more()

    def _create(self) -> None:
        number, pods = len(self.minimum), self._chance.randint(_LEAST, _MOST)
        name = self._start(f"g{number}", pods)
        self.minimum[name] = pods
        self._alive[name] = time.monotonic()

    def _submit(self, manifest: Json) -> None:
        self._plot.create(manifest)

    def _delete_running(self) -> bool:
        gangs = self._plot.gangs()
        phases = {name: gangs[name].get("status", {}).get("phase") for name in gangs}
        running = [name for name in self._alive if phases.get(name) == "Running"]
        for name in running:
            self._end(name)
            del self._alive[name]
        return bool(running)

    def _start(self, name: str, pods: int) -> str:
        """Create what has a gang of so many pods; return the name of that."""
        self._submit(gang(name, group(replicas=pods - 1)))
        return name

    def _end(self, name: str) -> None:
        """Delete what has this gang."""
        self._plot.delete_whole(name)


class WrapperTraffic(Traffic):
    """The same of AppWrappers."""

    def _start(self, name: str, pods: int) -> str:
        self._submit(wrapped_deployment(name, pods))
        return f"{names.APP_WRAPPER_GANG}{name}"

    def _end(self, name: str) -> None:
        self._plot.delete("AppWrapper", name.removeprefix(names.APP_WRAPPER_GANG))


def wrapped_deployment(name: str, pods: int) -> Json:
    """An AppWrapper of a ConfigMap and a Deployment."""
    labels = {"app": name}
    made = {"metadata": {"labels": labels}, **template("main")}
    spec = {"replicas": pods, "selector": {"matchLabels": labels}, "template": made}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    meta = {"name": name}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    return {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": "AppWrapper",
        "metadata": meta,
        "spec": {"components": [{"template": each} for each in (settings, deployment)]},
    }


class Restarts(Closing):
    """Kills a program at random moments and starts it again at once; a context manager."""

    def __init__(self, process: Process, chance: random.Random) -> None:
        self.kills = 0
        self._process, self._chance = process, chance
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="restarts", daemon=True)

    def _run(self) -> None:
        while not self._closed.wait(self._chance.uniform(0, 3)):
            self._process.restart()
            self.kills += 1

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        self._closed.set()
        self._thread.join()


class Killer(Closing):
    """Kills coordinators at random moments and starts them again at once; a context manager.

    Half of the kills come at any moment. The others come in the middle of a release, which
    arrives after the kill, or only when the next leader is at work. After `kills` of them it ends
    once `enough` says so, for what a kill hits depends on the machine.
    """

    def __init__(
        self, crew: Crew, kills: int, chance: random.Random, enough: Callable[[], object]
    ) -> None:
        self.kills = 0
        self._crew = crew
        self._wanted = kills
        self._is_enough = enough
        self._chance = chance
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)

    @property
    def busy(self) -> bool:
        """Whether there are kills to come."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._closed.is_set() and not self._is_done():
            if self._chance.random() < 0.5:
                self._kill_at_release(self._crew.wait_leader())
            else:
                self._closed.wait(self._chance.uniform(0, 1.5))
                victim = self._crew.holder or self._chance.choice(self._crew.members)
                victim.process.restart()
            self.kills += 1

    def _is_done(self) -> bool:
        if self.kills == _MOST_TIMES * self._wanted:
            return True
        return self.kills >= self._wanted and bool(self._is_enough())

    def _kill_at_release(self, victim: Member) -> None:
        hold = victim.proxy.hold(releases_after(self._chance.randrange(_MOST)))
        with contextlib.suppress(TestbedError):  # nobody may be waiting for a release now
            wait_until(lambda: hold.met or not victim.leads, "a release to kill at", _AIM_SECONDS)
        victim.process.restart()
        if self._chance.random() < 0.5:
            self._crew.wait_leader()
        victim.proxy.lift(hold)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        self._closed.set()
        self._thread.join()
