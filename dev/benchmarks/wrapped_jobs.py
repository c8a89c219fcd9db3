"""Measures how long 100 AppWrappers of one Job take, against the same Jobs on plain Kubernetes.

As in the stress test of MCAD: four nodes, each Job of one pod that runs for 22 s, and the clock
runs from the first create to the last Job that is Complete. First all pods fit at once, as there;
then half of them do, so that the others wait for the room of those that end.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.app_wrappers import (
    APP_WRAPPERS,
    JOBS,
    WrapperPlane,
    encoded,
    job,
    wrapped,
    wrapper_plane,
)
from benchmarks.audit import AuditLog
from benchmarks.audit import Row as Request
from benchmarks.burst import create_all, delete_all
from benchmarks.etcd import count_under
from benchmarks.gangs import NAMESPACE, PODS
from benchmarks.measure import Outcome, Row, in_turn, means, of_field, ratio_within, stated
from benchmarks.podwatch import PodWatch
from benchmarks.processes import CpuMeter, wait_quiet, without_driver
from testbed.api import Api, Json
from testbed.closing import Closing
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from testbed.waiting import wait_until

COUNT = 100
SECONDS = 22.0
AIM = 1.1
WAIT_SECONDS = 300.0
ALL, HALF = "all fit", "half fit"
CPU = {ALL: "5m", HALF: "2400m"}
"""Requests of a pod: MCAD's, and one of which 13 fit on each of the four nodes."""

PLAIN, WRAPPED = "plain", "wrapped"
_GANGS = f"/registry/muster.dev/gangs/{NAMESPACE}/"
_CREATED, _COMPLETE = "created", "Complete"
_ENDED = "Succeeded"


@dataclass(frozen=True)
class Ran:
    """One run: seconds from the first create, and CPU seconds until all was over."""

    completed: float
    """To the last Job that is Complete."""
    over: float
    """To the last AppWrapper that is Succeeded; for plain Jobs the same as `completed`."""
    cpu: dict[str, float]
    stages: dict[str, float]
    """When half of them, and all, had come so far."""

    @property
    def cpu_sum(self) -> float:
        """CPU seconds of all programs together."""
        return sum(without_driver(self.cpu).values())


class StageWatch(Closing):
    """Notes when each object of a collection first was in each of its stages."""

    def __init__(self, api: Api, path: str) -> None:
        self._changed = threading.Condition()
        self._seen: defaultdict[str, dict[str, float]] = defaultdict(dict)
        self._follower = Follower(api, path, self._take)
        self._follower.wait_synced()

    def times(self, stage: str) -> list[float]:
        """When the objects came to a stage, in order."""
        with self._changed:
            found = [times[stage] for times in self._seen.values() if stage in times]
        return sorted(found)

    def stages(self) -> set[str]:
        """All stages that were seen."""
        with self._changed:
            return {stage for times in self._seen.values() for stage in times}

    def wait(self, stage: str, count: int, seconds: float) -> None:
        """Wait until so many objects came to a stage."""

        def reached() -> bool:
            return sum(stage in times for times in self._seen.values()) >= count

        with self._changed:
            if not self._changed.wait_for(reached, seconds):
                counts = Counter(stage for times in self._seen.values() for stage in times)
                what = f"{count} to be {stage}"
                raise TestbedError(f"waited {seconds:.0f} s in vain for {what}: {dict(counts)}")

    def close(self) -> None:
        """End the watch."""
        self._follower.close()

    def _take(self, kind: str, item: Json) -> None:
        now = time.monotonic()
        if kind == DELETED:
            return
        with self._changed:
            times = self._seen[item["metadata"]["name"]]
            for stage in stages_of(item):
                times.setdefault(stage, now)
            self._changed.notify_all()


def stages_of(item: Json) -> Iterator[str]:
    """Name what an object says that it is: its phase, or its conditions that are true."""
    yield _CREATED
    status = item.get("status") or {}
    if status.get("phase"):
        yield status["phase"]
    yield from (c["type"] for c in status.get("conditions") or () if c["status"] == "True")


def measure(runs: int) -> Outcome:
    """Both sides in turn, with room for all and for half; then what is asked of the API server."""
    rows: list[Row] = []
    tables: dict[str, dict[str, float]] = {}
    with wrapper_plane() as on:
        for fits in (ALL, HALF):
            sides = (partial(_run, on, PLAIN, fits), partial(_run, on, WRAPPED, fits))
            plain, ours = in_turn(runs, *sides)
            rows += list(rows_of(fits, plain, ours))
            tables |= _tables(fits, plain, ours)
    return Outcome(rows, tables | _requests(), [f"floor: the same {COUNT} Jobs without Muster"])


def rows_of(fits: str, plain: Sequence[Ran], ours: Sequence[Ran]) -> Iterator[Row]:
    """AppWrappers against plain Jobs."""

    def row(name: str, what: str) -> Row:
        found = of_field(name, f"{fits}: {what}", "s", plain, ours)
        return replace(found, ours_are=WRAPPED, floor_is=PLAIN)

    yield ratio_within(row("completed", "first create to last Job Complete"), AIM)
    yield stated(row("over", "first create to last AppWrapper Succeeded"))
    yield stated(row("cpu_sum", "CPU of all programs until then"))


def _tables(fits: str, plain: Sequence[Ran], ours: Sequence[Ran]) -> dict[str, dict[str, float]]:
    sides = ((PLAIN, plain), (WRAPPED, ours))
    return {
        **{f"CPU s, {kind}, {fits}": means([run.cpu for run in runs]) for kind, runs in sides},
        **{f"seconds, {kind}, {fits}": means([run.stages for run in runs]) for kind, runs in sides},
    }


def bodies(kind: str, fits: str, number: int) -> list[bytes]:
    """Encode the objects of a run."""
    names = (f"{kind}{number}-{at:03}" for at in range(COUNT))
    jobs = [job(name, CPU[fits], SECONDS) for name in names]
    return encoded(jobs if kind == PLAIN else [wrapped(each) for each in jobs])


def _run(on: WrapperPlane, kind: str, fits: str, number: int) -> Ran:
    on.switch(on=kind == WRAPPED)
    return run(on, kind, fits, number)


def run(on: WrapperPlane, kind: str, fits: str, number: int, audit: AuditLog | None = None) -> Ran:
    """Create the objects at once and wait until all have completed; leave nothing."""
    api, path = on.cluster.api, JOBS if kind == PLAIN else APP_WRAPPERS
    manifests = bodies(kind, fits, number)
    with PodWatch(api, PODS) as pods:
        with StageWatch(api, JOBS) as jobs, StageWatch(api, APP_WRAPPERS) as wrappers:
            wait_quiet(on.cluster)
            if audit is not None:
                audit.skip()
            found = _timed(on, path, manifests, Watches(jobs, wrappers, pods))
            if audit is not None:
                audit.stop()
        delete_all(api, path)
        pods.wait_gone(WAIT_SECONDS)
    wait_until(lambda: not count_under(on.cluster, _GANGS), "all Gangs to go")
    return found


@dataclass(frozen=True)
class Watches:
    """What is followed while the clock runs."""

    jobs: StageWatch
    wrappers: StageWatch
    pods: PodWatch


def _timed(on: WrapperPlane, path: str, manifests: Sequence[bytes], watches: Watches) -> Ran:
    meter, began = CpuMeter(on.cluster), time.monotonic()
    create_all(on.cluster.api, manifests, path)
    watches.jobs.wait(_COMPLETE, COUNT, WAIT_SECONDS)
    if path == APP_WRAPPERS:
        watches.wrappers.wait(_ENDED, COUNT, WAIT_SECONDS)
    used = meter.used()
    completed = watches.jobs.times(_COMPLETE)[-1]
    over = max([completed, *watches.wrappers.times(_ENDED)])
    return Ran(completed - began, over - began, used, _stages(watches, began))


def _stages(watches: Watches, began: float) -> dict[str, float]:
    """When half of the objects, and all, had come to each stage."""
    named = (("Job", watches.jobs), ("AppWrapper", watches.wrappers))
    found = {f"{name} {s}": watch.times(s) for name, watch in named for s in watch.stages()}
    for stage in ("created", "released", "bound", "running"):
        found[f"Pod {stage}"] = [getattr(pod, stage) for pod in watches.pods.seen()]
    ordered = sorted(found.items(), key=lambda each: statistics.median(each[1]))
    return {
        f"{name}, {share}": round(at - began, 2)
        for name, times in ordered
        for share, at in (("half", statistics.median(times)), ("all", max(times)))
    }


def _requests() -> dict[str, dict[str, float]]:
    """Requests for each Job, from one run of each kind with an audit log."""
    counted: dict[str, Counter[Request]] = {}
    with TemporaryDirectory(prefix="muster-bench-") as folder:
        audit = AuditLog(Path(folder))
        with wrapper_plane(*audit.flags) as on:
            for kind in (PLAIN, WRAPPED):
                on.switch(on=kind == WRAPPED)
                run(on, kind, ALL, 0, audit)
                counted[kind] = audit.counted
    more = counted[WRAPPED] - counted[PLAIN]
    return {
        "requests per Job, plain": _each(counted[PLAIN]),
        "requests per Job, more where wrapped": _each(more),
    }


def _each(requests: Counter[Request]) -> dict[str, float]:
    often = {row: n / COUNT for row, n in requests.most_common() if n >= COUNT / 10}
    return {f"{who} {verb} {what} {code}": n for (who, verb, what, code), n in often.items()}
