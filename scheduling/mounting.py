"""What do the claims of one gang mean to its pods, with who else takes them or their volumes?

A claim that waits for its first consumer has its volume where that goes. If several pods of the
minimum mount it, those must be where the volume is reached from, whoever of them is first: on nodes
with equal values of the labels by which the driver tells its volumes apart, or, if nothing is known
of a driver, on one node (`Sharing`). Nobody else gets room with it before it is bound.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from dataclasses import replace
from functools import cached_property
from itertools import chain

from scheduling.attach import attach_row
from scheduling.effects import BINDING, NOTHING, UNKNOWN, Effect, Unit, nowhere, spoken
from scheduling.feasibility import Predicate
from scheduling.model import (
    NODE_NAME,
    Group,
    Member,
    Mount,
    NodeTerm,
    PendingGang,
    PodShape,
    Reach,
    Requirement,
    Sharing,
)
from scheduling.once import SharedDisks, once, rows_of
from scheduling.resources import sorted_requests
from scheduling.static import Wanted
from scheduling.stock import Claims, Stock

Share = tuple[str, tuple[str, ...] | None]
"""A claim, and the labels that say from where its volume will be reached."""


class Mounting:
    """One gang whose pods mount claims, and the claims that are given away already."""

    def __init__(
        self,
        gang: PendingGang,
        effects: Mapping[Unit, Effect],
        promised: Set[str],
        stock: Stock,
        disks: SharedDisks,
    ) -> None:
        self._stock, self._disks = stock, disks
        self._gang = gang
        self._effects = effects
        self._promised = promised
        self._taken: set[str] = set()
        self._claims: Claims = Counter()
        units = (group for group in gang.groups() if group.shape.volumes)
        shared = once((self._effect(group), group.count) for group in units)
        rows = dict(rows_of(gang.key.namespace, shared))
        self._once = {driver: of for driver, of in rows.items() if disks.knows(of)}
        wanted = (each for effect in effects.values() for each in effect.wants)
        self._is_known = all(map(stock.knows, wanted))

    def gang(self) -> PendingGang:
        """Return the gang with reach, disks and what is not supported in its shapes."""
        minimum = self._batch(self._gang.minimum)
        surplus = tuple(self._batch(unit) for unit in self._gang.surplus)
        made: dict[tuple[str, str], dict[PodShape, None]] = {}
        for group in chain(minimum, *surplus):
            made.setdefault((group.pod_set, group.shape.key), {})[group.shape] = None
        members = tuple(
            Member(member.pod_set, shape, *member[2:])
            for member in self._gang.members
            for shape in made.get((member.pod_set, member.shape.key), ())
        )
        made_of = replace(self._gang, minimum=minimum, surplus=surplus, members=members)
        return replace(made_of, sharing=self._sharing())

    def _sharing(self) -> Sharing | None:
        """Return which pods of the minimum must be together for the sake of claims they share."""
        shared = self._shared
        if not shared:
            return None
        sets = sorted({pod_set for units in shared.values() for pod_set, _ in units})
        named = ", ".join(spoken(Mount(name)) for name, _ in sorted(shared, key=repr))
        keys = [each for _, each in shared]
        if None in keys:
            return Sharing(tuple(sets), (NODE_NAME,), named, certain=False)
        union = sorted({key for each in keys for key in each or ()})
        return Sharing(tuple(sets), tuple(union), named)

    @cached_property
    def _shared(self) -> Mapping[Share, frozenset[Unit]]:
        """Return the claims to be shared with the units of the minimum that mount them."""
        found: defaultdict[Share, set[Unit]] = defaultdict(set)
        pods: Counter[Share] = Counter()
        for group in (group for group in self._gang.minimum if group.shape.volumes):
            for share in self._effect(group).shares:
                found[share].add((group.pod_set, group.shape))
                pods[share] += group.count
        return {share: frozenset(units) for share, units in found.items() if pods[share] > 1}

    def _batch(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        """Give shapes their effects, and the claims that only one pod may have to these groups."""
        pods: Counter[tuple[str, Predicate]] = Counter()
        for group in (group for group in groups if group.shape.volumes):
            effect = self._effect(group)
            for single in effect.single:
                pods[single] += group.count
            for each in effect.wants:
                self._claims[each.want, each.size] += group.count
        changed = tuple(
            replace(g, shape=self._shaped(g, pods)) if g.shape.volumes else g for g in groups
        )
        self._taken |= {name for name, _ in pods}
        return changed

    def _shaped(self, group: Group, pods: Mapping[tuple[str, Predicate], int]) -> PodShape:
        effect = self._judged(group, pods)
        disks = Counter(attach_row(each) for each in effect.drivers if each not in self._once)
        disks.update(row for each in {*effect.drivers} for row in self._once.get(each, ()))
        disks.update(self._stock.requests(effect.wants))
        shape = group.shape
        return replace(
            shape,
            requests=sorted_requests({**dict(shape.requests), **disks}),
            unsupported=tuple(sorted({*shape.unsupported, *effect.unsupported})),
            reach=effect.reach,
            came_as=shape.key,
        )

    def _effect(self, group: Group) -> Effect:
        return self._effects.get((group.pod_set, group.shape), UNKNOWN)

    def _judged(self, group: Group, pods: Mapping[tuple[str, Predicate], int]) -> Effect:
        """Return the effect on a group, with what follows from who else mounts its claims."""
        effect = self._effect(group)
        for name, predicate in sorted(effect.single):
            said = spoken(Mount(name))
            if name in self._taken or name in self._promised:
                why = f"{said} is kept for another pod"
                effect += Effect((Reach(predicate, why, ()),))
            elif pods[name, predicate] > 1 and not self._may_share(name, predicate):
                effect += _shared(said, predicate, pods[name, predicate])
        for wanted in effect.wants:
            effect += self._placed(wanted)
        for driver in sorted({*effect.drivers}):
            effect += self._left_by_limits(driver)
        return effect

    def _left_by_limits(self, driver: str) -> Effect:
        """Leave out nodes that rows of single disks do not tell about."""
        rows = self._once.get(driver)
        full = self._disks.full(rows) if rows else self._disks.taken_once(driver)
        terms = (NodeTerm((Requirement(NODE_NAME, "NotIn", full),)),)
        said = f"attachable {driver}"
        return Effect((Reach(Predicate.VOLUME_LIMITS, said, terms),)) if full else NOTHING

    def _may_share(self, name: str, predicate: Predicate) -> bool:
        """Say whether several pods may have a claim: if all that are shared are by the same."""
        alike = len({*self._shared.values()}) == 1
        return predicate == BINDING and alike and any(name == each for each, _ in self._shared)

    def _placed(self, wanted: Wanted) -> Effect:
        """Say what the volumes that are there mean to a claim, beside their number on each node."""
        said, want, _ = wanted
        of_class = f'of storage class "{want.storage_class}"'
        problem = self._unclear(wanted)
        if problem:
            return Effect(unsupported=frozenset({f"{said} {problem} {of_class}"}))
        if self._stock.is_given(want):
            return nowhere(said, f"must wait for a gang that takes volumes {of_class}")
        terms = self._stock.where(wanted, self._claims).terms
        if terms == ():
            return nowhere(said, f"finds no free volume {of_class}")
        return Effect((Reach(BINDING, said, terms),)) if terms else NOTHING

    def _unclear(self, wanted: Wanted) -> str:
        """Say why it cannot be told which volume a claim will have; empty where it can."""
        if not self._is_known:
            return "among too many kinds of claims, one for volumes"
        if self._stock.unlike(wanted.want, (each for each, _ in self._claims)):
            return "beside one that asks differently for the volumes"
        if self._stock.moves(wanted.want):
            return "for a volume that a CSI driver took over"
        if not self._stock.where(wanted, self._claims).is_certain:
            return "beside others that may take the volumes, each of several nodes,"
        return ""


def _shared(said: str, predicate: Predicate, pods: int) -> Effect:
    """Say what it means that several pods, to be placed together, want a claim for one."""
    if predicate == Predicate.VOLUME_RESTRICTIONS:
        why = f"{said} is ReadWriteOncePod and {pods} pods of the gang mount it"
        return Effect((Reach(predicate, why, ()),))
    name = f"{said}, not bound yet and mounted by {pods} pods"
    return Effect(unsupported=frozenset({name}))
