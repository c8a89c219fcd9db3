"""Counts how often KubeRay reconciles a RayCluster after each kind of write.

Ten RayClusters of four gated pods, which are not released or bound. Each write is made for
every RayCluster, and what KubeRay reconciles is counted until it has reconciled nothing for longer
than it waits by itself after a change of a status.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.burst import create_all, delete_all
from benchmarks.gangs import NAMESPACE, PODS, Size, bodies
from benchmarks.kuberay import Reconciles
from benchmarks.measure import Outcome, Row
from benchmarks.plane import Plane, plane, usual_options
from benchmarks.podwatch import PodWatch
from benchmarks.policies import ALL, enforced
from kube.api.bodies import decode
from kube.codec.pod_patches import fence_patch, release_patch
from kube.objects.core import Pod
from testbed.api import Api, Json
from testbed.cluster import Cluster

CLUSTERS = 10
SIZE = Size()
WAIT_SECONDS = 120.0
_GANGS = f"/apis/muster.dev/v1alpha1/namespaces/{NAMESPACE}/gangs"
_EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
_STILL_SECONDS = 2.5  # KubeRay looks again 2 s after it wrote a status
_MOST_SECONDS = 60.0
_LOOK_SECONDS = 0.25
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
_GANG_SPEC = {"queue": "default", "priority": 0, "podSets": [{"name": "headgroup", "count": 1}]}

Gang = list[str]
"""The names of a RayCluster's pods, the head's first."""
Write = Callable[[Api, str, Gang], None]


def measure(runs: int) -> Outcome:
    """Each write for new RayClusters in each run."""
    options = usual_options(kwok=False, scheduler=False)
    with plane(1, options=options) as on, enforced(on.cluster, ALL):
        found = [_run(on, number) for number in range(runs)]
    rows = [
        Row(f"reconciles after {name}", "", tuple(r[name] for r in found), ours_are="KubeRay")
        for name in WRITES
    ]
    return Outcome(rows)


def _run(on: Plane, number: int) -> dict[str, float]:
    api = on.cluster.api
    manifests = bodies(f"run{number}", CLUSTERS, SIZE, gang=False)
    pods = CLUSTERS * SIZE.pods
    with PodWatch(api, PODS) as watch:
        create_all(api, manifests)
        watch.wait(lambda: len(watch.pods) == pods, f"{pods} pods to exist", WAIT_SECONDS)
        gangs = dict(_gangs(watch))
        found = {name: _counted(on.cluster, write, gangs) for name, write in WRITES.items()}
        delete_all(api)
        with api.session() as session:  # no kubelet is there that would end bound pods
            session.call("DELETE", PODS, b'{"gracePeriodSeconds": 0}')
        watch.wait_gone(WAIT_SECONDS)
    return found


def _gangs(watch: PodWatch) -> Iterator[tuple[str, Gang]]:
    of = sorted((seen.group, "head" not in name, name) for name, seen in watch.pods.items())
    for cluster, pods in itertools.groupby(of, lambda each: each[0]):
        yield cluster, [name for _, _, name in pods]


def _counted(cluster: Cluster, write: Write, gangs: dict[str, Gang]) -> float:
    """Reconciles for each RayCluster until there are no more."""
    before = _still(cluster)
    for name, pods in gangs.items():
        write(cluster.api, name, pods)
    return _still(cluster).since(before).count / len(gangs)


def _still(cluster: Cluster) -> Reconciles:
    """Wait until the number stays as it is."""
    deadline = time.monotonic() + _MOST_SECONDS
    seen, since = Reconciles.so_far(cluster), time.monotonic()
    while time.monotonic() < min(since + _STILL_SECONDS, deadline):
        time.sleep(_LOOK_SECONDS)
        now = Reconciles.so_far(cluster)
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


# ---- the writes


def _create_gang(api: Api, name: str, _: Gang) -> None:
    api.create(_GANGS, {**_gang(name), "spec": _GANG_SPEC})


def _write_gang(api: Api, name: str, _: Gang) -> None:
    _call(api, "PATCH", f"{_GANGS}/{name}/status", {"status": {"reason": "Queued"}}, _MERGE_PATCH)


def _create_event(api: Api, name: str, _: Gang) -> None:
    about = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": name, "namespace": NAMESPACE}
    said = {"type": "Normal", "reason": "Queued", "message": "waits"}
    api.create(_EVENTS, {"metadata": {"name": name}, "involvedObject": about, **said})


def _fence(api: Api, _: str, pods: Gang) -> None:
    _call(api, "PATCH", _pod(pods[0]), fence_patch(_read(api, pods[0]), "1.0"), _JSON_PATCH)


def _release_one(api: Api, _: str, pods: Gang) -> None:
    _release(api, pods[0])


def _release_rest(api: Api, _: str, pods: Gang) -> None:
    _at_once(lambda pod: _release(api, pod), pods[1:])


def _bind_one(api: Api, _: str, pods: Gang) -> None:
    _bind(api, pods[0])


def _bind_rest(api: Api, _: str, pods: Gang) -> None:
    _at_once(lambda pod: _bind(api, pod), pods[1:])


def _run_rest(api: Api, _: str, pods: Gang) -> None:
    _at_once(lambda pod: _run_pod(api, pod), pods[1:])


WRITES: dict[str, Write] = {
    "the Gang's create": _create_gang,
    "a write of its status": _write_gang,
    "an Event about the RayCluster": _create_event,
    "a fence": _fence,
    "one release": _release_one,
    "three releases at once": _release_rest,
    "one binding": _bind_one,
    "three bindings at once": _bind_rest,
    "three pods turned Running at once": _run_rest,
}


def _release(api: Api, pod: str) -> None:
    _call(api, "PATCH", _pod(pod), release_patch(_read(api, pod), "node-0"), _JSON_PATCH)


def _bind(api: Api, pod: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-0"}
    api.create(f"{_pod(pod)}/binding", {"metadata": {"name": pod}, "target": target})


def _run_pod(api: Api, pod: str) -> None:
    _call(api, "PATCH", f"{_pod(pod)}/status", {"status": _RUNNING}, _MERGE_PATCH)


def _at_once(write: Callable[[str], None], pods: Gang) -> None:
    with ThreadPoolExecutor(len(pods)) as pool:
        for done in [pool.submit(write, pod) for pod in pods]:
            done.result()


def _gang(name: str) -> Json:
    kind = {"apiVersion": "muster.dev/v1alpha1", "kind": "Gang"}
    return {**kind, "metadata": {"name": name}}


def _read(api: Api, pod: str) -> Pod:
    with api.session() as session:
        return decode(session.request("GET", _pod(pod))[1], Pod)


def _pod(name: str) -> str:
    return f"{PODS}/{name}"


def _call(api: Api, method: str, path: str, body: object, content_type: str) -> None:
    with api.session() as session:
        session.call(method, path, json.dumps(body).encode(), content_type)
