"""Reads the GPU cluster of Alibaba's openb trace, and the order of its pods.

The files are those of cluster-trace-gpu-v2023 (github.com/alibaba/clusterdata), which the FGD
paper (Weng et al., USENIX ATC 2023) replays: its way of making arrivals is followed here, with
this language's random numbers.
"""

import csv
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scheduling.model.amounts import Amounts, Mask, Positions
from scheduling.scoring.node_scores import PARTS

MEBIBYTE = 2**20

MOST_ON_NODE = 10_000
"""No machine runs more pods; counts are cut off here."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node of the trace; `cpu` in thousandths of a core, `memory` in bytes."""

    cpu: int
    memory: int
    devices: int
    model: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of the trace: `devices` of which it takes `parts` each; `models` empty for any."""

    cpu: int
    memory: int
    devices: int
    parts: int
    models: tuple[str, ...]

    @property
    def asks(self) -> int:
        """Return what it asks for in all, in parts of devices."""
        return self.devices * self.parts

    @property
    def shares(self) -> bool:
        """Say whether it takes a part of one device only."""
        return self.devices == 1 and self.parts < PARTS


def read_machines(path: Path) -> list[Machine]:
    """Read the list of nodes."""
    return [
        Machine(
            int(row["cpu_milli"]),
            int(row["memory_mib"]) * MEBIBYTE,
            int(row["gpu"]),
            row["model"],
        )
        for row in _rows(path)
    ]


def read_pods(path: Path) -> list[Pod]:
    """Read a list of pods, sorted by name; some lists have no column for models."""
    return [
        Pod(
            int(row["cpu_milli"]),
            int(row["memory_mib"]) * MEBIBYTE,
            int(row["num_gpu"]),
            int(row["gpu_milli"]),
            tuple(filter(None, (row.get("gpu_spec") or "").split("|"))),
        )
        for row in sorted(_rows(path), key=lambda row: row["name"])
    ]


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def arrivals(pods: Sequence[Pod], target: int, chance: random.Random) -> list[Pod]:
    """Shuffle the pods, then draw more of them until the next would ask for more than `target`.

    Where the list alone asks for more, pods are taken out at random.
    """
    come = list(pods)
    chance.shuffle(come)
    asked = sum(pod.asks for pod in come)
    while asked > target:
        asked -= come.pop(chance.randrange(len(come))).asks
    drawn = iter(lambda: pods[chance.randrange(len(pods))], None)
    for pod in drawn:
        asked += pod.asks
        if asked > target:
            break
        come.append(pod)
    return come


class Cluster:
    """The machines in one order, with what is left on them; devices are kept one by one."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self.size = np.array([machine.devices for machine in machines], dtype=np.int64)
        self.models = np.array([machine.model for machine in machines])
        self.offered = np.array(
            [[m.cpu for m in machines], [m.memory for m in machines]], dtype=np.int64
        )
        self.left = self.offered.copy()
        there = np.arange(self.size.max(initial=0))[None, :] < self.size[:, None]
        self.devices: Amounts = np.where(there, PARTS, 0)
        self.idle: Amounts = self.devices.sum(axis=1)
        self.whole = self.size.copy()
        self.largest: Amounts = self.devices.max(axis=1, initial=0)
        self.total = int(self.idle.sum())
        self._of_models: dict[tuple[str, ...], Mask] = {}

    def fitting(self, pod: Pod) -> Positions:
        """Return the machines that the pod fits on, as their positions."""
        fits: Mask = (self.left[0] >= pod.cpu) & (self.left[1] >= pod.memory)
        if pod.shares:
            fits &= self.largest >= pod.parts
        elif pod.devices:
            fits &= self.whole >= pod.devices
        if pod.models:
            fits &= self._among(pod.models)
        return np.flatnonzero(fits)

    def fitting_times(self, pod: Pod, nodes: Positions) -> Amounts:
        """Return how often a pod without devices fits on each of these machines."""
        by_cpu = self.left[0, nodes] // max(pod.cpu, 1)
        by_memory = self.left[1, nodes] // max(pod.memory, 1)
        times: Amounts = np.minimum(np.minimum(by_cpu, by_memory), MOST_ON_NODE)
        return times

    def _among(self, models: tuple[str, ...]) -> Mask:
        if models not in self._of_models:
            self._of_models[models] = np.isin(self.models, models)
        return self._of_models[models]

    def put(self, pod: Pod, at: int) -> None:
        """Run the pod on a machine; a share goes to the device that it fills best."""
        self.left[:, at] -= (pod.cpu, pod.memory)
        if not pod.devices:
            return
        devices = self.devices[at]
        if pod.shares:
            devices[np.where(devices >= pod.parts, devices, PARTS + 1).argmin()] -= pod.parts
        else:
            devices[np.flatnonzero(devices == PARTS)[: pod.devices]] = 0
        self.idle[at] = devices.sum()
        self.whole[at] = (devices == PARTS).sum()
        self.largest[at] = devices.max()
