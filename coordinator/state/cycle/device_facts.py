"""Collects what is known of devices and claims at one moment, for cycles, looks and counts."""

from collections import Counter

from coordinator.gang.claims.slots import PodsByClaims
from coordinator.state.cycle.pending_claims import pending_claims
from coordinator.state.known import Known
from kube.devices.known_devices import known_devices
from scheduling.devices.class_resources import ClassResources, with_classes
from scheduling.devices.mixes import NodeMixes, mixes_with_room
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex
from scheduling.devices.room import DeviceRoom
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.diagnosis.device_totals.totals import DeviceTotals, device_totals
from scheduling.diagnosis.holes import pool_name

STEPS = 200_000
"""What one comparison between two waves may take: a node has few devices and few pods."""


def device_facts(known: Known) -> DeviceFacts | None:
    """Return all that is known; None where no gang can ask, and while not all is known.

    A gang that has no pods yet may ask for what a class gives.
    """
    devices = known.cache.devices
    asked = devices.gangs or devices.index.classes_of_resources
    if not asked or devices.unsupported or devices.unseen:
        return None
    return known_devices(devices.index, devices.selectors, pending_claims(known))


def class_resources(known: Known) -> ClassResources:
    """Return the nodes with their devices by class; without devices where no gang claims any."""
    nodes, facts = known.cache.table.view(), device_facts(known)
    if facts is None:
        return ClassResources(nodes)
    return with_classes(nodes, _index(known, facts), facts.pending)


def totals_of_devices(known: Known) -> DeviceTotals:
    """Count the devices that no node has for itself; none where no gang asks for some."""
    nodes, facts = known.cache.table.view().nodes, device_facts(known)
    if facts is None:
        return DeviceTotals()
    labels = known.gpu_pools.labels
    index = _index(known, facts)
    return device_totals(nodes, index, facts.pending, lambda node: pool_name(node.labels, labels))


def _index(known: Known, facts: DeviceFacts) -> NodeDevicesIndex:
    before = known.cycles.memory.room.devices if known.cycles.memory else None
    return DeviceRoom.of(facts, before).nodes


def devices_left(known: Known, name: str, pods: PodsByClaims) -> bool | None:
    """Say whether pods of a gang still find their devices on a node; None where that is not known.

    As long as others on the node are not seen allocated it may still turn out otherwise.
    """
    facts, node = device_facts(known), known.cache.nodes.get(name)
    if facts is None or node is None:
        return None
    others = Counter(dict(facts.pending.get(name, ()))) - pods
    groups, steps = tuple(sorted(pods, key=repr)), StepBudget(STEPS)
    wanted = tuple(pods[each] for each in groups)
    try:
        mixes = NodeMixes(
            groups,
            NodeDevicesIndex(facts).of(node),
            mixes_with_room(wanted, [()] * len(groups), (), steps),
            facts.rules,
            steps,
            tuple(others.items()),
        )
        if wanted in mixes.in_any_order:
            return True
    except OutOfSteps:
        return None
    return None if others else False
