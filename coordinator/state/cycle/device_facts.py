"""Says what is known of devices by claim at the moment of a cycle, or of a look between waves."""

from collections import Counter

from coordinator.gang.claims.slots import PodsByClaims
from coordinator.state.cycle.pending_claims import pending_claims
from coordinator.state.known import Known
from kube.devices.known_devices import known_devices
from scheduling.devices.mixes import NodeMixes, mixes_with_room
from scheduling.devices.node_index import DeviceFacts, NodeDevicesIndex
from scheduling.devices.steps import OutOfSteps, StepBudget

STEPS = 200_000
"""What one comparison between two waves may take: a node has few devices and few pods."""


def device_facts(known: Known) -> DeviceFacts | None:
    """Return all that is known; None where no gang asks, and while not all is known."""
    devices = known.cache.devices
    if not devices.gangs or devices.unsupported or devices.unseen:
        return None
    return known_devices(devices.index, devices.selectors, pending_claims(known))


def devices_left(known: Known, name: str, pods: PodsByClaims) -> bool | None:
    """Say whether pods of a gang still find their devices on a node; None where that is not known.

    As long as others on the node are not seen allocated it may still turn out otherwise.
    """
    facts, node = device_facts(known), known.cache.nodes.get(name)
    if facts is None or node is None:
        return None
    others = Counter(dict(facts.pending.get(name, ()))) - pods
    groups, steps = sorted(pods, key=repr), StepBudget(STEPS)
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
