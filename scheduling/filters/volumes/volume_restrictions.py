"""VolumeRestrictions: claims for one pod only, and claims that several pods of a gang mount.

A claim that waits for its first consumer has its volume where that goes. If several pods of the
minimum mount it, those must be where the volume is reached from, whichever of them is first: on
nodes with equal values of the topology keys of the driver, or, if nothing is known of a driver, on
one node (`Sharing`). No other gang gets room with it before it is bound.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Set
from dataclasses import replace
from functools import cached_property
from itertools import chain

from scheduling.filters.volumes.claim_effect import (
    BIND_IT,
    BINDING,
    UNKNOWN,
    Effect,
    Seeker,
    spoken,
)
from scheduling.filters.volumes.node_volume_limits import attach_row
from scheduling.filters.volumes.static_volumes import StaticDemand, too_few, too_few_for_more
from scheduling.model.constraints import NODE_NAME, VolumeNodeRestriction
from scheduling.model.gang import Group, GroupKey, Member, PendingGang, Sharing
from scheduling.model.pod import Mount, PodShape
from scheduling.model.predicates import Predicate
from scheduling.model.shape.node_restrictions import with_volumes

Share = tuple[str, tuple[str, ...] | None]
"""A claim, and the labels that say from where its volume will be reached."""


WithTooFew = Callable[[Seeker], Effect]
"""What follows where there may be too few volumes for a claim."""


class Mounting:
    """One gang whose pods mount claims, and the claims that assumed pods mount already."""

    def __init__(
        self,
        gang: PendingGang,
        effects: Mapping[GroupKey, Effect],
        assumed: Set[str],
        static: StaticDemand,
    ) -> None:
        self._gang = gang
        self._effects = effects
        self._assumed = assumed
        self._static = static
        self._taken: set[str] = set()
        self._left_open: set[str] = set()
        self.left_open: frozenset[str] = frozenset()
        """Names of claims of the minimum that may fit on more nodes than its shapes say."""

    def gang(self) -> PendingGang:
        """Return the gang with reach, disks and what is not supported in its shapes."""
        minimum = self._batch(self._gang.minimum, too_few)
        self.left_open = frozenset(self._left_open)
        surplus = tuple(self._batch(unit, too_few_for_more) for unit in self._gang.surplus)
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
        sets = sorted({pod_set for groups in shared.values() for pod_set, _ in groups})
        named = ", ".join(spoken(Mount(name)) for name, _ in sorted(shared, key=repr))
        keys = [each for _, each in shared]
        if None in keys:
            return Sharing(tuple(sets), (NODE_NAME,), named, certain=False)
        union = sorted({key for each in keys for key in each or ()})
        return Sharing(tuple(sets), tuple(union), named)

    @cached_property
    def _shared(self) -> Mapping[Share, frozenset[GroupKey]]:
        """Return the claims to be shared with the groups of the minimum that mount them."""
        found: defaultdict[Share, set[GroupKey]] = defaultdict(set)
        pods: Counter[Share] = Counter()
        for group in (group for group in self._gang.minimum if group.shape.volumes):
            for share in self._effect(group).shares:
                found[share].add((group.pod_set, group.shape))
                pods[share] += group.count
        return {share: frozenset(each) for share, each in found.items() if pods[share] > 1}

    def _batch(self, groups: tuple[Group, ...], few: WithTooFew) -> tuple[Group, ...]:
        """Give shapes their effects, and the claims that only one pod may have to these groups."""
        pods: Counter[tuple[str, Predicate]] = Counter()
        self._static.promise()
        for group in (group for group in groups if group.shape.volumes):
            effect = self._effect(group)
            for single in effect.single:
                pods[single] += group.count
            for claim, _ in effect.seekers:
                self._static.add(claim, group.count)
        changed = tuple(
            replace(g, shape=self._shaped(g, pods, few)) if g.shape.volumes else g for g in groups
        )
        self._taken |= {name for name, _ in pods}
        return changed

    def _shaped(
        self, group: Group, pods: Mapping[tuple[str, Predicate], int], few: WithTooFew
    ) -> PodShape:
        effect = self._judged(group, pods)
        for seeker in sorted(effect.seekers, key=repr):
            effect += self._static.effect(seeker) or few(seeker)
        self._left_open |= effect.left_open
        disks = Counter(map(attach_row, effect.drivers))
        return with_volumes(group.shape, effect.reach, disks, tuple(sorted(effect.unsupported)))

    def _effect(self, group: Group) -> Effect:
        return self._effects.get((group.pod_set, group.shape), UNKNOWN)

    def _judged(self, group: Group, pods: Mapping[tuple[str, Predicate], int]) -> Effect:
        """Return the effect on a group, with what follows from other pods that mount its claims."""
        effect = self._effect(group)
        for name, predicate in sorted(effect.single):
            said = spoken(Mount(name))
            if name in self._taken or name in self._assumed:
                why = f"{said} is reserved for another pod"
                effect += Effect((VolumeNodeRestriction(predicate, why, ()),))
            elif pods[name, predicate] > 1 and not self._may_share(name, predicate):
                effect += _shared(said, predicate, pods[name, predicate])
        return effect

    def _may_share(self, name: str, predicate: Predicate) -> bool:
        """Say whether several pods may have a claim: if all that are shared are by the same."""
        alike = len({*self._shared.values()}) == 1
        return predicate == BINDING and alike and any(name == each for each, _ in self._shared)


def _shared(said: str, predicate: Predicate, pods: int) -> Effect:
    """Return what follows where several pods, to be placed together, mount a claim for one."""
    if predicate == Predicate.VOLUME_RESTRICTIONS:
        why = f"{said} is ReadWriteOncePod and {pods} pods of the gang mount it"
        return Effect((VolumeNodeRestriction(predicate, why, ()),))
    name = f"{said}, not bound yet and mounted by {pods} pods ({BIND_IT})"
    return Effect(unsupported=frozenset({name}))
