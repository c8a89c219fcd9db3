"""One test's part of a real cluster with an extender: nodes, a namespace, Gangs and pods.

Gangs are written by hand here, as the coordinator would write them: what is tried is the extender
and the real kube-scheduler, with nothing else in between.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from kube.objects import names
from testbed.aftermath import brief
from testbed.cluster import Cluster
from testbed.muster import Extender, start_extender, with_muster
from testbed.nodes import NodeSpec, copies
from testbed.options import WITHOUT_WATCH_LIST, Options
from testbed.waiting import WAIT_SECONDS, wait_until
from tests.extender.worlds import GPU, Json, gang, member, pinned, pod

QUICK = {"SETTLE_SECONDS": "1", "WAKE_PAUSE_SECONDS": "0.3"}
"""Settings of an extender that is not in doubt for as long as one of an installation."""
BY_HAND = with_muster(Options(scheduler=False, kuberay=False, apiserver_args=WITHOUT_WATCH_LIST))
"""The cluster of tests/extender/by_hand: the extender, which lists all that it watches, and nothing
else of Muster. Each file starts the extender and the scheduler that it is about."""
LABEL = "test.muster.dev/extender"
_RAY = f"/apis/{names.RAY_API_VERSION}"


class Plot:
    """One test's namespace and nodes `NAME-0`, `NAME-1`, ... with 8 GPUs each."""

    def __init__(self, cluster: Cluster, extender: Extender, name: str) -> None:
        self.cluster = cluster
        self.extender = extender
        self.name = name
        cluster.create_namespace(name)

    def add_nodes(self, count: int, gpus: int = 8) -> list[str]:
        spec = NodeSpec(self.name, cpus=96, memory="768Gi", gpus=gpus, labels={LABEL: self.name})
        self.cluster.add_nodes(copies(spec, count))
        return [f"{self.name}-{i}" for i in range(count)]

    # ---- gangs

    def place(self, name: str, slots: Mapping[str, int], gpu: int = 8, **more: Any) -> None:
        """Write a Gang with this placement, and wait until the extender knows of it."""
        made = gang(name, slots=slots, gpu=gpu, **more)
        made |= {"apiVersion": names.API_VERSION, "kind": "Gang"}
        made["metadata"] |= {"namespace": self.name}
        made["metadata"]["ownerReferences"][0]["apiVersion"] = names.RAY_API_VERSION
        made["spec"] |= {"queue": "default"}
        self._post(self._gangs(), made)
        self._patch(f"{self._gangs()}/{name}/status", {"status": made["status"]})
        self._wait_told()

    def end(self, name: str) -> None:
        """Delete a Gang: its reservation ends, and nothing that kube-scheduler watches changes."""
        self._call("DELETE", f"{self._gangs()}/{name}")
        self._wait_told()

    def _wait_told(self) -> None:
        """Wait until the extender knows of as many placements as there are.

        How much is reserved would not tell: that changes with the pods, which have another watch.
        """
        found = self.cluster.api.get(f"/apis/{names.API_VERSION}/gangs")["items"]
        placed = sum("placement" in each.get("status", {}) for each in found)
        self.wait(
            lambda: self.extender.metric("muster_extender_placed_gangs") == placed,
            "the extender to know of the gangs",
        )

    # ---- pods

    def create(self, found: Json) -> None:
        """Create a pod on the plot's nodes."""
        metadata = {**found["metadata"], "namespace": self.name}
        for given in ("uid", "resourceVersion"):
            metadata.pop(given, None)
        (container,) = found["spec"]["containers"]
        asked = container["resources"]["requests"]
        limits = {GPU: asked[GPU]} if GPU in asked else {}
        complete = {**container, "image": "x", "resources": {"requests": asked, "limits": limits}}
        spec = {"nodeSelector": {LABEL: self.name}, **found["spec"], "containers": [complete]}
        noted = names.RELEASED in metadata.get("annotations", {})
        gates = [{"name": names.GATE}] if noted else []
        whole = {"metadata": metadata, "spec": {**spec, "schedulingGates": gates}}
        made = self._post(self._pods(), whole)
        if noted:
            self._release(made)

    def _release(self, made: Json) -> None:
        """Take the gate off, with the note of a release: the uid, which no pod has before."""
        note = {"annotations": {names.RELEASED: made["metadata"]["uid"]}}
        change = {"metadata": note, "spec": {"schedulingGates": None}}
        self._patch(f"{self._pods()}/{made['metadata']['name']}", change)

    def create_all(self, found: Iterable[Json]) -> None:
        """Create pods in a burst."""
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.create, found))

    def members(self, name: str, slots: Mapping[str, int], gpu: int = 8) -> list[Json]:
        """The released pods of a gang, one for each slot."""
        return [
            member(pinned(pod(f"{name}-{node}-{i}", gpu=gpu), node), name)
            for node, count in slots.items()
            for i in range(count)
        ]

    def delete(self, name: str) -> None:
        self._call("DELETE", f"{self._pods()}/{name}?gracePeriodSeconds=0")

    def pods(self) -> dict[str, Json]:
        found = self.cluster.api.get(self._pods())["items"]
        return {each["metadata"]["name"]: each for each in found}

    def bound(self) -> dict[str, str]:
        """The pods that have a node, with it."""
        return {
            name: each["spec"]["nodeName"]
            for name, each in self.pods().items()
            if "nodeName" in each["spec"]
        }

    def gpus(self) -> Counter[str]:
        """How many GPUs of each node are in use."""
        used: Counter[str] = Counter()
        for each in self.pods().values():
            requests = each["spec"]["containers"][0]["resources"]["requests"]
            used[each["spec"].get("nodeName", "")] += int(requests.get(GPU, 0))
        del used[""]
        return used

    # ---- waiting

    def wait(self, condition: Callable[[], Any], what: str, seconds: float = WAIT_SECONDS) -> None:
        """Wait until something is true; say how the pods stand when it never is."""
        wait_until(condition, what, seconds, seen=lambda: brief(self._standing()))

    def _standing(self) -> list[str]:
        """Where each pod is or why it is nowhere, those that wait first."""
        found = sorted(self.pods().items(), key=lambda each: "nodeName" in each[1]["spec"])
        return [
            f"{name}: {each['spec'].get('nodeName') or unschedulable(each)}" for name, each in found
        ]

    def wait_bound(self, *wanted: str) -> None:
        """Wait until these pods are bound; sooner than kube-scheduler would try all again."""
        self.wait(lambda: {*wanted} <= self.bound().keys(), f"{wanted} to be bound")

    def wait_judged(self, count: int, seconds: float = WAIT_SECONDS) -> None:
        """Wait until so many pods are bound or were found to fit nowhere."""

        def judged() -> bool:
            found = self.pods().values()
            return sum("nodeName" in p["spec"] or bool(unschedulable(p)) for p in found) >= count

        self.wait(judged, f"{count} pods to be judged", seconds)

    def wait_refused(self, name: str, part: str) -> None:
        """Wait until the scheduler says of a pod that it found no node, for a reason."""
        self.wait(lambda: part in unschedulable(self.pods()[name]), f"{name} refused: {part}")

    # ---- the API

    def clear(self) -> None:
        """Take all of it away: what makes pods first, and what a namespace does not take along."""
        with self.cluster.api.session() as session:
            # Where there is no KubeRay, its kinds are not served.
            session.request("DELETE", f"{_RAY}/namespaces/{self.name}/rayclusters")
            session.call("DELETE", f"/api/v1/namespaces/{self.name}")
            session.call("DELETE", f"{self._pods()}?gracePeriodSeconds=0")
            session.call("DELETE", self._gangs())
            session.call("DELETE", f"/api/v1/nodes?labelSelector={LABEL}%3D{self.name}")

    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.name}/pods"

    def _gangs(self) -> str:
        return f"/apis/{names.API_VERSION}/namespaces/{self.name}/gangs"

    def _post(self, path: str, body: Json) -> Json:
        return self._call("POST", path, body)

    def _patch(self, path: str, body: Json) -> None:
        self._call("PATCH", path, body, "application/merge-patch+json")

    def _call(
        self, method: str, path: str, body: Json | None = None, kind: str = "application/json"
    ) -> Json:
        sent = None if body is None else json.dumps(body).encode()
        with self.cluster.api.session() as session:
            return session.call(method, path, sent, kind)


@contextlib.contextmanager
def extending(
    cluster: Cluster, name: str = "extender", settings: Mapping[str, str] = QUICK
) -> Iterator[Extender]:
    """Have an extender run."""
    extender = start_extender(cluster, name=name, settings=settings)
    yield extender
    extender.process.kill()


@contextlib.contextmanager
def plotted(cluster: Cluster, extender: Extender, name: str) -> Iterator[Plot]:
    """Give a test its plot, of which nothing is left for the next one."""
    plot = Plot(cluster, extender, name)
    yield plot
    plot.clear()


def unschedulable(found: Json) -> str:
    """What the scheduler says of a pod that it found no node for."""
    return next(
        (
            str(each.get("message", ""))
            for each in found["status"].get("conditions") or ()
            if (each["type"], each.get("reason")) == ("PodScheduled", "Unschedulable")
        ),
        "",
    )
