"""Measures cycles over gangs whose pods claim devices, against the same as extended resources.

5,000 nodes of eight GPUs, each told apart by its UUID, and gangs that ask for one GPU a pod: by
claim, with a selector in CEL, or under the name that a device plugin offers. The same for
partitions: each GPU is offered whole and as two halves, of which the counters of its memory let
either be allocated, and gangs ask for one half a pod.
"""

import gc
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.measure import Outcome, Row, all_in_turn, median_within, ratio_within
from benchmarks.verdict import GPU, HEAD, MACHINE, timed
from kube.devices.selectors import CelSelectors
from scheduling.admission.refusal_memory import Memory
from scheduling.cycle import NodeFacts, next_cycle
from scheduling.devices.node_index import DeviceFacts
from scheduling.devices.pools import PoolKey
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
    CounterSet,
    Device,
    DeviceContent,
    DeviceID,
    NodeAccess,
    ResourceSlice,
)
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.node import Node
from scheduling.model.pod import PodShape
from scheduling.model.shape.node_restrictions import with_claims
from scheduling.model.verdict import Admitted
from scheduling.queueing.queues import one_queue
from scheduling.state.node_table import NodeTable

NODES = 5_000
DEVICES = 8
GANGS = 100
NEW = 10
"""Gangs that came between two cycles."""

DRIVER = "gpu.example.com"
CLASS = DeviceClass("gpu", (f'device.driver == "{DRIVER}"',))
SELECTOR = f'device.attributes["{DRIVER}"].model == "h100"'

FIRST_AIM, NEXT_AIM, MEMORY_AIM_MB = 1.5, 2.0, 250.0
PARTITIONS_FIRST_AIM, PARTITIONS_NEXT_AIM = 3.0, 4.0

_PLAIN = PodShape((("cpu", 4_000), ("pods", 1)))


def _claim(selector: str) -> ClaimSpec:
    return ClaimSpec((Request("gpu", DeviceRequest("gpu", CLASS.name, (selector,))),))


@dataclass(frozen=True, slots=True)
class Offer:
    """What each node has: so many devices `NAME-0` and on that the claim finds, in these slices."""

    name: str
    number: int
    claim: ClaimSpec
    slices: Callable[[str], list[ResourceSlice]]


@dataclass(frozen=True, slots=True)
class Took:
    """Processor milliseconds of the first cycle, and of one after a change."""

    first: float
    after: float


class World:
    """The nodes and their devices, and what gangs took of them; by claim or not."""

    def __init__(self, *, by_claim: bool, nodes: int = NODES, offer: "Offer | None" = None) -> None:
        self._by_claim, self._edition = by_claim, 0
        self._offer = offer = offer or WHOLE
        self._names = [f"node-{at:05}" for at in range(nodes)]
        self._table = NodeTable()
        machine = dict(MACHINE) | {GPU: 0 if by_claim else offer.number}
        for name in self._names:
            self._table.put_node(Node(name, {}, (), unschedulable=False, allocatable=machine))
        names = self._names if by_claim else []
        self._slices = [each for name in names for each in offer.slices(name)]
        self._taken = dict.fromkeys(self._names, 0)
        self._given: dict[PoolKey, frozenset[DeviceID]] = {}
        self._rules = Rules({CLASS.name: CLASS}, CelSelectors())
        self._memory: Memory | None = None
        self.worker = with_claims(_PLAIN, (offer.claim,), ()) if by_claim else _with_gpu(_PLAIN)

    def cycle(self, gangs: Sequence[PendingGang]) -> dict[GangKey, Admitted]:
        """Decide gangs, and return those that are admitted."""
        facts = NodeFacts(devices=self._facts()) if self._by_claim else None
        nodes = self._table.snapshot()
        found, self._memory = next_cycle(one_queue(gangs), nodes, self._memory, facts=facts)
        return {each.key: v for each in found if isinstance(v := each.verdict, Admitted)}

    def _facts(self) -> DeviceFacts:
        return DeviceFacts(self._slices, dict(self._given), self._rules, self._edition)

    def bind(self, admitted: Mapping[GangKey, Admitted]) -> None:
        """Let all pods of these gangs be bound, with the first devices that are free."""
        for verdict in admitted.values():
            for each in verdict.placement.assignments:
                for name, pods in each.nodes:
                    self._table.use(name, each.requests, pods)
                    self._taken[name] += pods if each.pod_set == "workers" else 0
                    self._given[PoolKey(DRIVER, name)] = frozenset(
                        DeviceID(DRIVER, name, f"{self._offer.name}-{at}")
                        for at in range(self._taken[name])
                    )
        self._edition += 1

    def gang(self, number: int) -> PendingGang:
        """Return a gang of a head and up to 64 workers."""
        pods = 1 + number * 37 % 64
        groups = Group("head", "", HEAD, 1), Group("workers", "", self.worker, pods)
        return PendingGang(GangKey("team", f"gang-{number:04}"), 0, float(number), groups)


def _whole(node: str) -> list[ResourceSlice]:
    devices = tuple(Device(f"gpu-{at}", _content(f"GPU-{node}-{at}")) for at in range(DEVICES))
    return [ResourceSlice(node, DRIVER, node, devices, 1, 1, NodeAccess(node_name=node))]


def _partitioned(node: str) -> list[ResourceSlice]:
    halves = [_part(node, f"half-{at}", at // 2, 40) for at in range(2 * DEVICES)]
    devices = (*halves, *(_part(node, f"gpu-{at}", at, 80) for at in range(DEVICES)))
    access = NodeAccess(node_name=node)
    memory = tuple(CounterSet(f"gpu-{at}", (("memory", 80),)) for at in range(DEVICES))
    counters = ResourceSlice(f"{node}-0", DRIVER, node, (), 1, 2, access, memory)
    return [counters, ResourceSlice(f"{node}-1", DRIVER, node, devices, 1, 2, access)]


def _part(node: str, name: str, gpu: int, memory: int) -> Device:
    consumed = CounterSet(f"gpu-{gpu}", (("memory", memory),))
    content = _content(f"GPU-{node}-{name}", "half" if memory < 80 else "h100")
    return Device(name, content, consumes_counters=(consumed,))


def _content(uuid: str, model: str = "h100") -> DeviceContent:
    said = (("model", model), ("uuid", uuid))
    attributes = ((name, Attribute(AttributeKind.STRING, value)) for name, value in said)
    return DeviceContent(DRIVER, tuple(attributes), (("memory", "80Gi"),))


def _with_gpu(shape: PodShape) -> PodShape:
    return PodShape(tuple(sorted((*shape.requests, (GPU, 1)))))


WHOLE = Offer("gpu", DEVICES, _claim(SELECTOR), _whole)
HALVES = Offer("half", 2 * DEVICES, _claim(SELECTOR.replace("h100", "half")), _partitioned)


def measured(
    *, by_claim: bool, nodes: int = NODES, gangs: int = GANGS, offer: Offer = WHOLE
) -> Took:
    """Build a world and measure the first cycle, and one after pods were bound and gangs came.

    What building leaves to the garbage collector is collected before, in neither of them.
    """
    world = World(by_claim=by_claim, nodes=nodes, offer=offer)
    waiting = [world.gang(at) for at in range(gangs)]
    admitted: dict[GangKey, Admitted] = {}
    gc.collect()
    first = timed(lambda: admitted.update(world.cycle(waiting)))
    world.bind(admitted)
    left = [each for each in waiting if each.key not in admitted]
    later = [*left, *(world.gang(gangs + at) for at in range(NEW))]
    gc.collect()
    after = timed(lambda: world.cycle(later))
    return Took(first, after)


def memory_mb(
    *, by_claim: bool, nodes: int = NODES, gangs: int = GANGS, offer: Offer = WHOLE
) -> float:
    """Return what slices and a cycle keep, in MB."""
    tracemalloc.start()
    world = World(by_claim=by_claim, nodes=nodes, offer=offer)
    world.cycle([world.gang(at) for at in range(gangs)])
    held = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    return held


def measure(runs: int) -> Outcome:
    """All sides in turn."""
    plain, claimed, plain_parts, parts = all_in_turn(
        runs,
        (
            lambda _: measured(by_claim=False),
            lambda _: measured(by_claim=True),
            lambda _: measured(by_claim=False, offer=HALVES),
            lambda _: measured(by_claim=True, offer=HALVES),
        ),
    )
    more, more_of_parts = (
        memory_mb(by_claim=True, offer=offer) - memory_mb(by_claim=False, offer=offer)
        for offer in (WHOLE, HALVES)
    )
    return Outcome(
        [
            *rows(plain, claimed, more),
            *rows_of_partitions(plain_parts, parts, more_of_parts),
        ],
        notes=[f"{NODES} nodes of {DEVICES} devices, {GANGS} gangs, then {NEW} more; CPU time"],
    )


def rows(plain: Sequence[Took], claimed: Sequence[Took], more_mb: float) -> list[Row]:
    """What the runs say."""
    return [
        ratio_within(
            _row("first cycle", [each.first for each in claimed], [each.first for each in plain]),
            FIRST_AIM,
        ),
        ratio_within(
            _row(
                "cycle after pods were bound and gangs came",
                [each.after for each in claimed],
                [each.after for each in plain],
            ),
            NEXT_AIM,
        ),
        median_within(Row("more memory than without claims", "MB", (more_mb,)), MEMORY_AIM_MB),
    ]


def rows_of_partitions(plain: Sequence[Took], claimed: Sequence[Took], more_mb: float) -> list[Row]:
    """What the runs with partitions say."""
    first, after = "partitions: first cycle", "partitions: cycle after a change"
    memory = "partitions: more memory than without claims"
    return [
        ratio_within(
            _row(first, [each.first for each in claimed], [each.first for each in plain]),
            PARTITIONS_FIRST_AIM,
        ),
        ratio_within(
            _row(after, [each.after for each in claimed], [each.after for each in plain]),
            PARTITIONS_NEXT_AIM,
        ),
        median_within(Row(memory, "MB", (more_mb,)), MEMORY_AIM_MB),
    ]


def _row(name: str, ours: Sequence[float], floor: Sequence[float]) -> Row:
    values = tuple(ours), tuple(floor)
    return Row(name, "ms", *values, ours_are="by claim", floor_is="extended resource")
