"""Brings a world up on a real control plane, and records what kube-scheduler does with it.

No kubelet and no kwok: a node that is created Ready stays so for longer than a world lives, and a
pod counts from the moment it is bound. Controllers that would change a world are left out.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from kube.codec.pod_patches import (
    JsonPatch,
    nomination_patch,
    release_patch,
    unpinned_release_patch,
)
from kube.codec.profiles.scheduler_profiles import DEFAULT_SCHEDULER
from kube.objects.core import Pod
from testbed.api import Session
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.following import DELETED, Follower
from testbed.options import Options
from testbed.provisioner import provisioning
from testbed.waiting import WAIT_SECONDS, wait_until
from tests.oracle.model import (
    PRIORITIES,
    Json,
    World,
    name_of,
    namespace_labels,
    namespaces,
    node_of,
)

PATIENCE_SECONDS = WAIT_SECONDS
"""How long kube-scheduler may take over one gang; its back-off grows to ten seconds."""

_PLUGINS = "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition"
_LEFT_OUT = (
    *("taint-eviction", "node-lifecycle", "pod-garbage-collector", "resourcequota"),
    *("endpoints", "endpointslice", "device-taint-eviction"),
)
_CONTROLLERS = f"--controllers={','.join(f'-{name}-controller' for name in _LEFT_OUT)}"
_MERGE = "application/merge-patch+json"
_NO_FINALIZERS = json.dumps({"metadata": {"finalizers": None}}).encode()
_AT_ONCE = json.dumps({"gracePeriodSeconds": 0}).encode()

PATHS = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "CSIDriver": "/apis/storage.k8s.io/v1/csidrivers",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims",
    "ResourceClaimTemplate": (
        "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"
    ),
}
"""Where the objects of a kind are; `namespace` is filled in."""


class Stage:
    """A cluster for worlds, for several threads; a slot is used again once it was cleared."""

    def __init__(self, cluster: Cluster, seen: "Pods") -> None:
        self._cluster = cluster
        self._seen = seen
        self._own = threading.local()
        self._open = ExitStack()

    @classmethod
    @contextmanager
    def open(cls, directory: Path, kubernetes: str, slots: Sequence[str]) -> Iterator["Stage"]:
        """Start a control plane of this version in a new directory; it ends with the block.

        kube-scheduler comes last, so that it knows from its start all that stands in the slots.
        """
        options = Options(
            kubernetes=kubernetes,
            kuberay=False,
            kwok=False,
            scheduler=False,
            apiserver_args=(_PLUGINS,),
            controller_manager_args=(_CONTROLLERS,),
        )
        with Cluster.start(directory, options) as cluster, provisioning(cluster.api):
            for name, value in PRIORITIES.items():
                cluster.create_priority_class({"name": name}, value, preemptionPolicy="Never")
            seen = Pods()
            with Follower(cluster.api, "/api/v1/pods", seen.take_in) as follower:
                follower.wait_synced()
                stage = cls(cluster, seen)
                with stage._open:
                    for slot in slots:
                        stage._furnish(slot)
                    cluster.start_scheduler({"profiles": [{"schedulerName": DEFAULT_SCHEDULER}]})
                    yield stage

    def _furnish(self, slot: str) -> None:
        """Create the namespaces of a slot."""
        for name in namespaces(slot):
            metadata = {"name": name, "labels": namespace_labels(slot, name)}
            self._session.call("POST", "/api/v1/namespaces", _body({"metadata": metadata}))

    def raise_world(self, world: World) -> World:
        """Create all objects of a world, its gang gated; return it as the API server stores it."""
        objects = [self._create(each) for each in world.objects]
        nodes = [self._create(each) for each in world.nodes]
        residents = [self._create(each) for each in world.residents]
        gang = [self._create(each) for each in world.gang]
        # The controller of volumes binds claims to the volumes that they name.
        objects = [self._settled(each) for each in world.objects]
        return World(world.slot, nodes, residents, gang, objects)

    def namespaces(self, world: World) -> list[Json]:
        """Return the world's namespaces as they are stored."""
        return [self._session.call("GET", f"/api/v1/namespaces/{n}") for n in world.namespaces]

    def release(self, pods: Iterable[tuple[Json, str]]) -> None:
        """Take our gate off the pods in this order; an empty node leaves the pod unpinned."""
        for pod, node in pods:
            patch = json.dumps(_release(pod, node)).encode()
            self._session.call("PATCH", _path(pod), patch, "application/json-patch+json")

    def nominated(self, pod: Json, node: str) -> Json:
        """Nominate a gated pod to its node, as the coordinator does; return it as it is stored."""
        patch = json.dumps(nomination_patch(msgspec.convert(pod, Pod), node, "")).encode()
        path = f"{_path(pod)}/status"
        stored: Json = self._session.call("PATCH", path, patch, "application/json-patch+json")
        return stored

    def settled(self, world: World, enough: Callable[[list[Json]], bool]) -> list[Json]:
        """Wait until what is seen of the gang is enough, or patience ends; return its pods."""
        keys = [(pod["metadata"]["namespace"], name_of(pod)) for pod in world.gang]
        return self._seen.wait(keys, enough)

    def claims(self, namespace: str) -> list[Json]:
        """Return the claims of devices in a namespace as they are stored."""
        path = PATHS["ResourceClaim"].format(namespace=namespace)
        found: list[Json] = self._session.call("GET", path)["items"]
        return found

    def clear(self, world: World) -> None:
        """Delete all objects of a world, whatever their finalizers, and wait for the pods."""
        for name in world.namespaces:
            self._session.call("DELETE", f"/api/v1/namespaces/{name}/pods", _AT_ONCE)
        for each in world.residents:
            if "finalizers" in each["metadata"]:
                self._session.request("PATCH", _path(each), _NO_FINALIZERS, _MERGE)
        for each in reversed(world.objects):
            self._session.request("DELETE", _path(each), _AT_ONCE)
            self._session.request("PATCH", _path(each), _NO_FINALIZERS, _MERGE)
        self._session.call("DELETE", f"/api/v1/nodes?labelSelector=world%3D{world.slot}")
        self._seen.wait_empty(world.namespaces)

    @property
    def _session(self) -> Session:
        """The connection of this thread."""
        if not hasattr(self._own, "session"):
            self._own.session = self._open.enter_context(self._cluster.api.session())
        session: Session = self._own.session
        return session

    def _settled(self, manifest: Json) -> Json:
        """Return an object as controllers have left it."""
        what = f"{manifest['kind']} {manifest['metadata']['name']} to be bound"
        return wait_until(lambda: self._read_settled(manifest), what, every=0.02)

    def _read_settled(self, manifest: Json) -> Json:
        """Return the object, or nothing while it waits for a controller."""
        stored = self._session.call("GET", _path(manifest))
        wanted = _phase(manifest)
        return stored if not wanted or stored["status"].get("phase") == wanted else {}

    def _create(self, manifest: Json) -> Json:
        """Create an object, then bring about what its manifest says of its status and its end."""
        path, status = _path(manifest), manifest.get("status")
        kind = {"kind": manifest["kind"], "apiVersion": manifest["apiVersion"]}
        metadata = {k: v for k, v in manifest["metadata"].items() if k != "deletionTimestamp"}
        body = _body({**manifest, "metadata": metadata})
        stored = self._session.call("POST", path.rpartition("/")[0], body)
        if status and manifest["kind"] != "Node":
            body = _body({"status": status})
            stored = self._session.call("PATCH", f"{path}/status", body, _MERGE)
        if "deletionTimestamp" in manifest["metadata"]:
            stored = self._session.call("DELETE", path)
        return {**stored, **kind}


class Pods:
    """All pods as they are seen, for threads that wait for something to be true of some."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], Json] = {}
        self._changed = threading.Condition()

    def take_in(self, change: str, pod: Json) -> None:
        """Take in what a follower tells."""
        key = (pod["metadata"]["namespace"], name_of(pod))
        with self._changed:
            if change != DELETED:
                self._pods[key] = pod
            elif self._pods.get(key, pod)["metadata"]["uid"] == pod["metadata"]["uid"]:
                self._pods.pop(key, None)
            self._changed.notify_all()

    def wait(self, keys: list[tuple[str, str]], enough: Callable[[list[Json]], bool]) -> list[Json]:
        """Wait until what is seen of these pods is enough, or patience ends; return them."""
        end = time.monotonic() + PATIENCE_SECONDS
        looked_at: list[Json] = []
        while True:
            with self._changed:
                seen = [self._pods[key] for key in keys if key in self._pods]
                if seen == looked_at and time.monotonic() < end:
                    self._changed.wait(1.0)
                    continue
            looked_at = seen
            if time.monotonic() >= end or (len(seen) == len(keys) and enough(seen)):
                return seen

    def wait_empty(self, namespaces: Iterable[str]) -> None:
        """Wait until no pod is left in the namespaces."""
        gone = frozenset(namespaces)
        with self._changed:
            empty = self._changed.wait_for(
                lambda: not any(namespace in gone for namespace, _ in self._pods), WAIT_SECONDS
            )
        if not empty:
            raise TestbedError(f"the pods of {sorted(gone)} did not go")


def is_refused(pod: Json) -> bool:
    """Say whether kube-scheduler has tried the pod and found no node for it."""
    conditions = pod["status"].get("conditions", [])
    return not node_of(pod) and any(
        each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable"
        for each in conditions
    )


def _phase(manifest: Json) -> str:
    """Return the phase that the controller of volumes brings about; empty where none is needed."""
    spec = manifest.get("spec", {})
    if manifest["kind"] == "PersistentVolume" and "claimRef" not in spec:
        return "Available"
    return "Bound" if "volumeName" in spec else ""


def _release(pod: Json, node: str) -> JsonPatch:
    read = msgspec.convert(pod, Pod)
    return release_patch(read, node) if node else unpinned_release_patch(read)


def _path(manifest: Json) -> str:
    collection = PATHS[manifest["kind"]].format(**manifest["metadata"])
    return f"{collection}/{name_of(manifest)}"


def _body(manifest: Json) -> bytes:
    return json.dumps(manifest).encode()
