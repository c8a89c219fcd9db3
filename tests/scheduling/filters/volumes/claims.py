"""Claims, volumes and gangs that mount them, and what a cycle decides of such a gang."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from scheduling.cycle import run_cycle
from scheduling.filters.volumes.provisioning import NO_PROVISIONER
from scheduling.filters.volumes.volume_binding import Volumes
from scheduling.model.constraints import NodeTerm
from scheduling.model.gang import Group, Member, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import Mount, PodShape
from scheduling.model.verdict import Admitted, Refusal, Verdict
from scheduling.model.volume import (
    Claim,
    Fact,
    StorageClass,
)
from scheduling.state.volume_index import KINDS, VolumeIndex
from tests.builders import columns, gang, group, node, require, shape

ZONE = "topology.kubernetes.io/zone"
TEAM = "team"
DISK = "disk.example"
NODES = (
    node("a1", cpu=4, labels={ZONE: "a"}),
    node("a2", cpu=4, labels={ZONE: "a"}),
    node("b1", cpu=4, labels={ZONE: "b"}),
)
WAITING = StorageClass("wait", DISK, waits=True)
STATIC = StorageClass("wait", NO_PROVISIONER, waits=True)
IN_B = (NodeTerm((require(ZONE, "In", "b"),)),)


def table(*facts: Fact) -> VolumeIndex:
    made = VolumeIndex()
    for kind in KINDS:
        made.see(kind)
    for fact in facts:
        made.put(fact)
    return made


def bound(name: str = "data", volume: str = "pv", **more: object) -> Claim:
    return replace(Claim(TEAM, name, volume=volume, bound=True), **more)  # type: ignore[arg-type]


def waiting(name: str = "data", **more: object) -> Claim:
    return replace(Claim(TEAM, name, storage_class="wait"), **more)  # type: ignore[arg-type]


def mounting(*claims: str, cpu: int = 1) -> PodShape:
    return replace(shape(cpu=cpu), volumes=tuple(f"persistentVolumeClaim {c}" for c in claims))


def ephemeral(*volumes: str, cpu: int = 1) -> PodShape:
    return replace(shape(cpu=cpu), volumes=tuple(f"ephemeral {each}" for each in volumes))


def with_members(
    asked: PendingGang, mounts: Mapping[str, Iterable[Mount]] | None = None
) -> PendingGang:
    """Say which pods there are; those of a pod set in `mounts` have one claim each of their own."""
    own = {name: iter(each) for name, each in (mounts or {}).items()}
    members = []
    for each in asked.groups():
        for _ in range(each.count):
            named = [Mount(v.split()[1]) for v in each.shape.volumes if each.pod_set not in own]
            found = [next(own[each.pod_set])] if each.pod_set in own else named
            members.append(Member(each.pod_set, each.shape, (), mounts=tuple(found)))
    return replace(asked, members=tuple(members))


def decide(
    known: VolumeIndex,
    *groups: Group,
    nodes: Iterable[Node] = NODES,
    surplus: tuple[tuple[Group, ...], ...] = (),
    assumed: Iterable[tuple[str, str]] = (),
    mounts: Mapping[str, Iterable[Mount]] | None = None,
) -> Verdict:
    asked = with_members(gang("g", *groups, surplus=surplus), mounts)
    volumes = Volumes(known, assumed=assumed)
    [decision] = run_cycle([asked], columns(*nodes), volumes=volumes)
    return decision.verdict


def where(verdict: Verdict) -> set[str]:
    assert isinstance(verdict, Admitted), verdict
    return {name for each in verdict.placement.assignments for name, _ in each.nodes}


def why(verdict: Verdict) -> str:
    assert isinstance(verdict, Refusal), verdict
    return f"{verdict.reason}: {verdict.message}"


HEAD = group("head", 1, mounting("data"))
