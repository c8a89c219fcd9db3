"""A manager and members side by side, with a dispatcher that runs from this checkout."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from kube.objects import names
from testbed import fleet
from testbed.muster import start_dispatcher
from testbed.processes import Process
from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import (
    GANG,
    Json,
    gang,
    group,
    head,
    ray_job,
    ray_service,
)

TEAM = "team"
QUEUE = "all"
LONG = 240.0
"""Seconds that a busy machine may take for a step."""
PODS = 3
"""Of a gang; each member has room for so many."""

EVENTS = f"/api/v1/namespaces/{TEAM}/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/muster-system/leases"
QUEUES = f"/apis/{names.API_VERSION}/gangqueues"


@dataclass
class Site:
    """A manager, and members by name."""

    manager: Plot
    members: dict[str, Plot]
    dispatchers: list[Process] = field(default_factory=list)

    def start_dispatcher(self, **settings: str) -> Process:
        """Start one more replica."""
        name = f"dispatcher-{len(self.dispatchers)}"
        found = start_dispatcher(self.manager.cluster, name, {"PROBE_SECONDS": "1", **settings})
        self.dispatchers.append(found)
        return found

    # ---- what people write

    def join(self, name: str, plot: Plot, **spec: Any) -> None:
        """Write the Secret and the MemberCluster of a member."""
        kubeconfig = fleet.kubeconfig_of(plot.cluster)
        fleet.join(self.manager.cluster, name, kubeconfig, namespaces=[TEAM], **spec)

    def member_cluster(self, name: str) -> Json:
        """The MemberCluster as it is now."""
        return self.manager.cluster.api.get(f"{fleet.MEMBERS}/{name}")

    def connected(self, name: str) -> Json:
        """The condition Connected of a MemberCluster; empty while there is none."""
        return fleet.connected(self.manager.cluster, name)

    def wait_connected(self, *members: str) -> None:
        """Wait until members answer."""
        for name in members or tuple(self.members):
            seen = partial(self.connected, name)
            wait_until(partial(_is_true, seen), f"{name} to be connected", LONG, seen=seen)

    def cut_off(self, name: str) -> None:
        """Have a member out of the dispatcher's reach, and of nobody else's."""
        found = yaml.safe_load(fleet.kubeconfig_of(self.members[name].cluster))
        found["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        self.write_kubeconfig(name, yaml.safe_dump(found).encode())

    def restore(self, name: str) -> None:
        """End that."""
        self.write_kubeconfig(name, fleet.kubeconfig_of(self.members[name].cluster))

    def write_kubeconfig(self, name: str, kubeconfig: bytes) -> None:
        """Write how a member is reached."""
        data = {"data": {"kubeconfig": base64.b64encode(kubeconfig).decode()}}
        how = ("-n", names.DEFAULT_NAMESPACE, "--type=merge", "-p", json.dumps(data))
        self.manager.cluster.kubectl("patch", "secret", f"member-{name}", *how)

    def renewed(self, name: str) -> float:
        """The newest stamp of a member that the manager has read; 0 where there is none."""
        path = "/api/v1/namespaces/kube-system"
        uid = self.manager.cluster.api.get(path)["metadata"]["uid"]
        lease = f"{LEASES}/{names.DISPATCHER_LEASE}-{uid}"
        found = self.members[name].cluster.api.get(lease)["metadata"]
        return float((found.get("annotations") or {}).get(names.STAMP_READ, 0))

    def write_queue(self, **spec: Any) -> None:
        """Change the queue of the manager."""
        change = ("--type=merge", "-p", json.dumps({"spec": spec}))
        self.manager.cluster.kubectl("patch", "gangqueue", QUEUE, *change)

    def submit(self, name: str, workers: int = PODS - 1, priority: str = "") -> Json:
        """Create a RayCluster of the queue with clusters; its pods may have a PriorityClass."""
        of_class: Json = {"priorityClassName": priority} if priority else {}
        workers_of = group(replicas=workers, **of_class)
        made = gang(name, workers_of, labels={names.QUEUE: QUEUE}, head_group=head(**of_class))
        return self.manager.create(made)

    def submit_job(self, name: str) -> Json:
        """Create a RayJob of that queue, which may be tried twice."""
        spec = {"submissionMode": "HTTPMode", "shutdownAfterJobFinishes": True, "backoffLimit": 1}
        labels = {**GANG, names.QUEUE: QUEUE}
        made = ray_job(name, group(replicas=PODS - 1), labels=labels, **spec)
        del made["spec"]["submitterPodTemplate"]  # KubeRay asks the dashboard itself
        return self.manager.create(made)

    def submit_service(self, name: str) -> Json:
        """Create a RayService of that queue, of one pod."""
        made = ray_service(name, labels={**GANG, names.QUEUE: QUEUE})
        return self.manager.create(made)

    def drain(self, name: str, state: str = "Drained") -> None:
        """Write the state of a MemberCluster."""
        self.change_member(name, state=state)

    def change_member(self, name: str, **spec: Any) -> None:
        """Change the spec of a MemberCluster."""
        change = ("--type=merge", "-p", json.dumps({"spec": spec}))
        self.manager.cluster.kubectl("patch", "membercluster", name, *change)

    def warn(self, member: str, pod: str, reason: str, message: str) -> None:
        """Write a Warning about a pod of a member, as its kubelet would: kwok has none."""
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{pod}.1", "namespace": TEAM},
            "involvedObject": {"kind": "Pod", "name": pod, "namespace": TEAM},
            "type": "Warning",
            "reason": reason,
            "message": message,
        }
        self.members[member].cluster.api.create(EVENTS, body)

    # ---- what is seen

    def warnings(self, name: str) -> set[str]:
        """The messages of Warnings about a RayCluster of the manager."""
        found = self.manager.cluster.api.get(EVENTS)["items"]
        return {each["message"] for each in found if each["involvedObject"]["name"] == name}

    def dispatch(self, name: str) -> Json:
        """The record of a gang; empty while there is none."""
        path = self.manager.path("Gang", name)
        api = self.manager.cluster.api
        status: Json = (api.get(path).get("status") or {}) if api.exists(path) else {}
        found: Json = status.get("dispatch") or {}
        return found

    def running(self) -> dict[str, list[str]]:
        """By RayCluster the members on which any pod of it has a node."""
        found: dict[str, list[str]] = {}
        for member, plot in self.members.items():
            for each in plot.all("RayCluster"):
                name = each["metadata"]["name"]
                if plot.bound(name):
                    found.setdefault(name, []).append(member)
        return found

    def whole(self, name: str) -> str:
        """The member on which all of a gang runs; empty where none does."""
        now = self.running()
        assert all(len(where) == 1 for where in now.values()), now
        return next((each for each in self.members if self.is_whole_on(each, name)), "")

    def is_whole_on(self, member: str, name: str) -> bool:
        """Tell whether all of a gang runs on a member; no other is asked."""
        return len(self.members[member].bound(name)) == PODS

    def clear(self) -> None:
        """Delete all gangs, and wait until members have nothing of them."""
        for kind in ("RayCluster", "RayJob", "RayService"):
            for each in self.manager.all(kind):
                self.manager.delete(kind, each["metadata"]["name"])
        for plot in self.members.values():
            wait_until(partial(_is_empty, plot), "nothing to be left", LONG)

    def kill_dispatchers(self) -> None:
        """End all replicas as a lost node does."""
        for each in self.dispatchers:
            each.kill()


def _is_true(condition: Callable[[], Json]) -> bool:
    return bool(condition().get("status") == "True")


def _is_empty(plot: Plot) -> bool:
    return not plot.all("GangOffer") and not plot.all("Pod")


@contextmanager
def started(
    folder: Path, members: Sequence[str] = ("east", "west"), app_wrappers: str = "None"
) -> Iterator[Site]:
    """Start control planes: a manager without KubeRay and nodes, and members with room for one."""
    with ExitStack() as stack:
        manager = _manager(folder / "manager", stack, app_wrappers)
        found = {name: _member(folder / name, stack, app_wrappers) for name in members}
        site = Site(manager, found)
        for name, plot in found.items():
            site.join(name, plot)
        yield site


def _manager(folder: Path, stack: ExitStack, app_wrappers: str) -> Plot:
    cluster = fleet.start_manager(folder, stack, app_wrappers)
    cluster.create_namespace(TEAM)
    return Plot(cluster, TEAM)


def _member(folder: Path, stack: ExitStack, app_wrappers: str) -> Plot:
    cluster = fleet.start_member(folder, stack, app_wrappers)
    cluster.create_namespace(TEAM)
    fleet.admit_dispatcher(cluster, TEAM)
    cluster.api.create(QUEUES, queue())
    plot = Plot(cluster, TEAM)
    plot.add_node(PODS)
    return plot


def queue(**spec: Any) -> Json:
    """The queue: on the manager with clusters, on a member without."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "GangQueue",
        "metadata": {"name": QUEUE},
        "spec": {"namespaceSelector": {}, **spec},
    }
