"""Holds the room that gangs were promised until the pods in their way have ended.

A plan is on the nodes as they will be: where victims still are, what is free falls below zero.
Quota that ends in a queue and quota that is promised there count once, the more of both: others get
neither what is in use now nor what will be.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions
from scheduling.model.gang import GangKey, PendingGang
from scheduling.model.placement import Placement, amounts_of
from scheduling.model.preemption import GangPart, Preemption, Promise
from scheduling.model.shape.restrictions import Claims
from scheduling.placement.claimed_devices import claims_on
from scheduling.preemption.coverage import held_by
from scheduling.queueing.queues import Queues
from scheduling.state.node_snapshot import NodeSnapshot

ClaimsOnNodes = tuple[tuple[Claims, str, int], ...]
"""What pods will claim, on which node, and how many of them."""


@dataclass(frozen=True, eq=False, slots=True)
class Hold:
    """What is promised to a gang: `amounts` (resources x those nodes), and `quota` of its queue.

    `in_use` is the part of the quota that counts already, for what ends in that queue holds it.
    `gang` is what waits, None where nothing does yet.
    """

    gang: PendingGang | None
    queue: str
    preemption: Preemption
    nodes: Positions
    amounts: Amounts
    quota: Amounts
    in_use: Amounts
    claims: ClaimsOnNodes = ()

    def out_of(self, room: FreeCapacity) -> FreeCapacity:
        """Return a room without what is promised."""
        return self._with_pods(room.changed_by(self.nodes, -self.amounts), 1)

    def back_in(self, room: FreeCapacity) -> FreeCapacity:
        """Return a room with what is promised in it again."""
        return self._with_pods(room.changed_by(self.nodes, self.amounts), -1)

    def _with_pods(self, room: FreeCapacity, sign: int) -> FreeCapacity:
        devices = room.devices
        if devices is None or not self.claims:
            return room
        for claims, node, pods in self.claims:
            devices = devices.with_pods(claims, {node: sign * pods})
        return room.with_devices(devices)

    @property
    def counted(self) -> Amounts:
        """The quota that counts beside what the queue holds."""
        return self.quota - self.in_use


class Holds:
    """What is held in one cycle, in the order in which it was promised.

    `freed` are the nodes on which room was held for gangs that do not wait any more.
    """

    def __init__(self, before: Iterable[Preemption], queues: Queues, nodes: NodeSnapshot) -> None:
        self._tree, self._nodes = queues.waiting.tree, nodes
        self._kept: dict[GangKey, Hold] = {}
        self._queues = queues
        self.asked = {each.preemption.preemptor for each in queues.promises}
        """The gangs that are promised room by request."""
        self.freed: Positions = np.zeros(0, dtype=np.intp)
        for each in before:
            gang = queues.waiting.gang(each.preemptor)
            if gang is not None and gang.minimum and each.preemptor not in self.asked:
                self.add(gang, each)
            else:
                self.freed = np.union1d(self.freed, self._cells(each.plan)[0])
        for promise in queues.promises:
            self._promise(promise)

    def _promise(self, promise: Promise) -> None:
        """Keep room for a gang by request."""
        gang = self._queues.waiting.gang(promise.preemption.preemptor)
        if gang is not None and gang.minimum:
            self.add(gang, promise.preemption)
        elif promise.queue in self._tree.index:
            holds = self._tree.requests(promise.held)
            self._hold(None, promise.queue, promise.preemption, holds)

    def add(self, gang: PendingGang, preemption: Preemption) -> Hold:
        """Hold a plan for a gang."""
        ends = np.maximum(0, self._ending[self._tree.index[gang.queue]])
        return self._hold(gang, gang.queue, preemption, ends)

    def _hold(
        self, gang: PendingGang | None, queue: str, preemption: Preemption, counts: Amounts
    ) -> Hold:
        """Hold a plan, of whose quota so much `counts` already."""
        at, amounts = self._cells(preemption.plan)
        quota = self._tree.requests(amounts_of(preemption.plan))
        in_use = np.minimum(quota, counts)
        self._ending[self._tree.index[queue]] -= in_use
        claims = tuple(self._claims(gang, preemption.plan)) if gang is not None else ()
        hold = Hold(gang, queue, preemption, at, amounts, quota, in_use, claims)
        self._kept[preemption.preemptor] = hold
        return hold

    def end(self, gang: GangKey) -> Hold:
        """Hold nothing for a gang any more; return what was."""
        hold = self._kept.pop(gang)
        self._ending[self._tree.index[hold.queue]] += hold.in_use
        return hold

    def gangs(self) -> Iterator[PendingGang]:
        """Yield the gangs that wait, and for which something is held."""
        return (each.gang for each in self._kept.values() if each.gang is not None)

    def waits_for(self, key: GangKey) -> tuple[GangPart, ...]:
        """Return what has to end before room that was asked for is there; none where it is."""
        return self._kept[key].preemption.parts if key in self.asked else ()

    def preemptions(self) -> tuple[Preemption, ...]:
        """Return what is held, and what it waits for."""
        return tuple(each.preemption for each in self._kept.values())

    def on(self, masks: Iterable[Mask]) -> list[GangKey]:
        """Return the gangs for which room is held on any of some nodes."""
        if not self._kept:
            return []
        nodes = np.logical_or.reduce(list(masks))
        return [key for key, each in self._kept.items() if nodes[each.nodes].any()]

    def held(self, held: Amounts) -> Amounts:
        """Return what queues hold (queues x resources) with what is promised."""
        if not self._kept:
            return held
        total = held.copy()
        for each in self._kept.values():
            total[self._tree.index[each.queue]] += each.counted
        return total

    def with_all(self, held: Amounts) -> Amounts:
        """Return what queues hold once nothing that ends counts: all that is promised in full."""
        total = held.copy()
        for each in self._kept.values():
            total[self._tree.index[each.queue]] += each.in_use
        return total

    @cached_property
    def _ending(self) -> Amounts:
        """What of the quota of queues ends and is set against no promise yet."""
        tree = self._tree
        total = np.zeros((len(tree.names), len(tree.resources)), dtype=np.int64)
        for part in self._queues.parts():
            if part.is_ending and part.queue in tree.index:
                total[tree.index[part.queue]] += held_by(part, tree)
        return total

    def taken_from(self, room: FreeCapacity) -> FreeCapacity:
        """Return the room without all that is held."""
        for each in self._kept.values():
            room = each.out_of(room)
        return room

    def put_back(self, room: FreeCapacity) -> FreeCapacity:
        """Return the room with all that is held in it."""
        for each in self._kept.values():
            room = each.back_in(room)
        return room

    def _claims(self, gang: PendingGang, plan: Placement) -> Iterator[tuple[Claims, str, int]]:
        """Yield what the pods of a plan will claim, the node, and how many do."""
        shapes = {each.shape.key: each.shape for each in gang.groups()}
        nodes, index = self._nodes.traits.nodes, self._nodes.index
        for each in plan.assignments:
            shape = shapes.get(each.shape)
            if shape is None or not shape.restrictions.claims_devices:
                continue
            for name, pods in each.nodes:
                claims = claims_on(shape, nodes[index[name]]) if name in index else ()
                if claims:
                    yield claims, name, 1 if shape.restrictions.shared_claims else pods

    def _cells(self, plan: Placement) -> tuple[Positions, Amounts]:
        index, row = self._nodes.index, self._nodes.row
        names = {node for each in plan.assignments for node, _ in each.nodes if node in index}
        place = {name: at for at, name in enumerate(sorted(names, key=index.__getitem__))}
        amounts = np.zeros((len(row), len(place)), dtype=np.int64)
        for each in plan.assignments:
            for node, pods in each.nodes:
                for resource, amount in each.requests:
                    if node in place and resource in row:
                        amounts[row[resource], place[node]] += min(amount, LIMIT) * pods
        return np.array([index[name] for name in place], dtype=np.intp), amounts
