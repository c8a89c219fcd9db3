"""Checks recorded histories of pods and Gangs: everything was right at every moment.

Pure functions over what a `Chronicle` has recorded. Changes of both kinds are put in the one order
in which the API server made them, that of their resource versions. Every pod of the tests asks for
one CPU, so CPUs are counted in pods.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from kube.objects import names
from testbed.api import Json
from testbed.following import DELETED
from testbed.history import PodEvent, gang_pod_event

Promised = Counter[tuple[str, str]]
"""Pod set and node to the number of pods."""


@dataclass(frozen=True)
class PodChange:
    """One change of a pod of a gang."""

    version: int
    at: PodEvent
    ready: bool
    fenced: bool
    """Whether a leader took the gang over while the pod was placed and not released."""

    @property
    def gated(self) -> bool:
        """Whether our gate is on it."""
        return names.GATE in self.at.gates

    @property
    def released_to(self) -> str:
        """The node it was released to, and holds room of until it is gone; empty before."""
        over = self.at.type == DELETED or self.at.phase in ("Succeeded", "Failed")
        return "" if self.gated or over else self.at.pinned_node or self.at.node


@dataclass(frozen=True)
class GangChange:
    """One change of a Gang, reduced to whose it is and what it promises."""

    version: int
    owner: str
    epoch: int
    promised: Mapping[tuple[str, str], int]


@dataclass
class Ledger:
    """The changes of one test."""

    pods: list[PodChange] = field(default_factory=list)
    gangs: list[GangChange] = field(default_factory=list)

    def lives(self) -> dict[str, list[PodChange]]:
        """The changes of each pod by its uid."""
        lives: defaultdict[str, list[PodChange]] = defaultdict(list)
        for change in self.pods:
            lives[change.at.uid].append(change)
        return dict(lives)

    def releases(self) -> list[PodChange]:
        """The first change of each pod after which our gate is off."""
        found = []
        for life in self.lives().values():
            found += [after for before, after in pairwise(life) if before.gated and not after.gated]
        return sorted(found, key=lambda change: change.version)

    def placements(self, owner: str) -> list[GangChange]:
        """What the Gangs of one owner promised over time."""
        return [change for change in self.gangs if change.owner == owner]


def pod_change(time: float, kind: str, pod: Json) -> PodChange:
    """Read a change of a pod."""
    conditions = pod.get("status", {}).get("conditions") or ()
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
    version = int(pod["metadata"]["resourceVersion"])
    fenced = names.FENCE in (pod["metadata"].get("annotations") or {})
    return PodChange(version, gang_pod_event(time, kind, pod), ready, fenced)


def gang_change(kind: str, gang: Json) -> GangChange:
    """Read a change of a Gang; a deleted one promises nothing."""
    status = {} if kind == DELETED else gang.get("status", {})
    promised: Promised = Counter()
    for pod_set in (status.get("placement") or {}).get("podSets") or ():
        for assignment in pod_set["assignments"]:
            for node, count in assignment["nodes"].items():
                promised[pod_set["name"], node] += count
    owner = gang["metadata"]["ownerReferences"][0]["uid"]
    version = int(gang["metadata"]["resourceVersion"])
    return GangChange(version, owner, status.get("epoch", 0), promised)


def problems(ledger: Ledger, room: Mapping[str, int]) -> list[str]:
    """Everything that must never happen; `room` is the number of pods that each node takes."""
    return [
        *twice_released(ledger),
        *unpromised(ledger),
        *overfull(ledger, room),
        *unschedulable(ledger),
    ]


def twice_released(ledger: Ledger) -> Iterator[str]:
    """Find pods that were not seen to go from gated to pinned once, and to stay so."""
    for life in ledger.lives().values():
        name = life[0].at.name
        released = [change for change in life if not change.gated]
        if released and not life[0].gated:
            yield f"{name} was never gated"
        nodes = {change.at.pinned_node for change in released}
        if len(nodes) > 1 or "" in nodes:
            yield f"{name} was released, pinned to {sorted(nodes)}"
        if any(not before.gated and after.gated for before, after in pairwise(life)):
            yield f"{name} was gated again"


def unpromised(ledger: Ledger) -> Iterator[str]:
    """Find releases to a node that the placement in force did not promise, or too often."""
    for release in ledger.releases():
        written = [g for g in ledger.placements(release.at.owner) if g.version < release.version]
        promised = written[-1].promised if written else {}
        slot = (release.at.group, release.released_to)
        if _taken(ledger, release) > promised.get(slot, 0):
            yield (
                f"{release.at.name} was released to {slot[1]}, and the placement of that moment "
                f"was {dict(promised)}"
            )


def _taken(ledger: Ledger, release: PodChange) -> int:
    """How many pods of its set were released to its node, itself included, and not deleted yet."""
    latest: dict[str, PodChange] = {}
    for change in ledger.pods:
        if change.version <= release.version and _are_mates(change, release):
            latest[change.at.uid] = change
    node = release.released_to
    return sum(mate.released_to == node and not mate.at.deleting for mate in latest.values())


def _are_mates(one: PodChange, other: PodChange) -> bool:
    return (one.at.owner, one.at.group) == (other.at.owner, other.at.group)


def overfull(ledger: Ledger, room: Mapping[str, int]) -> Iterator[str]:
    """Find moments in which more pods were released to a node than it has room for."""
    latest: dict[str, PodChange] = {}
    for change in ledger.pods:
        latest[change.at.uid] = change
        node = change.released_to
        holders = [pod.at.name for pod in latest.values() if node and pod.released_to == node]
        if len(holders) > room.get(node, len(holders)):
            yield f"{node} has room for {room[node]} and was given to {sorted(holders)}"


def unschedulable(ledger: Ledger) -> Iterator[str]:
    """Find released pods that kube-scheduler could not take in."""
    found = {c.at.name: c.at for c in ledger.pods if not c.gated and c.at.unschedulable}
    for name, event in found.items():
        yield f"{name} was released to {event.pinned_node}, and then: {event.unschedulable}"


def taken_over(ledger: Ledger) -> set[str]:
    """Name the gangs that a leader left half released to the next one."""
    return {change.at.cluster for change in ledger.pods if change.fenced}


def never_whole(ledger: Ledger, minimum: Mapping[str, int]) -> list[str]:
    """Name the gangs of which so many pods were never ready at the same time."""
    most: Counter[str] = Counter()
    ready: dict[str, PodChange] = {}
    for change in ledger.pods:
        ready[change.at.uid] = change
        cluster = change.at.cluster
        together = sum(p.ready and p.at.holds_room for p in ready.values() if _of(p, cluster))
        most[cluster] = max(most[cluster], together)
    return [name for name, wanted in minimum.items() if most[name] < wanted]


def _of(change: PodChange, cluster: str) -> bool:
    return change.at.cluster == cluster
