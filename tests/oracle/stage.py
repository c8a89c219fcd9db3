"""How does a world come up on a real control plane, and what does kube-scheduler do with it?

No kubelet and no kwok: a node that is created Ready stays so for longer than a wave of worlds
lives, and a pod counts from the moment it is bound.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from kube.objects import Pod
from kube.patches import JsonPatch, release_patch, unpinned_release_patch
from testbed.api import Session
from testbed.cluster import Cluster
from testbed.options import Options
from tests.oracle.model import Json, World, name_of, namespace_labels, namespaces

WORKERS = 4
SETTLE_SECONDS = 8.0
"""How long kube-scheduler may take after its first refusal: its back-off begins with a second."""

_PLUGINS = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"


class Stage:
    """A cluster for worlds; a slot is used again once its world was cleared."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._slots: set[str] = set()

    @classmethod
    @contextmanager
    def open(cls, directory: Path) -> Iterator["Stage"]:
        """Start a control plane in a new directory; it ends with the block."""
        options = Options(kuberay=False, kwok=False, apiserver_args=(_PLUGINS,))
        with Cluster.start(directory, options) as cluster:
            yield cls(cluster)

    def raise_worlds(self, worlds: Iterable[World]) -> None:
        """Create all objects of the worlds; their gangs stay gated."""
        several = list(worlds)
        for slot in {world.slot for world in several} - self._slots:
            for name in namespaces(slot):
                metadata = {"name": name, "labels": namespace_labels(slot, name)}
                self._cluster.api.create("/api/v1/namespaces", {"metadata": metadata})
            self._slots.add(slot)
        self._each(several, _raise)

    def read(self, world: World) -> World:
        """Return the world as the API server has stored it."""
        objects = [self._cluster.api.get(_path(each)) for each in world.objects]
        nodes = self._cluster.api.get(f"/api/v1/nodes?labelSelector=world%3D{world.slot}")["items"]
        pods = self._pods(world)
        names = {pod["metadata"]["name"] for pod in world.gang}
        gang = [pod for pod in pods if pod["metadata"]["name"] in names]
        residents = [pod for pod in pods if pod["metadata"]["name"] not in names]
        return World(world.slot, nodes, residents, gang, objects)

    def namespaces(self, world: World) -> list[Json]:
        """Return the world's namespaces as they are stored."""
        return [self._cluster.api.get(f"/api/v1/namespaces/{name}") for name in world.namespaces]

    def release(self, pods: Iterable[tuple[Json, str]]) -> None:
        """Take our gate off the pods in this order; an empty node leaves the pod unpinned."""
        with self._cluster.api.session() as session:
            for pod, node in pods:
                _patch(session, pod, _release(pod, node))

    def settled(self, worlds: Iterable[World], *, patient: bool) -> dict[str, dict[str, str]]:
        """Wait until every gang is bound or refused; return slot -> pod -> node ("" is none).

        A patient wait gives refused pods time for another try.
        """
        waiting = {world.slot: world for world in worlds}
        done: dict[str, dict[str, str]] = {}
        deadline = time.monotonic() + SETTLE_SECONDS + 0.2 * len(waiting)
        while waiting:
            late = time.monotonic() > deadline
            for slot, world in list(waiting.items()):
                pods = self.read(world).gang
                where = {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}
                decided = all(where.values()) or (not patient and all(map(_is_decided, pods)))
                if decided or late:
                    done[slot] = where
                    del waiting[slot]
            time.sleep(0.1)
        return done

    def clear(self, worlds: Iterable[World]) -> None:
        """Delete all objects of the worlds and wait until none is left."""
        several = list(worlds)
        self._each(several, _clear)
        for world in several:
            while self._pods(world):
                time.sleep(0.05)

    def _pods(self, world: World) -> list[Json]:
        lists = [self._cluster.api.get(f"/api/v1/namespaces/{n}/pods") for n in world.namespaces]
        return [pod for each in lists for pod in each["items"]]

    def _each(self, worlds: list[World], act: Callable[[World, Session], None]) -> None:
        def run(share: list[World]) -> None:
            with self._cluster.api.session() as session:
                for world in share:
                    act(world, session)

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(run, [worlds[at::WORKERS] for at in range(WORKERS)]))


def _raise(world: World, session: Session) -> None:
    for each in (*world.objects, *world.nodes, *world.residents, *world.gang):
        _create(each, session)


def _create(manifest: Json, session: Session) -> None:
    """Create an object, then bring about what its manifest says of its status and its end."""
    path, status = _path(manifest), manifest.get("status")
    session.call("POST", path.rpartition("/")[0], json.dumps(manifest).encode())
    if status and manifest["kind"] != "Node":
        body = json.dumps({"status": status}).encode()
        session.call("PATCH", f"{path}/status", body, _MERGE)
    if "deletionTimestamp" in manifest["metadata"]:
        session.call("DELETE", path)


def _clear(world: World, session: Session) -> None:
    """Delete everything, the pods first, whatever finalizers there are."""
    options = json.dumps({"gracePeriodSeconds": 0}).encode()
    for name in world.namespaces:
        session.call("DELETE", f"/api/v1/namespaces/{name}/pods", options)
    for each in (*world.residents, *reversed(world.objects)):
        if each in world.objects:
            session.request("DELETE", _path(each), options)
        # Controllers add finalizers of their own to volumes and claims.
        session.request("PATCH", _path(each), _NO_FINALIZERS, _MERGE)
    session.call("DELETE", f"/api/v1/nodes?labelSelector=world%3D{world.slot}")


_MERGE = "application/merge-patch+json"
_NO_FINALIZERS = json.dumps({"metadata": {"finalizers": None}}).encode()

PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
}
"""Where the objects of a kind are; `namespace` is filled in."""


def _path(manifest: Json) -> str:
    collection = PATHS[manifest["kind"]].format(**manifest["metadata"])
    return f"{collection}/{name_of(manifest)}"


def _release(pod: Json, node: str) -> JsonPatch:
    read = msgspec.convert(pod, Pod)
    return release_patch(read, node) if node else unpinned_release_patch(read)


def _patch(session: Session, pod: Json, patch: JsonPatch) -> None:
    metadata: dict[str, Any] = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    session.call("PATCH", path, json.dumps(patch).encode(), "application/json-patch+json")


def _is_decided(pod: Json) -> bool:
    refused = any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in pod["status"].get("conditions", [])
    )
    return refused or bool(pod["spec"].get("nodeName"))
