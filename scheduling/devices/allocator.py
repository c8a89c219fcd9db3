"""Foresees which devices kube-scheduler allocates for the claims of one pod on one node.

Answers to Allocate of k8s.io/dynamic-resource-allocation (structured/internal/incubating) in
Kubernetes 1.36 and 1.37: claims and requests in order, devices in the order of their pools, choices
undone within the pod, the first full solution taken. Asked in the same order, it meets the same
selector that fails.
"""

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from scheduling.devices.outcome import (
    Allocated,
    NotAllocated,
    Outcome,
    Refusal,
    Undecided,
    Unsupported,
)
from scheduling.devices.pools import SLICE_COUNTS, Pool, PoolDevice, are_open
from scheduling.devices.search.constraints import DISTINCT, Constraining, Reading, readings
from scheduling.devices.search.counters import CountersLeft
from scheduling.devices.selection import Rules, tolerated
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.devices.wanted import Refused, Wanted, WantedClaim, wanted_by
from scheduling.model.devices.capacity import Thousandths, added, leaves
from scheduling.model.devices.in_use import InUse
from scheduling.model.devices.resource_claim import MAX_DEVICES, AllocatedDevice, ClaimSpec
from scheduling.model.devices.resource_slice import DeviceID

MAX_CLAIMS = 8
"""More claims of one pod are not judged: the search is as deep as they have devices."""

AT_ONCE = 32
"""Devices that one step is for where all of a node are gathered."""

COUNTERS_OF_SHARES = "counters of a device of which shares without capacity are taken"
PARTS_OF_POOLS = "pools that are incomplete or invalid, on Kubernetes 1.34"
TOO_MANY_CLAIMS = f"more than {MAX_CLAIMS} resource claims in one pod"


class _Progress(Enum):
    DONE = auto()
    NO_SOLUTION = auto()
    TOO_MANY_DEVICES = auto()
    """No choice made before can help but one that takes fewer devices."""


def allocate(
    claims: Sequence[ClaimSpec],
    pools: tuple[Pool, ...],
    in_use: InUse,
    rules: Rules,
    steps: StepBudget,
) -> Outcome:
    """Return what kube-scheduler allocates; Unsupported where its versions differ in that."""
    answers = [_answer(claims, pools, in_use, rules, steps, read) for read in readings(claims)]
    if all(each == answers[0] for each in answers):
        return answers[0]
    return next((each for each in answers if isinstance(each, Undecided)), Unsupported(DISTINCT))


class EqualPods(NamedTuple):
    """How many pods with equal claims are allocated their devices, one after the other.

    `end` is why no more of them are, None where no more were asked for.
    """

    number: int
    end: NotAllocated | Unsupported | Undecided | None = None


class Course:
    """Pods with equal claims that come to one node, as far as they were followed.

    It does not matter which of them comes first, so all who ask may share it.
    """

    def __init__(self, claims: Sequence[ClaimSpec], pools: tuple[Pool, ...], in_use: InUse) -> None:
        self._claims, self._pools, self._in_use = claims, pools, in_use
        self._found = EqualPods(0)

    def up_to(self, most: int, rules: Rules, steps: StepBudget) -> EqualPods:
        """Return how many get theirs, if so many are asked for; Undecided once steps are out."""
        while self._found.end is None and self._found.number < most:
            found = allocate(self._claims, self._pools, self._in_use, rules, steps)
            if isinstance(found, Undecided):
                return self._found._replace(end=found)
            if isinstance(found, Allocated):
                self._in_use = self._in_use.plus(found.given)
                self._found = EqualPods(self._found.number + 1)
            else:
                self._found = self._found._replace(end=found)
        if self._found.number < most:
            return self._found
        return EqualPods(most)


def _answer(
    claims: Sequence[ClaimSpec],
    pools: tuple[Pool, ...],
    in_use: InUse,
    rules: Rules,
    steps: StepBudget,
    read: Reading,
) -> Outcome:
    """Return what kube-scheduler allocates, if it keeps to constraints in such a way."""
    if len(claims) > MAX_CLAIMS:
        return Unsupported(TOO_MANY_CLAIMS)
    if any(pool.unsupported == SLICE_COUNTS for pool in pools):
        return Unsupported(SLICE_COUNTS)
    if are_open(pools, rules.features):
        return Unsupported(PARTS_OF_POOLS)
    devices = tuple(
        found for pool in pools if not (pool.incomplete or pool.invalid) for found in pool.devices
    )
    try:
        steps.spend(len(devices) // AT_ONCE)
        wanted = [wanted_by(claim, pools, devices, in_use, rules, steps) for claim in claims]
        constraints = [[read(each) for each in claim.constraints] for claim in claims]
        left = CountersLeft(pools, in_use, rules.features)
        search = _Search(wanted, constraints, devices, in_use, left, rules, steps)
        return _outcome(search.run(), search, pools)
    except Refused as refused:
        return refused.outcome
    except OutOfSteps:
        return Undecided()


def _outcome(progress: _Progress, search: "_Search", pools: tuple[Pool, ...]) -> Outcome:
    if progress is _Progress.DONE:
        return Allocated(tuple(map(tuple, search.results)))
    if progress is _Progress.TOO_MANY_DEVICES:
        return NotAllocated(Refusal.TOO_MANY_DEVICES)
    invalid = next(("/".join(pool.key) for pool in pools if pool.invalid), "")
    return NotAllocated(Refusal.POOL_INVALID if invalid else Refusal.NO_DEVICES, invalid)


class _Search:
    """One run of the allocator; `results` are the devices chosen so far for each claim."""

    def __init__(
        self,
        wanted: Sequence[WantedClaim],
        constraints: Sequence[Sequence[Constraining]],
        devices: Sequence[PoolDevice],
        in_use: InUse,
        left: CountersLeft,
        rules: Rules,
        steps: StepBudget,
    ) -> None:
        self.results: list[list[AllocatedDevice]] = [[] for _ in wanted]
        self._wanted, self._constraints = wanted, constraints
        self._devices, self._rules = devices, rules
        self._in_use, self._chosen = in_use, set[DeviceID]()
        self._shares: dict[DeviceID, list[Thousandths]] = {}
        self._left, self._taken = left, list[tuple[PoolDevice, bool]]()
        self._steps = steps

    def run(self) -> _Progress:
        """Allocate all claims."""
        return self._claim(0)

    def _claim(self, claim: int) -> _Progress:
        if claim == len(self._wanted):
            return _Progress.DONE
        return self._request(claim, 0)

    def _request(self, claim: int, request: int) -> _Progress:
        """Allocate a request with the first alternative that leaves a solution for the rest."""
        if request == len(self._wanted[claim]):
            progress = self._claim(claim + 1)
            exceeds = progress is _Progress.TOO_MANY_DEVICES
            return _Progress.NO_SOLUTION if exceeds else progress
        best = _Progress.TOO_MANY_DEVICES
        for wanted in self._wanted[claim][request]:
            progress = self._device(claim, request, wanted, 0, 0)
            if progress is _Progress.DONE:
                return progress
            if progress is _Progress.NO_SOLUTION:
                best = progress
        return best

    def _device(
        self, claim: int, request: int, wanted: Wanted, index: int, start: int
    ) -> _Progress:
        """Allocate the device of this index within a request, and all that comes after it."""
        self._steps.spend()
        if wanted.every == ():
            return _Progress.NO_SOLUTION
        if index == wanted.number:
            return self._request(claim, request + 1)
        if len(self.results[claim]) + wanted.number - index > MAX_DEVICES:
            return _Progress.TOO_MANY_DEVICES
        positions = range(start, len(self._devices))
        if wanted.every is not None:
            positions = range(wanted.every[index], wanted.every[index] + 1)
        for position in positions:
            self._steps.spend()
            if not self._take(claim, wanted, position):
                continue
            progress = self._device(claim, request, wanted, index + 1, position + 1)
            if progress is _Progress.DONE:
                return progress
            self._give_back(claim, wanted)
            if progress is _Progress.TOO_MANY_DEVICES:
                return progress
        return _Progress.NO_SOLUTION

    def _take(self, claim: int, wanted: Wanted, position: int) -> bool:
        """Choose a device for a request, if it may be; in use is asked before the selectors."""
        found = self._devices[position]
        if found.id in self._chosen or found.id in self._in_use:
            return False
        if wanted.every is None and not wanted.selects(position, found, self._rules):
            return False
        amounts = wanted.takes(found)
        if amounts is None or (wanted.every is None and not self._has_left(found, amounts)):
            return False
        counts = not self._is_charged(found)
        if counts and not self._left.take(found):
            return False
        if not (
            tolerated(wanted.asked, found, self._rules.features)
            and self._constrain(claim, wanted, found)
            and self._is_still_left(claim, wanted, found, amounts)
        ):
            if counts:
                self._left.give_back(found)
            return False
        if found.unsupported:
            raise Refused(Unsupported(found.unsupported))
        self._taken.append((found, counts))
        self._note(claim, wanted, found, amounts)
        return True

    def _is_charged(self, found: PoolDevice) -> bool:
        """Say whether the counters of a device are charged already, for a share of it.

        1.36 charges them anew where that share takes no capacity.
        """
        before = self._in_use.consumed(found.id) if found.shared else None
        if before == () and found.device.consumes_counters:
            raise Refused(Unsupported(COUNTERS_OF_SHARES))
        return before is not None or bool(self._shares.get(found.id))

    def _has_left(self, found: PoolDevice, amounts: Thousandths) -> bool:
        """Say whether a shared device has so much left, beside what this pod takes of it."""
        if not found.shared:
            return True
        before = self._in_use.consumed(found.id) or ()
        for each in self._shares.get(found.id, ()):
            before = added(before, each)
        return leaves(amounts, before, found.device.capacities or ())

    def _is_still_left(
        self, claim: int, wanted: Wanted, found: PoolDevice, amounts: Thousandths
    ) -> bool:
        """Say the same once constraints were met: in mode All these are asked first."""
        if wanted.every is None or self._has_left(found, amounts):
            return True
        for each in self._concerning(claim, wanted):
            each.remove(wanted)
        return False

    def _note(self, claim: int, wanted: Wanted, found: PoolDevice, amounts: Thousandths) -> None:
        """Keep a choice: the whole device, or a share of it."""
        if found.shared:
            self._shares.setdefault(found.id, []).append(amounts)
        else:
            self._chosen.add(found.id)
        consumed = amounts if found.shared else None
        self.results[claim].append(AllocatedDevice(wanted.name, found.id, consumed=consumed))

    def _constrain(self, claim: int, wanted: Wanted, found: PoolDevice) -> bool:
        """Add a device to the constraints of its claim; mode All has no other device to try."""
        added: list[Constraining] = []
        for each in self._concerning(claim, wanted):
            if not each.add(wanted, found):
                for other in added:
                    other.remove(wanted)
                if wanted.every is not None:
                    raise Refused(NotAllocated(Refusal.CONSTRAINT, "/".join(found.id)))
                return False
            added.append(each)
        return True

    def _give_back(self, claim: int, wanted: Wanted) -> None:
        """Undo the last choice."""
        found, counts = self._taken.pop()
        self.results[claim].pop()
        if found.shared:
            self._shares[found.id].pop()
        else:
            self._chosen.discard(found.id)
        if counts:
            self._left.give_back(found)
        for each in self._concerning(claim, wanted):
            each.remove(wanted)

    def _concerning(self, claim: int, wanted: Wanted) -> list[Constraining]:
        return [each for each in self._constraints[claim] if each.concerns(wanted)]
