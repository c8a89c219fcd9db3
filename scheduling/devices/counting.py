"""Counts devices instead of allocating them, only where both give the same answer.

Both agree if every request asks for a number of devices, without constraints and alternatives; if
any two requests suit the same devices or have none in common; and if these devices consume no
counters and are not shared. Pods on several nodes may draw on devices that all these nodes reach:
`Counting.drawn_from_afar` reports the demand for each such set.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import mul

from scheduling.devices.allocator import MAX_CLAIMS
from scheduling.devices.node_devices import REACHED_BY_OTHERS, NodeDevices
from scheduling.devices.node_index import Pending
from scheduling.devices.pools import SLICE_COUNTS, are_open
from scheduling.devices.selection import Rules, tolerated
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.asked import requests_of
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_claim import (
    MAX_DEVICES,
    AllocationMode,
    ClaimSpec,
    DeviceRequest,
)
from scheduling.model.devices.resource_slice import DeviceID
from scheduling.model.shape.restrictions import Claims

Candidates = frozenset[int]
"""Positions of the devices that suit a request, in use or not."""

FarDevices = frozenset[DeviceID]
"""Devices that several nodes reach, all of which suit the same requests."""

Pods = Iterable[tuple[Claims, int]]
"""So many pods with such claims."""


@dataclass(frozen=True, eq=False, slots=True)
class Counting:
    """How many devices are free in each set of candidates, and which set a request draws on.

    `far` are the devices of those sets that several nodes reach.
    """

    free: Mapping[Candidates, int]
    drawn_on: Mapping[DeviceRequest, Candidates]
    far: Mapping[Candidates, FarDevices]

    def held(
        self, groups: Sequence[Claims], mixes: Iterable[tuple[int, ...]], others: Pods
    ) -> Iterator[tuple[int, ...]]:
        """Yield the mixes of these groups whose pods, and the others, are all allocated theirs.

        A mix of pods that claim nothing is as good as none.
        """
        taken = self._needed(others)
        by_group = [self._needed([(claims, 1)]) for claims in groups]
        sets = [
            (free - taken[each], [needed[each] for needed in by_group])
            for each, free in self.free.items()
        ]
        found = list(mixes)
        most = [max(numbers) for numbers in zip(*found, strict=True)]
        if all(sum(map(mul, most, one)) <= left for left, one in sets):
            yield from found  # of each group there may be the most, whatever there is of others
            return
        for mix in found:
            claims_any = any(count and claims for count, claims in zip(mix, groups, strict=True))
            if not claims_any or all(sum(map(mul, mix, one)) <= left for left, one in sets):
                yield mix

    def leaves(self, pods: Pods, others: Pods) -> bool:
        """Say the same where others were allocated theirs before, as far as there were any."""
        needed, taken = self._needed(pods), self._needed(others)
        return all(self.free[found] >= count + taken[found] for found, count in needed.items())

    def drawn_from_afar(self, pods: Pods) -> Mapping[FarDevices, int]:
        """Return how many devices that several nodes reach these pods take, by their sets."""
        needed = self._needed(pods)
        return {devices: needed[each] for each, devices in self.far.items() if needed[each]}

    def _needed(self, pods: Pods) -> Counter[Candidates]:
        needed: Counter[Candidates] = Counter()
        for claims, count in pods:
            for asked in requests_of(claims):
                needed[self.drawn_on[asked]] += asked.count * count
        return needed


def counting(
    pods: Sequence[Claims], node: NodeDevices, rules: Rules, steps: StepBudget
) -> Counting | None:
    """Return the counts for pods with such claims; None where counting is not exact."""
    if any(pool.unsupported == SLICE_COUNTS for pool in node.pools):
        return None
    if are_open(node.pools, rules.features):
        return None
    if not all(len(claims) <= MAX_CLAIMS and all(map(_countable, claims)) for claims in pods):
        return None
    node.look(pods, rules, steps)
    drawn_on: dict[DeviceRequest, Candidates] = {}
    for asked in dict.fromkeys(request for claims in pods for request in requests_of(claims)):
        found = _candidates(asked, node, rules)
        if found is None:
            return None
        drawn_on[asked] = found
    sets = set(drawn_on.values())
    if sum(map(len, sets)) > len(frozenset().union(*sets)):
        return None
    free = {each: sum(node.usable[at].id not in node.in_use for at in each) for each in sets}
    several = (each for each in sets if any(not node.usable[at].local for at in each))
    far = {each: frozenset(node.usable[at].id for at in each) for each in several}
    return Counting(free, drawn_on, far)


class DevicesOfSeveralNodes:
    """What pods on their way, to any node, leave of such devices.

    `pending` are all of them, by node. `there` says what a node reaches: None of one that does not
    exist, whose pods are given nothing.
    """

    def __init__(
        self,
        pending: Mapping[str, Pending],
        there: Callable[[str], NodeDevices | None],
        rules: Rules,
    ) -> None:
        self._pending, self._there, self._rules = pending, there, rules
        self._drawn: dict[str, Mapping[FarDevices, int] | None] = {}

    def left(self, devices: FarDevices, in_use: InUse, steps: StepBudget) -> int | None:
        """Return how many are left; None where that depends on an order that is not known."""
        free = sum(each not in in_use for each in devices)
        for name, pods in self._pending.items():
            there = self._there(name) if pods else None
            if there is None or not there.has_far:
                continue
            taken = self._taken(devices, name, there, steps)
            if taken is None:
                return None
            free -= taken
        return free

    def _taken(
        self, devices: FarDevices, name: str, there: NodeDevices, steps: StepBudget
    ) -> int | None:
        """Return how many of these devices pods on their way to one node take."""
        pods = self._pending[name]
        if name not in self._drawn:
            counts = counting([claims for claims, _ in pods], there, self._rules, steps)
            self._drawn[name] = None if counts is None else counts.drawn_from_afar(pods)
        drawn = self._drawn[name]
        if drawn is None:
            return None if self._may_take(devices, there, pods) else 0
        overlaps = any(each != devices and each & devices for each in drawn)
        return None if overlaps else drawn.get(devices, 0)

    def _may_take(self, devices: FarDevices, there: NodeDevices, pods: Pending) -> bool:
        at = [n for n, found in enumerate(there.usable) if found.id in devices]
        asked = (request for claims, _ in pods for request in requests_of(claims))
        return any(there.selections(r, self._rules)[n] is not False for r in asked for n in at)


def _countable(claim: ClaimSpec) -> bool:
    asked = [request.exactly for request in claim.requests if request.exactly]
    return (
        not (claim.constraints or claim.unsupported)
        and len(asked) == len(claim.requests)
        and all(each.mode is AllocationMode.EXACT_COUNT for each in asked)
        and not any(each.unsupported or each.capacity is not None for each in asked)
        and sum(each.count for each in asked) <= MAX_DEVICES
    )


def _candidates(asked: DeviceRequest, node: NodeDevices, rules: Rules) -> Candidates | None:
    """Return which devices suit a request; None where that is not sure of one of them, one may
    take room of another, or several nodes reach some of them and not all."""
    found: set[int] = set()
    answers = node.selections(asked, rules)
    for at, (each, answer) in enumerate(zip(node.usable, answers, strict=True)):
        if not isinstance(answer, bool):
            return None
        if answer and tolerated(asked, each, rules.features):
            known = each.unsupported in ("", REACHED_BY_OTHERS)
            if not known or each.shared or each.device.consumes_counters:
                return None
            found.add(at)
    alike = len({node.usable[at].local for at in found}) <= 1
    return frozenset(found) if alike else None
