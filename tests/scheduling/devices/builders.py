"""Devices, claims and nodes for tests, and selectors that need no CEL."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace

from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.pools import SliceIndex, gather_pools
from scheduling.devices.selection import Rules
from scheduling.model.constraints import Toleration
from scheduling.model.devices.capacity import Capacity, RequestPolicy
from scheduling.model.devices.features import DEFAULT_FEATURES, Features
from scheduling.model.devices.in_use import Share
from scheduling.model.devices.resource_claim import (
    AllocationMode,
    ClaimSpec,
    DeviceClass,
    DeviceRequest,
    DistinctAttribute,
    MatchAttribute,
    Request,
)
from scheduling.model.devices.resource_slice import (
    Attribute,
    AttributeKind,
    CounterSet,
    Device,
    DeviceContent,
    DeviceID,
    NodeAccess,
    ResourceSlice,
)
from scheduling.model.devices.selectors import Answer
from scheduling.model.node import Node, Taint

DRIVER = "gpu.example.com"
CLASS = "gpu"
TOLERANT = (Toleration("", "Exists", "", ""),)


class TextSelectors:
    """Reads NAME=VALUE, about an attribute that is text; "error" fails, "unknown" is not read."""

    def seen(self, _: tuple[str, ...], devices: Sequence[DeviceContent], /) -> Sequence[Hashable]:
        """Each device is asked about."""
        return [None for _ in devices]

    def evaluate(self, selector: str, device: DeviceContent) -> Answer:
        match selector.partition("="):
            case ("error", _, _):
                return Answer.ERROR
            case ("unknown", _, _):
                return Answer.UNSUPPORTED
            case (name, _, value):
                found = device.attribute(f"{DRIVER}/{name}")
                matches = found == Attribute(AttributeKind.STRING, value)
                return Answer.MATCHES if matches else Answer.DOES_NOT_MATCH


RULES = Rules({CLASS: DeviceClass(CLASS)}, TextSelectors(), DEFAULT_FEATURES)


def device(name: str, *, tainted: bool = False, **attributes: str) -> Device:
    values = ((key, Attribute(AttributeKind.STRING, each)) for key, each in attributes.items())
    taints = (Taint("broken", "", "NoSchedule"),) if tainted else ()
    return Device(name, DeviceContent(DRIVER, tuple(sorted(values))), taints)


def shared(name: str, *, policy: RequestPolicy | None = None, **capacity: int) -> Device:
    """Return a device of which several claims may have shares of its capacity."""
    plain = device(name)
    content = replace(plain.content, allow_multiple_allocations=True)
    amounts = (Capacity(key, amount, policy) for key, amount in sorted(capacity.items()))
    return replace(plain, content=content, capacities=tuple(amounts))


def share(device: str, number: int, node: str = "a", **capacity: int) -> Share:
    """Return what a claim has of a device of the node's pool."""
    return Share(DRIVER, node, device, f"{number}", tuple(sorted(capacity.items())))


def some(**capacity: int) -> DeviceRequest:
    """Return a request for so much of a device."""
    return replace(exactly(), capacity=tuple(sorted(capacity.items())))


def partition(name: str, *, memory: int, of: str = "gpu-0", **attributes: str) -> Device:
    """Return a device that consumes so much of the memory of a GPU."""
    consumed = CounterSet(of, (("memory", memory),))
    return replace(device(name, tainted=False, **attributes), consumes_counters=(consumed,))


def counters(node: str, *, of: int = 1, **memory: int) -> ResourceSlice:
    """Return the slice with the memory of each GPU of a node's pool."""
    found = (CounterSet(name.replace("_", "-"), (("memory", n),)) for name, n in memory.items())
    plain = slice_of([], node, name=f"counters-{node}", of=of)
    return replace(plain, shared_counters=tuple(found))


def slice_of(
    devices: Iterable[Device], node: str = "", *, name: str = "", generation: int = 1, of: int = 1
) -> ResourceSlice:
    """Return a slice of the node's pool; without a node all nodes reach it."""
    access = NodeAccess(node_name=node) if node else NodeAccess(all_nodes=True)
    pool = node or "shared"
    return ResourceSlice(name or pool, DRIVER, pool, tuple(devices), generation, of, access)


def node_devices(
    *slices: ResourceSlice,
    node: str = "a",
    in_use: Iterable[str] = (),
    shares: Iterable[Share] = (),
    features: Features = DEFAULT_FEATURES,
) -> NodeDevices:
    pools = gather_pools(Node(node, {}, (), False, {}), SliceIndex(slices), features)
    whole = (DeviceID(DRIVER, node, each) for each in in_use)
    return NodeDevices.of(pools, frozenset((*whole, *shares)))


def on_node(
    *devices: Device,
    node: str = "a",
    in_use: Iterable[str] = (),
    shares: Iterable[Share] = (),
) -> NodeDevices:
    return node_devices(slice_of(devices, node), node=node, in_use=in_use, shares=shares)


def exactly(
    *selectors: str, count: int = 1, name: str = "gpu", tolerates: bool = False
) -> DeviceRequest:
    tolerations = TOLERANT if tolerates else ()
    return DeviceRequest(name, CLASS, selectors, count=count, tolerations=tolerations)


def every(*selectors: str, name: str = "gpu") -> DeviceRequest:
    return DeviceRequest(name, CLASS, selectors, AllocationMode.ALL)


def claim(
    *requests: DeviceRequest | tuple[DeviceRequest, ...], match: str = "", distinct: str = ""
) -> ClaimSpec:
    """Return a claim with these requests, a tuple being the alternatives of firstAvailable."""
    found = (
        Request(f"r{at}", first_available=each)
        if isinstance(each, tuple)
        else Request(f"r{at}", each)
        for at, each in enumerate(requests)
    )
    matching = [MatchAttribute(f"{DRIVER}/{match}")] if match else []
    apart = [DistinctAttribute(f"{DRIVER}/{distinct}")] if distinct else []
    return ClaimSpec(tuple(found), (*matching, *apart))
