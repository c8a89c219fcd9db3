"""Words refusals of gangs that fit by room but not by the devices that they claim.

"2 of 4 workers fit by their claims: each claims 2 of gpu.example.com, of which nodes have 8, 3 are
taken and 1 promised": promised are those that pods on their way to their nodes claim.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from scheduling.devices.node_devices import NodeDevices, selection
from scheduling.devices.outcome import Doubt, NotAllocated
from scheduling.devices.outcome import Refusal as Refused
from scheduling.devices.room import DeviceRoom
from scheduling.diagnosis.amount_texts import bounded, shown, written
from scheduling.diagnosis.causes import NoDevices
from scheduling.diagnosis.shortfall import how_many_fit, numbers_alone, wanted_pods
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import MEMORY
from scheduling.model.devices.resource_claim import AllocationMode, DeviceRequest
from scheduling.model.gang import Group
from scheduling.model.shape.restrictions import Claims
from scheduling.model.verdict import Reason, Refusal

_SAID = {
    Refused.UNKNOWN_CLASS: "DeviceClass {} does not exist",
    Refused.SELECTOR_FAILS: "a selector fails on a device, so kube-scheduler refuses the node: {}",
    Refused.POOL_INCOMPLETE: "not all slices of pool {} are published yet",
    Refused.POOL_INVALID: "pool {} names a device twice",
    Refused.TOO_MANY_DEVICES: "a claim asks for more than 32 devices",
    Refused.CONSTRAINT: "no devices meet a constraint of the claim",
    Refused.FEATURE_OFF: "the feature gate {} is off",
}


def no_devices(cause: NoDevices) -> Refusal:
    """Explain that not all pods get their devices, with how many there are."""
    wanted, most = wanted_pods(cause.groups), dict(zip(cause.shapes, cause.most, strict=True))
    refused = dict(zip(cause.shapes, cause.refusals, strict=True))
    numbers = numbers_alone(wanted, cause.room)
    said, found = [], []
    for (pod_set, shape, count), each in zip(wanted, numbers, strict=True):
        fit = min(count, most.get(shape, count))
        found.append(replace(each, fit=fit))
        if fit < count:
            why = ", ".join(
                _why(shape.restrictions.most_claims, refused.get(shape, ()), cause.room)
            )
            said.append(f"{how_many_fit(pod_set, count, fit)} by their claims: {why}")
    if not said:
        said = ["each group gets the devices that its pods claim, but not all of them together"]
    errors = any(each.refusal is not Refused.NO_DEVICES for of in cause.refusals for each in of)
    reason = Reason.NO_FEASIBLE_NODE if errors else Reason.INSUFFICIENT_RESOURCES
    return Refusal(reason, bounded(said, ". "), tuple(found))


def unforeseen(feature: str) -> Refusal:
    """Refuse a gang of which what it claims is not modelled."""
    return Refusal(Reason.UNSUPPORTED, bounded([f"not supported by Muster; {feature}"], ""))


def undecided(groups: Iterable[Group], room: FreeCapacity, doubt: Doubt) -> Refusal:
    """Put a gang off for which it is not known whether it gets its devices."""
    said = f"room is there, but whether all pods get the devices that they claim is open: {doubt}"
    return Refusal(Reason.UNDECIDED, said, numbers_alone(wanted_pods(groups), room))


def _why(claims: Claims, refusals: Iterable[NotAllocated], room: FreeCapacity) -> Iterator[str]:
    """Say what one pod claims and what there is of it, then what else nodes are refused for."""
    for name, each in _asked(claims).items():
        have, taken, partly, promised = _devices_of(name, room)
        shares = f", {partly} in part," if partly else ""
        there = f"of which nodes have {have}, {taken} are taken{shares} and {promised} promised"
        yield f"each claims {each} of {shown(name)}, {there}"
    for refusal in refusals:
        if refusal.refusal in _SAID:
            yield _SAID[refusal.refusal].format(shown(refusal.subject))


def _asked(claims: Claims) -> dict[str, str]:
    """Return how many devices of each class one pod claims, by its first alternatives."""
    every = {each.device_class for each in _first(claims) if each.mode is AllocationMode.ALL}
    counts, capacity = _number(claims), _capacity(claims)
    numbers = {name: "all" if name in every else str(count) for name, count in counts.items()}
    return {name: f"{number}{capacity.get(name, '')}" for name, number in numbers.items()}


def _capacity(claims: Claims) -> dict[str, str]:
    """Return how much of a device of each class one pod claims, where it says so."""
    asked = [(each.device_class, each.capacity) for each in _first(claims) if each.capacity]
    return {name: f" ({', '.join(map(_amount, amounts))})" for name, amounts in asked}


def _amount(asked: tuple[str, int]) -> str:
    name, (whole, part) = asked[0], divmod(asked[1], 1000)
    if part:
        return f"{shown(name)} {asked[1]}m"
    return f"{shown(name)} {whole if whole % 1024 else written(MEMORY, whole, up=1)}"


def _first(claims: Claims) -> Iterator[DeviceRequest]:
    for each in claims:
        yield from (request.alternatives[0] for request in each.requests)


def _number(claims: Claims) -> Counter[str]:
    counts: Counter[str] = Counter()
    for asked in _first(claims):
        counts[asked.device_class] += asked.count
    return counts


Counts = tuple[int, int, int, int]
"""Devices of a class: those of nodes, those taken, those taken in part, those promised."""


def _devices_of(name: str, room: FreeCapacity) -> Counts:
    """Return how many devices of a class nodes have, are taken, and pods on their way claim."""
    if room.devices is None:
        return 0, 0, 0, 0
    devices = room.devices
    return room.remembered(("devices", name), lambda: _counted(name, room, devices))


def _counted(name: str, room: FreeCapacity, devices: DeviceRoom) -> Counts:
    asked = DeviceRequest(name, name)
    on_nodes = (devices.nodes.of(node) for node in room.columns.traits.nodes)
    counts = [_on_node(asked, each, devices) for each in on_nodes]
    coming = (pods for on in devices.pending.values() for pods in on)
    promised = sum(_number(claims)[name] * count for claims, count in coming)
    have, taken, partly = (sum(each[at] for each in counts) for at in range(3))
    return have, taken, partly, promised


def _on_node(asked: DeviceRequest, node: NodeDevices, devices: DeviceRoom) -> tuple[int, int, int]:
    found = [e.id for e in node.usable if selection(asked, e, devices.rules) is True]
    taken = sum(each in node.in_use for each in found)
    return len(found), taken, sum(node.in_use.consumed(each) is not None for each in found)
