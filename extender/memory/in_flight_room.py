"""Sums, node by node, the room that passed pods may take until they are seen bound.

A pod may go to any node that it was passed for. All of these nodes are kept, not only those with
reserved room, for room may be reserved before the next question. Many nodes are kept as a bit
each, and what the pods take together as a sum for each node.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Final

import numpy as np
from numpy.typing import NDArray

from extender.devices.guard import InFlightClaims
from kube.codec.observed_pod import ObservedPod
from scheduling.model.amounts import LIMIT, Amounts, Mask, Positions, Requests
from scheduling.state.node_snapshot import NodeAttributes

SUMS_KEPT = 64
"""Resources whose sums are kept: 2.5 MB for 5,000 places. Any pod may name new host ports."""

FEW = 64
"""The positions of fewer than one node in so many take less than a bit for each node."""

LEAST_PLACES = 64
"""So many places are kept whether nodes have gone or not."""

MOST = 2**62
"""Sums stay below this, or nothing is said (see `InFlightRoom.countable`)."""


@dataclass(frozen=True, slots=True)
class PassedPod:
    """A pod that was passed and may be on its way to one of these nodes (`at` in `traits`).

    `member` is the pod of a gang that was passed for its slot; `amounts` are then what it takes
    beyond what the slot keeps for it. `claiming` is the pod where it asks for devices by claim.
    """

    uid: str
    amounts: Requests
    traits: NodeAttributes
    at: Positions
    member: ObservedPod | None = None
    claiming: ObservedPod | None = None


@dataclass(frozen=True, slots=True)
class _Record:
    """The places of a pod's nodes: `few` where they are few, else a bit for each place.

    A place given out later has no bit here: the pod was not passed for its node.
    """

    amounts: Mapping[str, int]
    few: Positions | None
    bits: NDArray[np.uint8] | None

    @classmethod
    def of(cls, amounts: Mapping[str, int], at: Positions, places: int) -> _Record:
        """Record the amounts for these nodes among so many places."""
        if len(at) <= places // FEW:
            return cls(amounts, at, None)
        mask = np.zeros(places, dtype=np.bool_)
        mask[at] = True
        return cls(amounts, None, np.packbits(mask))

    def at(self, places: int) -> Positions | Mask:
        """Return the nodes, in a form that picks them out of the first of so many places."""
        if self.bits is None:
            assert self.few is not None
            return self.few
        count = min(8 * len(self.bits), places)
        return np.unpackbits(self.bits, count=count).view(np.bool_)

    def positions(self, places: int) -> Positions:
        """Return the nodes as positions."""
        return self.few if self.few is not None else np.flatnonzero(self.at(places))


class InFlightRoom:
    """What passed pods may take, by node; written by one owner.

    Each node has a place on the axis of bits and sums from when it is first met, whatever comes and
    goes: so a change of nodes costs no look at the pods. A node that has gone keeps its place, for
    it may come back; only when there are twice as many places are those without pods given up.
    """

    def __init__(self) -> None:
        self._traits = NodeAttributes(())
        self._places: dict[str, int] = {}
        self._at: Positions = np.zeros(0, dtype=np.intp)
        self._most = LEAST_PLACES
        self._records: dict[str, _Record] = {}
        self._sums: dict[str, Amounts] = {}
        self._totals: defaultdict[str, int] = defaultdict(int)
        self._beyond: set[str] = set()
        self._node_of_member: dict[str, str] = {}
        self._members: defaultdict[str, dict[str, ObservedPod]] = defaultdict(dict)
        self._claiming: dict[str, ObservedPod] = {}

    @classmethod
    def of(cls, passed: Iterable[PassedPod]) -> InFlightRoom:
        """These pods."""
        made = cls()
        for each in passed:
            made.add(each)
        return made

    # ---- what is asked

    def taken(self, resource: str, traits: NodeAttributes, at: Positions) -> Amounts | None:
        """Return what they may take of a resource at nodes (`at` in `traits`); None for nothing."""
        if resource not in self._totals:
            return None
        self._follow(traits)
        if resource not in self._sums:
            if len(self._sums) >= SUMS_KEPT:
                self._sums.clear()
            self._sums[resource] = self._summed(resource)
        return self._sums[resource][self._at[at]]

    @property
    def countable(self) -> bool:
        """Whether the sums fit into 64 bits."""
        return not self._beyond

    def members_on(self, node: str) -> Collection[ObservedPod]:
        """Return the pods of gangs that were passed for slots on a node."""
        return self._members[node].values() if node in self._members else ()

    def claiming(self, traits: NodeAttributes, at: Positions) -> Iterator[InFlightClaims]:
        """Yield the pods that ask for devices by claim, in the order in which they were passed."""
        if not self._claiming:
            return
        self._follow(traits)
        places = self._at[at]
        for uid, pod in self._claiming.items():
            found = self._records[uid].positions(len(self._places))
            yield InFlightClaims(pod, np.isin(places, found), len(found) == 1)

    # ---- what comes and goes

    def add(self, passed: PassedPod) -> None:
        """Count a pod; its uid must be new."""
        if passed.member is not None:
            node = passed.traits.names[passed.at[0]]
            self._node_of_member[passed.uid] = node
            self._members[node][passed.uid] = passed.member
        if passed.claiming is not None:
            self._claiming[passed.uid] = passed.claiming
        self._follow(passed.traits)
        amounts = {name: min(amount, LIMIT) for name, amount in passed.amounts if amount > 0}
        record = _Record.of(amounts, self._at[passed.at], len(self._places))
        self._records[passed.uid] = record
        self._count(record, +1)

    def remove(self, uid: str) -> None:
        """Stop counting a pod, where it is known."""
        node = self._node_of_member.pop(uid, None)
        if node is not None:
            del self._members[node][uid]
            if not self._members[node]:
                del self._members[node]
        self._claiming.pop(uid, None)
        record = self._records.pop(uid, None)
        if record is not None:
            self._count(record, -1)

    def _count(self, record: _Record, sign: int) -> None:
        at = record.at(len(self._places))
        for resource, amount in record.amounts.items():
            self._totals[resource] += sign * amount
            (self._beyond.add if self._totals[resource] >= MOST else self._beyond.discard)(resource)
            if not self._totals[resource]:
                del self._totals[resource]
                self._sums.pop(resource, None)
            elif resource in self._sums:
                # Beyond 64 bits this wraps around, and back again when the pod goes.
                _add(self._sums[resource], at, sign * amount)

    def _summed(self, resource: str) -> Amounts:
        found = np.zeros(len(self._places), dtype=np.int64)
        for record in self._records.values():
            if resource in record.amounts:
                _add(found, record.at(len(found)), record.amounts[resource])
        return found

    # ---- other nodes

    def _follow(self, traits: NodeAttributes) -> None:
        """Look up the places of the present nodes."""
        if traits is self._traits:
            return
        self._traits = traits
        self._place(traits)
        if len(self._places) > self._most:  # so it is done once in as many new nodes
            self._tidy(traits)
            self._most = max(LEAST_PLACES, 2 * len(self._places))

    def _place(self, traits: NodeAttributes) -> None:
        """Give a place to each node that has none."""
        places, before = self._places, len(self._places)
        at = [places.setdefault(name, len(places)) for name in traits.names]
        self._at = np.array(at, dtype=np.intp)
        more = len(places) - before
        if more:
            self._sums = {name: np.pad(each, (0, more)) for name, each in self._sums.items()}

    def _tidy(self, traits: NodeAttributes) -> None:
        """Give up the places of nodes that are gone and that no pod was passed for."""
        was, keeps = len(self._places), self._in_use()
        names = compress(self._places, keeps.tolist())
        self._places = {name: at for at, name in enumerate(names)}
        now = np.cumsum(keeps) - 1
        for uid, record in self._records.items():
            at = now[record.positions(was)]
            self._records[uid] = _Record.of(record.amounts, at, len(self._places))
        self._sums.clear()
        self._place(traits)

    def _in_use(self) -> Mask:
        """The places of nodes that some pod was passed for."""
        keeps = np.zeros(len(self._places), dtype=np.bool_)
        for record in self._records.values():
            keeps[record.positions(len(keeps))] = True
        return keeps


def _add(column: Amounts, at: Positions | Mask, amount: int) -> None:
    """Add an amount at some places, once at each."""
    if at.dtype == np.bool_:
        column[: len(at)] += at * np.int64(amount)
    else:
        column[at] += amount


NO_PODS: Final = InFlightRoom()


@dataclass(frozen=True, slots=True)
class InFlight:
    """What passed pods may take, the pod that is asked about left aside.

    `complete` is False where another process (a predecessor, another replica) may have passed
    more: then only pods of gangs get nodes with reserved room.
    """

    room: InFlightRoom = NO_PODS
    complete: bool = True


NONE_IN_FLIGHT = InFlight()
