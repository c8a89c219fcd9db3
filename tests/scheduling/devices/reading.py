"""Reads the recorded inputs of the allocator into the model."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kube.devices.capacity import thousandths
from kube.devices.cel.faults import NotReadable
from kube.devices.cel.values import quantity
from scheduling.devices.pools import Pool, SliceIndex, gather_pools
from scheduling.devices.selection import Rules
from scheduling.model.constraints import NodeTerm, Requirement, Toleration
from scheduling.model.devices.capacity import Capacities, Capacity, RequestPolicy, Thousandths
from scheduling.model.devices.features import DEFAULT_FEATURES, Features
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_claim import (
    AllocationMode,
    ClaimSpec,
    Constraint,
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

Json = dict[str, Any]

CONSTRAINTS: dict[str, type[Constraint]] = {
    "matchAttribute": MatchAttribute,
    "distinctAttribute": DistinctAttribute,
}
ANSWERS = {"t": Answer.MATCHES, "f": Answer.DOES_NOT_MATCH, "e": Answer.ERROR}
GATES = {
    "DRAAdminAccess": "admin_access",
    "DRAPrioritizedList": "prioritized_list",
    "DRAPartitionableDevices": "partitionable_devices",
    "DRADeviceTaints": "device_taints",
    "DRADeviceBindingConditions+DRAResourceClaimDeviceStatus": "device_binding_conditions",
    "DRAConsumableCapacity": "consumable_capacity",
}


class RecordedSelectors:
    """What the real CEL answered, by text and device."""

    def __init__(self, record: Json, slices: list[ResourceSlice]) -> None:
        contents = [device.content for each in slices for device in each.devices]
        self.known = {
            (each["Text"], content): ANSWERS[letter]
            for each in record["Selectors"]
            for content, letter in zip(contents, each["Answers"], strict=True)
        }

    def seen(self, _: tuple[str, ...], devices: Sequence[DeviceContent], /) -> Sequence[Hashable]:
        """Each device is asked about."""
        return [None for _ in devices]

    def evaluate(self, selector: str, device: DeviceContent) -> Answer:
        return self.known[selector, device]


@dataclass(frozen=True)
class Question:
    """One input of the allocator."""

    node: Node
    slices: SliceIndex
    claims: list[ClaimSpec]
    in_use: InUse
    rules: Rules

    @property
    def pools(self) -> tuple[Pool, ...]:
        return gather_pools(self.node, self.slices, self.rules.features)


def question(record: Json, *, all_features: bool) -> Question:
    asked = record["Input"]
    slices = [_slice(each) for each in asked["Slices"] or ()]
    named = {GATES.get(name, name) for name in asked["Features"]}
    gates = {gate: gate in named for gate in GATES.values()}
    classes = {each["metadata"]["name"]: _class(each) for each in asked["Classes"] or ()}
    features = DEFAULT_FEATURES if all_features else Features(**gates)
    meta = asked["Node"]["metadata"]
    return Question(
        Node(meta["name"], meta.get("labels", {}), (), False, {}),
        SliceIndex(slices),
        [_claim(each["spec"]) for each in asked["Claims"] or ()],
        in_use(asked),
        Rules(classes, RecordedSelectors(record, slices), features),
    )


def in_use(asked: Json) -> InUse:
    """What was taken before: whole devices, shares, and how much these consume together."""
    shares: dict[DeviceID, Thousandths] = {DeviceID(*each): () for each in asked["Shared"] or ()}
    for *device, amounts in asked["Consumed"] or ():
        shares[DeviceID(*device)] = _amounts(amounts)
    whole = frozenset(DeviceID(*each) for each in asked["Allocated"] or ())
    return InUse(whole, frozenset(shares.items()))


def _amounts(read: Json) -> Thousandths:
    return tuple(sorted((name, _thousandths(text)) for name, text in read.items()))


def _thousandths(text: str) -> int:
    found = thousandths(text)
    if found is None:
        raise NotReadable("capacity beyond 64 bits")
    return found


def _capacities(read: Json) -> Capacities | None:
    try:
        return tuple(
            Capacity(name, _thousandths(each["value"]), _policy(each.get("requestPolicy")))
            for name, each in sorted(read.get("capacity", {}).items())
        )
    except NotReadable:
        return None


def _policy(read: Json | None) -> RequestPolicy | None:
    if read is None:
        return None
    span = read.get("validRange", {})
    ends = (_thousandths(span[each]) if each in span else None for each in ("min", "max", "step"))
    default = _thousandths(read["default"]) if "default" in read else None
    values = map(_thousandths, read.get("validValues") or ())
    return RequestPolicy(default, tuple(values), *ends)


def _has_broken_steps(capacity: Capacity) -> bool:
    span = capacity.policy
    return bool(span and span.step and (span.step % 1000 or (span.least or 0) % 1000))


def _class(read: Json) -> DeviceClass:
    return DeviceClass(read["metadata"]["name"], _texts(read["spec"]))


def _texts(read: Json) -> tuple[str, ...]:
    return tuple(each["cel"]["expression"] for each in read.get("selectors", ()) if "cel" in each)


def _slice(read: Json) -> ResourceSlice:
    spec = read["spec"]
    pool = spec["pool"]
    return ResourceSlice(
        read["metadata"]["name"],
        spec["driver"],
        pool["name"],
        tuple(_device(spec["driver"], each) for each in spec.get("devices") or ()),
        pool["generation"],
        pool["resourceSliceCount"],
        None if spec.get("perDeviceNodeSelection") else _access(spec),
        *_shared(spec),
    )


def _access(read: Json) -> NodeAccess:
    selector = read.get("nodeSelector")
    terms = None if selector is None else tuple(map(_term, selector["nodeSelectorTerms"] or ()))
    return NodeAccess(read.get("nodeName", ""), read.get("allNodes", False), terms)


def _term(read: Json) -> NodeTerm:
    return NodeTerm(_requirements(read, "matchExpressions"), _requirements(read, "matchFields"))


def _requirements(read: Json, name: str) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(each["key"], each["operator"], tuple(each.get("values", ())))
        for each in read.get(name, ())
    )


def _device(driver: str, read: Json) -> Device:
    attributes = read.get("attributes", {}).items()
    content = DeviceContent(
        driver,
        tuple(sorted((name, _value(each)) for name, each in attributes if _is_known(each))),
        tuple(sorted((name, each["value"]) for name, each in read.get("capacity", {}).items())),
        read.get("allowMultipleAllocations", False),
    )
    return Device(
        read["name"],
        content,
        tuple(Taint(each["key"], each.get("value", ""), each["effect"]) for each in _taints(read)),
        _access(read),
        _consumed(read),
        bool(read.get("bindingConditions")),
        tuple(_unsupported(read)),
        _capacities(read),
    )


def _whole(text: str) -> int:
    found = quantity(text).integer
    if found is None:
        raise NotReadable("counters beyond 64 bits")
    return found


def _shared(spec: Json) -> tuple[tuple[CounterSet, ...], tuple[str, ...]]:
    consumed = [c for d in spec.get("devices") or () for c in d.get("consumesCounters", ())]
    groups = ("compatibilityGroups",) if any("compatibilityGroups" in c for c in consumed) else ()
    try:
        return _counters(spec.get("sharedCounters"), "name"), groups
    except NotReadable as fault:
        return (CounterSet("unread", ()),), (str(fault),)


def _counters(read: list[Json] | None, name: str) -> tuple[CounterSet, ...]:
    return tuple(
        CounterSet(
            each[name],
            tuple(
                (counter, _whole(of["value"]))
                for counter, of in sorted(each.get("counters", {}).items())
            ),
        )
        for each in read or ()
    )


def _consumed(read: Json) -> tuple[CounterSet, ...]:
    try:
        return _counters(read.get("consumesCounters"), "counterSet")
    except NotReadable:
        return (CounterSet("unread", ()),)


def _unsupported(read: Json) -> Iterator[str]:
    if not all(_is_known(each) for each in read.get("attributes", {}).values()):
        yield "attributes"
    if read.get("allowMultipleAllocations") and _capacities(read) is None:
        yield "capacities"
    if any(map(_has_broken_steps, _capacities(read) or ())):
        yield "steps of a capacity that are no whole numbers"
    if any(each.name == "unread" for each in _consumed(read)):
        yield "counters beyond 64 bits"


def _is_known(attribute: Json) -> bool:
    return len(attribute) == 1 and set(attribute) <= set(AttributeKind)


def _taints(read: Json) -> list[Json]:
    return list(read.get("taints", ()))


def _value(read: Json) -> Attribute:
    ((kind, value),) = read.items()
    return Attribute(AttributeKind(kind), int(value) if isinstance(value, bool) else value)


def _claim(spec: Json) -> ClaimSpec:
    devices = spec.get("devices", {})
    constraints = devices.get("constraints", ())
    return ClaimSpec(
        tuple(_request(each) for each in devices.get("requests", ())),
        tuple(
            CONSTRAINTS[name](each[name], tuple(each.get("requests") or ()))
            for each in constraints
            for name in each.keys() & CONSTRAINTS.keys()
        ),
        () if all(each.keys() & CONSTRAINTS.keys() for each in constraints) else ("constraints",),
    )


def _request(read: Json) -> Request:
    exactly = read.get("exactly")
    return Request(
        read["name"],
        exactly and _asked(read["name"], exactly),
        tuple(_asked(each["name"], each) for each in read.get("firstAvailable") or ()),
    )


def _asked(name: str, read: Json) -> DeviceRequest:
    unknown: list[str] = [name for name in ("adminAccess", "derivedAttributes") if name in read]
    if any("cel" not in each for each in read.get("selectors", ())):
        unknown.append("selectors")
    if read.get("allocationMode") not in {"ExactCount", "All"}:
        unknown.append("allocationMode")
    capacity = None
    try:
        if "capacity" in read:
            capacity = _amounts(read["capacity"].get("requests") or {})
    except NotReadable:
        unknown.append("capacity")
    return DeviceRequest(
        name,
        read["deviceClassName"],
        _texts(read),
        AllocationMode("All" if read.get("allocationMode") == "All" else "ExactCount"),
        read.get("count", 0),
        tuple(
            Toleration(each.get("key", ""), each["operator"], each.get("value", ""), each["effect"])
            for each in read.get("tolerations", ())
        ),
        tuple(unknown),
        capacity,
    )
