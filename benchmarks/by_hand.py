"""How long does a cycle take whose gangs wait for volumes made by hand?

`python -m benchmarks.by_hand`: four local disks on each node, and gangs that ask for them in ways
that cost the most: many pods, many claims with names of their own, many sizes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from benchmarks.absurd import HOST, NODES, Turn, cluster
from scheduling.columns import Columns
from scheduling.cycle import run_cycle
from scheduling.model import (
    GangKey,
    Group,
    Member,
    Mount,
    NodeTerm,
    PendingGang,
    PodShape,
    Requirement,
)
from scheduling.storage import KINDS, Claim, Fact, StorageClass, StorageTable, Volume
from scheduling.verdict import Refusal
from scheduling.volumes import NO_PROVISIONER, Volumes

GIBIBYTE = 2**30
SIZES = (100, 200, 400, 800)
"""Of the disks of each node, in GiB."""

WORKER = PodShape((("cpu", 4_000), ("nvidia.com/gpu", 1), ("pods", 1)))


def table(columns: Columns) -> StorageTable:
    """Return a table with the disks of all nodes, free."""
    made = StorageTable()
    facts: list[Fact] = [StorageClass("local", NO_PROVISIONER, waits=True)]
    for name in columns.names:
        here = (NodeTerm((Requirement(HOST, "In", (name,)),)),)
        facts += (
            Volume(f"{name}-{size}", "local", open=True, size=size * GIBIBYTE, terms=here)
            for size in SIZES
        )
    for kind in KINDS:
        made.see(kind)
    for fact in facts:
        made.put(fact)
    return made


def ephemeral(known: StorageTable, name: str, pods: int, sizes: Sequence[int]) -> PendingGang:
    """Return a gang whose pods each have claims of these sizes, all alike."""
    shape = replace(WORKER, volumes=tuple(f"ephemeral {at}" for at in range(len(sizes))))
    members = []
    for pod in range(pods):
        mounts = [Mount(f"{name}-{pod}-{at}", str(at), f"{name}-{pod}") for at in range(len(sizes))]
        members.append(Member("workers", shape, (), mounts=tuple(mounts)))
        for mount, size in zip(mounts, sizes, strict=True):
            asked = size * GIBIBYTE
            known.put(Claim("team", mount.claim, mount.owner, "local", size=asked))
    groups = (Group("workers", "", shape, pods),)
    return PendingGang(GangKey("team", name), 0, 0.0, groups, members=tuple(members))


def named(known: StorageTable, name: str, pods: int, size_of: Callable[[int], int]) -> PendingGang:
    """Return a gang whose pods each name a claim of their own."""
    members = []
    for pod in range(pods):
        claim = Claim("team", f"{name}-{pod}", storage_class="local", size=size_of(pod) * GIBIBYTE)
        known.put(claim)
        shape = replace(WORKER, volumes=(f"persistentVolumeClaim {claim.name}",))
        members.append(Member("workers", shape, (), mounts=(Mount(claim.name),)))
    groups = tuple(Group("workers", "", each.shape, 1) for each in members)
    return PendingGang(GangKey("team", name), 0, 0.0, groups, members=tuple(members))


def turns(nodes: int = NODES) -> list[Turn]:
    """Decide each case on the cluster after one volume has changed; the first verdict counts."""
    columns = cluster(nodes)
    known = table(columns)
    pods = nodes // 5
    cases = {
        f"{pods} pods with two claims each": [ephemeral(known, "two", pods, (100, 300))],
        "50 gangs of 20 pods": [ephemeral(known, f"many-{at}", 20, (100,)) for at in range(50)],
        "50 gangs, each of a size of its own": [
            ephemeral(known, f"sizes-{at:02}", 20, (100 + at,)) for at in range(50)
        ],
        f"{pods} claims with names of their own": [named(known, "names", pods, lambda _: 100)],
        f"{pods} claims of as many sizes": [named(known, "sizes", pods, lambda at: 1 + at)],
    }
    found: list[Turn] = []
    for name, gangs in cases.items():
        run_cycle(gangs, columns, volumes=Volumes(known))  # what nodes are is known before
        known.put(Volume("news", "local", open=True, size=len(found), terms=()))
        began = time.thread_time()
        decisions = run_cycle(gangs, columns, volumes=Volumes(known))
        took = 1000 * (time.thread_time() - began)
        verdict = decisions[0].verdict
        said = verdict.reason if isinstance(verdict, Refusal) else "Admitted"
        found.append(Turn(name, took, str(said)))
    return found


if __name__ == "__main__":
    for turn in turns():
        print(f"{turn.gang}: {turn.verdict}, {turn.milliseconds:.0f} ms")
