"""Memory and processor time of the programs, life by life."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from testbed.processes import Process

_MIB = 1 << 20
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")

_SHORTEST = 2.0
"""Minutes over which a growth says anything: within one a leader may take in all gangs."""


@dataclass
class Life:
    """What one process of a program took, sample by sample."""

    samples: list[tuple[float, int]] = field(default_factory=list)
    """Seconds and resident bytes."""

    @property
    def minutes(self) -> float:
        """How long it has lasted."""
        return (self.samples[-1][0] - self.samples[0][0]) / 60

    def grown(self, warm: float) -> float:
        """Bytes a minute after a warm-up, by the mean of the first and the last third after it.

        None of a life that was too short to tell a leak from work.
        """
        late = [each for each in self.samples if each[0] - self.samples[0][0] >= warm]
        third = len(late) // 3
        if not third:
            return 0.0
        first, last = late[:third], late[-third:]
        minutes = (_mean(t for t, _ in last) - _mean(t for t, _ in first)) / 60
        if minutes < _SHORTEST:
            return 0.0
        return (_mean(b for _, b in last) - _mean(b for _, b in first)) / minutes


class Usage:
    """Samples of all programs."""

    def __init__(self) -> None:
        self.lives: dict[str, dict[int, Life]] = defaultdict(dict)

    def sample(self, now: float, programs: Mapping[str, Process]) -> None:
        """Take in what the programs that run take now."""
        for name, process in programs.items():
            resident = _resident(process.pid)
            if process.running and resident:
                life = self.lives[name].setdefault(process.pid, Life())
                life.samples.append((now, resident))

    def rows(self) -> list[tuple[str, int, int, int, int]]:
        """Name, lives, and MiB at first, at last and at most."""
        found = []
        for name, lives in sorted(self.lives.items()):
            every = [resident for life in lives.values() for _, resident in life.samples]
            row = (len(lives), every[0] // _MIB, every[-1] // _MIB, max(every) // _MIB)
            found.append((name, *row))
        return found

    def leaks(self, warm: float, most: float) -> list[str]:
        """Programs of which a life grew by more than `most` MiB a minute after its warm-up."""
        return [
            f"{name} grew by {life.grown(warm) / _MIB:.1f} MiB a minute, {life.minutes:.0f} in all"
            for name, lives in sorted(self.lives.items())
            for life in lives.values()
            if life.grown(warm) > most * _MIB
        ]


def cpu_seconds(programs: Mapping[str, Process]) -> dict[str, float]:
    """The processor time of each program so far."""
    return {name: _cpu(process.pid) for name, process in programs.items() if process.running}


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
