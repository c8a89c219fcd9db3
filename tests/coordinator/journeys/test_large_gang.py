"""A gang of ten thousand workers goes through the state machine like any other."""

from typing import Any

import msgspec
import pytest

from coordinator.gang.source import source_of
from coordinator.messages.actions import LogDecision, ReleasePod, WriteGangStatus
from coordinator.messages.events import (
    ClusterSeen,
    CycleDue,
    Event,
    GangSeen,
    NodeSeen,
    PodSeen,
    TermStarted,
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
from tests.coordinator.builders import gang_of, node, pinned_to, pod_of, template
from tests.kube.ray.clusters import read_cluster

WORKERS = 10_000
NODES = 1_000
KEY = GangKey("team", "large")
NOW = Moment(1.0, "2026-11-21T12:00:00Z")


def _stored(obj: dict[str, Any], uid: str) -> dict[str, Any]:
    obj["metadata"] |= {"uid": uid, "resourceVersion": "1"}
    return obj


def _cluster() -> dict[str, Any]:
    cluster = _stored(gang_of("large", WORKERS), "cluster")
    cluster["spec"]["workerGroupSpecs"][0]["maxReplicas"] = WORKERS
    return cluster


def _pods(cluster: dict[str, Any]) -> list[ObservedPod]:
    def pod(pod_set: str, name: str) -> ObservedPod:
        made = pod_of(cluster, pod_set, name, template(), "", [names.GATE])
        return observe(msgspec.convert(_stored(made, name), core_objects.Pod))

    workers = [pod("workers", f"worker-{number:05}") for number in range(WORKERS)]
    return [pod(names.RAY_HEAD_GROUP, "head"), *workers]


def _gang(
    cluster: ray_objects.RayCluster, status: dict[str, Any], version: int
) -> gang_objects.Gang:
    terms = gang_terms(cluster, {})
    assert isinstance(terms, GangTerms)
    body = body_of(source_of(cluster), spec_of("cluster", terms.queue, 0, terms))
    body["metadata"] |= {"uid": "gang", "resourceVersion": str(version)}
    return msgspec.convert({**body, "status": status}, gang_objects.Gang)


@pytest.mark.long
def test_ten_thousand_workers_are_placed_and_released_after_their_head() -> None:
    """One write of the placement, then the head alone, then all the rest."""
    raw = _cluster()
    cluster = read_cluster(raw)
    machines = [msgspec.convert(node(f"n{n:04}", cpu=11), core_objects.Node) for n in range(NODES)]
    pods = _pods(raw)
    seen: list[Event] = [NodeSeen(machine) for machine in machines]
    seen += [ClusterSeen(cluster), GangSeen(_gang(cluster, {}, 1)), TermStarted(1)]
    seen += [PodSeen(pod) for pod in pods]
    state = CoordinatorState()

    [write] = state.handle([*seen, CycleDue()], NOW)
    assert isinstance(write, WriteGangStatus)
    told = GangSeen(_gang(cluster, write.status, 2))
    head, admitted = state.handle([told, WriteEnded(KEY, None)], NOW)
    assert isinstance(admitted, LogDecision)
    assert isinstance(head, ReleasePod)
    assert head.pod.metadata.name == "head"

    released = pod_of(raw, names.RAY_HEAD_GROUP, "head", template(**pinned_to(head.node)), "", [])
    released["metadata"] |= {"uid": "head", "resourceVersion": "2"}
    bound = PodSeen(observe(msgspec.convert(released, core_objects.Pod)))
    rest = state.handle([bound, PodPatchEnded(KEY, "head", None)], NOW)
    assert len({action.pod.metadata.uid for action in rest if isinstance(action, ReleasePod)}) == (
        WORKERS
    )
