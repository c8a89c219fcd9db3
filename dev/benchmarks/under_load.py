"""Measures reviews and filter calls while certificates are replaced and the leader is killed.

500 reviews and 200 calls of `filter` a second for five minutes, to the programs as they run on a
control plane with two coordinators. Each of 8 connections of a side lasts two seconds, so that new
certificates are seen; a call that has to wait for a new connection is charged for that. At a fifth
and at seven tenths of the time both servers' certificates are replaced on disk, for those of a new
authority, which callers trust beside the old one; at three tenths the leading coordinator is
killed. `python -m benchmarks.under_load 20` takes 20 s.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path

from benchmarks import extender as questions
from benchmarks.load import CONNECTIONS, Connection, Target
from benchmarks.measure import Outcome, Row, judged, quantile, stated
from benchmarks.plane import LEASE, Plane, plane, usual_options
from benchmarks.processes import CpuMeter
from benchmarks.report import outcome_lines
from benchmarks.reviews import recorded_reviews
from certs.chain import Pair, ServerNames, issue_client, issue_leaf, new_authority
from certs.files import write_client, write_pair
from testbed.muster import start_extender
from testbed.waiting import wait_until

SECONDS = 300.0
REVIEWS, FILTERS = 500.0, 200.0
NODES, PODS = 100, 1_000
LIFE_SECONDS = 2.0
"""Of a connection."""
QUESTION = "Which calls fail while certificates are replaced and the leader is killed?"
_ROTATIONS = (0.2, 0.7)
_KILL = 0.3
_SHOWN_ERRORS = 5
_LOOK_SECONDS = 0.25
_LED_SECONDS = 60.0
_READ_SECONDS = 5.0  # servers look every 2 s for new files


@dataclass
class Found:
    """What the callers of one path met."""

    took: list[float] = field(default_factory=list)
    """Milliseconds from when a call was due."""
    errors: list[str] = field(default_factory=list)
    serials: set[str] = field(default_factory=set)
    """Of the certificates that were shown."""


@dataclass
class Run:
    """Both paths, and what happened beside."""

    found: dict[str, Found]
    change_of_leader: float
    """Seconds until another coordinator held the Lease."""
    cpu: dict[str, float]


def measure(runs: int, seconds: float = SECONDS) -> Outcome:
    """Load a control plane with Muster on it, so often."""
    with plane(NODES, options=usual_options(kwok=False, scheduler=False)) as on:
        on.switch(on=True)
        on.muster.start_coordinator(settings=LEASE)
        on.muster.wait_ready()
        certificates = Certificates(on.webhook_ca.parent, on.cluster.directory / "extender-tls")
        certificates.issue()
        extender = start_extender(on.cluster, certificates=certificates.of_extender)
        paths = _paths(on, extender.port, certificates)
        made = [_run(on, paths, certificates, seconds) for _ in range(runs)]
    return Outcome([*_rows(made)], notes=[*_notes(made, seconds)])


# ---- certificates on disk


class Certificates:
    """The pairs of both servers and of kube-scheduler, and the bundle that callers trust."""

    def __init__(self, of_webhook: Path, of_extender: Path) -> None:
        self.of_webhook, self.of_extender = of_webhook, of_extender
        self._authorities: list[Pair] = []

    @property
    def bundle(self) -> str:
        """All authorities so far."""
        return "".join(each.certificate.decode() for each in self._authorities)

    def issue(self) -> None:
        """Issue all by an authority, without which nothing serves."""
        self.replace_servers()
        self.replace_client()

    def replace(self) -> None:
        """Put certificates of a new authority in the place of those that are there.

        That of the client comes once the extender must have read which authority signed it.
        """
        self.replace_servers()
        time.sleep(_READ_SECONDS)
        self.replace_client()

    def replace_servers(self) -> None:
        """Replace what the servers show, and beside it the bundle of all authorities."""
        now, names = datetime.now(UTC), ServerNames(addresses=(ip_address("127.0.0.1"),))
        self._authorities.append(new_authority("benchmark", now))
        for directory in (self.of_webhook, self.of_extender):
            leaf = issue_leaf(self._authorities[-1], names, now)
            write_pair(directory, leaf, self.bundle.encode())

    def replace_client(self) -> None:
        """Replace what kube-scheduler would show."""
        client = issue_client(self._authorities[-1], questions.SCHEDULER, datetime.now(UTC))
        write_client(self.of_extender, client)

    def context(self, *, client: bool) -> ssl.SSLContext:
        """What a caller trusts now, and what it shows."""
        made = ssl.create_default_context(cadata=self.bundle)
        if client:
            made.load_cert_chain(self.of_extender / "client.crt", self.of_extender / "client.key")
        return made


# ---- the callers


@dataclass(frozen=True)
class Calls:
    """Where calls go, how many a second, and with which bodies in turn."""

    target: Target
    rate: float
    bodies: Sequence[bytes]
    context: Callable[[], ssl.SSLContext]


class Callers:
    """The connections of one path; each is closed after a while, and made anew."""

    def __init__(self, path: Calls, found: Found) -> None:
        self._path, self._found = path, found
        self._free: asyncio.Queue[tuple[Connection | None, float]] = asyncio.Queue()
        for _ in range(CONNECTIONS):
            self._free.put_nowait((None, 0.0))

    async def call(self, body: bytes, due: float) -> None:
        """Send a body when it is due."""
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        # The event loop may wake us late; that is the load's fault and not the server's.
        since = max(due, time.perf_counter()) if self._free.qsize() else due
        connection, made = await self._free.get()
        try:
            connection, made = await self._fresh(connection, made)
            await connection.post(body)
            self._found.took.append((time.perf_counter() - since) * 1e3)
        except (OSError, EOFError) as error:
            self._found.errors.append(repr(error))
            await _closed(connection)
            connection = None
        self._free.put_nowait((connection, made))

    async def close(self) -> None:
        """End all connections."""
        while not self._free.empty():
            connection, _ = self._free.get_nowait()
            await _closed(connection)

    async def _fresh(self, old: Connection | None, made: float) -> tuple[Connection, float]:
        now = time.perf_counter()
        if old is not None and now - made < LIFE_SECONDS:
            return old, made
        await _closed(old)
        new = await replace(self._path.target, context=self._path.context()).connect()
        self._found.serials.add(new.serial)
        return new, now


async def _closed(connection: Connection | None) -> None:
    if connection is not None:
        with suppress(OSError):
            await connection.close()


async def _load(path: Calls, found: Found, began: float, seconds: float) -> None:
    callers, bodies = Callers(path, found), itertools.cycle(path.bodies)
    dues = (began + number / path.rate for number in range(round(path.rate * seconds)))
    async with asyncio.TaskGroup() as group:
        for due in dues:
            # Tasks are made a second ahead, not all at once.
            await asyncio.sleep(max(0.0, due - time.perf_counter() - 1.0))
            group.create_task(callers.call(next(bodies), due))
    await callers.close()


# ---- a run


def _run(on: Plane, paths: dict[str, Calls], certificates: Certificates, seconds: float) -> Run:
    found = {name: Found() for name in paths}
    on.muster.wait_ready()
    on.muster.wait_led()
    meter = CpuMeter(on.cluster)
    changed = asyncio.run(_all(on, paths, found, certificates, seconds))
    cpu = meter.used()
    for process in on.muster.coordinators:
        if not process.running:
            process.restart()
    return Run(found, changed, cpu)


async def _all(
    on: Plane,
    paths: dict[str, Calls],
    found: dict[str, Found],
    certificates: Certificates,
    seconds: float,
) -> float:
    began = time.perf_counter() + 1.0
    async with asyncio.TaskGroup() as group:
        for name, path in paths.items():
            group.create_task(_load(path, found[name], began, seconds))
        for share in _ROTATIONS:
            group.create_task(_later(began + share * seconds, certificates.replace))
        killed = group.create_task(_later(began + _KILL * seconds, partial(_change_leader, on)))
    return killed.result() or 0.0


async def _later(at: float, do: Callable[[], float | None]) -> float | None:
    await asyncio.sleep(max(0.0, at - time.perf_counter()))
    return await asyncio.to_thread(do)


def _change_leader(on: Plane) -> float:
    """Kill the coordinator that leads; returns after how long another one does."""
    leader = on.muster.leader()
    began = time.perf_counter()
    on.muster.coordinators[int(leader.rpartition("-")[2])].kill()
    what = f"another coordinator than {leader} to lead"
    wait_until(lambda: on.muster.leader() not in ("", leader), what, _LED_SECONDS, _LOOK_SECONDS)
    return time.perf_counter() - began


def _paths(on: Plane, extender_port: int, certificates: Certificates) -> dict[str, Calls]:
    nodes = [each["metadata"]["name"] for each in on.cluster.api.get("/api/v1/nodes")["items"]]
    asked = [questions.question(nodes, number) for number in range(PODS)]
    review = Target(on.webhook_port, on.webhook_ca)
    verb = Target(extender_port, certificates.of_extender / "ca.crt", "/filter")
    return {
        "review": Calls(
            review, REVIEWS, recorded_reviews(on), partial(certificates.context, client=False)
        ),
        "filter": Calls(verb, FILTERS, asked, partial(certificates.context, client=True)),
    }


# ---- what is told


def _rows(runs: Sequence[Run]) -> list[Row]:
    rows = []
    for name, rate in (("review", REVIEWS), ("filter", FILTERS)):
        found = [run.found[name] for run in runs]
        title = f"{name} at {rate:g}/s"
        errors = Row(f"{title}, calls that failed", "", tuple(float(len(f.errors)) for f in found))
        rows.append(judged(errors, "0", lambda row: max(row.ours) == 0))
        seen = Row(f"{title}, certificates seen", "", tuple(float(len(f.serials)) for f in found))
        rows.append(judged(seen, "3 or more", lambda row: min(row.ours) > len(_ROTATIONS)))
        for called, share in (("p50", 0.5), ("p99", 0.99), ("longest", 1.0)):
            row = Row(f"{title}, {called}", "ms", tuple(quantile(f.took, share) for f in found))
            rows.append(stated(row) if called == "p99" else row)
    changes = tuple(run.change_of_leader for run in runs)
    return [*rows, Row("leader killed to another one leading", "s", changes)]


def _notes(runs: Sequence[Run], seconds: float) -> list[str]:
    notes = [f"{seconds:g} s; certificates replaced {len(_ROTATIONS)} times, one leader killed"]
    for run in runs:
        for name, found in run.found.items():
            said = "; ".join(found.errors[:_SHOWN_ERRORS])
            shown = f"; failed: {said}" if said else ""
            notes.append(f"{name}: {len(found.took)} answers{shown}")
        notes.append("CPU seconds: " + ", ".join(f"{k} {v:g}" for k, v in sorted(run.cpu.items())))
    return notes


def main(seconds: str) -> None:
    """Run it once, for so many seconds."""
    for line in outcome_lines("load", QUESTION, measure(1, float(seconds))):
        print(line)


if __name__ == "__main__":
    main(*sys.argv[1:])
