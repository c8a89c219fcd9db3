"""Tells in sentences what was seen of one gang: its RayCluster, its pods, and their nodes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import singledispatchmethod
from typing import Final

from coordinator.messages.events import (
    ClusterGone,
    ClusterSeen,
    Event,
    EvictionTried,
    GangGone,
    NodeGone,
    NodeSeen,
    PodGone,
    PodPatchEnded,
    PodSeen,
    RayClusterWriteEnded,
    RayJobWriteEnded,
    SightLost,
    SightRegained,
    TermEnded,
    TermStarted,
    WriteEnded,
)
from kube.codec.observed_pod import ObservedPod
from kube.objects.core import Node
from kube.objects.ray import RayCluster
from scheduling.model.gang import GangKey

MOST_NAMES: Final = 8
"""Names in a line; of more the rest is counted."""


def listed(names: Iterable[str]) -> str:
    """List names in one line."""
    known = list(names)
    more = len(known) - MOST_NAMES
    return ", ".join(known[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def counted(number: int, what: str) -> str:
    """Count things: 1 pod, 2 pods."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


class Seen:
    """What was seen of one gang so far; each step is told from what it changed."""

    def __init__(self, key: GangKey) -> None:
        self._key = key
        self._cluster: RayCluster | None = None
        self._pods: dict[str, ObservedPod] = {}
        self._nodes: dict[str, tuple[str, ...]] = {}
        self._grouped: defaultdict[str, list[str]] = defaultdict(list)
        self.known = False
        """Whether anything was ever seen of the gang."""
        self.places: set[str] = set()
        """The nodes that its placement names."""

    def tell(self, events: Iterable[Event]) -> Iterator[str]:
        """Tell of one step; pods to which the same happened share a line."""
        for event in events:
            yield from self._of(event)
        for what, names in self._grouped.items():
            yield f"{counted(len(names), 'pod')} {what}: {listed(names)}"
        self._grouped.clear()

    def name_of(self, uid: str) -> str:
        """Name a pod; one that was never seen by its uid."""
        pod = self._pods.get(uid)
        return f"pod {pod.name}" if pod is not None else f"pod of uid {uid}"

    @singledispatchmethod
    def _of(self, _event: Event) -> Iterator[str]:
        """Tell of one; of what has no sentence here there is nothing to tell."""
        yield from ()

    # --- the RayCluster -------------------------------------------------------------------

    @_of.register
    def _cluster_seen(self, event: ClusterSeen) -> Iterator[str]:
        meta = event.cluster.metadata
        if GangKey(meta.namespace, meta.name) != self._key:
            return
        before, self._cluster, self.known = self._cluster, event.cluster, True
        if before is None or before.metadata.uid != meta.uid:
            yield f"the RayCluster is there, made at {meta.creation_timestamp}"
        else:
            yield from _changes(before, event.cluster)

    @_of.register
    def _cluster_gone(self, event: ClusterGone) -> Iterator[str]:
        if event.key == self._key and self._cluster is not None:
            self._cluster = None
            yield "the RayCluster is gone"

    @_of.register
    def _gang_gone(self, event: GangGone) -> Iterator[str]:
        if event.key == self._key and event.uid:
            yield "the Gang is gone"

    # --- pods -----------------------------------------------------------------------------

    @_of.register
    def _pod_seen(self, event: PodSeen) -> Iterator[str]:
        pod = event.pod
        before = self._pods.get(pod.uid)
        mine = pod.member is not None and pod.member.gang == self._key
        if mine:
            self.known = True
            self._pods[pod.uid] = pod
            for what in _came(pod) if before is None else _moved(before, pod):
                self._grouped[what].append(pod.name)
        yield from ()

    @_of.register
    def _pod_gone(self, event: PodGone) -> Iterator[str]:
        pod = self._pods.pop(event.uid, None)
        if pod is not None:
            self._grouped["gone"].append(pod.name)
        yield from ()

    # --- nodes ----------------------------------------------------------------------------

    @_of.register
    def _node_seen(self, event: NodeSeen) -> Iterator[str]:
        name, now = event.node.metadata.name, _against(event.node)
        before = self._nodes.get(name)
        self._nodes[name] = now
        if not self._concerns(name):
            return
        if before is None:
            yield f"node {name} is there"
        elif now != before:
            yield f"node {name} is {' and '.join(now) if now else 'open to pods again'}"

    @_of.register
    def _node_gone(self, event: NodeGone) -> Iterator[str]:
        self._nodes.pop(event.name, None)
        if self._concerns(event.name):
            yield f"node {event.name} is gone"

    def _concerns(self, node: str) -> bool:
        return node in self.places or any(pod.settled_on == node for pod in self._pods.values())

    # --- the coordinator itself -----------------------------------------------------------

    @_of.register
    def _term_started(self, event: TermStarted) -> Iterator[str]:
        yield f"this coordinator leads from now on (term {event.epoch})"

    @_of.register
    def _term_ended(self, _event: TermEnded) -> Iterator[str]:
        yield "this coordinator leads no more"

    @_of.register
    def _sight_lost(self, event: SightLost) -> Iterator[str]:
        if self._cluster is not None:
            yield f"the watch of {event.watch} is down: nothing is decided meanwhile"

    @_of.register
    def _sight_regained(self, event: SightRegained) -> Iterator[str]:
        if self._cluster is not None:
            yield f"the watch of {event.watch} is back"

    @_of.register
    def _write_ended(self, event: WriteEnded) -> Iterator[str]:
        if event.key == self._key and event.error is not None:
            yield f"the Gang could not be written: {event.error}"

    @_of.register
    def _patch_ended(self, event: PodPatchEnded) -> Iterator[str]:
        if event.gang == self._key and event.error is not None:
            end = "has an unknown end" if event.unknown else "failed"
            yield f"a write to {self.name_of(event.uid)} {end}: {event.error}"

    @_of.register
    def _eviction_tried(self, event: EvictionTried) -> Iterator[str]:
        if event.gang == self._key and event.refusal is not None:
            yield f"the end of {self.name_of(event.uid)} would be refused: {event.refusal}"

    @_of.register
    def _owner_write_ended(self, event: RayJobWriteEnded | RayClusterWriteEnded) -> Iterator[str]:
        if event.gang == self._key and event.error is not None:
            kind = "RayJob" if isinstance(event, RayJobWriteEnded) else "RayCluster"
            yield f"the {kind} could not be written: {event.error}"


def _changes(before: RayCluster, now: RayCluster) -> Iterator[str]:
    if before.metadata.deletion_timestamp is None and now.metadata.deletion_timestamp is not None:
        yield "the RayCluster is being deleted"
    if bool(before.spec.suspend) != bool(now.spec.suspend):
        yield "the RayCluster is suspended" if now.spec.suspend else "the RayCluster is resumed"
    elif before.metadata.generation != now.metadata.generation:
        yield "the spec of the RayCluster was changed"
    if before.metadata.labels != now.metadata.labels or (
        before.metadata.annotations != now.metadata.annotations
    ):
        yield "labels or annotations of the RayCluster were changed"


def _came(pod: ObservedPod) -> Iterator[str]:
    where = f" on {pod.node}" if pod.node else ""
    gated = ", with Muster's gate" if pod.gated else ""
    yield f"came{where}{gated}"
    if pod.ready and pod.node:
        yield "ready"


def _moved(before: ObservedPod, pod: ObservedPod) -> Iterator[str]:
    if before.gated and not pod.gated and not pod.settled_on:
        yield "without its gate, on no node"
    if pod.node and not before.node:
        yield f"bound to {pod.node}"
    if pod.ready != before.ready:
        yield "ready" if pod.ready else "no longer ready"
    if pod.unschedulable and pod.unschedulable != before.unschedulable:
        yield f"refused by kube-scheduler ({pod.unschedulable})"
    if pod.terminal and not before.terminal:
        yield "succeeded" if pod.succeeded else "failed"
    if pod.terminating and not before.terminating:
        yield "being deleted"


def _against(node: Node) -> tuple[str, ...]:
    """List what keeps pods off a node."""
    taints = sorted({f"tainted {each.key}" for each in node.spec.taints})
    return (*(("cordoned",) if node.spec.unschedulable else ()), *taints)
