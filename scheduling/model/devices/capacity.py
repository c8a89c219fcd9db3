"""Capacity of a device that claims share: how much one request takes of it, and what is left.

Answers to CmpRequestOverCapacity and calculateConsumedCapacity of kube-scheduler's allocator
(k8s.io/dynamic-resource-allocation, structured/internal/incubating/consumable_capacity.go) in
Kubernetes 1.36 and 1.37, as far as both say the same.
"""

from collections.abc import Iterable
from typing import NamedTuple

from scheduling.model.amounts import MOST

Thousandths = tuple[tuple[str, int], ...]
"""Amounts by name, sorted, in thousandths."""

LARGEST = 2**62
"""Greater amounts are not read: sums and steps stay in what kube-scheduler counts exactly."""


class RequestPolicy(NamedTuple):
    """How much of a capacity a request takes, in thousandths.

    `default` where it names none. What it names is rounded up: to one of the `values`, which are
    sorted, or to `least` and `step`s from there; beyond `most` the device does not suit.
    """

    default: int | None = None
    values: tuple[int, ...] = ()
    least: int | None = None
    most: int | None = None
    step: int | None = None

    def rounded(self, asked: int) -> int:
        """Return what is taken for so much."""
        if self.least is None:
            return next((each for each in self.values if asked <= each), asked)
        if asked <= self.least or not self.step:
            return max(asked, self.least)
        return self.least + self.step * -((self.least - asked) // self.step)

    def allows(self, amount: int) -> bool:
        """Say whether a request may take so much."""
        if self.least is None:
            return not self.values or amount in self.values
        in_step = not self.step or (amount - self.least) % self.step == 0
        return in_step and (self.most is None or amount <= self.most)


class Capacity(NamedTuple):
    """One capacity of a device, in thousandths."""

    name: str
    amount: int
    policy: RequestPolicy | None = None

    def taken(self, asked: int | None) -> int | None:
        """Return what a request takes, which may name none; None where the device does not suit."""
        policy = self.policy or RequestPolicy()
        if asked is None and policy.default is not None:
            return policy.default
        amount = self.amount if asked is None else policy.rounded(asked)
        return amount if policy.allows(amount) else None


Capacities = tuple[Capacity, ...]


def taken_by(asked: Thousandths, capacities: Capacities) -> Thousandths | None:
    """Return what a request takes of a device of which nothing is taken; None if it has less."""
    wanted = dict(asked)
    if not wanted.keys() <= {each.name for each in capacities}:
        return None
    found = [(each.name, each.taken(wanted.get(each.name))) for each in capacities]
    amounts = tuple((name, amount) for name, amount in found if amount is not None)
    return amounts if len(amounts) == len(found) and leaves(amounts, (), capacities) else None


def leaves(more: Thousandths, before: Thousandths, capacities: Capacities) -> bool:
    """Say whether a device has so much more once something of it is taken before."""
    both = dict(added(more, before))
    return all(both.get(each.name, 0) <= each.amount for each in capacities)


def times(asked: Iterable[Thousandths], before: Thousandths, capacities: Capacities) -> int:
    """Return a number of shares, each of one of these requests, that a device is never above.

    Of each capacity all take the least: one may take much of what another takes little of.
    """
    found = [
        dict(each) for each in (taken_by(one, capacities) for one in asked) if each is not None
    ]
    if not found:
        return 0
    had, counts = dict(before), [MOST]
    for each in capacities:
        least = min(amounts[each.name] for amounts in found)
        if least:
            counts.append((each.amount - had.get(each.name, 0)) // least)
    return max(0, min(counts))


def added(some: Thousandths, more: Thousandths) -> Thousandths:
    """Return both amounts together."""
    sums = dict(some)
    for name, amount in more:
        sums[name] = sums.get(name, 0) + amount
    return tuple(sorted(sums.items()))
