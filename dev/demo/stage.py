"""What a scene can do, and what it claims in the end.

A scene has the cluster for itself: what the scene before it left is removed before its own nodes
are added, so that every number in a message is of this scene.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from demo.claims import Claim
from demo.display import Display
from demo.manifests import gang_queue
from demo.world import World, is_running
from testbed.api import Json
from testbed.cluster import Cluster
from testbed.errors import TestbedError
from testbed.history import Finding, Gang
from testbed.nodes import NodeSpec
from testbed.waiting import WAIT_SECONDS

T = TypeVar("T")

_REFUSED = "InsufficientResources"
# A Ray cluster goes after its pods. KubeRay, which may hear of a lost pod before it hears why,
# would sometimes make one for a Ray cluster that is no more, and such a pod is of no gang.
_WHOLE = "?propagationPolicy=Foreground"


class Stage:
    """One cluster with Muster, watched, and the display of what happens."""

    def __init__(self, cluster: Cluster, world: World, display: Display) -> None:
        self.cluster, self.world, self.display = cluster, world, display
        self.namespace = ""
        self._nodes: list[str] = []
        self._created: list[str] = []

    def set_up(self, namespace: str, nodes: Sequence[NodeSpec]) -> None:
        """Clear the stage and bring a namespace and nodes onto it, with names of their own.

        kwok may renew the Lease of a node that is gone; one of the same name then waits for 50 s.
        """
        self.clear()
        self.cluster.create_namespace(namespace)
        self.cluster.add_nodes(nodes)
        self.namespace = namespace
        self._nodes = [f"/api/v1/nodes/{node.name}" for node in nodes]

    def clear(self) -> None:
        """Remove what is on the stage; gone means gone, not on its way."""
        for path in self._created:
            self._delete(path + _WHOLE)
        self._created = []
        self.world.wait_until(self._is_empty, f"all pods and gangs of {self.namespace} to go")
        for path in self._nodes:
            self._delete(path)
        self._nodes = []

    def create_ray_cluster(self, manifest: Json) -> Gang:
        """Create a Ray cluster and return what its gang is called."""
        name = self._create(f"/apis/ray.io/v1/namespaces/{self.namespace}/rayclusters", manifest)
        return self.namespace, name

    def create(self, collection: str, manifest: Json) -> str:
        """Create an object of another kind, which goes with the scene, and return its name."""
        return self._create(collection, manifest)

    def create_pod(self, manifest: Json) -> Gang:
        """Create a pod that is of no Ray cluster."""
        name = self._create(f"/api/v1/namespaces/{self.namespace}/pods", manifest)
        return self.namespace, name

    def create_app_wrapper(self, manifest: Json) -> Gang:
        """Create an AppWrapper as its users do, and return what its gang is called here."""
        name = str(manifest["metadata"]["name"])
        self.display.say(f"$ kubectl create -f {name}.yaml")
        self._kubectl("create", "-f", "-", body=manifest)
        self._created.append(_app_wrapper(self.namespace, name))
        return self.namespace, name

    def owned(self, name: str) -> Gang:
        """Return the gang of a Ray cluster that a command is going to create here."""
        self._created.append(f"/apis/ray.io/v1/namespaces/{self.namespace}/rayclusters/{name}")
        return self.namespace, name

    def muster(self, *args: str) -> str:
        """Run the command as whoever owns the namespace does, and return what it prints."""
        self.display.say(f"$ muster {' '.join(args)}")
        program = str(Path(sys.executable).with_name("muster"))
        command = [program, *args, "-n", self.namespace]
        command += ["--kubeconfig", str(self.cluster.kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TestbedError(f"muster {' '.join(args)}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def create_queue(self, name: str, **spec: object) -> None:
        """Create a GangQueue for the gangs of this scene."""
        manifest = gang_queue(name, self.namespace, **spec)
        self._create("/apis/muster.dev/v1alpha1/gangqueues", manifest)

    def create_priority_class(self, name: str, value: int) -> None:
        """Create a PriorityClass that pods of this scene may name."""
        self.cluster.create_priority_class({"name": name}, value)
        self._created.append(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")

    def delete_ray_cluster(self, gang: Gang) -> float:
        """Delete a Ray cluster, say so, and return the moment before."""
        return self._take(f"/apis/ray.io/v1/namespaces/{gang[0]}/rayclusters/{gang[1]}")

    def delete_pod(self, pod: Gang) -> float:
        """Delete a pod, say so, and return the moment before."""
        return self._take(f"/api/v1/namespaces/{pod[0]}/pods/{pod[1]}")

    def delete_app_wrapper(self, gang: Gang) -> float:
        """Delete an AppWrapper as its users do, and return the moment before."""
        self._created.remove(_app_wrapper(*gang))
        self.display.say(f"$ kubectl delete appwrapper {gang[1]}")
        moment = time.monotonic()
        self._kubectl("delete", "appwrapper", gang[1])
        return moment

    def app_wrapper_status(self, gang: Gang) -> Json:
        """What an AppWrapper says."""
        status: Json = self.cluster.api.get(_app_wrapper(*gang)).get("status") or {}
        return status

    def wait_until(
        self, condition: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS
    ) -> T:
        """Look at each change until the answer is true; say what never came."""
        return self.world.wait_until(condition, what, seconds)

    def wait_whole(self, gang: Gang, size: int) -> float:
        """Wait until a gang runs with all its pods, and return when the last one came to run."""
        what = f"all {size} pods of {'/'.join(gang)} to run"
        self.wait_until(lambda: self.world.is_whole(gang, size), what)
        return self.whole_since(gang)

    def whole_since(self, gang: Gang) -> float:
        """When the last of the pods that run now was first seen to run."""
        first: dict[str, float] = {}
        for event in self.world.recorder.events:
            if event.gang == gang and is_running(event):
                first.setdefault(event.uid, event.time)
        return max(first.values())

    def wait_refused(self, gang: Gang) -> str:
        """Wait until a gang waits for room, and return what it says."""
        what = f"{'/'.join(gang)} to wait and to say why"

        def said() -> str:
            state = self.world.state(gang)
            return state.message if state.reason == _REFUSED else ""

        return self.wait_until(said, what)

    def wait_stopped(self, gang: Gang) -> str:
        """Wait until a gang waits that was stopped for another, and return what it says of that."""
        what = f"{'/'.join(gang)} to be stopped and to wait again"

        def said() -> str:
            state = self.world.state(gang)
            return state.evicted if state.phase == "Queued" else ""

        return self.wait_until(said, what)

    def bound_before(self, gang: Gang, moment: float) -> int:
        """How many pods of a gang were bound at any time before a moment."""
        events = self.world.recorder.events
        return len({e.uid for e in events if e.gang == gang and e.node and e.time < moment})

    def pods_of(self, gang: Gang) -> list[Json]:
        """The pods of a Ray cluster that the API server has."""
        selector = f"labelSelector=ray.io%2Fcluster%3D{gang[1]}"
        pods = self.cluster.api.get(f"/api/v1/namespaces/{gang[0]}/pods?{selector}")["items"]
        return list(pods)

    def has_no_pods(self, gang: Gang) -> list[Claim]:
        """Ask the API server, and all that was ever seen of pods."""
        there = self.pods_of(gang)
        ever = len({each.uid for each in self.world.recorder.events if each.gang == gang})
        has = f"the API server has {len(there)} pods of {gang[1]}, which waits"
        return [
            Claim(has, holds=not there),
            Claim(f"and {ever} were ever seen", holds=not ever),
        ]

    def events_seen(self) -> int:
        """How many changes of pods of this scene were recorded."""
        return sum(event.namespace == self.namespace for event in self.world.recorder.events)

    def never_partial(self, expected: Mapping[Gang, int]) -> Claim:
        """Check the history of all gangs of a scene."""
        findings = self.world.recorder.partial_gangs(expected)
        moments = f"{self.events_seen()} observed changes of pods"
        return _clean(findings, f"{len(findings)} partial gangs in {moments}")

    def never_together(self, rivals: Mapping[Gang, int]) -> Claim:
        """Check that no two gangs which exclude each other held room at once."""
        findings = self.world.recorder.overlaps(rivals)
        return _clean(findings, f"{len(findings)} moments in which two of them held room")

    def _create(self, collection: str, manifest: Json) -> str:
        made = self.cluster.api.create(collection, manifest)
        name: str = made["metadata"]["name"]
        self._created.append(f"{collection}/{name}")
        return name

    def _take(self, path: str) -> float:
        self._created.remove(path)
        moment = time.monotonic()
        self._delete(path + _WHOLE)
        self.display.say(f"{path.rpartition('/')[2]} is deleted")
        return moment

    def _delete(self, path: str) -> None:
        with self.cluster.api.session() as session:
            session.call("DELETE", path)

    def _kubectl(self, *args: str, body: Json | None = None) -> None:
        text = None if body is None else json.dumps(body)
        self.cluster.kubectl("-n", self.namespace, *args, input=text)

    def _is_empty(self) -> bool:
        return all(row.gang[0] != self.namespace for row in self.world.rows())


def _app_wrapper(namespace: str, name: str) -> str:
    return f"/apis/workload.codeflare.dev/v1beta1/namespaces/{namespace}/appwrappers/{name}"


def _clean(findings: Sequence[Finding], text: str) -> Claim:
    """Claim that nothing was found, or say what was, beginning with the first."""
    return Claim("; ".join([text, *map(str, findings[:3])]), holds=not findings)
