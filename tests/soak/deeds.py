"""Carries out a plan: each lane in a thread of its own, what fails for the moment again."""

from __future__ import annotations

import contextlib
import datetime as dt
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable

from testbed.api import Json
from testbed.closing import Closing
from testbed.components import API_SERVER, ETCD
from testbed.errors import TestbedError
from testbed.nodes import node_object
from tests.controlplane.rayclusters import pod, requests
from tests.faults.crew import Member
from tests.faults.proxied import Fault
from tests.soak import plan as p
from tests.soak.amounts import GPU
from tests.soak.manifests import manifest
from tests.soak.plan import Deed, Order, Plan
from tests.soak.record import Record
from tests.soak.stage import (
    GPUS,
    NOT_READY,
    QUEUES,
    QUOTED,
    Stage,
    node_specs,
    quota_of,
)

_MERGE = "application/merge-patch+json"
_RETRY_SECONDS = 0.25
_MOST_RETRIES_SECONDS = 150.0
_PATHS = {
    p.RAY_CLUSTER: "/apis/ray.io/v1/namespaces/{}/rayclusters",
    p.RAY_JOB: "/apis/ray.io/v1/namespaces/{}/rayjobs",
    p.RAY_SERVICE: "/apis/ray.io/v1/namespaces/{}/rayservices",
    p.APP_WRAPPER: "/apis/workload.codeflare.dev/v1beta2/namespaces/{}/appwrappers",
}
_PROPAGATIONS = ("Background", "Foreground", "Orphan")
_QUOTAS = "/api/v1/namespaces/{}/resourcequotas"
_FORGOTTEN = 30.0
"""Fair seconds that a pod may be leaving; its kubelet would be done in a second."""
_LEFT_BEHIND = 8
"""Which way to delete a RayCluster takes it alone."""
_GONE, _THERE = http.client.NOT_FOUND, http.client.CONFLICT


class Seen:
    """A namespace as the record has it, for the dashboards."""

    def __init__(self, record: Record, team: str) -> None:
        self.name = team
        self._record = record

    def all(self, kind: str) -> list[Json]:
        """All Services, or the pods that are heads."""
        return self._record.objects(kind, self.name)


class Hands(Closing):
    """Works off a plan from the moment it is started; a context manager."""

    def __init__(self, stage: Stage, record: Record, plan: Plan) -> None:
        self.done: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        """What had nothing to be done to."""
        self.failed: list[str] = []
        self._stage, self._record, self._plan = stage, record, plan
        self._closed = threading.Event()
        self._began = time.monotonic()
        self._specs = node_specs(plan.nodes)
        self._threads = [
            threading.Thread(target=self._run, args=(lane,), name=f"lane {lane}", daemon=True)
            for lane in p.LANES
        ]
        for team in p.TEAMS:
            stage.dashboards.open(Seen(record, team))

    def __enter__(self) -> Hands:
        self._began = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    @property
    def busy(self) -> bool:
        """Whether there is more to do."""
        return any(thread.is_alive() for thread in self._threads)

    def close(self) -> None:
        """End all lanes; faults under way are ended by them."""
        self._closed.set()
        for thread in self._threads:
            thread.join()

    # --- lanes

    def _run(self, lane: str) -> None:
        try:
            for deed in self._plan.lane(lane):
                if self._closed.wait(max(0.0, self._began + deed.at - time.monotonic())):
                    return
                self._do(deed)
        except Exception as error:  # noqa: BLE001 - told by the campaign, which ends
            self.failed.append(f"lane {lane}: {error!r}")

    def _do(self, deed: Deed) -> None:
        done = _HANDLERS[deed.kind](self, deed)
        (self.missed if done is False else self.done)[_name(deed)] += 1

    def _hold(self, deed: Deed) -> None:
        """Let a fault last."""
        self._closed.wait(deed.seconds)

    # --- the API

    def _call(
        self,
        method: str,
        path: str,
        body: Json | list[Json] | None = None,
        kind: str = "application/json",
        fine: tuple[int, ...] = (),
    ) -> bool:
        """Send a request until the API server says something final; whether it was done."""
        sent = None if body is None else json.dumps(body).encode()
        until = time.monotonic() + _MOST_RETRIES_SECONDS
        said: object = None
        while not self._closed.is_set() and time.monotonic() < until:
            try:
                with self._stage.cluster.api.session() as session:
                    status, answer = session.request(method, path, sent, kind)
            except (OSError, http.client.HTTPException) as error:
                said = error
            else:
                if status < http.client.BAD_REQUEST:
                    return True
                if status in (_GONE, *fine):
                    return False
                said = f"{status} {answer[:300]!r}"
            self._closed.wait(_RETRY_SECONDS)
        if self._closed.is_set():
            return False
        raise TestbedError(f"{method} {path}: {said}")

    def _path(self, order: Order) -> str:
        return f"{_PATHS[order.kind].format(order.team)}/{order.name}"

    # --- objects

    def create(self, deed: Deed) -> bool:
        order = _ordered(deed)
        path = _PATHS[order.kind].format(order.team)
        self._call("POST", path, manifest(order), fine=(_THERE,))
        return True

    def delete(self, deed: Deed) -> bool:
        """In the background, in the foreground (after its pods), or without its pods."""
        how = _PROPAGATIONS[2 if deed.number == _LEFT_BEHIND else deed.number % 2]
        return self._call("DELETE", f"{self._path(_ordered(deed))}?propagationPolicy={how}")

    def resize(self, deed: Deed) -> bool:
        """Change the replicas by a JSON patch, with the number that is there as a test."""
        order = _ordered(deed)
        with self._record.lock:
            found = [
                each["spec"]["workerGroupSpecs"][0]["replicas"]
                for each in self._record.owners.values()
                if (each["metadata"]["namespace"], each["metadata"]["name"])
                == (order.team, order.name)
            ]
        if not found:
            return False
        by = deed.number if deed.kind == p.GROW else -deed.number
        count = max(order.least, found[0] + by)
        path = "/spec/workerGroupSpecs/0/replicas"
        patch = [{"op": "replace", "path": path, "value": count}]
        return self._call(
            "PATCH",
            self._path(order),
            patch,
            "application/json-patch+json",
        )

    def suspend(self, deed: Deed) -> bool:
        change = {"spec": {"suspend": deed.kind == p.SUSPEND}}
        return self._call("PATCH", self._path(_ordered(deed)), change, _MERGE)

    def end_job(self, deed: Deed) -> bool:
        """Have the job of a RayJob end well or badly, if it runs."""
        order = _ordered(deed)
        try:
            job = self._stage.cluster.api.get(self._path(order))["status"]
            cluster, job_id = job["rayClusterName"], job["jobId"]
            seen = Seen(self._record, order.team)
            if not self._stage.dashboards.runs(seen, cluster, job_id):
                return False
            self._stage.dashboards.succeed(seen, cluster, job_id)
        except (KeyError, AssertionError, TestbedError, OSError, http.client.HTTPException):
            return False
        return True

    def fill(self, deed: Deed) -> bool:
        """A pod of somebody else takes GPUs."""
        asked = requests(cpu="2", memory="1Gi", **{GPU: str(1 + deed.number % GPUS)})
        body = pod(
            f"other-{deed.number}",
            containers=[{"name": "main", "image": "none", "resources": asked}],
        )
        self._call("POST", "/api/v1/namespaces/default/pods", body, fine=(_THERE,))
        return True

    def empty(self, deed: Deed) -> bool:
        return self._call("DELETE", f"/api/v1/namespaces/default/pods/other-{deed.number}")

    # --- pods

    def lose_pod(self, deed: Deed) -> bool:
        victim = self._victim(deed)
        return victim != "" and self._call("DELETE", victim)

    def fail_pod(self, deed: Deed) -> bool:
        victim = self._victim(deed)
        status = {"status": {"phase": "Failed", "reason": "Evicted", "message": "a soak"}}
        return victim != "" and self._call("PATCH", f"{victim}/status", status, _MERGE)

    def _victim(self, deed: Deed) -> str:
        """A pod of a gang that is bound, or now and then one that is not yet."""
        with self._record.lock:
            found = [
                each.at
                for each in self._record.pods.values()
                if each.at.cluster and not each.ended and not each.at.deleting
            ]
        bound = [each for each in found if each.node]
        chosen = sorted(bound if deed.number % 4 and bound else found, key=lambda e: e.name)
        if not chosen:
            return ""
        one = chosen[deed.number % len(chosen)]
        return f"/api/v1/namespaces/{one.namespace}/pods/{one.name}"

    def sweep(self) -> None:
        """Take away pods that kwok has forgotten, which happens when their node was away."""
        for namespace, name in self._record.forgotten(_FORGOTTEN):
            path = f"/api/v1/namespaces/{namespace}/pods/{name}?gracePeriodSeconds=0"
            with contextlib.suppress(OSError, http.client.HTTPException):
                with self._stage.cluster.api.session() as session:
                    session.request("DELETE", path)
                self.done["pod that kwok had forgotten"] += 1

    # --- nodes

    def node_gone(self, deed: Deed) -> bool:
        return self._call("DELETE", self._node(deed))

    def node_not_ready(self, deed: Deed) -> bool:
        """Its kubelet says so, and the controller manager taints it."""
        mark = {"metadata": {"annotations": {NOT_READY: "true"}}}
        return self._call("PATCH", self._node(deed), mark, _MERGE) and self._condition(
            deed, "False"
        )

    def _condition(self, deed: Deed, ready: str) -> bool:
        change = {"status": {"conditions": [{"type": "Ready", "status": ready, "reason": "Soak"}]}}
        return self._call(
            "PATCH", f"{self._node(deed)}/status", change, "application/strategic-merge-patch+json"
        )

    def node_drained(self, deed: Deed) -> bool:
        self._call("PATCH", self._node(deed), {"spec": {"unschedulable": True}}, _MERGE)
        name = self._specs[deed.number].name
        with self._record.lock:
            found = [e.at for e in self._record.pods.values() if e.at.node == name and not e.ended]
        for each in found:
            path = f"/api/v1/namespaces/{each.namespace}/pods/{each.name}"
            body = {"metadata": {"name": each.name, "namespace": each.namespace}}
            kind: Json = {"apiVersion": "policy/v1", "kind": "Eviction"}
            self._call("POST", f"{path}/eviction", {**kind, **body})
        return True

    def node_gpus(self, deed: Deed) -> bool:
        """The device plugin restarts: the node stays, its GPUs are away."""
        return self._allocatable(deed, 0)

    def _allocatable(self, deed: Deed, gpus: int) -> bool:
        change = {"status": {"allocatable": {GPU: str(gpus)}}}
        return self._call("PATCH", f"{self._node(deed)}/status", change, _MERGE)

    def node_returns(self, deed: Deed) -> bool:
        """Whatever it had: as it was in the beginning."""
        spec = self._specs[deed.number]
        now = dt.datetime.now(dt.UTC)
        self._call("POST", "/api/v1/nodes", node_object(spec, now), fine=(_THERE,))
        change: Json = {"metadata": {"annotations": {NOT_READY: None}}}
        change["spec"] = {"unschedulable": None}
        self._call("PATCH", self._node(deed), change, _MERGE)
        self._allocatable(deed, GPUS)
        return self._condition(deed, "True")

    def _node(self, deed: Deed) -> str:
        return f"/api/v1/nodes/{self._specs[deed.number].name}"

    # --- quotas

    def queue_quota(self, deed: Deed) -> bool:
        """A queue has less for a while than its gangs may hold."""
        path = f"{QUEUES}/{QUOTED[deed.number % len(QUOTED)]}"
        most = quota_of(self._plan.nodes)
        for gpus in (most // (2 + deed.number % 3), most):
            self._call("PATCH", path, {"spec": {"quota": {GPU: gpus}}}, _MERGE)
            self._hold(deed)
        return True

    def space_quota(self, deed: Deed) -> bool:
        """A namespace has a ResourceQuota for a while that fewer pods are within than wait."""
        path = _QUOTAS.format(p.TEAMS[deed.number % len(p.TEAMS)])
        hard = {"pods": str(3 + deed.number % 20)}
        self._call("POST", path, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
        self._hold(deed)
        return self._call("DELETE", f"{path}/few")

    # --- programs

    def kill_leader(self, deed: Deed) -> bool:
        return self._kill_member(deed, self._leader())

    def _leader(self) -> Member | None:
        """The one that leads by its own word; the API server may not answer now."""
        return next((each for each in self._stage.crew.members if each.leads), None)

    def kill_spare(self, deed: Deed) -> bool:
        leader = self._leader()
        others = [each for each in self._stage.crew.members if each is not leader]
        return self._kill_member(deed, others[0] if others else None)

    def _kill_member(self, deed: Deed, member: Member | None) -> bool:
        return member is not None and self._away(deed, member.identity)

    def _away(self, deed: Deed, *programs: str) -> bool:
        """Kill programs and start them again after a while."""
        for name in programs:
            with self._stage.lock:
                self._stage.busy.add(name)
            self._stage.programs[name].kill()
        self._hold(deed)
        for name in programs:
            self._stage.programs[name].restart()
            with self._stage.lock:
                self._stage.busy.discard(name)
        return True

    def kill_both(self, deed: Deed) -> bool:
        return self._away(deed, *(member.identity for member in self._stage.crew.members))

    def kill_webhook(self, deed: Deed) -> bool:
        return self._away(deed, "webhook")

    def kill_extender(self, deed: Deed) -> bool:
        return self._away(deed, "extender")

    def kill_wrapper(self, deed: Deed) -> bool:
        return self._away(deed, "wrapper")

    def hang_leader(self, deed: Deed) -> bool:
        """Long enough that another one takes over, or not."""
        member = self._leader()
        if member is None:
            return False
        member.process.pause()
        self._hold(deed)
        member.process.resume()
        return True

    # --- servers

    def hang_server(self, deed: Deed) -> bool:
        return self._hang(deed, API_SERVER)

    def hang_etcd(self, deed: Deed) -> bool:
        return self._hang(deed, ETCD)

    def _hang(self, deed: Deed, name: str) -> bool:
        process = self._stage.cluster.process(name)
        self._stage.out.add(name)
        process.pause()
        self._hold(deed)
        process.resume()
        self._back(name)
        return True

    def restart_server(self, deed: Deed) -> bool:
        return self._restart(deed, API_SERVER)

    def restart_etcd(self, deed: Deed) -> bool:
        return self._restart(deed, ETCD)

    def _restart(self, deed: Deed, name: str) -> bool:
        process = self._stage.cluster.process(name)
        self._stage.out.add(name)
        with self._stage.having(name):
            process.kill()
            self._hold(deed)
            process.restart()
        self._back(name)
        return True

    def _back(self, name: str) -> None:
        self._stage.cluster.wait_healthy(ETCD, API_SERVER)
        self._stage.out.discard(name)

    # --- ways

    def reset(self, deed: Deed) -> bool:
        for member in self._members(deed):
            member.proxy.cut_streams()
        return True

    def way(self, deed: Deed) -> bool:
        """Something is wrong between a coordinator, or both, and the API server for a while."""
        members = self._members(deed)
        begun = [(member, self._begin(deed.kind, member)) for member in members]
        self._hold(deed)
        for member, fault in begun:
            member.proxy.lift(fault)
        return True

    def _members(self, deed: Deed) -> list[Member]:
        """One coordinator, or both."""
        members = self._stage.crew.members
        return members if deed.number % 3 == 0 else [members[deed.number % len(members)]]

    def _begin(self, kind: str, member: Member) -> Fault:
        proxy = member.proxy
        begin: dict[str, Callable[[], Fault]] = {
            p.DELAY: lambda: proxy.delay(0.3),
            p.CUT: proxy.cut,
            p.SILENCE: proxy.silence,
            p.REFUSE: lambda: proxy.refuse(500, lambda call: call.is_write, share=0.5),
            p.LOSE_ANSWERS: lambda: proxy.lose_answers(lambda call: call.is_write),
            p.FREEZE: proxy.freeze,
        }
        return begin[kind]()


def _ordered(deed: Deed) -> Order:
    assert deed.order is not None
    return deed.order


def _name(deed: Deed) -> str:
    """What is counted: of objects also of which kind."""
    return f"{deed.kind} {deed.order.kind}" if deed.order and deed.kind == p.CREATE else deed.kind


_HANDLERS: dict[str, Callable[[Hands, Deed], bool]] = {
    p.CREATE: Hands.create,
    p.DELETE: Hands.delete,
    p.GROW: Hands.resize,
    p.SHRINK: Hands.resize,
    p.SUSPEND: Hands.suspend,
    p.RESUME: Hands.suspend,
    p.END_JOB: Hands.end_job,
    p.FILL: Hands.fill,
    p.EMPTY: Hands.empty,
    p.LOSE_POD: Hands.lose_pod,
    p.FAIL_POD: Hands.fail_pod,
    p.NODE_GONE: Hands.node_gone,
    p.NODE_NOT_READY: Hands.node_not_ready,
    p.NODE_DRAINED: Hands.node_drained,
    p.NODE_GPUS: Hands.node_gpus,
    p.NODE_RETURNS: Hands.node_returns,
    p.KILL_LEADER: Hands.kill_leader,
    p.KILL_SPARE: Hands.kill_spare,
    p.KILL_BOTH: Hands.kill_both,
    p.HANG_LEADER: Hands.hang_leader,
    p.KILL_WEBHOOK: Hands.kill_webhook,
    p.KILL_EXTENDER: Hands.kill_extender,
    p.HANG_SERVER: Hands.hang_server,
    p.RESTART_SERVER: Hands.restart_server,
    p.HANG_ETCD: Hands.hang_etcd,
    p.RESTART_ETCD: Hands.restart_etcd,
    p.KILL_WRAPPER: Hands.kill_wrapper,
    p.QUEUE_QUOTA: Hands.queue_quota,
    p.SPACE_QUOTA: Hands.space_quota,
    p.RESET: Hands.reset,
    **dict.fromkeys((p.DELAY, p.CUT, p.SILENCE, p.REFUSE, p.LOSE_ANSWERS, p.FREEZE), Hands.way),
}
