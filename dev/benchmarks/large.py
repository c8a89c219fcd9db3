"""Measures what one large gang costs the coordinator, from its release until all of it is ready.

The state machine alone, without an API server: one event for each answer, bind and status of each
pod, each handed over by itself, as they come when the machine is not busy. Where it is, the loop
takes them by the batch, so this is the most that a gang can cost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import msgspec

from benchmarks.measure import Outcome, Row
from coordinator.gang.source import source_of
from coordinator.messages.actions import Action, LogDecision, ReleasePod, WriteGangStatus
from coordinator.messages.events import (
    ClusterSeen,
    CycleDue,
    Event,
    GangSeen,
    NodeSeen,
    PodSeen,
    Teller,
    TermStarted,
    TimePassed,
)
from coordinator.messages.write_ends import PodPatchEnded, WriteEnded
from coordinator.record.spec import body_of, spec_of
from coordinator.state_machine import CoordinatorState
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects import core as core_objects
from kube.objects import gang as gang_objects
from kube.objects import names
from kube.objects import ray as ray_objects
from kube.ray.gang_terms import GangTerms, gang_terms
from runtime.controller.moment import Moment
from scheduling.model.gang import GangKey

SIZES = (1_000, 5_000)
PODS_PER_NODE = 10
AFTER = 0.001
"""Seconds between two events: some 650 releases a second is what the API server takes."""

_KEY = GangKey("team", "large")
_REQUESTS = {"requests": {"cpu": "1"}}


def measure(runs: int) -> Outcome:
    """One gang of each size."""
    rows = []
    for size in SIZES:
        seconds = [_Gang(size).run() for _ in range(runs)]
        each = tuple(1e6 * total / size for total in seconds)
        rows += [
            Row(f"a gang of {size} pods, released to ready", "s", tuple(seconds)),
            Row(f"the same for each of its {size} pods", "us", each),
        ]
    return Outcome(rows, notes=["CPU of the state machine, one event at a time"])


class _Gang:
    """One state machine, its gang, and how long it took in all."""

    def __init__(self, size: int) -> None:
        self._state = CoordinatorState()
        self._raw = _ray_cluster(size - 1)
        encoded = msgspec.json.encode(self._raw)
        self._cluster = msgspec.json.decode(encoded, type=ray_objects.RayCluster)
        self._version, self._now, self._took = 1, 1.0, 0.0
        self._size = size

    def run(self) -> float:
        """Seconds in the state machine from the first release until the gang runs."""
        head = self._decided()
        self._took = 0.0
        released = self._release([head])
        rest = [each for each in self._last if isinstance(each, ReleasePod)]
        released += self._release(rest)
        assert len(released) == self._size
        bound = [
            self._changed(each, node=each.settled_on, holds=each.settled_on) for each in released
        ]
        for pod in bound:
            self._changed(pod, ready=True)
        while self._running() < self._size:
            self._handle([TimePassed()])
        return self._took

    def _decided(self) -> ReleasePod:
        """Bring the gang to where the release of its head is asked for."""
        nodes = (_node(f"n{at:04}") for at in range(-(-self._size // PODS_PER_NODE)))
        pods = [self._pod(names.RAY_HEAD_GROUP, "head")]
        pods += [self._pod("workers", f"worker-{at:05}") for at in range(self._size - 1)]
        seen: list[Event] = [NodeSeen(each) for each in nodes]
        seen += [ClusterSeen(self._cluster), GangSeen(self._gang({})), TermStarted(1)]
        seen += [PodSeen(each) for each in pods]
        [write] = self._handle([*seen, CycleDue()])
        assert isinstance(write, WriteGangStatus)
        [head] = self._handle([GangSeen(self._gang(write.status)), WriteEnded(_KEY, None)])
        assert isinstance(head, ReleasePod)
        return head

    def _release(self, actions: Iterable[ReleasePod]) -> list[ObservedPod]:
        """Answer releases one by one."""
        found = []
        for action in actions:
            gated = self._state.known.cache.pods[_KEY.namespace, action.pod.metadata.name]
            assert gated.member is not None
            member = replace(gated.member, gates=(), pinned=action.node)
            pod = replace(gated, member=member, raw=None, resource_version=self._next())
            ended = PodPatchEnded(_KEY, pod.uid, None)
            self._last = self._handle([PodSeen(pod, Teller.ANSWER), ended])
            found.append(pod)
        return found

    def _changed(self, pod: ObservedPod, **fields: Any) -> ObservedPod:
        new = replace(pod, resource_version=self._next(), **fields)
        self._handle([PodSeen(new, Teller.RAY_POD_WATCH)])
        return new

    def _handle(self, events: list[Event]) -> list[Action]:
        self._now += AFTER
        if self._state.next_wake is not None and self._state.next_wake <= self._now:
            events = [*events, TimePassed()]
        moment = Moment(self._now, "2026-11-21T12:00:00Z")
        began = time.process_time()
        actions = self._state.handle(events, moment)
        self._took += time.process_time() - began
        self._answer(actions)
        return [action for action in actions if not isinstance(action, LogDecision)]

    def _answer(self, actions: list[Action]) -> None:
        """Have the writes of numbers done at once; the first, with the placement, is not one."""
        for action in actions:
            if isinstance(action, WriteGangStatus) and not action.decides:
                self._handle([GangSeen(self._gang(action.status)), WriteEnded(_KEY, None)])

    def _running(self) -> int:
        return sum(each.ready for each in self._state.known.views[_KEY].survey.standing)

    def _next(self) -> str:
        self._version += 1
        return str(self._version)

    def _gang(self, status: dict[str, Any]) -> gang_objects.Gang:
        terms = gang_terms(self._cluster, {})
        assert isinstance(terms, GangTerms)
        body = body_of(source_of(self._cluster), spec_of("cluster", terms.queue, 0, terms))
        body["metadata"] |= {"uid": "gang", "resourceVersion": self._next()}
        return msgspec.convert({**body, "status": status}, gang_objects.Gang)

    def _pod(self, pod_set: str, name: str) -> ObservedPod:
        owner = {"apiVersion": names.RAY_API_VERSION, "kind": "RayCluster", "controller": True}
        meta = {
            "name": name,
            "namespace": _KEY.namespace,
            "uid": name,
            "resourceVersion": "1",
            "labels": {
                names.RAY_CLUSTER: _KEY.name,
                names.RAY_GROUP: pod_set,
                names.RAY_NODE_TYPE: "head" if pod_set == names.RAY_HEAD_GROUP else "worker",
            },
            "ownerReferences": [{**owner, "name": _KEY.name, "uid": "cluster"}],
        }
        container = {"name": "ray", "resources": _REQUESTS}
        spec = {"containers": [container], "schedulingGates": [{"name": names.GATE}]}
        return observe(msgspec.convert({"metadata": meta, "spec": spec}, core_objects.Pod))


def _ray_cluster(workers: int) -> dict[str, Any]:
    group = {"groupName": "workers", "replicas": workers, "maxReplicas": workers}
    meta = {"name": _KEY.name, "namespace": _KEY.namespace, "uid": "cluster"}
    return {
        "metadata": {**meta, "resourceVersion": "1", "labels": {names.OPT_IN: "true"}},
        "spec": {"headGroupSpec": {}, "workerGroupSpecs": [group]},
    }


def _node(name: str) -> core_objects.Node:
    room = {"cpu": str(PODS_PER_NODE), "memory": "64Gi", "pods": "110"}
    return msgspec.convert(
        {"metadata": {"name": name}, "status": {"allocatable": room}}, core_objects.Node
    )
