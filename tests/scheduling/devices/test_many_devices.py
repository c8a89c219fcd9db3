"""Slices as large as the API server takes them, on every node: bounded, told, and nobody is slower.

A slice has 128 devices, or 64 with taints. A cycle looks at as many nodes as its steps allow, and
the next one goes on where it ended.
"""

from collections.abc import Iterator

import pytest

from kube.devices.selectors import CelSelectors
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import NodeFacts, next_cycle
from scheduling.devices.node_index import DeviceFacts
from scheduling.devices.selection import Rules
from scheduling.model.devices.resource_claim import (
    ClaimSpec,
    DeviceClass,
    DeviceRequest,
    Request,
)
from scheduling.model.devices.resource_slice import (
    Attribute,
    AttributeKind,
    Device,
    DeviceContent,
    NodeAccess,
    ResourceSlice,
)
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node, Taint
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import with_claims
from scheduling.model.verdict import Admitted, Reason, Verdict
from scheduling.queueing.queues import one_queue
from scheduling.state.node_table import NodeTable
from tests.scheduling.devices.builders import CLASS, DRIVER

MOST, MOST_TAINTED = 128, 64
MOST_LOOKS = 320
"""Nodes that one cycle looks at: its steps are 12 million, and a device costs 300 of them."""

SICK = (Taint("sick", "", "NoSchedule"),)
POD = PodShape((("cpu", 1_000), ("pods", 1)))


def content(model: str, uuid: str) -> DeviceContent:
    said = (("model", model), ("uuid", uuid))
    found = tuple((name, Attribute(AttributeKind.STRING, value)) for name, value in said)
    return DeviceContent(DRIVER, found)


def devices_of(number: int, last: int) -> Iterator[Device]:
    """Tainted devices on each node with an even number; on the last node there is a rare one."""
    tainted = number % 2 == 0
    for at in range(MOST_TAINTED if tainted else MOST):
        model = "rare" if (number, at) == (last, MOST - 1) else "sick" if tainted else "usual"
        yield Device(f"d-{at}", content(model, f"{number}-{at}"), SICK if tainted else ())


class Large:
    """So many nodes, and cycles over the same gangs."""

    def __init__(self, nodes: int) -> None:
        table, slices = NodeTable(), []
        for number in range(nodes):
            name = f"n{number:05}"
            table.put_node(Node(name, {}, (), False, {"cpu": 8_000, "pods": 110}))
            found = tuple(devices_of(number, nodes - 1))
            slices.append(ResourceSlice(name, DRIVER, name, found, 1, 1, NodeAccess(name)))
        rules = Rules({CLASS: DeviceClass(CLASS)}, CelSelectors())
        self._facts = NodeFacts(devices=DeviceFacts(slices, {}, rules, 1))
        self._nodes = table.snapshot()
        self._memory: Memory | None = None

    def cycle(self, *gangs: PendingGang) -> dict[str, Verdict]:
        found, self._memory = next_cycle(
            one_queue(gangs), self._nodes, self._memory, facts=self._facts
        )
        return {each.key.name: each.verdict for each in found}

    @property
    def looks(self) -> int:
        room = self._memory.room.devices if self._memory else None
        return room.nodes.looks if room else 0


def gang(name: str, order: float, model: str = "") -> PendingGang:
    """One pod, which claims a device of a model where one is named."""
    text = f'device.attributes["{DRIVER}"].model == "{model}"'
    claim = ClaimSpec((Request("gpu", DeviceRequest("gpu", CLASS, (text,))),))
    shape = with_claims(POD, (claim,), ()) if model else POD
    return PendingGang(GangKey("team", name), 0, order, (Group("w", "", shape, 1),))


@pytest.mark.parametrize("nodes", [400, pytest.param(5_000, marks=pytest.mark.long)])
def test_a_gang_finds_the_one_device_it_asks_for_and_holds_nobody_up(nodes: int) -> None:
    """What a cycle does not get to it says, and others are decided in that very cycle."""
    large, picky, plain = Large(nodes), gang("picky", 0.0, "rare"), gang("plain", 1.0)
    found = large.cycle(picky, plain)
    assert isinstance(found["plain"], Admitted)
    assert not isinstance(found["picky"], Admitted)
    assert found["picky"].reason is Reason.UNDECIDED
    assert large.looks <= MOST_LOOKS
    cycles = 1
    while not isinstance(found["picky"], Admitted):
        before = large.looks
        found = large.cycle(picky)
        assert 0 < large.looks - before <= MOST_LOOKS
        cycles += 1
    assert cycles <= 2 + nodes // 100


def test_a_gang_that_only_tainted_devices_suit_is_told_so_once_all_were_looked_at() -> None:
    large, asked = Large(400), gang("sick", 0.0, "sick")
    found = large.cycle(asked)["sick"]
    while not isinstance(found, Admitted) and found.reason is Reason.UNDECIDED:
        found = large.cycle(asked)["sick"]
    assert not isinstance(found, Admitted)
    assert (found.reason, large.looks) == (Reason.INSUFFICIENT_RESOURCES, 400)
    assert CLASS in found.message
