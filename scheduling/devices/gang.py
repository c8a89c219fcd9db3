"""Foresees whether all pods of a gang get the devices that they claim, and in which release waves.

Devices cannot be held: kube-scheduler allocates them pod by pod, in an order of its own. So pods
with different claims are placed where counting says all there is to say, or they are released one
group after the other, each wave once all pods before it are seen bound.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import permutations

from scheduling.devices.counting import FarDevices
from scheduling.devices.mixes import KeptMixes, Mix, NodeMixes, Unknown, kinds_of, mixes_with_room
from scheduling.devices.node_devices import REACHED_BY_OTHERS, NodeDevices
from scheduling.devices.outcome import Doubt, NotAllocated, Undecided, Unsupported
from scheduling.devices.selection import Rules
from scheduling.devices.steps import OutOfSteps, StepBudget
from scheduling.model.devices.class_requests import ClassRequests
from scheduling.model.devices.in_use import InUse
from scheduling.model.shape.restrictions import Claims, claims_where

MOST_WAVES = 8
"""More waves are not tried: each costs the time until all its pods are seen bound."""


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """Pods of a gang with equal claims; `requests` is what one takes else, in a common order.

    All groups of one `tie`, if it has any, go to one node: devices that they share are there.
    `by_class` is claimed as well where a node lists none of it.
    """

    claims: Claims
    count: int
    requests: Mix = ()
    tie: Hashable = None
    by_class: ClassRequests = ()

    def claims_where(self, lacking: frozenset[str]) -> Claims:
        """Return what one of the pods claims on a node that lists none of these resources."""
        return claims_where(self.claims, self.by_class, lacking)


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """Nodes that are alike: the devices of one, what else is free there, the pods that it may take.

    `most` are so many of each group. `pending` are pods of other gangs that are to come to each of
    the nodes, by their claims. `lacking` are resources that pods ask for and that no node of these
    lists.
    """

    names: Sequence[str]
    devices: NodeDevices
    most: Mix
    free: Mix = ()
    pending: tuple[tuple[Claims, int], ...] = ()
    lacking: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Foreseen:
    """Where the pods go (by node the number for each group), and the wave of each group."""

    placement: tuple[tuple[str, Mix], ...]
    waves: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NoPlacement:
    """There is none with any waves; `refusals` are what nodes refuse even one pod of a group for.

    They are listed by group, each once. `most` are the pods of each group that get devices where no
    other group takes any.
    """

    refusals: tuple[tuple[NotAllocated, ...], ...]
    most: Mix = ()


Verdict = Foreseen | NoPlacement | Unknown


LeftOf = Callable[[FarDevices, InUse, StepBudget], int | None]
"""Says how many of some devices that several nodes reach are left; None where it is not known."""


def _not_known(devices: FarDevices, in_use: InUse, steps: StepBudget) -> None:
    """Know of no devices that several nodes reach."""


def foresee(
    groups: Sequence[ClaimGroup],
    nodes: Iterable[NodeOffer],
    rules: Rules,
    steps: StepBudget,
    left_of: LeftOf = _not_known,
    kept: KeptMixes | None = None,
) -> Verdict:
    """Return whether and how the gang is placed; the first node by name is filled first.

    What is `kept` of gangs of equal demand, on nodes that are alike, is not worked out again.
    """
    kept = KeptMixes() if kept is None else kept
    try:
        return _Gang(groups, nodes, rules, steps, left_of, kept).verdict()
    except OutOfSteps:
        return Undecided(Doubt.STEPS)
    finally:
        kept.settle()


@dataclass(frozen=True, eq=False, slots=True)
class _Alike:
    """Nodes that hold the same mixes."""

    mixes: NodeMixes
    names: list[str] = field(default_factory=list)


class _Gang:
    """One gang on the nodes that are offered."""

    def __init__(
        self,
        groups: Sequence[ClaimGroup],
        nodes: Iterable[NodeOffer],
        rules: Rules,
        steps: StepBudget,
        left_of: LeftOf,
        kept: KeptMixes,
    ) -> None:
        self._groups, self._rules, self._steps = groups, rules, steps
        self._left_of, self._kept = left_of, kept
        self._asked = [(*each.claims, *each.by_class) for each in groups]
        self._ties = _ties(groups)
        self._rooms: dict[tuple[Mix, Mix], tuple[Mix, ...]] = {}
        self._alike = self._classes(sorted(nodes, key=lambda offer: offer.names[0]))

    def _classes(self, offers: Iterable[NodeOffer]) -> list[_Alike]:
        """Put nodes together whose devices make one pattern, and that have room for the same."""
        found: dict[Hashable, _Alike] = {}
        limits: dict[Hashable, Mix] = {}
        for offer in offers:
            claims = tuple(each.claims_where(offer.lacking) for each in self._groups)
            pods = (*claims, *(pending for pending, _ in offer.pending))
            pattern = offer.lacking, offer.devices.pattern(pods, self._rules, self._steps)
            if pattern not in limits:
                limits[pattern] = self._limits(claims, offer.devices)
            room = self._room(offer, limits[pattern])
            key = pattern, room, offer.pending
            if key not in found:
                found[key] = _Alike(self._mixes(claims, offer, room))
            found[key].names.extend(offer.names)
        return list(found.values())

    def _limits(self, claims: Sequence[Claims], devices: NodeDevices) -> Mix:
        """Return how many pods of each group there are at most, by the number of devices."""
        return tuple(
            min(each.count, devices.most(claimed, self._rules))
            for each, claimed in zip(self._groups, claims, strict=True)
        )

    def _room(self, offer: NodeOffer, limits: Mix) -> tuple[Mix, ...]:
        key = tuple(map(min, limits, offer.most)), offer.free
        if key not in self._rooms:
            requests = [each.requests for each in self._groups]
            self._rooms[key] = mixes_with_room(key[0], requests, key[1], self._steps)
        return self._rooms[key]

    def _mixes(
        self, claims: tuple[Claims, ...], offer: NodeOffer, room: tuple[Mix, ...]
    ) -> NodeMixes:
        there = claims, offer.devices, room, self._rules, self._steps, offer.pending
        return self._kept.known(NodeMixes(*there))

    def verdict(self) -> Verdict:
        """Try one wave, then an order of groups; what no order makes possible does not fit."""
        at_once = self._placed(lambda mixes: self._sure(mixes, mixes.in_any_order))
        if at_once is not None:
            return Foreseen(at_once, (0,) * len(self._groups))
        possible = self._placed(lambda mixes: mixes.in_some_order.mixes)
        if possible is None and self._ties and self._far:
            return Unsupported(REACHED_BY_OTHERS)
        if possible is None:
            return NoPlacement(self._refusals(), self._most())
        return self._in_waves() or self._unknown()

    def _in_waves(self) -> Foreseen | None:
        """Place the gang one kind of claims after the other; pods without claims come first."""
        kinds = kinds_of(self._asked)
        if not 1 < len(kinds) <= MOST_WAVES:
            return None
        for order in permutations(kinds):
            waves = [0] * len(self._asked)
            for wave, kind in enumerate(order):
                for group in kind:
                    waves[group] = wave
            groups = sorted(range(len(waves)), key=lambda at: (bool(self._asked[at]), waves[at]))
            placed = self._placed(partial(self._sure_in_order, groups))
            if placed is not None:
                return Foreseen(placed, tuple(waves))
        return None

    @cached_property
    def _far(self) -> Mapping[FarDevices, int | Unknown]:
        """Return how many devices that several nodes reach are left for the gang, by their sets.

        It is not known of sets that have some devices in common, and not all.
        """
        every = (1,) * len(self._groups)
        sets = {s: alike.mixes for alike in self._alike for s in alike.mixes.from_afar(every)}
        return {each: self._left(each, mixes, sets.keys()) for each, mixes in sets.items()}

    def _left(
        self, devices: FarDevices, mixes: NodeMixes, sets: Iterable[FarDevices]
    ) -> int | Unknown:
        if any(devices != other and devices & other for other in sets):
            return Unsupported(REACHED_BY_OTHERS)
        left = self._left_of(devices, mixes.node.in_use, self._steps)
        return Undecided(Doubt.OTHERS) if left is None else max(0, left)

    def _sure(self, mixes: NodeMixes, held: Iterable[Mix]) -> frozenset[Mix]:
        """Return the mixes of which it is known what they leave of devices of several nodes."""
        unknown = {each for each, left in self._far.items() if not isinstance(left, int)}
        if not unknown:
            return frozenset(held)
        return frozenset(mix for mix in held if unknown.isdisjoint(mixes.from_afar(mix)))

    def _sure_in_order(self, order: Sequence[int], mixes: NodeMixes) -> frozenset[Mix]:
        return self._sure(mixes, mixes.in_order(order))

    def _with_far(self, mixes: NodeMixes, held: Iterable[Mix]) -> list[Mix]:
        """Return mixes, each with what it takes of the devices of several nodes, the largest first.

        What is not known to be left does not bound them.
        """
        size = len(self._groups)
        known = [each for each, left in self._far.items() if isinstance(left, int)]
        drawn = ((mix, mixes.from_afar(mix) if known else {}) for mix in held)
        found = [(*mix, *(of.get(each, 0) for each in known)) for mix, of in drawn]
        return sorted(found, key=lambda mix: (-sum(mix[:size]), mix))

    def _unknown(self) -> Unknown:
        found = (each.mixes.in_some_order.unknown for each in self._alike)
        unknown = (each for each in (*found, *self._far.values()) if each is not None)
        return next((e for e in unknown if not isinstance(e, int)), Undecided(Doubt.ORDER))

    def _most(self) -> Mix:
        """Return how many pods of each group the nodes hold, of no other group any."""
        return tuple(
            sum(len(each.names) * each.mixes.most_of(at) for each in self._alike)
            for at in range(len(self._groups))
        )

    def _refusals(self) -> tuple[tuple[NotAllocated, ...], ...]:
        found: list[dict[NotAllocated, None]] = [{} for _ in self._groups]
        for alike in self._alike:
            for by_group, refusal in zip(found, alike.mixes.refusals, strict=True):
                if isinstance(refusal, NotAllocated):
                    by_group[refusal] = None
        return tuple(map(tuple, found))

    def _ties_hold(self, mix: Mix) -> bool:
        """Say whether the groups of each tie are all on the node, or none of them is."""
        return all(
            not any(mix[at] for at in tied) or all(mix[at] == self._groups[at].count for at in tied)
            for tied in self._ties
        )

    def _placed(
        self, held: Callable[[NodeMixes], Collection[Mix]]
    ) -> tuple[tuple[str, Mix], ...] | None:
        """Return a mix for each node that is used, all of which are the gang; None if none are."""
        total = tuple(each.count for each in self._groups)
        options = [
            (alike.names, self._with_far(alike.mixes, filter(self._ties_hold, held(alike.mixes))))
            for alike in self._alike
        ]
        if _is_short(total, options):
            return None
        most = (*total, *(left for left in self._far.values() if isinstance(left, int)))
        found = _filled_greedily(total, most, options)
        return found or _filled(total, most, options, self._steps)


def _ties(groups: Sequence[ClaimGroup]) -> Collection[Sequence[int]]:
    """Return which groups are tied to each other."""
    found: dict[Hashable, list[int]] = {}
    for at, each in enumerate(groups):
        if each.tie is not None:
            found.setdefault(each.tie, []).append(at)
    return found.values()


def _is_short(total: Mix, options: Sequence[tuple[Sequence[str], Sequence[Mix]]]) -> bool:
    """Say whether the nodes hold too few pods of some group even where no other takes any."""
    most = [0] * len(total)
    for names, mixes in options:
        for at in range(len(total)):
            most[at] += len(names) * max((mix[at] for mix in mixes), default=0)
    return any(have < need for have, need in zip(most, total, strict=True))


def _filled_greedily(
    total: Mix, most: Mix, options: Sequence[tuple[Sequence[str], Sequence[Mix]]]
) -> tuple[tuple[str, Mix], ...] | None:
    """Give each node the largest mix that is still wanted; None where some pods are left over.

    A mix is longer than the total by what it takes of devices of several nodes, at most so many.
    """
    left, found, size = most, [], len(total)
    for names, mixes in options:
        for name in names:
            mix = next((each for each in mixes if all(map(int.__le__, each, left))), left)
            if not any(mix[:size]) or mix not in mixes:
                break
            found.append((name, mix[:size]))
            left = tuple(map(int.__sub__, left, mix))
    return tuple(sorted(found)) if not any(left[:size]) else None


def _filled(
    total: Mix,
    most: Mix,
    options: Sequence[tuple[Sequence[str], Sequence[Mix]]],
    steps: StepBudget,
) -> tuple[tuple[str, Mix], ...] | None:
    """Give nodes mixes that are the total together, exactly: by all sums that can be reached.

    Of nodes that are alike no more are asked than there are pods, nor any once one adds nothing.
    """
    nothing, size = (0,) * len(most), len(total)
    if not any(total):
        return ()
    came_from: dict[Mix, tuple[Mix, str, Mix] | None] = {nothing: None}
    for names, mixes in options:
        for name in names[: sum(total)]:
            before = len(came_from)
            for reached in list(came_from):
                for mix in mixes:
                    steps.spend()
                    after = tuple(map(sum, zip(reached, mix, strict=True)))
                    if after not in came_from and all(map(int.__le__, after, most)):
                        came_from[after] = reached, name, mix
                        if after[:size] == total:
                            return _traced(came_from, after, size)
            if len(came_from) == before:
                break
    return None


def _traced(
    came_from: dict[Mix, tuple[Mix, str, Mix] | None], total: Mix, size: int
) -> tuple[tuple[str, Mix], ...]:
    """Return the nodes and their mixes that led to the total, by name."""
    found: list[tuple[str, Mix]] = []
    step = came_from[total]
    while step is not None:
        before, name, mix = step
        found.append((name, mix[:size]))
        step = came_from[before]
    return tuple(sorted(found))
