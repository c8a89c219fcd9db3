"""Says which mixes of pods a node has devices for, in any order and in a given one.

A mix is a number of pods for each group; the pods of a group have equal claims.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod

from scheduling.devices.allocator import EqualPods, allocate
from scheduling.devices.counting import Counting, FarDevices, counting
from scheduling.devices.node_devices import NodeDevices
from scheduling.devices.outcome import (
    Allocated,
    Doubt,
    NotAllocated,
    Refusal,
    Undecided,
    Unsupported,
)
from scheduling.devices.selection import Rules
from scheduling.devices.steps import StepBudget
from scheduling.model.devices.asked import requests_of
from scheduling.model.devices.in_use import InUse
from scheduling.model.shape.restrictions import Claims

SETS_AT_ONCE = 4
"""Sets of devices that one step is for where they are counted for a mix."""

MIXES_KEPT = 100_000
"""Mixes of all nodes together of which something is remembered."""

UNFORESEEN = (
    "claims that counting does not decide, before Kubernetes 1.36 (ask for a number of devices of "
    "a class, without alternatives, constraints or mode All)"
)

_ENDING = (Refusal.SELECTOR_FAILS, Refusal.CONSTRAINT, Refusal.TOO_MANY_DEVICES)
"""Refusals that another device, met before, may save a node from."""

_PASSING = (Refusal.CONSTRAINT,)
"""Refusals that may end once more is in use: an alternative that is refused is passed over then."""

Mix = tuple[int, ...]
Unknown = Unsupported | Undecided


@dataclass(eq=False)
class NodeMixes:
    """The mixes that one node may hold: `most` of them have room otherwise, sorted.

    `groups` are the claims by group. `pending` are pods of other gangs, by their claims, that are
    on the way to the node: their devices are taken in an order that is not known. `steps` are those
    of who asks now.
    """

    groups: tuple[Claims, ...]
    node: NodeDevices
    most: tuple[Mix, ...]
    rules: Rules
    steps: StepBudget
    pending: tuple[tuple[Claims, int], ...] = ()

    @cached_property
    def refusals(self) -> tuple[NotAllocated | Unknown | None, ...]:
        """Return by group why not even one pod is allocated its devices; None where one is."""
        return tuple(self._sure(self._refusal(claims)) for claims in self.groups)

    def _sure(self, refusal: NotAllocated | Unknown | None) -> NotAllocated | Unknown | None:
        """Return a refusal that holds whatever the order of pools: some end a search in one."""
        ends = isinstance(refusal, NotAllocated) and refusal.refusal in _ENDING
        if ends and not self.rules.features.pools_in_order:
            return Unsupported(UNFORESEEN)
        return refusal

    def _refusal(self, claims: Claims) -> NotAllocated | Unknown | None:
        """A node on which a selector fails is refused, whether the search would reach it or not."""
        self.node.look([claims], self.rules, self.steps)
        for asked in requests_of(claims):
            for answer in self.node.selections(asked, self.rules):
                if isinstance(answer, NotAllocated):
                    return answer
        return self.node.equal_pods(claims, 1, self.rules, self.steps).end if claims else None

    @cached_property
    def in_any_order(self) -> frozenset[Mix]:
        """Return the mixes that are allocated their devices in whatever order the pods come.

        Where counting does not say so, all pods that claim any are equal, those on their way too.
        """
        if self._counting:
            return self._counted
        self.steps.spend(len(self.most))
        equal = [(kind, self._equal_pods(kind).number) for kind in kinds_of(self.groups)]
        return frozenset(mix for mix in self.most if _is_of_one_kind(mix, equal))

    def _equal_pods(self, kind: Sequence[int]) -> EqualPods:
        """Return how many pods of the kind of these groups come where no others do, but equal ones.

        Those that are on their way are not among them.
        """
        claims, refusal = self.groups[kind[0]], self.refusals[kind[0]]
        if not self.rules.features.pools_in_order or self._others_than(claims):
            return EqualPods(0)
        if isinstance(refusal, NotAllocated):
            return EqualPods(0, refusal)
        coming = sum(count for each, count in self.pending if each)
        most = max(sum(mix[at] for at in kind) for mix in self.most)
        found = self.node.equal_pods(claims, most + coming, self.rules, self.steps)
        return found._replace(number=max(0, found.number - coming))

    def _others_than(self, claims: Claims) -> bool:
        """Say whether pods with other claims are on their way."""
        return any(each and each != claims for each, _ in self.pending)

    def in_order(self, order: Sequence[int]) -> frozenset[Mix]:
        """Return the mixes of these groups that are allocated theirs one group after the other."""
        if self._counting or not self._is_foreseen:
            return self.in_any_order
        key = tuple(order)
        if key not in self._by_order:
            self._by_order[key] = self._followed(key)
        return self._by_order[key]

    @cached_property
    def _by_order(self) -> dict[tuple[int, ...], frozenset[Mix]]:
        return {}

    def _followed(self, order: Sequence[int]) -> frozenset[Mix]:
        """Return the same, by what is in use after one pod more and one more."""
        found = {self._nothing: self.node.in_use}
        for group in order:
            for mix, in_use in list(found.items()):
                found.update(self._more(group, mix, in_use))
        return frozenset(found)

    def _more(self, group: int, mix: Mix, in_use: InUse) -> Iterator[tuple[Mix, InUse]]:
        """Yield the mixes with more and more pods of a group, as long as they get devices."""
        while True:
            mix = _with_one(mix, group)
            after = self._after(group, in_use) if mix in self._room else None
            if not isinstance(after, InUse):
                return
            in_use = after
            yield mix, in_use

    @cached_property
    def in_some_order(self) -> "Possible":
        """Return the mixes that are allocated their devices if pods come in a certain order."""
        if self._counting:
            return Possible(self._counted)
        if self._are_equal:
            ends = (self._equal_pods(kind).end for kind in kinds_of(self.groups))
            unknown = next((e for e in ends if e and not isinstance(e, NotAllocated)), None)
            return Possible(self._room if unknown else self.in_any_order, unknown)
        if self._takes_any and not self._is_foreseen:
            return Possible(self._room, self._doubt)
        return self._in_orders()

    @property
    def _are_equal(self) -> bool:
        """Say whether pods that claim any are equal, those on their way too; so is their order."""
        kinds = kinds_of(self.groups)
        if not kinds:
            return True
        alone = len(kinds) == 1 and not self._others_than(self.groups[kinds[0][0]])
        return alone and self.rules.features.pools_in_order

    def _in_orders(self) -> "Possible":
        """Try all orders, pod by pod."""
        states: defaultdict[Mix, set[InUse]] = defaultdict(set)
        states[self._nothing].add(self.node.in_use)
        for mix in self.most:
            for at in range(len(self.groups)):
                for in_use in states[mix] if _with_one(mix, at) in self._room else ():
                    after = self._after(at, in_use)
                    if isinstance(after, InUse):
                        states[_with_one(mix, at)].add(after)
                    elif after is not None:
                        return Possible(self._room, after)
        return Possible(frozenset(mix for mix, found in states.items() if found))

    def most_of(self, group: int) -> int:
        """Return how many pods of one group may come where no others do."""
        alone = (mix for mix in self.in_some_order.mixes if sum(mix) == mix[group])
        return max((mix[group] for mix in alone), default=0)

    @property
    def _is_foreseen(self) -> bool:
        """Say whether it is known which devices each pod of the gang is given."""
        return self.rules.features.pools_in_order and not self.pending

    @property
    def _doubt(self) -> Unknown:
        if self.rules.features.pools_in_order:
            return Undecided(Doubt.OTHERS)
        unsupported = (each for each in self.refusals if isinstance(each, Unsupported))
        return next(unsupported, Unsupported(UNFORESEEN))

    @property
    def _takes_any(self) -> bool:
        return not all(map(_lasts, self.refusals))

    @cached_property
    def _room(self) -> frozenset[Mix]:
        return frozenset(self.most)

    @property
    def _nothing(self) -> Mix:
        return (0,) * len(self.groups)

    def from_afar(self, mix: Mix) -> Mapping[FarDevices, int]:
        """Return how many devices a mix takes that several nodes reach; they are all counted."""
        drawn: Counter[FarDevices] = Counter()
        for count, of_one in zip(mix, self._from_afar, strict=True):
            for devices, number in of_one.items() if count else ():
                drawn[devices] += number * count
        return drawn

    @cached_property
    def _from_afar(self) -> tuple[Mapping[FarDevices, int], ...]:
        """Return the same for one pod of each group."""
        found = self._counting
        return tuple(
            {} if found is None else found.drawn_from_afar([(claims, 1)]) for claims in self.groups
        )

    @cached_property
    def _counting(self) -> Counting | None:
        pods = (*self.groups, *(claims for claims, _ in self.pending))
        return counting(pods, self.node, self.rules, self.steps)

    @cached_property
    def _counted(self) -> frozenset[Mix]:
        found = self._counting
        if found is None:
            return frozenset()
        self.steps.spend(len(self.most) * (1 + len(found.free) // SETS_AT_ONCE))
        return frozenset(found.held(self.groups, self.most, self.pending))

    @cached_property
    def _known(self) -> dict[tuple[int, InUse], InUse | Unknown | None]:
        return {}

    def _after(self, group: int, in_use: InUse) -> InUse | Unknown | None:
        """Return what is in use after one more pod of a group; None where it is refused."""
        key = group, in_use
        if key not in self._known:
            self._known[key] = self._allocated(group, in_use)
        return self._known[key]

    def forget_search(self) -> None:
        """Forget which devices are in use after which pods: what was asked for is known."""
        vars(self).pop("_known", None)

    def _allocated(self, group: int, in_use: InUse) -> InUse | Unknown | None:
        if not self.groups[group]:
            return in_use
        if _lasts(self.refusals[group]):
            return None
        found = allocate(self.groups[group], self.node.pools, in_use, self.rules, self.steps)
        if isinstance(found, Allocated):
            return in_use.plus(found.given)
        return None if isinstance(found, NotAllocated) else found


class KeptMixes:
    """What is known of nodes, for gangs of equal demand.

    Nodes that are alike are one example here. So a gang works out only what none before it did.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, NodeMixes] = {}
        self._new: dict[Hashable, NodeMixes] = {}
        self._size = 0

    def known(self, asked: NodeMixes) -> NodeMixes:
        """Return the mixes with all that is known of them, for who asks now."""
        key = id(asked.node), asked.groups, asked.most, asked.pending
        known = self._known.get(key)
        if known is not None and known.rules is asked.rules:
            known.steps = asked.steps
            asked = known
        self._new[key] = asked
        return asked

    def settle(self) -> None:
        """Keep what is known after one gang: nothing where its steps did not do for all of it."""
        for key, each in self._new.items():
            each.forget_search()
            before = self._known.pop(key, None)
            self._size -= len(before.most) if before else 0
            if each.steps.left >= 0:
                self._keep(key, each)
        self._new = {}

    def _keep(self, key: Hashable, mixes: NodeMixes) -> None:
        """Keep what is known of one node; once that is too much, what is known of others goes."""
        if self._size > MIXES_KEPT:
            self._known, self._size = {}, 0
        self._known[key] = mixes
        self._size += len(mixes.most)


@dataclass(frozen=True, slots=True)
class Possible:
    """Mixes that are possible; where it is `unknown` whether they are, all are listed."""

    mixes: frozenset[Mix]
    unknown: Unknown | None = None


def _lasts(refusal: NotAllocated | Unknown | None) -> bool:
    """Say whether pods are refused whatever others take before them."""
    return isinstance(refusal, NotAllocated) and refusal.refusal not in _PASSING


def _is_of_one_kind(mix: Mix, most: Sequence[tuple[Sequence[int], int]]) -> bool:
    """Say whether of all kinds of pods one is in a mix, and so many of it at most, or none is."""
    there = [(sum(mix[at] for at in kind), number) for kind, number in most]
    claiming = [(pods, number) for pods, number in there if pods]
    return not claiming or (len(claiming) == 1 and claiming[0][0] <= claiming[0][1])


def kinds_of(groups: Sequence[tuple[Hashable, ...]]) -> list[list[int]]:
    """Return which groups have equal claims, those without any left aside."""
    kinds: dict[tuple[Hashable, ...], list[int]] = {}
    for at, claims in enumerate(groups):
        if claims:
            kinds.setdefault(claims, []).append(at)
    return list(kinds.values())


def mixes_with_room(
    most: Mix, requests: Sequence[Mix], free: Mix, steps: StepBudget
) -> tuple[Mix, ...]:
    """Return the mixes of at most so many pods whose other requests are free together, sorted.

    `requests` are those of one pod by group, in the order of `free`.
    """
    if _all_fit(most, requests, free):
        steps.spend(prod(count + 1 for count in most))
        return tuple(product(*(range(count + 1) for count in most)))
    found: list[Mix] = [()]
    left: dict[Mix, Mix] = {(): free}
    for count, request in zip(most, requests, strict=True):
        before, found = found, []
        for mix in before:
            for pods in range(count + 1):
                steps.spend()
                rest = tuple(
                    have - pods * need for have, need in zip(left[mix], request, strict=True)
                )
                if pods and min(rest, default=0) < 0:
                    break
                found.append((*mix, pods))
                left[found[-1]] = rest
    return tuple(found)


def _all_fit(most: Mix, requests: Sequence[Mix], free: Mix) -> bool:
    """Say whether the most of each group have room together."""
    return all(
        sum(count * request[at] for count, request in zip(most, requests, strict=True)) <= have
        for at, have in enumerate(free)
    )


def _with_one(mix: Mix, group: int) -> Mix:
    return (*mix[:group], mix[group] + 1, *mix[group + 1 :])
