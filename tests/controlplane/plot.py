"""One test's part of the shared cluster: a namespace and nodes of its own, and waits on them.

Everything that a plot starts is held to the plot's nodes by a node selector, so that tests cannot
take each other's room. Waiting is always for something to be true, never for a time.
"""

from __future__ import annotations

import contextlib
import http
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from kube.objects import names
from testbed.aftermath import brief
from testbed.api import Api
from testbed.cluster import Cluster
from testbed.nodes import NodeSpec, copies
from testbed.waiting import WAIT_SECONDS, wait_until
from tests.controlplane.rayclusters import Json, on_nodes

LABEL = "test.muster.dev/plot"
NODES = "/api/v1/nodes"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICE_CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
RESOURCE_SLICES = "/apis/resource.k8s.io/v1/resourceslices"
TAINT_RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
QUEUES = "/apis/muster.dev/v1alpha1/gangqueues"
PLENTY = "512Gi"

_GROUPS = {
    "Pod": "/api/v1",
    "Service": "/api/v1",
    "ConfigMap": "/api/v1",
    "Secret": "/api/v1",
    "LimitRange": "/api/v1",
    "ResourceQuota": "/api/v1",
    "PersistentVolumeClaim": "/api/v1",
    "Event": "/apis/events.k8s.io/v1",
    "PodDisruptionBudget": "/apis/policy/v1",
    "Deployment": "/apis/apps/v1",
    "Job": "/apis/batch/v1",
    "RayCluster": "/apis/ray.io/v1",
    "RayJob": "/apis/ray.io/v1",
    "RayService": "/apis/ray.io/v1",
    "RayCronJob": "/apis/ray.io/v1",
    "Gang": "/apis/muster.dev/v1alpha1",
    "GangOffer": "/apis/muster.dev/v1alpha1",
    "ProvisioningRequest": "/apis/autoscaling.x-k8s.io/v1",
    "PodTemplate": "/api/v1",
    "ResourceClaim": "/apis/resource.k8s.io/v1",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1",
    "AppWrapper": "/apis/workload.codeflare.dev/v1beta2",
}

_WITH_PODS = (
    "/apis/ray.io/v1/namespaces/{}/rayservices",
    "/apis/ray.io/v1/namespaces/{}/rayjobs",
    "/apis/ray.io/v1/namespaces/{}/rayclusters",
    "/apis/batch/v1/namespaces/{}/jobs",
    "/api/v1/namespaces/{}/pods",
)

_OF_NO_NAMESPACE = (
    *(NODES, PRIORITY_CLASSES, DEVICE_CLASSES, RESOURCE_SLICES),
    *(STORAGE_CLASSES, VOLUMES, QUEUES),
)

ALLOWED = {"metadata": {"annotations": {"muster.dev/allow-deletion": "true"}}}
"""What lets a GangQueue be deleted that is in use."""

_QUEUE = {"apiVersion": names.API_VERSION, "kind": "GangQueue"}

T = TypeVar("T")


class Plot:
    """One test's part of the cluster."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.selector = {LABEL: name}

    # --- what a test puts there

    def add_nodes(self, *specs: NodeSpec) -> None:
        """Add nodes that belong to this plot; their names begin with the plot's."""
        labelled = [
            replace(spec, name=self.node(spec.name), labels={**spec.labels, **self.selector})
            for spec in specs
        ]
        self.cluster.add_nodes(labelled)

    def add_node(self, cpus: int | str, memory: str = PLENTY, pods: int = 110) -> None:
        """Add one node `node` with so many CPUs and no lack of the rest."""
        self.add_nodes(NodeSpec("node", cpus=cpus, memory=memory, pods=pods))

    def add_equal_nodes(self, count: int, cpus: int | str) -> None:
        """Add nodes `n-0`, `n-1` and so on."""
        self.add_nodes(*copies(NodeSpec("n", cpus=cpus, memory=PLENTY), count))

    def add_priority_class(self, name: str, value: int) -> str:
        """Add a PriorityClass that goes with the plot; returns its full name."""
        full_name = f"{self.name}-{name}"
        metadata = {"name": full_name, "labels": self.selector}
        self.cluster.create_priority_class(metadata, value)
        return full_name

    def add_device_class(self, name: str, resource: str) -> None:
        """Add a DeviceClass that goes with the plot; pods may ask for it as a resource."""
        self.add_of_no_namespace(DEVICE_CLASSES, name, {"extendedResourceName": resource})

    def add_of_no_namespace(self, collection: str, name: str, spec: Json) -> None:
        """Add an object that goes with the plot, under its full name."""
        metadata = {"name": f"{self.name}-{name}", "labels": self.selector}
        self.cluster.api.create(collection, {"metadata": metadata, "spec": spec})

    def add_volume(self, claim: str, **spec: object) -> None:
        """Add a volume kept for a claim of the plot; the controller of volumes binds the two."""
        name = f"{self.name}-{claim}"
        usual = {
            "accessModes": ["ReadWriteMany"],
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": self.name, "name": claim},
            "csi": {"driver": "disk.example", "volumeHandle": name},
        }
        metadata = {"name": name, "labels": self.selector}
        self.cluster.api.create(VOLUMES, {"metadata": metadata, "spec": {**usual, **spec}})

    def add_storage_class(self, name: str, **fields: object) -> str:
        """Add a StorageClass that binds with the first pod; returns its full name."""
        full_name = f"{self.name}-{name}"
        metadata = {"name": full_name, "labels": self.selector}
        usual = {"provisioner": "disk.example", "volumeBindingMode": "WaitForFirstConsumer"}
        self.cluster.api.create(STORAGE_CLASSES, {"metadata": metadata, **usual, **fields})
        return full_name

    def add_queue(self, name: str, **spec: object) -> None:
        """Add a GangQueue that goes with the plot, and that is open to its namespace alone."""
        here = {"matchLabels": {"kubernetes.io/metadata.name": self.name}}
        metadata = {"name": self.queue(name), "labels": self.selector}
        body = {"metadata": metadata, "spec": {"namespaceSelector": here, **spec}}
        self.cluster.api.create(QUEUES, {**_QUEUE, **body})

    def change_queue(self, name: str, **spec: object) -> None:
        """Change fields of the spec of a GangQueue of the plot."""
        self._merge(f"{QUEUES}/{self.queue(name)}", {"spec": spec})

    def queue_status(self, name: str) -> Json:
        """The status of a GangQueue of the plot."""
        found: Json = self.cluster.api.get(f"{QUEUES}/{self.queue(name)}").get("status", {})
        return found

    def delete_queue(self, name: str) -> None:
        """Delete a GangQueue of the plot, used or not; it goes when its gangs hold nothing."""
        path = f"{QUEUES}/{self.queue(name)}"
        self._merge(path, ALLOWED)
        self._call("DELETE", path)

    def allow_deletions(self) -> None:
        """Let all GangQueues of the plot be deleted, whatever is in them."""
        found = self.cluster.api.get(f"{QUEUES}?labelSelector={LABEL}%3D{self.name}")
        for each in found.get("items", ()):
            self._merge(f"{QUEUES}/{each['metadata']['name']}", ALLOWED)

    def wait_no_queue(self, name: str) -> None:
        """Wait until a GangQueue of the plot is gone."""
        path = f"{QUEUES}/{self.queue(name)}"
        self.wait(lambda: not self.cluster.api.exists(path), f"GangQueue {name} to be gone")

    def queue(self, name: str) -> str:
        """The full name of one of the plot's queues."""
        return f"{self.name}-{name}"

    def node(self, name: str) -> str:
        """The full name of one of the plot's nodes."""
        return f"{self.name}-{name}"

    def create(self, manifest: Json) -> Json:
        """Create an object in the plot's namespace, its pods held to the plot's nodes."""
        return self.create_as(self.cluster.api, manifest)

    def create_as(self, user: Api, manifest: Json) -> Json:
        """Create an object so in the name of another user."""
        return user.create(self.path(manifest["kind"]), on_nodes(manifest, self.selector))

    def delete(self, kind: str, name: str) -> None:
        """Delete an object; what it owns follows in the background."""
        self._call("DELETE", self.path(kind, name))

    def delete_whole(self, cluster: str) -> None:
        """Delete a RayCluster that goes after its pods.

        KubeRay, which may hear of a lost pod before it hears why, sometimes makes one for a
        RayCluster that is no more. Such a pod has no owner, so it takes reserved room
        until it is collected. While its RayCluster is there the webhook holds it.
        """
        self._call("DELETE", f"{self.path('RayCluster', cluster)}?propagationPolicy=Foreground")

    def delete_all_whole(self) -> None:
        """Delete all RayClusters so; a RayJob may delete its own at the same time."""
        self._call("DELETE", f"{self.path('RayCluster')}?propagationPolicy=Foreground")

    def patch(self, kind: str, name: str, change: Json) -> Json:
        """Merge a change into an object."""
        return self._merge(self.path(kind, name), change)

    def patch_status(self, kind: str, name: str, change: Json) -> Json:
        """Merge a change into the status of an object."""
        return self._merge(f"{self.path(kind, name)}/status", {"status": change})

    def patch_node(self, name: str, change: Json) -> Json:
        """Merge a change into one of the plot's nodes."""
        return self._merge(f"{NODES}/{self.node(name)}", change)

    def patch_node_status(self, name: str, change: Json) -> Json:
        """Merge a change into the status of one of the plot's nodes."""
        return self._merge(f"{NODES}/{self.node(name)}/status", {"status": change})

    def replace(self, kind: str, name: str, change: Callable[[Json], None]) -> None:
        """Read, change and write back an object; for what a merge patch cannot say.

        Others write to the same object, so a conflict means to read it again.
        """

        def written() -> bool:
            found = self.get(kind, name)
            change(found)
            body = json.dumps(found).encode()
            with self.cluster.api.session() as session:
                status, answer = session.request("PUT", self.path(kind, name), body)
            assert status in (http.HTTPStatus.OK, http.HTTPStatus.CONFLICT), answer
            return status == http.HTTPStatus.OK

        wait_until(written, f"{kind} {name} to be replaced")

    def mark(self, name: str, **annotations: str | None) -> None:
        """Set annotations `muster.dev/...` on a RayCluster; None takes one away."""
        marks = {f"muster.dev/{key.replace('_', '-')}": said for key, said in annotations.items()}
        self.patch("RayCluster", name, {"metadata": {"annotations": marks}})

    def scale(self, name: str, **fields: object) -> None:
        """Set fields of the first worker group of a RayCluster."""

        def change(found: Json) -> None:
            found["spec"]["workerGroupSpecs"][0].update(fields)

        self.replace("RayCluster", name, change)

    # --- what can be seen there

    def get(self, kind: str, name: str) -> Json:
        """Read an object of the plot."""
        return self.cluster.api.get(self.path(kind, name))

    def all(self, kind: str) -> list[Json]:
        """All objects of a kind in the plot."""
        found: list[Json] = self.cluster.api.get(self.path(kind))["items"]
        return found

    def pods(self, cluster: str, kind: str = "") -> list[Json]:
        """The pods of a RayCluster that are not being deleted; `kind` is head or worker."""
        return [
            pod
            for pod in self.all("Pod")
            if label(pod, names.RAY_CLUSTER) == cluster
            and kind in ("", label(pod, names.RAY_NODE_TYPE))
            and "deletionTimestamp" not in pod["metadata"]
        ]

    def gangs(self) -> dict[str, Json]:
        """The Gangs of the plot by name."""
        return {gang["metadata"]["name"]: gang for gang in self.all("Gang")}

    def status(self, name: str) -> Json:
        """The status of a Gang; empty where there is none yet."""
        found: Json = self.gangs().get(name, {}).get("status", {})
        return found

    def events(self, name: str, kind: str = "RayCluster") -> list[tuple[str, str, str]]:
        """Type, reason and text of the Events of Muster on an object."""
        return [
            (event["type"], event["reason"], event["note"])
            for event in self.all("Event")
            if (event["regarding"]["kind"], event["regarding"]["name"]) == (kind, name)
            and event["reportingController"].startswith("muster.dev/")
        ]

    def bound(self, cluster: str, kind: str = "") -> dict[str, str]:
        """The nodes of the pods of a RayCluster that have one, without the plot's name."""
        return {
            pod["metadata"]["name"]: pod["spec"]["nodeName"].removeprefix(f"{self.name}-")
            for pod in self.pods(cluster, kind)
            if "nodeName" in pod["spec"]
        }

    # --- what a test waits for

    def wait(
        self, condition: Callable[[], T | None], what: str, seconds: float = WAIT_SECONDS
    ) -> T:
        """Wait until something is true; say how the gangs stand when it never is."""
        return wait_until(condition, what, seconds, seen=lambda: brief(self._standing()))

    def _standing(self) -> list[str]:
        """How each gang stands, and where each of its pods is."""
        pods = [_pod_in_words(pod) for pod in self.all("Pod")]
        return [*(_gang_in_words(gang) for gang in self.all("Gang")), *pods]

    def wait_phase(self, name: str, phase: str, reason: str = "", saying: str = "") -> Json:
        """Wait until a Gang is in a phase, with a reason and these words, and return its status.

        The first words may be of a moment when Muster has not heard yet of all that there is.
        """

        def reached() -> Json:
            status = self.status(name)
            right = status.get("phase") == phase and reason in ("", status.get("reason"))
            return status if right and saying in status.get("message", "") else {}

        return self.wait(reached, f"gang {name} to be {phase} {reason} {saying}".rstrip())

    def wait_message(self, name: str, part: str) -> Json:
        """Wait until the message of a Gang says something, and return its status."""

        def said() -> Json:
            status = self.status(name)
            return status if part in status.get("message", "") else {}

        return self.wait(said, f"gang {name} to say {part!r}")

    def wait_pods(self, cluster: str, count: int) -> list[Json]:
        """Wait until a RayCluster has so many pods, and return them."""

        def there() -> list[Json]:
            pods = self.pods(cluster)
            return pods if len(pods) == count else []

        return self.wait(there, f"{cluster} to have {count} pods")

    def wait_ready(self, cluster: str, count: int) -> list[Json]:
        """Wait until a RayCluster has exactly so many pods and all are ready."""

        def there() -> list[Json]:
            pods = self.pods(cluster)
            return pods if len(pods) == count and all(is_ready(pod) for pod in pods) else []

        return self.wait(there, f"all {count} pods of {cluster} to be ready")

    def wait_running(self, name: str, count: int) -> list[Json]:
        """Wait until a gang runs with so many pods, all of them ready; returns them."""
        self.wait_phase(name, "Running")
        return self.wait_ready(name, count)

    def wait_no_gang(self, name: str) -> None:
        """Wait until there is no Gang of this name."""
        self.wait(lambda: name not in self.gangs(), f"gang {name} to be gone")

    def wait_gone(self, kind: str, name: str) -> None:
        """Wait until an object is gone."""
        path = self.path(kind, name)
        self.wait(lambda: not self.cluster.api.exists(path), f"{kind} {name} to be gone")

    def wait_no_pods(self) -> None:
        """Wait until there is no pod in the plot, terminating ones included."""
        self.wait(lambda: not self.all("Pod"), "all pods to be gone")

    def wait_event(self, name: str, reason: str, *parts: str, kind: str = "RayCluster") -> None:
        """Wait for an Event of Muster on an object that says all of this."""

        def told() -> bool:
            return any(
                reason == why and all(part in note for part in parts)
                for _, why, note in self.events(name, kind)
            )

        self.wait(told, f"an Event {reason} on {name} that says {parts}")

    def wait_unschedulable(self, cluster: str) -> Json:
        """Wait until kube-scheduler found no node for a pod, and return that pod."""
        found = self.wait(
            lambda: [pod for pod in self.pods(cluster) if is_unschedulable(pod)],
            f"a pod of {cluster} to be unschedulable",
        )
        return found[0]

    # --- the API

    def path(self, kind: str, name: str = "") -> str:
        """Where objects of a kind are in the plot, or one of them."""
        path = f"{_GROUPS[kind]}/namespaces/{self.name}/{kind.lower()}s"
        return f"{path}/{name}" if name else path

    def _merge(self, path: str, change: Json) -> Json:
        return self._call("PATCH", path, change, "application/merge-patch+json")

    def _call(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        content_type: str = "application/json",
    ) -> Json:
        sent = None if body is None else json.dumps(body).encode()
        with self.cluster.api.session() as session:
            return session.call(method, path, sent, content_type)


@contextlib.contextmanager
def plotted(cluster: Cluster, name: str) -> Iterator[Plot]:
    """Give a test its plot, and take away what a namespace does not take with it."""
    plot = Plot(cluster, name)
    cluster.create_namespace(plot.name)
    yield plot
    plot.allow_deletions()
    with cluster.api.session() as session:
        # KubeRay makes pods anew for as long as their RayCluster is there, hundreds of them in a
        # namespace that takes none; and a pod whose node has gone is there for a minute.
        for path in _WITH_PODS:
            session.call("DELETE", f"{path.format(plot.name)}?gracePeriodSeconds=0")
        session.call("DELETE", f"/api/v1/namespaces/{plot.name}")
        served = [each for each in _OF_NO_NAMESPACE if cluster.api.exists(f"{each}?limit=1")]
        for kind in served:  # 1.33 serves no devices
            session.call("DELETE", f"{kind}?labelSelector={LABEL}%3D{plot.name}")


# --- objects


def label(found: Json, key: str) -> str:
    """The value of a label; empty where there is none."""
    return str(found["metadata"].get("labels", {}).get(key, ""))


def conditions(found: Json) -> Mapping[str, str]:
    """The conditions of an object: type to status."""
    said = found.get("status", found).get("conditions") or ()
    return {condition["type"]: condition["status"] for condition in said}


def condition(status: Json, kind: str) -> Json:
    """One condition of a Gang's status."""
    (found,) = [each for each in status["conditions"] if each["type"] == kind]
    assert isinstance(found, dict)
    return found


def is_ready(pod: Json) -> bool:
    """Whether a pod runs and is ready."""
    return conditions(pod).get("Ready") == "True"


def is_unschedulable(pod: Json) -> bool:
    """Whether kube-scheduler has looked at a pod and found no node for it."""
    said = pod["status"].get("conditions") or ()
    return any(
        (each["type"], each.get("reason")) == ("PodScheduled", "Unschedulable") for each in said
    )


def gates(pod: Json) -> list[str]:
    """The scheduling gates on a pod."""
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def is_held(pod: Json) -> bool:
    """Whether our gate is on a pod."""
    return names.GATE in gates(pod)


def pin(pod: Json) -> list[str]:
    """The nodes that a pod is pinned to by name."""
    affinity = pod["spec"].get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution", {}
    )
    terms = required.get("nodeSelectorTerms", ())
    fields = (field for term in terms for field in term.get("matchFields", ()))
    return [node for field in fields for node in field["values"]]


# --- in words


def _gang_in_words(gang: Json) -> str:
    status = gang.get("status", {})
    said = (str(status.get(key, "")) for key in ("phase", "ready", "reason", "message"))
    return f"gang {gang['metadata']['name']}: {' '.join(said)}"


def _pod_in_words(pod: Json) -> str:
    where = pod["spec"].get("nodeName") or ("held" if is_held(pod) else "released")
    how = "leaving" if "deletionTimestamp" in pod["metadata"] else pod["status"].get("phase", "")
    return f"pod {pod['metadata']['name']}: {where} {how}"
