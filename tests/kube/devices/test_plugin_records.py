"""The main table of plugin DynamicResources: which pods it takes on which node, with which devices.

What the plugin answers in PreEnqueue, PreFilter and Filter was recorded of two versions of
Kubernetes; objects are read here as a watch reads them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pytest

from kube.codec.devices.extended_requests import extended_requests
from kube.codec.devices.pod_claims import pod_claims
from kube.codec.node import node as read_node
from kube.devices.claims_of_pods import ClaimNotReady, claims_of_pod, unallocated
from kube.devices.class_requests import class_requests
from kube.devices.device_facts import DEVICE_WATCHES
from kube.devices.device_index import DeviceIndex
from kube.devices.selectors import CelSelectors
from kube.objects.core import DeviceObject, Node, Pod
from scheduling.devices.allocator import allocate
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import Allocated, NotAllocated, Unsupported
from scheduling.devices.pools import SliceIndex, gather_pools
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model import node as model
from scheduling.model.devices.class_requests import class_claims
from scheduling.model.devices.features import Features
from scheduling.model.devices.resource_claim import ResourceClaim
from scheduling.model.node_terms import matches
from scheduling.model.shape.restrictions import Claims
from tests.kube.devices.plugin_recorded import Record, records

RECORDS = list(records())
STEPS = 100_000
KINDS = {"Slices": "resourceslices", "Classes": "deviceclasses", "Claims": "resourceclaims"}
NO_NODE = {"metadata": {"name": "worker"}}
"""The node of a pod that the plugin asks about none for: it refuses it on each."""

GATES = {
    "admin_access": "EnableDRAAdminAccess",
    "prioritized_list": "EnableDRAPrioritizedList",
    "partitionable_devices": "EnableDRAPartitionableDevices",
    "device_taints": "EnableDRADeviceTaints",
    "device_binding_conditions": "EnableDRADeviceBindingConditions",
    "consumable_capacity": "EnableDRAConsumableCapacity",
}

Devices = list[list[list[str]]]
"""For each claim to allocate its devices: request, driver, pool, device."""

LEFT_OUT = {
    "a claim that was given devices with bindingConditions": 6,
    "a claim that was given devices with skipNodeOperations": 1,
    "adminAccess (ask for devices of your own instead)": 2,
    "binding conditions of devices": 1,
    "claims of pod groups": 15,  # behind an alpha gate, as are node resources
    "devices that take resources of their node": 16,
}
"""How many of the inputs stay without an answer, by what they use."""

REFUSED = "refused"
POD_GROUPS = "EnableDRAWorkloadResourceClaims"
NODE_RESOURCES = "EnableDRANodeAllocatableResources"
Answer = Devices | str | Unsupported


class Case:
    """One input of the plugin, as Muster reads it."""

    def __init__(self, record: Record) -> None:
        self._asked, self._gates = record["Input"], record["Features"]
        self._index = DeviceIndex()
        watches = {each.resource.plural: each for each in DEVICE_WATCHES}
        for kind, plural in KINDS.items():
            for each in self._asked[kind] or ():
                self._index.put(watches[plural].read(msgspec.convert(each, DeviceObject)))
        self.pod = msgspec.convert(self._asked["Pod"], Pod)
        self.nodes = [
            read_node(msgspec.convert(each, Node)) for each in self._asked["Nodes"] or [NO_NODE]
        ]

    def answer(self, on: model.Node) -> Answer:
        """Say what the pod gets on a node."""
        meta, asked = self.pod.metadata, pod_claims(self.pod)
        claims = claims_of_pod(meta.namespace, meta.name, meta.uid, asked, self._index)
        if POD_GROUPS in self._gates:
            return Unsupported("claims of pod groups")  # alpha
        if NODE_RESOURCES in self._gates and "nodeAllocatable" in str(self._asked["Slices"]):
            return Unsupported("devices that take resources of their node")  # alpha
        if isinstance(claims, ClaimNotReady) or self._in_flight(claims):
            return REFUSED
        decided = [
            name for each in claims if each.allocation for name in each.allocation.unsupported
        ]
        if decided:
            return Unsupported(f"a claim that was given devices with {decided[0]}")
        if not all(_reaches(on, each) for each in claims):
            return REFUSED
        return self._allocated((*unallocated(claims), *self._of_classes(on)), on)

    def _in_flight(self, claims: Iterable[ResourceClaim]) -> bool:
        """Say whether a claim is being allocated: pods wait until it shows what it was given."""
        flying = {each["metadata"].get("uid") for each in self._asked["InFlight"] or ()}
        return any(each.uid in flying for each in claims if each.allocation is None)

    def _of_classes(self, on: model.Node) -> Claims:
        given = self._index.classes_of_resources
        if "EnableDRAExtendedResource" not in self._gates:
            given = {}
        asked = class_requests(extended_requests(self.pod), given)
        lacking = (each.resource for each in asked if not on.allocatable.get(each.resource))
        return class_claims(asked, frozenset(lacking))

    def _allocated(self, claims: Claims, on: model.Node) -> Answer:
        features = Features(**{name: gate in self._gates for name, gate in GATES.items()})
        rules = Rules(self._index.classes, CelSelectors(), features)
        pools = gather_pools(on, SliceIndex(self._index.slices.values()), features)
        devices = NodeDevices.of(pools, frozenset(self._taken()))
        found = allocate(claims, devices.pools, devices.in_use, rules, StepBudget(STEPS))
        match found:
            case Allocated(given):
                return [[[each.request, *each.device] for each in claim] for claim in given]
            case NotAllocated():
                return REFUSED
            case Unsupported():
                return found
        raise AssertionError(found)

    def _taken(self) -> Iterator[Any]:
        yield from self._index.taken
        other = DeviceIndex()
        watch = next(each for each in DEVICE_WATCHES if each.resource.plural == KINDS["Claims"])
        for each in self._asked["InFlight"] or ():
            other.put(watch.read(msgspec.convert(each, DeviceObject)))
        yield from other.taken


def _reaches(on: model.Node, claim: ResourceClaim) -> bool:
    nodes = claim.allocation.nodes if claim.allocation is not None else None
    return nodes is None or any(matches(term, on) for term in nodes)


def told(answers: dict[str, Any], node: str) -> Answer:
    """Return what the plugin said of a node."""
    if answers["PreEnqueue"] != "Success" or answers["PreFilter"] not in ("Success", "Skip"):
        return REFUSED
    found = answers["Filter"][node]
    devices: Devices = found["Devices"]
    return devices if found["Code"] == "Success" else REFUSED


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["Name"])
def test_answers_as_the_plugin(record: Record) -> None:
    case = Case(record)
    for node in case.nodes:
        found = case.answer(node)
        for answers in record["Answers"].values():
            assert isinstance(found, Unsupported) or found == told(answers, node.name)


def test_leaves_out_what_is_not_modelled_and_nothing_else() -> None:
    left_out: Counter[str] = Counter()
    judged: Counter[str] = Counter()
    for record in RECORDS:
        case = Case(record)
        unknown = [a for a in map(case.answer, case.nodes) if isinstance(a, Unsupported)]
        left_out.update(each.feature for each in unknown[:1])
        if not unknown:
            judged.update(record["Answers"].keys())
    assert judged == {"1.36.3": 48, "1.37.2": 47}
    assert left_out == LEFT_OUT
