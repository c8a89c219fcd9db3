"""Native gangs beside Muster's releases: what kube-scheduler's PodGroups add (decision 0068).

    python -m benchmarks.native_groups [--gangs 40] [--pods 8] [--rounds 3]

Needs Kubernetes 1.37 with the gate GenericWorkload. Pods are gated and released as the coordinator
does it, with and without a PodGroup; nothing of Muster runs, so only kube-scheduler differs.
"""

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from kube.codec.pod_patches import release_patch
from kube.objects.core import Pod
from testbed.api import Session
from testbed.cluster import Cluster
from testbed.following import DELETED, Follower
from testbed.options import Options

Json = dict[str, Any]
VERSION = "1.37.2"
PODS = "/api/v1/namespaces/default/pods"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
_LEFT_OUT = ("taint-eviction", "node-lifecycle", "pod-garbage-collector")
OPTIONS = Options(
    kubernetes=VERSION,
    kuberay=False,
    kwok=False,
    apiserver_args=(
        "--runtime-config=scheduling.k8s.io/v1beta1=true",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
    ),
    controller_manager_args=(
        f"--controllers={','.join(f'-{name}-controller' for name in _LEFT_OUT)}",
    ),
    feature_gates="GenericWorkload=true",
)
NODES = 100
CPUS_OF_NODE = 8
_AT_ONCE = json.dumps({"gracePeriodSeconds": 0}).encode()


class Bench:
    """A control plane, and what is seen of its pods; `groups` says whether gangs have PodGroups."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.groups = True
        self.nodes: dict[str, str] = {}
        self.said: dict[str, str] = {}

    def take_in(self, change: str, pod: Json) -> None:
        """Note where a pod is, and why it waits."""
        name = pod["metadata"]["name"]
        if change == DELETED:
            self.nodes.pop(name, None)
            self.said.pop(name, None)
            return
        self.nodes[name] = pod["spec"].get("nodeName", "")
        for each in pod.get("status", {}).get("conditions", []):
            if each["type"] == "PodScheduled":
                self.said[name] = f"{each.get('reason')}: {each.get('message', '')}"

    def post(self, path: str, made: Json) -> Json:
        """Create an object; return it as it is stored."""
        return self.session.call("POST", path, json.dumps(made).encode())

    def add_node(self, name: str) -> None:
        """Add a node that is Ready and stays so: no controller asks for its lease."""
        amounts = {"cpu": str(CPUS_OF_NODE), "memory": "64Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        meta = {"name": name, "labels": {"kubernetes.io/hostname": name}}
        self.post("/api/v1/nodes", {"metadata": meta, "status": status})

    def add_group(self, name: str, least: int) -> None:
        """Add a PodGroup that is bound whole or not at all."""
        if self.groups:
            spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
            self.post(GROUPS, {"metadata": {"name": name}, "spec": spec})

    def add_pod(self, name: str, group: str = "") -> Json:
        """Add a gated pod, as a member of a group if it names one."""
        gates: Json = {"schedulingGates": [{"name": "muster.dev/gang"}]}
        if group and self.groups:
            gates["schedulingGroup"] = {"podGroupName": group}
        return self._add(name, gates)

    def add_stranger(self, name: str, node: str) -> None:
        """Add a pod that kube-scheduler may bind to this node at once."""
        self._add(name, {"nodeSelector": {"kubernetes.io/hostname": node}})

    def _add(self, name: str, spec: Json) -> Json:
        container = {"name": "c", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        whole = {"containers": [container], **spec}
        return self.post(PODS, {"metadata": {"name": name}, "spec": whole})

    def release(self, pod: Json, node: str) -> None:
        """Release a pod to a node, with the coordinator's own patch."""
        patch = json.dumps(release_patch(msgspec.convert(pod, Pod), node)).encode()
        path = f"{PODS}/{pod['metadata']['name']}"
        self.session.call("PATCH", path, patch, "application/json-patch+json")

    def delete(self, name: str) -> None:
        """Delete a pod, and wait until it is gone."""
        self.session.call("DELETE", f"{PODS}/{name}", _AT_ONCE)
        self.wait(lambda: name not in self.nodes, 30)

    def wait(self, enough: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds; say whether it did in time."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if enough():
                return True
            time.sleep(0.01)
        return enough()

    def bound(self, names: Sequence[str]) -> int:
        """Count the pods that are on a node."""
        return sum(bool(self.nodes.get(name)) for name in names)

    def clear(self) -> None:
        """Delete all pods and groups."""
        self.session.call("DELETE", PODS, _AT_ONCE)
        self.wait(lambda: not self.nodes, 60)
        self.session.call("DELETE", GROUPS)


# ---- what happens


def facts(bench: Bench) -> Iterator[str]:
    """Yield what becomes of gated pods, replacements and mismatches in a group."""
    names = [f"f{at}" for at in range(4)]
    bench.add_group("f", 4)
    pods = [bench.add_pod(name, "f") for name in names]
    yield f"the field is kept: {pods[0]['spec'].get('schedulingGroup')}"
    for pod in pods[:3]:
        bench.release(pod, "n0")
    bench.wait(lambda: bench.bound(names) > 0, 5)
    yield f"3 of 4 released: {bench.bound(names)} bound; {bench.said.get('f0')}"
    began = time.monotonic()
    bench.release(pods[3], "n0")
    bench.wait(lambda: bench.bound(names) == 4, 30)
    yield f"the last released: {bench.bound(names)} bound after {time.monotonic() - began:.2f} s"

    bench.delete("f0")
    again = bench.add_pod("f4", "f")
    bench.release(again, "n1")
    bench.wait(lambda: bench.bound(["f4"]) == 1, 20)
    yield f"a replacement in the group, 3 bound: {bench.bound(['f4'])} bound; {bench.said['f4']}"
    bench.delete("f1")
    bench.release(bench.add_pod("f5"), "n1")
    bench.wait(lambda: bench.bound(["f5"]) == 1, 20)
    yield f"a replacement without it: {bench.bound(['f5'])} bound"
    bench.release(bench.add_pod("f6", "f"), "n1")
    bench.wait(lambda: bench.bound(["f6"]) == 1, 20)
    yield f"one with it, then, 3 bound in the group: {bench.bound(['f6'])} bound"
    bench.delete("f2")
    bench.delete("f3")
    bench.release(bench.add_pod("f7", "f"), "n1")
    bench.wait(lambda: bench.bound(["f7"]) == 1, 8)
    yield (
        f"one of two lost comes, 2 bound in the group: {bench.bound(['f7'])} bound; "
        f"{bench.said.get('f7')}"
    )
    second = bench.add_pod("f8", "f")
    bench.wait(lambda: bench.bound(["f7"]) == 1, 8)
    yield f"the other comes gated: {bench.bound(['f7'])} bound; {bench.said.get('f7')}"
    bench.release(second, "n1")
    bench.wait(lambda: bench.bound(["f7", "f8"]) == 2, 20)
    yield f"and is released: {bench.bound(['f7', 'f8'])} of 2 bound"
    bench.clear()

    bench.release(bench.add_pod("g0", "late"), "n0")
    bench.wait(lambda: bench.bound(["g0"]) == 1, 5)
    yield f"released before its group exists: {bench.bound(['g0'])} bound; {bench.said.get('g0')}"
    bench.add_group("late", 1)
    bench.wait(lambda: bench.bound(["g0"]) == 1, 20)
    yield f"once it exists: {bench.bound(['g0'])} bound"
    bench.clear()


# ---- torn gangs


def torn(bench: Bench, gangs: int, pods: int) -> Counter[str]:
    """Release gangs to two nodes, on one of which strangers took a place after the verdict."""
    found: Counter[str] = Counter()
    for at in range(gangs):
        names = [f"t{at}-{number}" for number in range(pods)]
        bench.add_group(f"t{at}", pods)
        made = [bench.add_pod(name, f"t{at}") for name in names]
        on = [f"n{number * 2 // pods}" for number in range(pods)]
        room = CPUS_OF_NODE - on.count("n1")
        strangers = [f"t{at}-s{number}" for number in range(room + 1 + at % 2)]
        for name in strangers:
            bench.add_stranger(name, "n1")
        bench.wait(lambda s=strangers: bench.bound(s) == len(s), 30)  # type: ignore[misc]
        for pod, node in zip(made, on, strict=True):
            bench.release(pod, node)
        bench.wait(lambda n=names: bench.bound(n) == pods, 3)  # type: ignore[misc]
        count = bench.bound(names)
        found["whole" if count == pods else "torn" if count else "none bound"] += 1
        for place in sorted({*on}):
            name = names[on.index(place)]
            found[f"on {place}: {'bound' if bench.nodes.get(name) else bench.said.get(name)}"] += 1
        bench.clear()
    return found


# ---- burst


def burst(bench: Bench, cluster: Cluster, gangs: int, pods: int) -> str:
    """Release all gangs at once; say how long kube-scheduler took for them."""
    names: list[str] = []
    made: list[tuple[Json, str]] = []
    for at in range(gangs):
        bench.add_group(f"b{at}", pods)
        for number in range(pods):
            names.append(f"b{at}-{number}")
            made.append((bench.add_pod(names[-1], f"b{at}"), f"n{len(made) % NODES}"))
    bench.wait(lambda: len(bench.nodes) == len(names), 60)
    pid = cluster.process("kube-scheduler").pid
    used, began = _cpu(pid), time.monotonic()
    for pod, node in made:
        bench.release(pod, node)
    sent = time.monotonic()
    if not bench.wait(lambda: bench.bound(names) == len(names), 240):
        return f"{bench.bound(names)} of {len(names)} bound in 240 s"
    ended, cpu = time.monotonic(), _cpu(pid) - used
    bench.clear()
    return (
        f"{len(names)} pods: {ended - began:.2f} s, of them {ended - sent:.2f} s after the last "
        f"release, {1000 * cpu / len(names):.2f} ms of kube-scheduler's processor a pod"
    )


def _cpu(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Run all of it on a control plane of its own, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gangs", type=int, default=40)
    parser.add_argument("--pods", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = stack.enter_context(Cluster.start(folder / "cluster", OPTIONS))
        bench = Bench(stack.enter_context(cluster.api.session()))
        follower = stack.enter_context(Follower(cluster.api, "/api/v1/pods", bench.take_in))
        follower.wait_synced()
        for at in range(NODES):
            bench.add_node(f"n{at}")
        for fact in facts(bench):
            print(fact, flush=True)
        for bench.groups in (False, True):
            print(f"groups: {bench.groups}: {dict(torn(bench, 10, chosen.pods))}", flush=True)
        for at in range(2 * chosen.rounds):
            bench.groups = bool(at % 2)
            told = burst(bench, cluster, chosen.gangs, chosen.pods)
            print(f"groups: {bench.groups}: {told}", flush=True)


if __name__ == "__main__":
    main()
