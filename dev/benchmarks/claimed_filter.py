"""Measures how long the extender judges nodes for a pod that claims a device.

5,000 nodes of eight devices, on 1,000 of which a device is decided for a pod of a gang, and
questions with 500 and 5,000 names about a pod of no gang. Before each question one pod more is
bound, and its claim shows its device. The floor is the same question in the same cluster about a
pod that claims nothing. Without a network: that is in `benchmarks.extender`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from benchmarks.extender import (
    NODES,
    RESERVED,
    clocked,
    gang,
    name_of,
    names_asked,
    node,
)
from benchmarks.extender import pod as plain_pod
from benchmarks.measure import Outcome, Row, in_turn, quantile
from extender.app import Extender
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.metrics import Metrics
from extender.settings import Settings
from extender.snapshot import watched_pod
from extender.unscheduled_pods import UnscheduledPods
from kube.codec.observed_pod import observe
from kube.devices.device_classes import device_class
from kube.devices.device_facts import DEVICE_WATCHES
from kube.devices.resource_claims import resource_claim
from kube.devices.resource_slices import resource_slice
from kube.objects import names
from kube.objects.core import DeviceObject, Node, Pod
from kube.objects.gang import Gang

Json = dict[str, Any]

DRIVER = CLASS = "gpu.example.com"
DEVICES = 8
SIZES = (500, 5000)
CALLS = {500: 200, 5000: 60}
_UNCOUNTED = 5


# ---- the objects


def _decoded(name: str, spec: Json, status: Json | None = None, **meta: Any) -> DeviceObject:
    metadata = {"name": name, "uid": f"uid-{name}", **meta}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, DeviceObject)


def _slice(on: str) -> DeviceObject:
    attributes = {"model": {"string": "h100"}}
    devices = [
        {"name": f"gpu-{at}", "attributes": attributes | {"uuid": {"string": f"{on}-{at}"}}}
        for at in range(DEVICES)
    ]
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    return _decoded(on, {"driver": DRIVER, "pool": pool, "nodeName": on, "devices": devices})


def _claim(of: str, on: str = "", device: str = "") -> DeviceObject:
    """The claim of a pod, which was given a device where one is named."""
    selector = f'device.attributes["{DRIVER}"].model == "h100"'
    asked = {
        "deviceClassName": CLASS,
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": selector}}],
    }
    owner = {"kind": "Pod", "name": of, "uid": f"uid-{of}", "controller": True}
    result = {"request": "gpu", "driver": DRIVER, "pool": on, "device": device}
    status = {"allocation": {"devices": {"results": [result]}}} if device else None
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": asked}]}}
    return _decoded(f"of-{of}", spec, status, namespace="team", ownerReferences=[owner])


def pod(name: str, on: str = "", *, claims: bool) -> Json:
    """A pod of no gang, with a claim that was made, or without."""
    found = plain_pod(name, 0, on)
    del found["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"]
    if claims:
        asked = {"name": "gpu", "resourceClaimTemplateName": "one"}
        found["spec"]["resourceClaims"] = [asked]
        made = {"name": "gpu", "resourceClaimName": f"of-{name}"}
        found["status"]["resourceClaimStatuses"] = [made]
    return found


def _member(number: int, of: int) -> Json:
    """A gated pod of a gang."""
    found, cluster = pod(f"g{of}-{number}", claims=True), f"g{of}"
    owner = {
        "apiVersion": names.RAY_API_VERSION,
        "kind": "RayCluster",
        "name": cluster,
        "uid": f"uid-{cluster}",
        "controller": True,
    }
    labels = {names.RAY_GROUP: "w", names.RAY_CLUSTER: cluster, names.RAY_NODE_TYPE: "worker"}
    found["metadata"] |= {"labels": labels, "ownerReferences": [owner]}
    found["spec"]["schedulingGates"] = [{"name": names.GATE}]
    return found


def _gang(number: int) -> Json:
    """A Gang whose pods have a slot each, on a node of its own."""
    model = observe(msgspec.convert(_member(0, number), Pod)).member
    assert model is not None
    assert model.shape is not None
    found = gang(number)
    [placed] = found["status"]["placement"]["podSets"][0]["assignments"]
    requests = {"cpu": "4", "memory": "16Gi", "pods": "1"}
    placed |= {"shape": model.shape.key, "requests": requests}
    return found


def cluster() -> Ledger:
    """The nodes with their devices, and the gangs with their pods."""
    made = Ledger()
    made.devices.put(device_class(_decoded(CLASS, {})))
    for number in range(NODES):
        bare = node(number)
        del bare["status"]["allocatable"]["nvidia.com/gpu"]
        made.put_node(msgspec.convert(bare, Node))
        made.devices.put(resource_slice(_slice(name_of(number))))
    for number in range(RESERVED // 100):
        made.put_gang(msgspec.convert(_gang(number), Gang))
        for at in range(100):
            made.put_pod(watched_pod(msgspec.convert(_member(at, number), Pod)))
            made.devices.put(resource_claim(_claim(f"g{number}-{at}")))
    for each in DEVICE_WATCHES:
        made.devices.see(each.fact)
    return made


# ---- what is measured


class Known:
    """What is known in the benchmark; each look finds one more pod bound, with its device."""

    def __init__(self) -> None:
        self._ledger, self._looks = cluster(), 0

    @property
    def ledger(self) -> Ledger:
        """The cluster, changed by one pod and its claim since the last look."""
        on, device = name_of(self._looks * 7 % NODES), f"gpu-{DEVICES - 1}"
        name = f"bound-{self._looks}"
        self._looks += 1
        self._ledger.devices.put(resource_claim(_claim(name, on, device)))
        self._ledger.put_pod(watched_pod(msgspec.convert(pod(name, on, claims=True), Pod)))
        return self._ledger

    def ask_about(self, name: str) -> None:
        """Have the claim of a pod that is to be asked about."""
        self._ledger.devices.put(resource_claim(_claim(name)))

    def trusted(self) -> bool:
        """It is."""
        return True


@dataclass(frozen=True)
class Asked:
    """Milliseconds of each question, and of the first one."""

    each: tuple[float, ...]
    first: float


def asked(size: int, *, claims: bool) -> Asked:
    """Ask about pods, one after the other."""
    known = Known()
    in_flight = InFlightPods(settle=0.0, keep=0.01, limit=1000)
    made = Extender(Settings(), known, in_flight, UnscheduledPods(), Metrics())
    took = [
        clocked(lambda _, body: b"".join(made.filter(body)), "filter", body)[1]
        for body in _questions(known, size, claims=claims)
    ]
    return Asked(tuple(took[_UNCOUNTED:]), took[0])


def _questions(known: Known, size: int, *, claims: bool) -> Iterator[bytes]:
    for number in range(_UNCOUNTED + CALLS[size]):
        name = f"asked-{number}"
        known.ask_about(name)
        time.sleep(0.011)  # what was passed before is in flight no more
        of = {"Pod": pod(name, claims=claims), "Nodes": None}
        yield msgspec.json.encode(of | {"NodeNames": names_asked(size, number)})


def measure(runs: int) -> Outcome:
    """Questions about pods with claims and without, in turn."""
    found = [row for size in SIZES for row in rows(size, *_in_turn(size, runs))]
    note = f"{NODES} nodes of {DEVICES} devices, one of them decided on {RESERVED} of the nodes"
    return Outcome(found, notes=[note, "one pod more is bound, and its claim allocated, each time"])


def _in_turn(size: int, runs: int) -> tuple[list[Asked], list[Asked]]:
    return in_turn(runs, lambda _: asked(size, claims=False), lambda _: asked(size, claims=True))


def rows(size: int, plain: Sequence[Asked], claimed: Sequence[Asked]) -> list[Row]:
    """What the runs of one size say."""
    said: dict[str, Callable[[Asked], float]] = {
        "p50": lambda run: quantile(run.each, 0.5),
        "p99": lambda run: quantile(run.each, 0.99),
        "the first": lambda run: run.first,
    }
    return [
        Row(
            f"filter, {size} names, {what}",
            "ms",
            tuple(map(of, claimed)),
            tuple(map(of, plain)),
            ours_are="with a claim",
            floor_is="without",
        )
        for what, of in said.items()
    ]
