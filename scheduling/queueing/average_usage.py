"""Averages the usage of queues and namespaces over time, for fair sharing.

The average of an amount weighs what was held t seconds ago by 2^(-t / half-life). It is an amount
of the same kind, at most what was held at any time, so that nothing overflows; and what it is at
one time says all of the time before, so that it can be written down and gone on with later.

What is held counts as if it were held for a tenth of the half-life more. So an admission counts at
once, and who holds much now comes after who held as much on average and holds less.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from scheduling.model.amounts import CPU, MEMORY, Positions
from scheduling.model.queue import FairSharing

Average = Mapping[str, float]
"""Amounts by resource, in the units of requests."""

Held = Mapping[str, int]

AHEAD = 0.1
"""For how many half-lives what is held counts as if it were held on."""

NOW = 1 - 2**-AHEAD
"""The part that is held now of what counts; the rest is the average."""

MOST = 200
"""So many namespaces of a queue are told apart; the others count as one."""

_LEAST = {CPU: 1.0, MEMORY: 2.0**20}
_LEAST_OF_OTHERS = 1e-3
"""Where no average is as much, what was used is forgotten: 1m of CPU and others, 1Mi of memory."""


def averaged(average: Average, held: Held, seconds: float, half_life: float) -> dict[str, float]:
    """Return the average after some seconds more in which this was held."""
    kept = 2 ** (-max(0.0, seconds) / half_life)
    named = dict.fromkeys((*average, *held))
    return {each: _mixed(average.get(each, 0.0), held.get(each, 0), 1 - kept) for each in named}


def _mixed(average: float, held: float, part: float) -> float:
    return average * (1 - part) + held * part


@dataclass(frozen=True, slots=True)
class Usage:
    """What is held since `at`, in seconds on any clock, and the average until then."""

    at: float
    average: Average = field(default_factory=dict)
    held: Held = field(default_factory=dict)

    def until(self, at: float, half_life: float) -> "Usage":
        """Return the same at another time; a clock that was set back takes nothing away."""
        return Usage(at, averaged(self.average, self.held, at - self.at, half_life), self.held)

    def holding(self, held: Held, at: float, half_life: float) -> "Usage":
        """Return it with another amount held from now on."""
        return Usage(at, self.until(at, half_life).average, dict(held))

    def and_of(self, other: "Usage") -> "Usage":
        """Return both as one; times may differ a little."""
        return Usage(
            max(self.at, other.at),
            _sum((self.average, other.average)),
            _whole((self.held, other.held)),
        )

    @property
    def counts(self) -> dict[str, float]:
        """What counts in the order, by resource."""
        named = dict.fromkeys((*self.average, *self.held))
        average, held = self.average, self.held
        return {each: _mixed(average.get(each, 0.0), held.get(each, 0), NOW) for each in named}

    @property
    def is_over(self) -> bool:
        """Whether nothing is held and nothing worth keeping was."""
        least = (_LEAST.get(each, _LEAST_OF_OTHERS) for each in self.average)
        is_little = all(
            amount < most for amount, most in zip(self.average.values(), least, strict=True)
        )
        return is_little and not any(self.held.values())


class QueueUsage:
    """The usage of one queue by namespace: what gangs hold of the queue itself.

    `version` moves with every change; `moved` says of each namespace with which version it did
    last, `all_moved` with which all of them did.
    """

    def __init__(self, rules: FairSharing, at: float) -> None:
        self.rules = rules
        self.namespaces: dict[str, Usage] = {}
        self.rest = Usage(at)
        self.version = 0
        self.moved: dict[str, int] = {}
        self.all_moved = 0
        self._in_rest: dict[str, Held] = {}

    def begin_with(self, namespaces: Mapping[str, Average], rest: Average, at: float) -> None:
        """Go on with what was written down."""
        for name, average in namespaces.items():
            self._add(name, Usage(at, average))
        self.rest = self.rest.and_of(Usage(at, rest))
        self._all_move()

    def follow(self, rules: FairSharing, at: float) -> None:
        """Go by other rules from now on."""
        self.settle(at)
        self.rules = rules

    def hold(self, namespace: str, held: Held, at: float) -> None:
        """Take in that gangs of a namespace hold this from now on."""
        half_life = self.rules.half_life
        if namespace not in self.namespaces and namespace not in self._in_rest:
            self._add(namespace, Usage(at))
        if namespace in self.namespaces:
            found = self.namespaces[namespace].holding(held, at, half_life)
            self.namespaces[namespace] = found
            self.version += 1
            self.moved[namespace] = self.version
        else:
            self._in_rest[namespace] = dict(held)
            self.rest = self.rest.holding(_whole(self._in_rest.values()), at, half_life)
            self._all_move()

    def settle(self, at: float) -> None:
        """Bring all averages up to a time; forget namespaces without usage."""
        half_life = self.rules.half_life
        settled = {name: each.until(at, half_life) for name, each in self.namespaces.items()}
        self.namespaces = {name: each for name, each in settled.items() if not each.is_over}
        self.rest = self.rest.until(at, half_life)
        self._in_rest = {name: held for name, held in self._in_rest.items() if any(held.values())}
        self._all_move()

    def usage_of(self, namespace: str) -> Usage:
        """Return the usage of a namespace: of one that is not told apart that of all such."""
        found = self.namespaces.get(namespace)
        if found is not None:
            return found
        is_one_of_many = namespace in self._in_rest or len(self.namespaces) >= MOST
        return self.rest if is_one_of_many else Usage(self.rest.at)

    def total(self) -> Usage:
        """Return the usage of all namespaces together."""
        everyone = (*self.namespaces.values(), self.rest)
        return Usage(
            max(each.at for each in everyone),
            _sum(each.average for each in everyone),
            _whole(each.held for each in everyone),
        )

    @property
    def is_in_use(self) -> bool:
        """Whether anything is held, or was so that it counts."""
        return bool(self.namespaces) or not self.rest.is_over

    def weight_of(self, namespace: str) -> int:
        """Return the weight of a namespace."""
        return self.rules.weights.get(namespace, 1)

    def moved_since(self, version: int) -> Iterator[str]:
        """Yield the namespaces that moved on their own since a version."""
        return (name for name, moved in self.moved.items() if moved > version)

    def _add(self, namespace: str, usage: Usage) -> None:
        """Tell a namespace apart; for that the smallest that holds nothing joins the others."""
        if len(self.namespaces) >= MOST:
            idle = [name for name, each in self.namespaces.items() if not any(each.held.values())]
            if not idle:
                self._in_rest[namespace] = {}
                self.rest = self.rest.and_of(usage)
                return
            smallest = min(idle, key=self._by_size())
            self.rest = self.rest.and_of(self.namespaces.pop(smallest))
            self._all_move()
        self.namespaces[namespace] = usage

    def _by_size(self) -> Callable[[str], tuple[float, str]]:
        """Return what orders namespaces by the largest part that each has of any resource."""
        whole = _sum(each.average for each in self.namespaces.values())

        def size(name: str) -> tuple[float, str]:
            average = self.namespaces[name].average.items()
            return max((amount / (whole[each] or 1) for each, amount in average), default=0.0), name

        return size

    def _all_move(self) -> None:
        self.version += 1
        self.all_moved = self.version
        self.moved.clear()


class MovedUsages:
    """Finds the queues whose usage moved since it was asked last, in one numpy pass."""

    def __init__(self, usages: Mapping[str, QueueUsage]) -> None:
        self._usages = usages
        self._seen: list[QueueUsage] = []
        self._versions: Positions = np.zeros(0, dtype=np.intp)

    def since_last(self) -> list[str]:
        """Return the queues that moved; all of them where a usage was added or dropped."""
        before, seen = self._versions, self._seen
        self._seen = list(self._usages.values())
        self._versions = np.fromiter((each.version for each in self._seen), dtype=np.intp)
        names = list(self._usages)
        if self._seen != seen:
            return names
        return [names[at] for at in np.flatnonzero(self._versions != before).tolist()]


def _whole(found: Iterable[Held]) -> dict[str, int]:
    return {each: int(amount) for each, amount in _sum(found).items()}


def _sum(found: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for amounts in found:
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, 0) + amount
    return total
