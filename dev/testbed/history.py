"""Checks the recorded life of pods: no part of a gang ever held room alone.

Pure functions over the events that a `Recorder` has seen, or that a test makes up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kube.objects import names
from testbed.api import Json
from testbed.following import DELETED

Gang = tuple[str, str]
"""Namespace and name of the RayCluster."""

START_SECONDS = 120.0
"""How long a gang may take from its first bound pod to all of its minimum.

Seconds on an idle machine are enough; a crowded one must not be taken for a partial gang.
"""

_CLUSTER_LABEL = "ray.io/cluster"
_GROUP_LABEL = "ray.io/group"
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True)
class PodEvent:
    """One change of one pod, and how the pod stood after it."""

    time: float
    """On this machine's monotonic clock, when the change was seen."""
    type: str
    """ADDED, MODIFIED or DELETED."""
    namespace: str
    name: str
    uid: str
    cluster: str = ""
    """The RayCluster by its label; empty for any other pod."""
    group: str = ""
    owner: str = ""
    """The uid of the controller: a RayCluster made again under its name is another one."""
    node: str = ""
    """The node it is bound to; empty before."""
    phase: str = "Pending"
    gates: tuple[str, ...] = ()
    pinned_node: str = ""
    """The one node that its required affinity names."""
    unschedulable: str = ""
    """What kube-scheduler says when it has tried in vain."""
    deleting: bool = False

    @property
    def gang(self) -> Gang:
        """The gang and pod set of the pod."""
        return self.namespace, self.cluster

    @property
    def holds_room(self) -> bool:
        """Tell whether the pod is bound and neither ended nor on its way out."""
        alive = self.type != DELETED and not self.deleting and self.phase not in _ENDED
        return bool(self.node) and alive


@dataclass(frozen=True)
class Finding:
    """A moment in which the history is not as it must be."""

    gang: Gang
    time: float
    text: str

    def __str__(self) -> str:
        return f"{'/'.join(self.gang)}: {self.text}"


def pod_event(time: float, kind: str, pod: Json) -> PodEvent:
    """Read one change as the API server tells it."""
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    labels = metadata.get("labels") or {}
    return PodEvent(
        time=time,
        type=kind,
        namespace=metadata["namespace"],
        name=metadata["name"],
        uid=metadata["uid"],
        cluster=labels.get(_CLUSTER_LABEL, ""),
        group=labels.get(_GROUP_LABEL, ""),
        owner=_controller(metadata),
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "",
        gates=tuple(gate["name"] for gate in spec.get("schedulingGates") or ()),
        pinned_node=_pinned_node(spec),
        unschedulable=_unschedulable(status),
        deleting="deletionTimestamp" in metadata,
    )


def gang_pod_event(time: float, kind: str, pod: Json) -> PodEvent:
    """Read one change, where a pod that is made for an AppWrapper is one of its gang.

    The gang has the name of its Gang, and the owner is the AppWrapper.
    """
    event, labels = pod_event(time, kind, pod), pod["metadata"].get("labels") or {}
    name, uid = labels.get(names.APP_WRAPPER, ""), labels.get(names.APP_WRAPPER_UID, "")
    if not name or not uid:
        return event
    gang, pod_set = f"{names.APP_WRAPPER_GANG}{name}", labels.get(names.POD_SET, "")
    return replace(event, cluster=gang, group=pod_set, owner=uid)


def _controller(metadata: Json) -> str:
    owners = metadata.get("ownerReferences") or ()
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _pinned_node(spec: Json) -> str:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    named = {
        value
        for term in required.get("nodeSelectorTerms") or ()
        for rule in term.get("matchFields") or ()
        if rule["key"] == "metadata.name" and rule["operator"] == "In"
        for value in rule["values"]
    }
    return named.pop() if len(named) == 1 else ""


def _unschedulable(status: Json) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return condition.get("message") or "Unschedulable"
    return ""


# ---- a gang by itself


def partial_gangs(
    events: Iterable[PodEvent],
    expected: Mapping[Gang, int],
    until: float,
    within: float = START_SECONDS,
) -> list[Finding]:
    """Find gangs of which a part held room and was not on its way to the whole.

    `expected` names the gangs to be checked with the number of pods that must start together,
    `until` is when the last event could have been seen. A RayCluster made again under its name is
    judged by itself, as is each start of a gang.

    A start of a gang is the time from the first event after which a pod of it holds room (is
    bound, and neither ended nor being deleted) to the first one after which as many as expected
    do, or none any more. A gang is partial when in one of its starts
    (a) a pod of it is Unschedulable at any moment, that is kube-scheduler has tried in vain, or
    (b) more than `within` seconds pass.
    What a gang loses after it was whole makes it no partial one: it has started.
    """
    return [
        finding
        for life, history in _lives(events).items()
        if life.gang in expected
        for start in _starts(history, expected[life.gang])
        for finding in _faults(life.gang, start, expected[life.gang], until, within)
    ]


@dataclass(frozen=True)
class _Life:
    """One RayCluster, from its creation to its deletion."""

    gang: Gang
    owner: str


@dataclass
class _Pods:
    """The pods of a gang after an event."""

    latest: dict[str, PodEvent] = field(default_factory=dict)

    def apply(self, event: PodEvent) -> None:
        if event.type == DELETED:
            self.latest.pop(event.uid, None)
        else:
            self.latest[event.uid] = event

    @property
    def holding(self) -> int:
        return sum(pod.holds_room for pod in self.latest.values())

    @property
    def unschedulable(self) -> PodEvent | None:
        return next((pod for pod in self.latest.values() if pod.unschedulable), None)


@dataclass
class _Start:
    """One way of a gang from its first bound pod to all of its minimum."""

    began: float
    ended: float | None = None
    most: int = 0
    refused: PodEvent | None = None

    def look(self, now: float, pods: _Pods, minimum: int) -> None:
        """Take in how the pods stand after an event."""
        if self.ended is not None:
            return
        if not 0 < pods.holding < minimum:
            self.ended = now
            return
        self.most = max(self.most, pods.holding)
        self.refused = self.refused or pods.unschedulable


def _lives(events: Iterable[PodEvent]) -> dict[_Life, list[PodEvent]]:
    lives: dict[_Life, list[PodEvent]] = {}
    for event in events:
        if event.cluster:
            lives.setdefault(_Life(event.gang, event.owner), []).append(event)
    return lives


def _starts(history: Iterable[PodEvent], minimum: int) -> list[_Start]:
    """Cut the life of a gang into its starts; the last one may not have ended."""
    pods, starts, held = _Pods(), list[_Start](), False
    for event in history:
        pods.apply(event)
        if pods.holding and not held:
            starts.append(_Start(event.time))
        held = pods.holding > 0
        if starts:
            starts[-1].look(event.time, pods, minimum)
    return starts


def _faults(
    gang: Gang, start: _Start, minimum: int, until: float, within: float
) -> Iterator[Finding]:
    held = f"{start.most} of {minimum} pods held room"
    if start.refused:
        pod = start.refused
        yield Finding(
            gang, pod.time, f"{held} while {pod.name} was unschedulable: {pod.unschedulable}"
        )
    took = (until if start.ended is None else start.ended) - start.began
    if took > within:
        yield Finding(gang, start.began, f"{held} for {took:.1f} s and the rest did not come")


# ---- gangs that exclude each other


def overlaps(events: Iterable[PodEvent], rivals: Collection[Gang]) -> list[Finding]:
    """Find moments in which two gangs that do not fit together both held room.

    A gang holds room from its first bound pod until the first of its pods is being deleted: from
    then on it is going, and its room may be given away pod by pod, until it holds none any more.
    """
    findings: list[Finding] = []
    holders = _Holders()
    for event in events:
        if event.gang in rivals:
            findings.extend(_meetings(event, holders.joined_by(event)))
    return findings


@dataclass
class _Holders:
    """Which gangs hold room, and which are on their way out."""

    pods: dict[_Life, _Pods] = field(default_factory=dict)
    holding: set[_Life] = field(default_factory=set)
    going: set[_Life] = field(default_factory=set)

    def joined_by(self, event: PodEvent) -> frozenset[_Life]:
        """Take in an event; where its gang begins to hold room, return the holders before it."""
        life = _Life(event.gang, event.owner)
        pods = self.pods.setdefault(life, _Pods())
        pods.apply(event)
        if event.deleting or event.type == DELETED:
            self.holding.discard(life)
            self.going.add(life)
        if not pods.holding:
            self.holding.discard(life)
            self.going.discard(life)
        elif life not in self.holding | self.going:
            before = frozenset(self.holding)
            self.holding.add(life)
            return before
        return frozenset()


def _meetings(event: PodEvent, holding: Iterable[_Life]) -> list[Finding]:
    return [
        Finding(event.gang, event.time, f"got room while {'/'.join(other.gang)} held some")
        for other in holding
    ]
