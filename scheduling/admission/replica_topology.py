"""Admits a gang each of whose multi-host replicas must be inside one domain of a label.

Exact where all replicas have one shape and there is at most one pod besides, the head: a domain
holds as many replicas as their pods fit into it, divided by the pods of one, and the head goes
where it costs the fewest replicas. Anything else is tried: replicas to the tightest domains, then
to the roomiest, then, where there are few domains, in every way. Each try asks for the gang with
its replicas held to their domains.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scheduling.admission.domains import ELSEWHERE, STEPS_PER_TRY, Domains, confined, cost_of_try
from scheduling.admission.question import Accepted, LeftOut, Outcome, Question, Rejected
from scheduling.admission.shared_claims import admit_sharers
from scheduling.diagnosis.causes import (
    Cause,
    DoesNotFit,
    NoDomainLeft,
    NoLabel,
    ReplicasCrowded,
    ReplicasShort,
    SearchEnded,
    is_open,
    is_unsupported,
)
from scheduling.diagnosis.domain_refusals import WORKERS
from scheduling.model.amounts import Amounts, Positions
from scheduling.model.constraints import Requirement
from scheduling.model.gang import Group, Member, Topology
from scheduling.model.pod import PodShape
from scheduling.placement.exact_search import Demand
from scheduling.placement.independent import demand_of, displaced

EVERY_WAY = 48
"""Up to so many pairs of a kind of replica and a domain all ways are tried."""

Replica = tuple[str, str]
"""Pod set and name."""

Sums = dict[PodShape, Amounts]
"""Pods of a shape that find room, by domain."""


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """Replicas of equal demand, by name; `home` is the domain where a part of each is already."""

    demand: Demand
    home: int | None
    names: tuple[Replica, ...]

    def fits(self, sums: Sums) -> Amounts:
        """Return how many such replicas each domain holds, if nothing else is placed."""
        fits: Amounts = np.minimum.reduce([sums[shape] // count for shape, count in self.demand])
        if self.home is None:
            return fits
        return np.where(np.arange(len(fits)) == self.home, fits, 0)

    def taken_from(self, sums: Sums, taken: Amounts) -> Sums:
        """Return what domains hold beside so many of these replicas in each."""
        less = {shape: sums[shape] - taken * count for shape, count in self.demand}
        return {**sums, **less}

    def given(self, taken: Amounts) -> dict[Replica, int]:
        """Give so many replicas to each domain, in order of their names."""
        at = np.repeat(np.arange(len(taken)), taken).tolist()
        return dict(zip(self.names, at, strict=True))


def admit_replicas(question: Question) -> Outcome:
    """Place a gang each of whose replicas is to be in one domain."""
    gang = question.gang
    topology = gang.topology
    if topology is None or not topology.replica or not any(g.replica for g in gang.groups()):
        return admit_sharers(question)
    return _Allotment(question, topology).run()


@dataclass(frozen=True, eq=False, slots=True)
class _Way:
    """The domain of each replica, and what the domains hold of their pods beside these."""

    domain: Mapping[Replica, int]
    left: Sums


Order = Callable[[Amounts], Positions]
"""In which order domains that hold so many are filled."""


class _Allotment:
    """One gang, its replicas by kind, and what each domain holds of their pods."""

    def __init__(self, question: Question, topology: Topology) -> None:
        self._question, self._bound = question, topology.pod_sets
        self._gang, self._room = gang, room = question.gang, question.room
        self._domains = Domains.by((topology.replica,), room.columns.traits)
        self._nodes: defaultdict[Replica, list[str]] = defaultdict(list)
        for each in topology.occupied:
            self._nodes[each.pod_set, each.replica].append(each.node)
        shapes = {group.shape for group in gang.groups() if self._is_bound(group)}
        self._sums: Sums = {shape: self._domains.sums(room.counts(shape)) for shape in shapes}
        self._kinds = self._kinds_of(gang.minimum)
        self._others = demand_of(group for group in gang.minimum if not self._is_bound(group))

    def _is_bound(self, group: Group) -> bool:
        return bool(group.replica) and group.pod_set in self._bound

    def _kinds_of(self, groups: Iterable[Group]) -> list[ReplicaKind]:
        """Return the replicas among the groups by kind, the scarcest kind first."""
        parts: defaultdict[Replica, list[Group]] = defaultdict(list)
        for group in filter(self._is_bound, groups):
            parts[group.pod_set, group.replica].append(group)
        kinds: defaultdict[tuple[Demand, int | None], list[Replica]] = defaultdict(list)
        for replica in sorted(parts):
            kinds[demand_of(parts[replica]), self._home(replica)].append(replica)
        found = [ReplicaKind(*key, tuple(names)) for key, names in kinds.items()]
        return sorted(found, key=lambda kind: (self._spare(kind), kind.names))

    def _home(self, replica: Replica) -> int | None:
        """Return the domain where a part of the replica is already; ELSEWHERE where it is none."""
        around = self._domains.around(self._nodes.get(replica, ()), self._room.columns.index)
        return next(iter(around), None) if len(around) < 2 else ELSEWHERE

    def _spare(self, kind: ReplicaKind) -> int:
        """Return how many more replicas of a kind find room than are asked for."""
        return int(kind.fits(self._sums).sum()) - len(kind.names)

    # ---- the tries

    def run(self) -> Outcome:
        """Ask for the gang in one way after the other until one of them places it."""
        cause = self._certain_cause()
        if cause is not None:
            return Rejected(cause)
        causes: list[Cause] = []
        spent, steps = 0, max(self._question.steps, 0)
        for way in self._ways():
            if spent > steps:
                return Rejected(SearchEnded(self._gang.minimum, self._room), spent)
            if way is None:
                spent += STEPS_PER_TRY
                continue
            surplus = self._of_surplus(way.left)
            outcome = admit_sharers(self._held_to({**way.domain, **surplus}, spent))
            spent += outcome.steps
            if isinstance(outcome, Accepted):
                return replace(outcome, steps=spent, left_out=self._left_out(outcome, surplus))
            if is_unsupported(outcome.cause):
                return replace(outcome, steps=spent)
            causes.append(outcome.cause)
            spent += cost_of_try(self._gang, self._domains)
        return Rejected(self._cause(causes), spent)

    def _held_to(self, domain: Mapping[Replica, int], spent: int) -> Question:
        """Return the question of the gang with its replicas held to these domains."""

        def where(pods: Group | Member) -> tuple[Requirement, ...]:
            at = domain.get((pods.pod_set, pods.replica))
            return () if at is None else self._domains.requirements(at)

        return self._question.of(confined(self._gang, where), self._question.steps - spent)

    def _left_out(self, outcome: Accepted, surplus: Mapping[Replica, int]) -> LeftOut:
        """Have what is said of a surplus speak of replicas where no domain holds another one."""
        homeless = [name for name, at in surplus.items() if at == ELSEWHERE]
        if outcome.left_out is None or not homeless:
            return outcome.left_out
        pod_sets = dict.fromkeys(pod_set for pod_set, _ in homeless)
        return NoDomainLeft(self._domains.keys, len(homeless), tuple(pod_sets))

    def _of_surplus(self, left: Sums) -> dict[Replica, int]:
        """Give each unit of the surplus the tightest domain that holds it, or none."""
        domain: dict[Replica, int] = {}
        for kind in (kind for unit in self._gang.surplus for kind in self._kinds_of(unit)):
            best = _tightest(kind.fits(left))[:1]
            domain |= dict.fromkeys(kind.names, int(best[0]) if len(best) else ELSEWHERE)
            if len(best):
                left = kind.taken_from(left, np.bincount(best, minlength=len(self._domains.names)))
        return domain

    # ---- the ways to give domains to replicas

    def _ways(self) -> Iterator[_Way | None]:
        """Yield ways to give the minimum domains; None for one that leads nowhere."""
        beside = self._beside_head()
        if beside is not None:
            yield self._filled(beside, _tightest)
        yield self._filled(self._sums, _tightest)
        yield self._filled(self._sums, _roomiest)
        if self._is_small():
            yield from _every(self._kinds, self._sums)

    def _is_small(self) -> bool:
        """Say whether all ways are tried."""
        pairs = sum(np.count_nonzero(kind.fits(self._sums)) for kind in self._kinds)
        return bool(pairs <= EVERY_WAY)

    def _filled(self, sums: Sums, in_order: Order) -> _Way | None:
        """Fill domains in one order, kind after kind; None where replicas are left over."""
        domain: dict[Replica, int] = {}
        for kind in self._kinds:
            fits = kind.fits(sums)
            order = in_order(fits)
            taken = np.zeros_like(fits)
            before = np.cumsum(fits[order]) - fits[order]
            taken[order] = np.clip(len(kind.names) - before, 0, fits[order])
            if taken.sum() < len(kind.names):
                return None
            domain |= kind.given(taken)
            sums = kind.taken_from(sums, taken)
        return _Way(domain, sums)

    # ---- one kind beside the head

    def _is_simple(self) -> bool:
        """Say whether one shape in one kind of replica stands beside one pod."""
        alone = len(self._kinds) == 1 and len(self._kinds[0].demand) == 1
        return alone and len(self._others) == 1 and self._others[0][1] == 1

    def _beside_head(self) -> Sums | None:
        """Return what domains hold beside the head where it costs least; None if not enough."""
        beside = self._with_head() if self._is_simple() else None
        if beside is None or self._kinds[0].fits(beside).sum() < len(self._kinds[0].names):
            return None
        return beside

    def _with_head(self) -> Sums | None:
        """Return what domains hold beside the head where it costs least; None if it fits nowhere.

        A head on node n costs its domain fits - (sum - pods displaced on n) // pods of a replica.
        """
        [kind] = self._kinds
        [(shape, pods)] = kind.demand
        head = self._others[0][0]
        nodes = np.flatnonzero(self._room.counts(head))
        if not len(nodes):
            return None
        loss = displaced(shape, head, nodes, self._room)
        at = self._domains.of[nodes]
        fits, sums = kind.fits(self._sums), self._sums[shape]
        cost = np.maximum(fits[at] - (sums[at] - loss) // pods, 0) * (at != ELSEWHERE)
        best = np.lexsort((nodes, loss, cost))[0]
        beside = sums.copy()
        if at[best] != ELSEWHERE:
            beside[at[best]] -= loss[best]
        return {**self._sums, shape: beside}

    # ---- why not

    def _certain_cause(self) -> Cause | None:
        """Return why no way can place the gang; None where one may."""
        minimum, room = self._gang.minimum, self._room
        if any(room.total(shape) < count for shape, count in demand_of(minimum)):
            return DoesNotFit(minimum, room)
        if self._kinds and not self._domains.names:
            return NoLabel(self._domains.keys, WORKERS)
        for kind in self._kinds:
            if self._spare(kind) < 0:
                return self._too_few(kind)
        if self._is_simple() and self._beside_head() is None:
            return self._too_few(self._kinds[0])
        return None

    def _too_few(self, kind: ReplicaKind) -> Cause:
        """Return that domains are short, by the one in which the next replica lacks fewest pods.

        Rather one that could hold one more if it were empty.
        """
        beside = self._with_head() if self._is_simple() else None
        sums = beside or self._sums
        others = (group.pod_set for group in self._gang.minimum if not self._is_bound(group))
        fits = kind.fits(sums)
        left = np.minimum.reduce([sums[shape] - fits * n for shape, n in kind.demand])
        columns = self._room.columns
        empty = {shape: self._domains.when_empty(shape, columns) for shape, _ in kind.demand}
        hopeless = kind.fits(empty) <= fits
        at = int(np.lexsort((np.arange(len(fits)), -left, hopeless))[0])
        return ReplicasShort(
            groups=self._gang.minimum,
            keys=self._domains.keys,
            room=self._room,
            pod_sets=tuple(dict.fromkeys(pod_set for pod_set, _ in kind.names)),
            wanted=len(kind.names),
            fit=int(fits.sum()),
            pods=sum(count for _, count in kind.demand),
            some=int(left[at]),
            name=self._domains.names[at],
            beside=tuple(others) if beside else (),
            about=self._all_in(at, kind),
        )

    def _all_in(self, at: int, kind: ReplicaKind) -> tuple[Group, ...]:
        """Return the replicas of a kind as if all of them were held to one domain."""
        required = self._domains.requirements(at)
        mine = frozenset(kind.names)
        held = confined(
            self._gang, lambda pods: required if (pods.pod_set, pods.replica) in mine else ()
        )
        return tuple(each for each in held.minimum if (each.pod_set, each.replica) in mine)

    def _cause(self, causes: Sequence[Cause]) -> Cause:
        """Return why no way that was tried places the gang; that is final where all were."""
        minimum, room = self._gang.minimum, self._room
        if any(map(is_open, causes)) or not self._is_small():
            return SearchEnded(minimum, room)
        return ReplicasCrowded(minimum, self._domains.keys, room)


def _tightest(fits: Amounts) -> Positions:
    """Return the domains that hold any, those that hold the fewest first, then by name."""
    at = np.flatnonzero(fits)
    return at[np.argsort(fits[at], kind="stable")]


def _roomiest(fits: Amounts) -> Positions:
    return _tightest(fits)[::-1]


def _every(kinds: Sequence[ReplicaKind], sums: Sums) -> Iterator[_Way | None]:
    """Yield every way; None for each beginning of one that leaves a kind too little."""
    if not kinds:
        yield _Way({}, sums)
        return
    kind, rest = kinds[0], kinds[1:]
    fits = kind.fits(sums)
    if fits.sum() < len(kind.names):
        yield None
        return
    for split in _splits(len(kind.names), fits.tolist()):
        taken = np.array(split, dtype=np.int64)
        for way in _every(rest, kind.taken_from(sums, taken)):
            yield way and _Way({**kind.given(taken), **way.domain}, way.left)


def _splits(count: int, fits: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every way to write `count` as a sum of one number per domain, none above what fits."""
    if not fits:
        yield ()
        return
    least = max(0, count - sum(fits[1:]))
    for here in range(min(count, fits[0]), least - 1, -1):
        for rest in _splits(count - here, fits[1:]):
            yield (here, *rest)
