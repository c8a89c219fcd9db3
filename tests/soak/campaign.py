"""Runs a soak: carries out a plan, looks at all invariants, and ends with quiet."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError
from tests.faults.calls import of_lease
from tests.soak.deeds import Hands
from tests.soak.fair_clock import FairClock
from tests.soak.judge import Judge, Violation
from tests.soak.plan import EVERYTHING, TEAMS, Mix, draw
from tests.soak.record import Record
from tests.soak.stage import Stage, staged
from tests.soak.usage import Usage, cpu_seconds

Say = Callable[[str], None]

_LOOK_SECONDS = 2.0
_SAMPLE_SECONDS = 10.0
_TOLD_SECONDS = 60.0
SETTLE = 180.0
"""Fair seconds in which all that fits must run once the faults have ended."""
GONE = 120.0
"""Fair seconds in which all must be gone once it is deleted."""
_WARM = 90.0
_MOST_GROWTH = 6.0
"""MiB a minute."""
_QUIET_SHARE = 0.25
"""Of a core, at most, that a program of Muster may use in quiet."""
_PATIENCE = 6.0
"""By what factor a machine may be slow; beyond it bounds of time say nothing."""


class SoakError(Exception):
    """An invariant does not hold, or the soak could not go on."""


@dataclass
class Soak:
    """One run."""

    seed: int
    minutes: float
    nodes: int
    directory: Path
    say: Say
    quiet: float = 60.0
    mix: Mix = EVERYTHING
    usage: Usage = field(default_factory=Usage)
    revived: list[str] = field(default_factory=list)
    _quiet: dict[str, float] = field(default_factory=dict)
    _left: list[object] = field(default_factory=list)
    _stage: Stage = field(init=False)
    _clock: FairClock = field(init=False)
    _record: Record = field(init=False)
    _judge: Judge = field(init=False)
    _hands: Hands = field(init=False)
    _began: float = 0.0

    def run(self) -> None:
        """Run it; raises `SoakError` for the first violation."""
        self.say(f"seed {self.seed}, {self.minutes:g} minutes, {self.nodes} nodes")
        with staged(self.directory, self.nodes, self.seed) as stage:
            self._stage = stage
            self._clock = FairClock(lambda: stage.is_out)
            with Record(stage.cluster, self._clock) as record:
                self._record = record
                self._judge = Judge(record, self._clock, self.nodes)
                self._began = time.monotonic()
                self._play()
        shutil.rmtree(self.directory)

    def _play(self) -> None:
        plan = draw(self.seed, self.minutes, self.nodes, self.mix)
        with Hands(self._stage, self._record, plan) as hands:
            self._hands = hands
            self._while(lambda: hands.busy, float("inf"))
            self._check_hands()
        self.say("the faults have ended")
        self._settle()
        self._be_quiet()
        self._clear()
        self._table()

    # --- the loop

    def _while(self, more: Callable[[], bool], most: float) -> bool:
        """Look at all invariants for as long as there is more, `most` fair seconds at most."""
        begin = self._clock.seconds
        told = sampled = float("-inf")
        while more():
            if self._clock.seconds - begin > most:
                return False
            time.sleep(_LOOK_SECONDS / 2)
            self._clock.tick()
            now = time.monotonic()
            self.revived += self._stage.revive()
            if now - sampled > _SAMPLE_SECONDS:
                sampled = now
                self.usage.sample(now, self._stage.programs)
                self._hands.sweep()
                for member in self._stage.crew.members:
                    del member.proxy.log[:-2000]
            self._look()
            if now - told > _TOLD_SECONDS:
                told = now
                self._tell()
            self._check_hands()
        return True

    def _look(self) -> None:
        if not self._stage.is_out:
            self._expect(self._judge.look())

    def _check_hands(self) -> None:
        if self._hands.failed:
            raise SoakError("; ".join(self._hands.failed))

    def _tell(self) -> None:
        with self._record.lock:
            bound = sum(pod.whole for pod in self._record.pods.values())
            gated = sum(pod.gated for pod in self._record.pods.values())
            gangs = len(self._record.gangs)
        self.say(
            f"{time.monotonic() - self._began:5.0f} s: {gangs} gangs, {bound} pods bound, {gated} "
            f"gated, {sum(self._hands.done.values())} deeds, slowness {self._clock.slowness:.1f}"
        )

    def _expect(self, found: list[Violation]) -> None:
        """End with the first violation, and with all that is known of its gang."""
        if not found:
            return
        first = found[0]
        recordings = self._stage.cluster.directory.parent / "coordinator-*.jsonl"
        logs = f"the logs are in {self._stage.cluster.logs}, what was decided in {recordings}"
        told = [self._when(), *map(str, found[:10]), *self._story(first.gang), logs]
        if first.node:
            told[-1:] = [*self._story(("", first.node)), logs]
        raise SoakError("\n".join(told))

    def _story(self, place: tuple[str, str]) -> list[str]:
        with self._record.lock:
            lines = [f"    {line}" for line in self._record.history[place]]
        return [f"what happened to {'/'.join(place)}:", *lines]

    def _when(self) -> str:
        slow = "; the machine was too slow for bounds of time"
        said = (
            f"seed {self.seed}, {time.monotonic() - self._began:.0f} s after the beginning, "
            f"slowness {self._clock.worst:.1f} at most"
        )
        return said + (slow if self._clock.worst > _PATIENCE else "")

    # --- the end

    def _settle(self) -> None:
        """All that fits runs in the end."""
        calm = [0]

        def unsettled() -> bool:
            calm[0] = 0 if self._judge.unsettled() else calm[0] + 1
            return calm[0] < 5

        if not self._while(unsettled, SETTLE):
            self._expect(self._judge.unsettled())
        with self._record.lock:
            phases = [g.get("status", {}).get("phase") for g in self._record.gangs.values()]
        self.say(f"settled: { ({phase: phases.count(phase) for phase in set(phases)}) }")

    def _be_quiet(self) -> None:
        """Nothing happens, so nothing is written and little is computed."""
        programs = self._stage.programs
        before, begin = cpu_seconds(programs), time.monotonic()
        logs = {m.identity: len(m.proxy.log) for m in self._stage.crew.members}
        until = begin + self.quiet
        while time.monotonic() < until:
            time.sleep(0.5)
            self._clock.tick()
        after = cpu_seconds(programs)
        writes = [
            each.call.path
            for member in self._stage.crew.members
            for each in member.proxy.log[logs[member.identity] :]
            if each.call.is_write and not of_lease(each.call)
        ]
        self._quiet = {name: after[name] - before.get(name, 0.0) for name in after}
        said = ", ".join(f"{name} {spent:.2f}" for name, spent in self._quiet.items())
        self.say(f"{self.quiet:.0f} quiet seconds: CPU seconds {said}; {len(writes)} writes")
        busy = [n for n, spent in self._quiet.items() if spent > _QUIET_SHARE * self.quiet]
        with self._record.lock:
            waiting = sum(_waits(gang) for gang in self._record.gangs.values())
        if busy or len(writes) > _MOST_WRITES + _MOST_OF_ONE * waiting:
            raise SoakError(f"busy in quiet: {busy}, writes {writes[:20]}")

    def _clear(self) -> None:
        """All is deleted; nothing of it may stay."""
        api = self._stage.cluster.api
        with api.session() as session:
            for team in TEAMS:
                for path in _DELETED:
                    session.call("DELETE", path.format(team))

        def left() -> bool:
            with self._record.lock:
                pods = [each for each in self._record.pods.values() if each.at.cluster]
                queues = self._record.queues.values()
                used = [q["metadata"]["name"] for q in queues if _in_use(q.get("status", {}))]
                self._left = [len(self._record.gangs), len(pods), used]
            return any(self._left)

        if not self._while(left, GONE):
            raise SoakError(f"left of all that was deleted: Gangs, pods, queues: {self._left}")
        leaks = self.usage.leaks(_WARM, _MOST_GROWTH)
        if leaks:
            raise SoakError("; ".join(leaks))

    def _table(self) -> None:
        hands, seen = self._hands, self._record.seen
        rows = [(name, str(count)) for name, count in sorted(hands.done.items())]
        rows += [(f"{name}, nothing there", str(n)) for name, n in sorted(hands.missed.items())]
        rows += [(f"seen: {name}", str(count)) for name, count in sorted(seen.items())]
        rows += [(f"judged: {n}", str(count)) for n, count in sorted(self._judge.checks.items())]
        rows += [
            (f"MiB of {name}", f"{first} first, {last} last, {peak} peak, in {lives} lives")
            for name, lives, first, last, peak in self.usage.rows()
        ]
        rows += [(f"CPU seconds of {n} in quiet", f"{s:.2f}") for n, s in self._quiet.items()]
        rows.append(("ended by themselves", str(len(self.revived))))
        width = max(len(name) for name, _ in rows)
        self.say("\n".join(f"  {name.ljust(width)}  {value}" for name, value in rows))
        for each in self.revived:
            self.say(each[:2000])
        self.say(f"seed {self.seed}: every invariant held, slowness {self._clock.worst:.1f}")


_DELETED = (
    "/apis/ray.io/v1/namespaces/{}/rayservices",
    "/apis/ray.io/v1/namespaces/{}/rayjobs",
    "/apis/ray.io/v1/namespaces/{}/rayclusters",
    "/apis/workload.codeflare.dev/v1beta2/namespaces/{}/appwrappers",
    "/api/v1/namespaces/{}/pods?gracePeriodSeconds=0",
)
"""All that is created, and the pods that were left behind."""

_MOST_WRITES = 3
_MOST_OF_ONE = 6
"""Writes for each gang that waits: its numbers are renewed, in its status and in three Events."""


def _waits(gang: dict[str, Any]) -> bool:
    return bool(gang.get("status", {}).get("phase") != "Running")


def _in_use(status: dict[str, object]) -> bool:
    return bool(status.get("admitted") or status.get("pending"))


def soak(
    seed: int,
    minutes: float,
    nodes: int,
    directory: Path,
    say: Say,
    quiet: float,
    mix: Mix = EVERYTHING,
) -> None:
    """Run one soak."""
    try:
        Soak(seed, minutes, nodes, directory, say, quiet, mix).run()
    except TestbedError as error:
        raise SoakError(f"seed {seed}: {error}; the files are in {directory}") from error
