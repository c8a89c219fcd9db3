"""Measures how long a hundred Ray clusters take that are created at once.

The clock runs from the first create to the last pod seen Running. KubeRay makes the pods, with
ten reconcilers. Four kinds of run take turns: stock, with nothing of Muster at work; the floor, in
which the API server itself gates the pods and a program that decides nothing sends the bare release
patches; the same with the gates of Muster's webhook; and Muster.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.audit import AuditLog
from benchmarks.audit import Row as Request
from benchmarks.gangs import PODS, RAY_CLUSTERS, Size, bodies
from benchmarks.kinds import (
    FLOOR,
    MUSTER,
    NOMINATING,
    POLICY_LABELLED,
    POLICY_TRACKED,
    QUEUED,
    STOCK,
    UNGUARDED,
    UNPOLICED,
    WEBHOOK,
    WEBHOOK_TRACKED,
    Kind,
)
from benchmarks.kuberay import Reconciles
from benchmarks.measure import Outcome, Row, all_in_turn, means, of_field, ratio_within, stated
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.podwatch import PodWatch
from benchmarks.processes import CpuMeter, wait_quiet, without_driver
from testbed.api import Api
from testbed.errors import TestbedError

GANGS = 100
NODES = 500
SIZE = Size()
WAIT_SECONDS = 240.0
AIM = 1.05
QUEUES_AIM = 1.03
NOMINATIONS_AIM = 1.03
POLICIES_AIM = 1.03
KINDS = (STOCK, FLOOR, WEBHOOK, MUSTER)
GATINGS = (FLOOR, POLICY_TRACKED, WEBHOOK, WEBHOOK_TRACKED, POLICY_LABELLED)
_CONNECTIONS = 4
_GONE = (HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.NOT_FOUND)


@dataclass(frozen=True)
class Burst:
    """One burst: seconds from the first create, and CPU seconds until then and until quiet."""

    bound: float
    running: float
    cpu: dict[str, float]
    cpu_until_quiet: dict[str, float]
    reconciles: float
    nominated: int = 0
    """Pods that were seen nominated."""

    @property
    def cpu_sum(self) -> float:
        """CPU seconds of all programs together."""
        return sum(without_driver(self.cpu).values())


Found = Mapping[Kind, Sequence[Burst]]


def measure(runs: int) -> Outcome:
    """Bursts of all kinds in turn, then one of each with an audit log."""
    found = _bursts(runs, KINDS)
    return Outcome(rows(found), _cpu_tables(found) | _requests())


def measure_gatings(runs: int) -> Outcome:
    """Bursts by each way of gating in turn, released by a program that decides nothing."""
    found = _bursts(runs, GATINGS)
    return Outcome(gating_rows(found), _cpu_tables(found))


def measure_queues(runs: int) -> Outcome:
    """Bursts with queues in use and without in turn."""
    found = _bursts(runs, (MUSTER, QUEUED))
    return Outcome(list(queue_rows(found)), _cpu_tables(found))


def measure_policies(runs: int) -> Outcome:
    """Bursts with the admission policies in force and without in turn."""
    found = _bursts(runs, (UNPOLICED, MUSTER))
    return Outcome(list(policy_rows(found)), _cpu_tables(found))


def measure_nominations(runs: int) -> Outcome:
    """Bursts with the guard Nomination and with none in turn."""
    found = _bursts(runs, (UNGUARDED, NOMINATING))
    counts = ", ".join(str(run.nominated) for run in found[NOMINATING])
    note = f"pods nominated in each burst of {GANGS * SIZE.pods}: {counts}"
    return Outcome(list(nomination_rows(found)), _cpu_tables(found), [note])


def nomination_rows(found: Found) -> Iterator[Row]:
    """What nominations cost, by the clock and in CPU seconds."""
    clock = ("running", "first create to all Running", "s")
    cpu = ("cpu_sum", "CPU of all programs until all Running", "s")
    yield ratio_within(_row(found, clock, NOMINATING, UNGUARDED), NOMINATIONS_AIM)
    yield ratio_within(_row(found, cpu, NOMINATING, UNGUARDED), NOMINATIONS_AIM)


def queue_rows(found: Found) -> Iterator[Row]:
    """What queues cost, by the clock and in CPU seconds."""
    clock = ("running", "first create to all Running", "s")
    cpu = ("cpu_sum", "CPU of all programs until all Running", "s")
    yield ratio_within(_row(found, clock, QUEUED, MUSTER), QUEUES_AIM)
    yield ratio_within(_row(found, cpu, QUEUED, MUSTER), QUEUES_AIM)


def policy_rows(found: Found) -> Iterator[Row]:
    """What admission policies cost, by the clock and in CPU seconds."""
    clock = ("running", "first create to all Running", "s")
    cpu = ("cpu_sum", "CPU of all programs until all Running", "s")
    yield ratio_within(_row(found, clock, MUSTER, UNPOLICED), POLICIES_AIM)
    yield ratio_within(_row(found, cpu, MUSTER, UNPOLICED), POLICIES_AIM)


def _bursts(runs: int, kinds: Sequence[Kind]) -> Found:
    with plane(NODES) as on:
        found = all_in_turn(runs, [partial(_numbered, on, kind) for kind in kinds])
    return dict(zip(kinds, found, strict=True))


def rows(found: Found) -> list[Row]:
    """Muster against the floor and stock, and what of the distance the floor has itself."""
    row = partial(_row, found)
    clock = ("running", "first create to all Running", "s")
    cpu = ("cpu_sum", "CPU of all programs until all Running", "s")
    reconciles = ("reconciles", "KubeRay's reconciles for a gang, until quiet", "")
    return [
        ratio_within(row(clock, MUSTER, FLOOR), AIM),
        ratio_within(row(cpu, MUSTER, FLOOR), AIM),
        stated(row(clock, MUSTER, STOCK)),
        stated(row(cpu, MUSTER, STOCK)),
        stated(row(clock, FLOOR, STOCK)),
        stated(row(cpu, FLOOR, STOCK)),
        row(cpu, WEBHOOK, FLOOR),
        row(("bound", "first create to all bound", "s"), MUSTER, FLOOR),
        row(reconciles, FLOOR, STOCK),
        row(reconciles, MUSTER, STOCK),
    ]


def gating_rows(found: Found) -> list[Row]:
    """A webhook against a policy, field owners tracked or not, and what finding the owner costs."""
    row = partial(_row, found)
    clock = ("running", "first create to all Running", "s")
    cpu = ("cpu_sum", "CPU of all programs until all Running", "s")
    pairs = (
        (WEBHOOK, FLOOR),
        (WEBHOOK_TRACKED, POLICY_TRACKED),
        (POLICY_TRACKED, FLOOR),
        (WEBHOOK_TRACKED, WEBHOOK),
        (POLICY_LABELLED, FLOOR),
        (POLICY_LABELLED, WEBHOOK),
    )
    return [each for pair in pairs for each in (row(clock, *pair), stated(row(cpu, *pair)))]


def _row(found: Found, what: tuple[str, str, str], ours: Kind, floor: Kind) -> Row:
    row = of_field(*what, floor=found[floor], ours=found[ours])
    return replace(row, ours_are=ours.name, floor_is=floor.name)


def _cpu_tables(found: Found) -> dict[str, dict[str, float]]:
    tables = {}
    for kind, runs in found.items():
        tables[cpu_title(kind)] = means([run.cpu for run in runs])
        tables[f"CPU s, {kind.name}, until quiet"] = means([run.cpu_until_quiet for run in runs])
    return tables


def cpu_title(kind: Kind) -> str:
    """Under which name the CPU seconds of a kind are told."""
    return f"CPU s, {kind.name}, until all Running"


def _numbered(on: Plane, kind: Kind, number: int) -> Burst:
    return burst(on, kind, f"{kind.prefix}{number}")


def burst(on: Plane, kind: Kind, prefix: str, audit: AuditLog | None = None) -> Burst:
    """Create the clusters at once and wait until all their pods run; leave nothing."""
    manifests = bodies(prefix, GANGS, SIZE, gang=kind.labelled, queues=kind.queues)
    with kind.at_work(on), PodWatch(on.cluster.api, PODS) as watch:
        wait_quiet(on.cluster)
        if audit is not None:
            audit.skip()
        result = _timed(on, watch, manifests)
        if audit is not None:
            audit.stop()
        delete_all(on.cluster.api)
        watch.wait_gone(WAIT_SECONDS)
    return result


def _timed(on: Plane, watch: PodWatch, manifests: Sequence[bytes]) -> Burst:
    meter, looked = CpuMeter(on.cluster), Reconciles.so_far(on.cluster)
    began = time.monotonic()
    create_all(on.cluster.api, manifests)
    watch.wait_running(len(manifests) * SIZE.pods, WAIT_SECONDS)
    used = meter.used()
    seen = watch.seen()
    bound, running = max(pod.bound for pod in seen), max(pod.running for pod in seen)
    wait_quiet(on.cluster)
    reconciles = Reconciles.so_far(on.cluster).since(looked).count / len(manifests)
    nominated = sum(pod.nominated > 0 for pod in seen)
    return Burst(bound - began, running - began, used, meter.used(), reconciles, nominated)


def create_all(api: Api, manifests: Sequence[bytes], path: str = RAY_CLUSTERS) -> None:
    """Create objects, RayClusters by default, over a few connections."""
    shares = [manifests[start::_CONNECTIONS] for start in range(_CONNECTIONS)]
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for done in [pool.submit(_create, api, share, path) for share in shares]:
            done.result()


def delete_all(api: Api, path: str = RAY_CLUSTERS) -> None:
    """Delete every object of a kind, RayClusters by default, and what they own.

    One by one: a request for all of them takes longer than a connection waits.
    """
    found = [each["metadata"]["name"] for each in api.get(path)["items"]]
    shares = [found[start::_CONNECTIONS] for start in range(_CONNECTIONS)]
    with ThreadPoolExecutor(_CONNECTIONS) as pool:
        for done in [pool.submit(_delete, api, share, path) for share in shares]:
            done.result()


def _delete(api: Api, names: Sequence[str], path: str) -> None:
    with api.session() as session:
        for name in names:
            status, said = session.request("DELETE", f"{path}/{name}?propagationPolicy=Background")
            if status not in _GONE:
                raise TestbedError(f"DELETE {path}/{name}: {status} {said[:200]!r}")


def _create(api: Api, manifests: Sequence[bytes], path: str) -> None:
    with api.session() as session:
        for manifest in manifests:
            session.call("POST", path, manifest)


def _requests() -> dict[str, dict[str, float]]:
    """Requests for each gang, from one burst of each kind on a control plane with an audit log."""
    counted: dict[Kind, Counter[Request]] = {}
    with TemporaryDirectory(prefix="muster-bench-") as folder:
        audit = AuditLog(Path(folder))
        with plane(NODES, options=usual_options(apiserver_args=audit.flags)) as on:
            for kind in (STOCK, MUSTER):
                burst(on, kind, f"{kind.prefix}-audited", audit)
                counted[kind] = audit.counted
    stock, ours = counted[STOCK], counted[MUSTER]
    return {
        "requests per gang, stock": _per_gang(stock),
        "requests per gang, more with Muster": _per_gang(ours - stock),
        "requests per gang, fewer with Muster": _per_gang(stock - ours),
    }


def _per_gang(requests: Counter[Request]) -> dict[str, float]:
    often = {row: n / GANGS for row, n in requests.most_common() if n >= GANGS / 10}
    return {f"{who} {verb} {what} {code}": n for (who, verb, what, code), n in often.items()}
