"""Makes what-if changes of a picture: nodes cordoned, drained or added, quota, ends, submissions.

Each change becomes the events that watches would deliver to a leader which has looked at every
gang. This module decides nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from msgspec import structs

from cli.fitting.asked import Asked, as_created, as_gang, beside, job_as_created
from cli.fitting.simulation import seen_of
from cli.imports.outcome import Fault
from coordinator.gang.held_start.foresight import foresight_of, quota_refusal
from coordinator.gang.source import source_of
from coordinator.messages.events import (
    DeviceFactSeen,
    Event,
    NodeSeen,
    PodGone,
    PodSeen,
    QueueSeen,
    RayOwnerSeen,
    Teller,
)
from coordinator.state_machine import CoordinatorState
from forecast.devices import TakenBack, slice_like, slices_of
from forecast.pods import made_again
from forecast.world import AGAIN, FIRST_VERSION, RAY_PODS, World
from kube.codec.fields import InvalidObject, read_amounts
from kube.codec.observed_pod import ObservedPod
from kube.foreseen.claim_quota import with_claims
from kube.objects.core import Node
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

MOST_NODES: Final = 5_000
"""That may be added in all: the largest cluster that is measured."""

MOST_CHANGES: Final = 1_000
"""Of each kind."""

HOSTNAME: Final = "kubernetes.io/hostname"

NODE_STATE: Final = "node.kubernetes.io/"
"""Taints that say how a node is now; a new one like it is well."""


@dataclass(frozen=True, slots=True)
class Added:
    """So many nodes like one that there is."""

    count: int
    like: str


@dataclass(frozen=True, slots=True)
class Quota:
    """Another quota of a queue for one resource."""

    queue: str
    resource: str
    amount: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be changed, all at once."""

    cordoned: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()
    added: tuple[Added, ...] = ()
    quotas: tuple[Quota, ...] = ()
    stopped: tuple[GangKey, ...] = ()
    asked: tuple[Asked, ...] = ()

    def __iter__(self) -> Iterator[str]:
        """Yield each change in words."""
        yield from (f"cordon {each}" for each in self.cordoned)
        yield from (f"drain {each}" for each in self.drained)
        yield from (f"add {each.count} nodes like {each.like}" for each in self.added)
        for each in self.quotas:
            yield f"quota of {each.queue}: {each.resource} {each.amount}"
        yield from (f"stop {each}" for each in self.stopped)
        yield from (f"submit {each}" for each in self.asked)


def check(changes: Changes) -> None:
    """Raise Fault for more than can be asked about."""
    sizes = {
        "--cordon": len(changes.cordoned),
        "--drain": len(changes.drained),
        "--quota": len(changes.quotas),
        "--stop": len(changes.stopped),
        "-f": len(changes.asked),
    }
    for option, size in sizes.items():
        if size > MOST_CHANGES:
            raise Fault(f"{option}: {size} are too many; allowed: {MOST_CHANGES} at most")
    count = sum(each.count for each in changes.added)
    if count > MOST_NODES:
        raise Fault(f"--add-nodes: {count} nodes; allowed: {MOST_NODES} at most in all")


@dataclass(slots=True)
class Applying:
    """Changes of one picture, whose nodes it has; `notes` say what is not followed."""

    changes: Changes
    nodes: dict[str, Node]
    notes: list[str] = field(default_factory=list)
    keys: list[GangKey] = field(default_factory=list)
    """The gangs of what is submitted."""

    def __call__(self, state: CoordinatorState, moment: Moment) -> Sequence[Event]:
        """Return what would be seen; raises Fault for what there is not."""
        self.notes, self.keys = [], []
        changes = self.changes
        return [
            *chain.from_iterable(self._added(state, each, at) for at, each in self._numbered()),
            *(NodeSeen(_cordoned(self._node("--cordon", each))) for each in changes.cordoned),
            *chain.from_iterable(self._drained(state, each) for each in changes.drained),
            *self._quotas(state),
            *chain.from_iterable(_stopped(state, each, moment) for each in changes.stopped),
            *chain.from_iterable(self._submitted(state, each, moment) for each in changes.asked),
        ]

    # ---- nodes

    def _numbered(self) -> Iterator[tuple[int, Added]]:
        at = 0
        for each in self.changes.added:
            yield at, each
            at += each.count

    def _node(self, option: str, name: str) -> Node:
        if name not in self.nodes:
            some = ", ".join(sorted(self.nodes)[:5]) or "none"
            raise Fault(f"{option} {name}: there is no such node; there are: {some}")
        return self.nodes[name]

    def _added(self, state: CoordinatorState, added: Added, first: int) -> Iterator[Event]:
        """Yield nodes like one, with its devices and the pods of DaemonSets that it has."""
        like = self._node("--add-nodes", added.like)
        pods = [each for each in _pods_on(state, added.like) if each.is_daemon]
        slices = slices_of(added.like, state.known.cache.devices.index)
        for at in range(first, first + added.count):
            name = f"{added.like}{AGAIN}{at}"
            yield NodeSeen(_like(like, name))
            yield from (DeviceFactSeen(slice_like(each, added.like, name)) for each in slices)
            yield from (PodSeen(_moved(pod, name)) for pod in pods)

    def _drained(self, state: CoordinatorState, name: str) -> Iterator[Event]:
        """Yield what is seen of a drained node: its pods go, and their owners make others.

        Where pods of others go to is not followed: it is for kube-scheduler to say.
        """
        yield NodeSeen(_cordoned(self._node("--drain", name)))
        others, taken = 0, TakenBack(state.known.cache.devices.index.claims)
        for pod in [each for each in _pods_on(state, name) if not each.is_daemon]:
            yield PodGone(pod.namespace, pod.name, pod.uid, Teller.ANSWER)
            yield from taken.of(pod)
            if pod.member is None:
                others += 1
            elif pod.alive and pod.member.gang in state.known.cache.sources:
                yield PodSeen(made_again(pod, 0, str(FIRST_VERSION)), RAY_PODS)
        if others:
            self.notes.append(
                f"{others} pods of others leave {name}; the room that they take elsewhere is not "
                "counted"
            )

    # ---- queues

    def _quotas(self, state: CoordinatorState) -> Iterator[Event]:
        found = dict(state.known.queues.objects)
        for each in self.changes.quotas:
            if each.queue not in found:
                some = ", ".join(sorted(found)[:5]) or "none"
                raise Fault(f"--quota {each.queue}: no such GangQueue; there are: {some}")
            read_quota(each)
            queue = found[each.queue]
            quota = {**(queue.spec.quota or {}), each.resource: each.amount}
            found[each.queue] = structs.replace(
                queue, spec=structs.replace(queue.spec, quota=quota)
            )
            yield QueueSeen(found[each.queue])

    # ---- what is submitted

    def _submitted(self, state: CoordinatorState, asked: Asked, moment: Moment) -> Iterator[Event]:
        cache = state.known.cache
        mine = as_gang(asked, cache.namespace_labels(asked.namespace))
        key = GangKey(asked.namespace, mine.cluster.metadata.name)
        mine = beside(mine) if key in cache.sources else mine
        created = as_created(mine.cluster, moment.stamp)
        admission = cache.admission.admission(asked.namespace, cache.priority_classes)
        found = foresight_of(source_of(mine.cluster).foresee(admission), state.known.profiles)
        refused = found.refused
        if found.unforeseeable:
            self.notes.append(f"{asked}: its pods are not foreseen: {found.unforeseeable}")
            return
        if not refused and found.found is not None:
            quotas = cache.admission.quotas(asked.namespace)
            charged = with_claims(found.found, asked.namespace, cache.devices.index)
            refused = quota_refusal(charged, *cache.foreseen.claimed_beside(key), quotas)
        self.notes += [f"{asked}: {each}" for each in mine.notes]
        if refused:
            self.notes.append(f"{asked}: its pods are not created: {refused}")
            return
        self.keys.append(GangKey(asked.namespace, created.metadata.name))
        if mine.job is not None:
            yield RayOwnerSeen(job_as_created(mine.job, mine.cluster, moment.stamp))
        yield from seen_of(created, found)


def read_quota(quota: Quota) -> None:
    """Raise Fault for an amount that is none."""
    try:
        read_amounts({quota.resource: quota.amount}, f"--quota {quota.queue}")
    except InvalidObject as fault:
        raise Fault(str(fault)) from None


def _stopped(state: CoordinatorState, key: GangKey, moment: Moment) -> Iterable[Event]:
    if key not in state.known.cache.sources:
        raise Fault(f"--stop {key}: there is no such gang; muster status lists those there are")
    return World(state, moment).end(key)


def _pods_on(state: CoordinatorState, name: str) -> list[ObservedPod]:
    return [pod for pod in state.known.cache.pods.values() if pod.node == name]


def _cordoned(node: Node) -> Node:
    return structs.replace(node, spec=structs.replace(node.spec, unschedulable=True))


def _like(node: Node, name: str) -> Node:
    meta = node.metadata
    labels = {**meta.labels, **({HOSTNAME: name} if HOSTNAME in meta.labels else {})}
    taints = tuple(each for each in node.spec.taints if not each.key.startswith(NODE_STATE))
    return structs.replace(
        node,
        metadata=structs.replace(meta, name=name, uid=name, labels=labels),
        spec=structs.replace(node.spec, unschedulable=False, taints=taints),
    )


def _moved(pod: ObservedPod, node: str) -> ObservedPod:
    name = f"{pod.name}{AGAIN}{node}"
    return replace(pod, name=name, uid=f"{pod.uid}{AGAIN}{node}", node=node, holds=node)
