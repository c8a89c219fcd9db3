"""What an independent watch of the API server has seen: pods, nodes, Gangs, and what they are of.

It shares no code with the cache of the coordinator: the testbed's followers, and its own reading of
amounts. What a follower finds by a list, because the API server was restarted, is marked: nothing
is concluded of what may have happened in between."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from kube.objects import names
from testbed.api import Json
from testbed.closing import Closing
from testbed.cluster import Cluster
from testbed.following import DELETED, Follower
from testbed.history import PodEvent, gang_pod_event
from tests.soak.amounts import GPU, Amounts, NodeRoom, amounts, pod_amounts
from tests.soak.fair_clock import FairClock

Slot = tuple[str, str]
"""Pod set and node."""

_HISTORY = 80
"""Lines kept of each gang."""


@dataclass
class Pod:
    """A pod as it was seen last, and since when."""

    at: PodEvent
    takes: Amounts
    since: float
    """Fair seconds when it was seen first."""
    bound_since: float | None = None
    gated: bool = False
    was_gated: bool = False
    left_gate: float | None = None
    pins: set[str] = field(default_factory=set)
    unseen: bool = False
    """Whether a part of its life was not seen."""
    leaves_since: float | None = None

    @property
    def ended(self) -> bool:
        """Whether it takes nothing of its node any more."""
        return self.at.type == DELETED or self.at.phase in ("Succeeded", "Failed")

    @property
    def target(self) -> str:
        """The node that it takes of, bound or released; empty where none.

        One that is being deleted before it is bound takes nothing: the API server binds it no more.
        """
        unbound = not self.at.node and self.at.deleting
        return "" if self.gated or self.ended or unbound else self.at.node or self.at.pinned_node

    @property
    def whole(self) -> bool:
        """Whether it is bound and stays."""
        return self.at.holds_room


@dataclass
class Release:
    """A pod whose gate was seen to go."""

    pod: Pod
    version: int
    fair: float
    node: str
    taken: Amounts
    """What is taken of the node with it: by pods of gangs, and by others that were there before."""
    count: int
    """Pods of its set on this node, itself included."""


@dataclass
class Written:
    """A Gang as it was written at one time."""

    version: int
    owner: str
    promised: Mapping[Slot, int]
    unseen: bool


_GRACE = 5.0
"""Fair seconds in which the coordinator may not have heard of a pod of others."""


class Record(Closing):
    """Follows all that matters until it is closed; `lock` is held while it is read."""

    def __init__(self, cluster: Cluster, clock: FairClock) -> None:
        self.lock = threading.RLock()
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, NodeRoom] = defaultdict(NodeRoom)
        self.node_objects: dict[str, Json] = {}
        self.gangs: dict[str, Json] = {}
        self.queues: dict[str, Json] = {}
        self.owners: dict[str, Json] = {}
        """RayClusters and AppWrappers by uid."""
        self.written: dict[str, list[Written]] = defaultdict(list)
        self.services: dict[tuple[str, str], Json] = {}
        self.heads: dict[str, Json] = {}
        """Pods that are heads, by uid."""
        self.releases: list[Release] = []
        self.wrong: list[tuple[str, tuple[str, str], str]] = []
        """Invariant, gang and text of what was wrong at once."""
        self.history: dict[tuple[str, str], deque[str]] = defaultdict(
            lambda: deque(maxlen=_HISTORY)
        )
        self.changes: dict[str, float] = defaultdict(float)
        """Fair seconds of the last change of a pod or Gang, by owner."""
        self.seen: Counter[str] = Counter()
        self._clock = clock
        self._started = time.monotonic()
        self._followers: list[Follower] = []
        for path, observe in (
            ("/apis/ray.io/v1/rayclusters", self._owner),
            ("/apis/workload.codeflare.dev/v1beta2/appwrappers", self._owner),
            ("/apis/muster.dev/v1alpha1/gangs", self._gang),
            ("/apis/muster.dev/v1alpha1/gangqueues", self._queue),
            ("/api/v1/nodes", self._node),
            ("/api/v1/services", self._service),
            ("/api/v1/pods", self._pod),
        ):
            self._follow(cluster, path, observe)

    def _follow(self, cluster: Cluster, path: str, observe: object) -> None:
        place: list[Follower] = []

        def told(kind: str, item: Json) -> None:
            with self.lock:
                unseen = not place or place[0].relisting
                observe(kind, item, unseen)  # type: ignore[operator]

        place.append(Follower(cluster.api, path, told))
        place[0].wait_synced()
        self._followers.append(place[0])

    def objects(self, kind: str, namespace: str) -> list[Json]:
        """The Services of a namespace, or those of its pods that are heads."""
        with self.lock:
            found = self.services.values() if kind == "Service" else self.heads.values()
            return [each for each in found if each["metadata"]["namespace"] == namespace]

    def forgotten(self, seconds: float) -> list[tuple[str, str]]:
        """Pods, by namespace and name, that have been leaving for longer."""
        since = self._clock.seconds - seconds
        with self.lock:
            return [
                (pod.at.namespace, pod.at.name)
                for pod in self.pods.values()
                if pod.leaves_since is not None and pod.leaves_since < since
            ]

    def note(self, gang: tuple[str, str], text: str) -> None:
        """Add a line to the history of a gang."""
        self.history[gang].append(f"{time.monotonic() - self._started:7.1f} s  {text}")

    def close(self) -> None:
        """End the watches."""
        for follower in self._followers:
            follower.close()

    # --- what comes in

    def _owner(self, kind: str, item: Json, _: bool) -> None:
        uid, what, place = item["metadata"]["uid"], _kind_of(item), _gang_of(item)
        if kind == DELETED:
            self.owners.pop(uid, None)
            self.note(place, f"{what} is gone")
            return
        if uid not in self.owners:
            self.note(place, f"{what} {uid[:8]} is created")
            self.seen[f"{what}s"] += 1
        if (
            "deletionTimestamp" in item["metadata"]
            and "deletionTimestamp" not in (self.owners.get(uid, item)["metadata"])
        ):
            self.note(place, f"{what} is being deleted")
        if is_wrapper(item) and item.get("status") != self.owners.get(uid, {}).get("status"):
            status = item.get("status", {})
            self.note(place, f"{what} is {status.get('phase')}: {status.get('message')}")
        self.owners[uid] = item

    def _gang(self, kind: str, item: Json, unseen: bool) -> None:
        uid, owner = item["metadata"]["uid"], _owner_of(item)
        place = item["metadata"]["namespace"], item["metadata"]["name"]
        if kind == DELETED:
            self.gangs.pop(uid, None)
            self.note(place, "Gang is gone")
        else:
            if self.gangs.get(uid, {}).get("status") != item.get("status"):
                self.note(place, f"Gang: {_in_words(item)}")
            self.gangs[uid] = item
        promised = {} if kind == DELETED else promises(item)
        version = int(item["metadata"]["resourceVersion"])
        known = self.written[owner]
        if not known or known[-1].promised != promised:
            self.changes[owner] = self._clock.seconds
            known.append(Written(version, owner, promised, unseen))

    def _queue(self, kind: str, item: Json, _: bool) -> None:
        if kind == DELETED:
            self.queues.pop(item["metadata"]["name"], None)
        else:
            self.queues[item["metadata"]["name"]] = item

    def _service(self, kind: str, item: Json, _: bool) -> None:
        place = item["metadata"]["namespace"], item["metadata"]["name"]
        if kind == DELETED:
            self.services.pop(place, None)
        else:
            self.services[place] = item

    def _node(self, kind: str, item: Json, _: bool) -> None:
        name = item["metadata"]["name"]
        if kind == DELETED:
            self.node_objects.pop(name, None)
            self.nodes[name].offers.append((self._clock.seconds, None))
            self.note(("", name), "is gone")
            return
        self.node_objects[name] = item
        offer = amounts(item.get("status", {}).get("allocatable") or {})
        offers = self.nodes[name].offers
        if not offers or offers[-1][1] != offer:
            offers.append((self._clock.seconds, offer))
            self.note(("", name), f"offers {offer[GPU]} GPUs")

    def _pod(self, kind: str, item: Json, unseen: bool) -> None:
        event = gang_pod_event(time.monotonic(), kind, item)
        version = int(item["metadata"]["resourceVersion"])
        pod = self.pods.get(event.uid)
        if pod is None:
            pod = Pod(event, pod_amounts(item), self._clock.seconds, unseen=unseen)
            self.pods[event.uid] = pod
            self.seen["pods"] += 1
            self._began(pod, event)
        if (item["metadata"].get("labels") or {}).get(names.RAY_NODE_TYPE) == "head":
            self.heads[event.uid] = item
        before, pod.at = pod.at, event
        pod.unseen |= unseen
        self._moved(pod, before, event, version)
        if kind == DELETED:
            del self.pods[event.uid]
            self.heads.pop(event.uid, None)

    def _began(self, pod: Pod, event: PodEvent) -> None:
        gated = names.GATE in event.gates
        pod.gated = pod.was_gated = gated
        if event.cluster:
            how = "gated" if gated else "without our gate"
            self.note(event.gang, f"pod {event.name} is created {how}")
        if event.cluster and not gated and not pod.unseen:
            self.wrong.append(("gated", event.gang, f"{event.name} came without our gate"))

    def _moved(self, pod: Pod, before: PodEvent, event: PodEvent, version: int) -> None:
        said = _difference(before, event)
        if said:
            self._tell(pod, event, said)
        gated = names.GATE in event.gates
        if event.deleting and pod.leaves_since is None:
            pod.leaves_since = self._clock.seconds
        if event.node and pod.bound_since is None:
            pod.bound_since = self._clock.seconds
        if not event.cluster:
            return
        if said:
            self.changes[event.owner] = self._clock.seconds
        if gated and not pod.gated:
            self.wrong.append(("released twice", event.gang, f"{event.name} is gated again"))
        released = pod.gated and not gated
        pod.gated = gated
        if not gated and pod.was_gated:
            self._pinned(pod, event)
        if released:
            self._released(pod, event, version)

    def _tell(self, pod: Pod, event: PodEvent, said: str) -> None:
        if event.cluster:
            self.note(event.gang, f"pod {event.name} {said}")
        for node in {event.node, *pod.pins} - {""}:
            self.note(("", node), f"pod {event.name} {said} ({pod.takes.get(GPU, 0)} GPUs)")

    def _pinned(self, pod: Pod, event: PodEvent) -> None:
        if event.pinned_node and event.pinned_node not in pod.pins:
            pod.pins.add(event.pinned_node)
            self._tell(pod, event, "is released")
        if not event.pinned_node or len(pod.pins) > 1:
            text = f"{event.name} was released, pinned to {sorted(pod.pins) or 'no node'}"
            self.wrong.append(("released twice", event.gang, text))
        if event.node and event.pinned_node and event.node != event.pinned_node:
            text = f"{event.name} is on {event.node}, pinned to {event.pinned_node}"
            self.wrong.append(("off its placement", event.gang, text))

    def _released(self, pod: Pod, event: PodEvent, version: int) -> None:
        self.seen["releases"] += 1
        pod.left_gate = self._clock.seconds
        if not pod.target:
            return
        taken: Counter[str] = Counter()
        mates = 0
        for other in self.pods.values():
            if other.target == pod.target and self._counts(other):
                taken.update(other.takes)
                same = (other.at.owner, other.at.group) == (event.owner, event.group)
                mates += same and not other.at.deleting
        self.releases.append(
            Release(pod, version, self._clock.seconds, pod.target, dict(taken), mates)
        )

    def _counts(self, pod: Pod) -> bool:
        """Whether the coordinator must have known of it."""
        ours = bool(pod.at.cluster) and pod.was_gated
        heard = pod.bound_since is not None and self._clock.seconds - pod.bound_since > _GRACE
        return ours or heard


def is_wrapper(owner: Json) -> bool:
    """Whether it is an AppWrapper; items of a list have no kind of their own."""
    return "components" in owner["spec"]


def _kind_of(owner: Json) -> str:
    return "AppWrapper" if is_wrapper(owner) else "RayCluster"


def _gang_of(owner: Json) -> tuple[str, str]:
    begin = names.APP_WRAPPER_GANG if is_wrapper(owner) else ""
    return owner["metadata"]["namespace"], f"{begin}{owner['metadata']['name']}"


def promises(gang: Json) -> dict[Slot, int]:
    """How many pods of which set a Gang promises to which node."""
    found: Counter[Slot] = Counter()
    placement = gang.get("status", {}).get("placement") or {}
    for pod_set in placement.get("podSets") or ():
        for assignment in pod_set.get("assignments") or ():
            for node, count in (assignment.get("nodes") or {}).items():
                found[pod_set["name"], node] += count
    return dict(found)


def _owner_of(item: Json) -> str:
    owners = item["metadata"].get("ownerReferences") or [{"uid": ""}]
    return str(owners[0]["uid"])


def _in_words(gang: Json) -> str:
    status = gang.get("status", {})
    said = [str(status.get(key, "")) for key in ("phase", "ready", "reason", "message")]
    placed = ", ".join(f"{n} {s} on {node}" for (s, node), n in sorted(promises(gang).items()))
    sets = [
        f"{each['name']}: {each.get('reason')}"
        for each in status.get("podSets") or ()
        if each.get("reason")
    ]
    more = [f"[{'; '.join(sets)}]"] if sets else []
    stops = [f"evictions {len(status['evictions'])}"] if status.get("evictions") else []
    return " ".join([*said, *more, *stops, f"epoch {status.get('epoch')}", f"({placed})"])


def _difference(before: PodEvent, event: PodEvent) -> str:
    said = []
    if event.type == DELETED:
        said.append("is gone")
    if before.gates != event.gates:
        said.append(f"gates {list(event.gates)}")
    if before.pinned_node != event.pinned_node:
        said.append(f"pinned to {event.pinned_node}")
    if before.node != event.node:
        said.append(f"bound to {event.node}")
    if before.phase != event.phase:
        said.append(event.phase)
    if event.deleting and not before.deleting:
        said.append("is being deleted")
    if event.unschedulable != before.unschedulable and event.unschedulable:
        said.append(f"unschedulable: {event.unschedulable[:160]}")
    return ", ".join(said)
