"""Measures how long one gang can hold a cycle up, however its pods constrain each other.

As many pods as nodes, or more, in ways that no sum decides: what bounds a cycle is then
the steps of `scheduling.cycle.Settings`, and they are worth no more time than they say.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling.cycle import Settings, run_cycle
from scheduling.model.constraints import PodTerm, Requirement
from scheduling.model.gang import GangKey, Group, Member, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.verdict import Refusal
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.node_table import node_snapshot_of

NODES = 5_000
GIBIBYTE = 2**30
MACHINE = {"cpu": 128_000, "memory": 1024 * GIBIBYTE, "nvidia.com/gpu": 8, "pods": 110}
HOST, ZONE, RACK = "kubernetes.io/hostname", "zone", "rack"
UNITS = "abcde"

Unit = tuple[PodShape, int, str]
"""A shape, its pods, and the value of their label `app`."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The time that one gang took, in milliseconds of the processor, and its verdict."""

    gang: str
    milliseconds: float
    verdict: str


def cluster(nodes: int) -> NodeSnapshot:
    """Return empty machines in 500 racks and 50 zones."""
    names = [f"node-{at:05}" for at in range(nodes)]
    labels = [{HOST: n, ZONE: f"z{at % 50}", RACK: f"r{at % 500}"} for at, n in enumerate(names)]
    pairs = zip(names, labels, strict=True)
    return node_snapshot_of(
        Node(name, found, (), unschedulable=False, allocatable=MACHINE) for name, found in pairs
    )


def gangs(nodes: int) -> Mapping[str, PendingGang]:
    """Return gangs for so many nodes, by what is absurd about them."""
    each = nodes // len(UNITS)
    kept_apart = [tuple(_term(RACK, other) for other in UNITS if other != unit) for unit in UNITS]
    ring = [(_term(ZONE, UNITS[(at + 1) % len(UNITS)]),) for at in range(len(UNITS))]
    alone = _shape(1, 4_000, 32)
    units: dict[str, Sequence[Unit]] = {
        "one pod per host": [(replace(alone, anti_affinity=(_term(HOST, "a"),)), nodes, "a")],
        "one more pod than hosts": [
            (replace(alone, anti_affinity=(_term(HOST, "a"),)), nodes + 1, "a")
        ],
        "five units, each in racks of its own": [
            (replace(alone, anti_affinity=terms), each, unit)
            for unit, terms in zip(UNITS, kept_apart, strict=True)
        ],
        "five units, each with affinity to the next": [
            (replace(alone, affinity=terms), each, unit)
            for unit, terms in zip(UNITS, ring, strict=True)
        ],
        "the same, one pod of each per host": [
            (replace(alone, affinity=terms, anti_affinity=(_term(HOST, unit),)), each, unit)
            for unit, terms in zip(UNITS, ring, strict=True)
        ],
        "twenty shapes": [
            (_shape(1 + at % 3, 1_000 * (3 + at), 7 + at), nodes // 20, "") for at in range(20)
        ],
        "two shapes, one pod too many": [
            (_shape(3, 21_000, 192), nodes + 4, ""),
            (_shape(5, 35_000, 320), nodes - 3, ""),
        ],
    }
    return {name: _gang(found) for name, found in units.items()}


def samples(nodes: int = NODES) -> list[Sample]:
    """Decide each gang alone on the empty cluster, with the settings of the product."""
    columns, found = cluster(nodes), []
    for name, gang in gangs(nodes).items():
        run_cycle([gang], columns, Settings(search_steps=0))  # what nodes are is known before
        began = time.thread_time()
        [decision] = run_cycle([gang], columns)
        took = 1000 * (time.thread_time() - began)
        verdict = decision.verdict
        said = verdict.reason if isinstance(verdict, Refusal) else "Admitted"
        found.append(Sample(name, took, str(said)))
    return found


def table(found: Sequence[Sample]) -> str:
    """Return the samples as a table in Markdown."""
    lines = [f"| gang on {NODES} nodes | verdict | ms |", "|---|---|---|"]
    lines += [f"| {each.gang} | {each.verdict} | {each.milliseconds:.0f} |" for each in found]
    return "\n".join(lines)


def _shape(gpus: int, cpu: int, memory: int) -> PodShape:
    asked = {"cpu": cpu, "memory": memory * GIBIBYTE, "nvidia.com/gpu": gpus, "pods": 1}
    return PodShape(tuple(sorted(asked.items())))


def _term(key: str, app: str) -> PodTerm:
    return PodTerm(key, (Requirement("app", "In", (app,)),), ("team",))


def _gang(units: Sequence[Unit]) -> PendingGang:
    named = [(f"set-{at:02}", *unit) for at, unit in enumerate(units)]
    groups = tuple(Group(name, "", shape, count) for name, shape, count, _ in named)
    members = tuple(
        Member(name, shape, (("app", app),))
        for name, shape, count, app in named
        for _ in range(count)
    )
    return PendingGang(GangKey("team", "absurd"), 0, 0.0, groups, members=members)
