"""What do the claims of a gang's pods leave of the choice of nodes, at one moment of a cycle?

Follows plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits of
kube-scheduler 1.36. Each claim is worked out to its effect: terms for nodes (`Reach`) and disks
that count against a limit. Pods whose claims differ in name only, as those of generic ephemeral
volumes, stay one shape. Feature gates StorageCapacityScoring and VolumeLimitScaling are off.

Where several pods mount one claim that is not bound yet, the volume's place is known only after
the first of them has gone to its node; so only one pod may have room with such a claim, as with
one that is ReadWriteOncePod.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from operator import add

from scheduling.attach import attach_row, counted
from scheduling.columns import LIMIT, Columns
from scheduling.feasibility import Predicate
from scheduling.model import (
    NODE_NAME,
    Group,
    Member,
    Mount,
    NodeTerm,
    NodeTerms,
    PendingGang,
    Placement,
    PodShape,
    Reach,
    Requirement,
)
from scheduling.resources import sorted_requests
from scheduling.storage import (
    IN_TREE_DRIVERS,
    Capacity,
    Claim,
    Driver,
    StorageClass,
    StorageTable,
    Volume,
)

NO_PROVISIONER = "kubernetes.io/no-provisioner"
_IN_TREE = "kubernetes.io/"

ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
"""What plugin VolumeZone reads; the first two are the old names of the others."""

_NEW_NAME = dict(zip(ZONE_LABELS[:2], ZONE_LABELS[2:], strict=True))
_UNZONED = NodeTerm(tuple(Requirement(key, "DoesNotExist", ()) for key in ZONE_LABELS))

Unit = tuple[str, PodShape]
ClaimKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What claims mean to the pod that mounts them.

    `single` names the claims that only one pod may have, with the predicate that says so.
    """

    reach: tuple[Reach, ...] = ()
    drivers: tuple[str, ...] = ()
    unsupported: frozenset[str] = frozenset()
    single: frozenset[tuple[str, Predicate]] = frozenset()

    def __add__(self, other: "Effect") -> "Effect":
        """Return what both mean together."""
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return Effect(
            tuple(dict.fromkeys((*self.reach, *other.reach))),
            tuple(sorted(self.drivers + other.drivers)),
            self.unsupported | other.unsupported,
            self.single | other.single,
        )

    @property
    def is_hopeless(self) -> bool:
        """Say whether it leaves no node."""
        return any(not each.terms for each in self.reach)


NOTHING = Effect()
_UNKNOWN = Effect(unsupported=frozenset({"volumes of pods that are not known"}))


class Volumes:
    """The table at one moment of a cycle, with the claims of pods that are promised room.

    `reserved` says by node how much of a made-up resource is promised.
    """

    def __init__(
        self,
        table: StorageTable,
        reserved: Callable[[str], Mapping[str, int]] = lambda _: {},
        promised: Iterable[ClaimKey] = (),
    ) -> None:
        self._table = table
        self._reserved = reserved
        self._promised: defaultdict[str, set[str]] = defaultdict(set)
        for namespace, claim in promised:
            self._promised[namespace].add(claim)
        self._own: dict[tuple[str, str, str, int | None], Effect] = {}

    @cached_property
    def _limits(self) -> Mapping[str, Mapping[str, int]]:
        return self._table.limits()

    @cached_property
    def _open(self) -> Mapping[str, Sequence[Volume]]:
        """Return by storage class the volumes that may still be bound."""
        found: defaultdict[str, list[Volume]] = defaultdict(list)
        for volume in self._table.all(Volume):
            if volume.open:
                found[volume.storage_class].append(volume)
        return found

    # ---- room

    def with_limits(self, columns: Columns) -> Columns:
        """Return the nodes with what they can attach, per driver that has a limit anywhere."""
        attached = self._table.attached() if self._limits else {}
        rows = {}
        for driver, limits in self._limits.items():
            taken = Counter(attached.get(driver, {}))
            taken.update(self._reserved(attach_row(driver)))
            taken.update(dict.fromkeys(self._table.broken(), LIMIT))
            rows[attach_row(driver)] = counted(columns, limits, taken)
        return columns.with_rows(rows) if rows else columns

    # ---- gangs

    def mounted(self, gang: PendingGang) -> PendingGang:
        """Return the gang with what its volumes mean in its shapes."""
        if not any(group.shape.volumes for group in gang.groups()):
            return gang
        return _Mounting(gang, self._effects(gang), self._promised[gang.key.namespace]).gang()

    def promise(self, gang: PendingGang, placement: Placement) -> None:
        """Count the claims of pods that this cycle gives room to."""
        placed = {(each.pod_set, each.shape) for each in placement.assignments}
        claims = self._promised[gang.key.namespace]
        for each in gang.members:
            if each.mounts and (each.pod_set, each.shape.key) in placed:
                claims.update(mount.claim for mount in each.mounts if not mount.volume)

    def _effects(self, gang: PendingGang) -> dict[Unit, Effect]:
        asked: defaultdict[Unit, dict[tuple[Mount, ...], None]] = defaultdict(dict)
        for each in gang.members:
            if each.shape.volumes:
                asked[each.pod_set, each.shape][each.mounts] = None
        return {
            unit: _common(self._effect(gang.key.namespace, mounts) for mounts in found)
            for unit, found in asked.items()
        }

    def _effect(self, namespace: str, mounts: Iterable[Mount]) -> Effect:
        effects = (self._effect_of(namespace, mount) for mount in sorted(set(mounts)))
        return reduce(add, effects, NOTHING)

    # ---- one claim

    def _effect_of(self, namespace: str, mount: Mount) -> Effect:
        """Work out one claim, in the order in which plugin VolumeBinding asks."""
        called = _called(mount)
        if not self._table.is_seen:
            return _none(called, "is not known, because volumes cannot be watched")
        if not mount.claim:
            return Effect(drivers=self._counted(mount.volume))
        claim = self._table.find(Claim, (namespace, mount.claim))
        problem = _problem(claim, mount)
        if claim is None or problem:
            return _none(called, problem)
        if claim.bound and claim.volume:
            effect = self._bound(claim, mount)
        elif mount.volume:
            effect = self._unbound_own(claim, mount)
        else:
            effect = self._unbound(claim, mount)
        return effect + self._once(claim, mount)

    def _once(self, claim: Claim, mount: Mount) -> Effect:
        """Say what ReadWriteOncePod means; of ephemeral volumes the plugin does not ask."""
        if not claim.once or mount.volume:
            return NOTHING
        single = Effect(single=frozenset({(claim.name, Predicate.VOLUME_RESTRICTIONS)}))
        if not self._table.is_used(*claim.key):
            return single
        why = f"{_called(mount)} is ReadWriteOncePod and in use"
        return single + Effect((Reach(Predicate.VOLUME_RESTRICTIONS, why, ()),))

    def _bound(self, claim: Claim, mount: Mount) -> Effect:
        called = _called(mount)
        volume = self._table.find(Volume, claim.volume)
        if volume is None:
            return _none(called, "is bound to a volume that does not exist")
        drivers = self._counted(volume.driver) if volume.handle else ()
        return Effect(tuple(self._from_where(volume, mount)), drivers)

    def _from_where(self, volume: Volume, mount: Mount) -> Iterator[Reach]:
        """Yield from which nodes a bound volume can be reached; none where from all."""
        called, terms = _called(mount), volume.terms
        if volume.plugin:
            terms = self._moved(volume)
        if terms is not None:
            yield Reach(Predicate.VOLUME_BINDING, called, terms)
        for key, values in () if mount.volume else volume.zones:
            yield Reach(Predicate.VOLUME_ZONE, called, _in_zone(key, values))

    def _moved(self, volume: Volume) -> tuple[NodeTerm, ...] | None:
        """Return the node affinity of a volume that a driver has taken over on some nodes.

        Where it has and there is no handle, kube-scheduler fails.
        """
        there = volume.moved if volume.handle else ()
        if there == volume.terms:
            return there
        names = self._table.migrated(volume.plugin)
        return (
            *_among(there, Requirement(NODE_NAME, "In", names)),
            *_among(volume.terms, Requirement(NODE_NAME, "NotIn", names)),
        )

    def _unbound_own(self, claim: Claim, mount: Mount) -> Effect:
        """Judge the claim of an ephemeral volume, once for all that are alike."""
        alike = (mount.volume, claim.storage_class, claim.volume + claim.selected, claim.size)
        if alike not in self._own:
            self._own[alike] = self._unbound(claim, mount)
        return self._own[alike]

    def _unbound(self, claim: Claim, mount: Mount) -> Effect:
        """Judge a claim that kube-scheduler itself has to see to, if anybody."""
        called = _called(mount)
        of_class = self._table.find(StorageClass, claim.storage_class)
        if claim.volume or not claim.storage_class:
            return _none(called, "is not bound")
        if of_class is None:
            return _none(called, f'has storage class "{claim.storage_class}", which does not exist')
        if not of_class.waits:
            return _none(called, "is not bound")
        if of_class.provisioner == NO_PROVISIONER:
            return self._static(claim, called)
        if not _is_made_by_somebody(of_class.provisioner):
            name = f"{called} of provisioner {of_class.provisioner}"
            return Effect(unsupported=frozenset({name}))
        reach = tuple(self._provisioned(claim, of_class, called))
        return Effect(reach, self._counted(of_class.driver), single=_first(claim, mount))

    def _static(self, claim: Claim, called: str) -> Effect:
        """Judge a claim for which somebody has to make a volume, or has made one."""
        if any(each.claim in (None, claim.key) for each in self._open.get(claim.storage_class, ())):
            return Effect(unsupported=frozenset({f"{called} waits for a static volume"}))
        return _none(called, f'finds no free volume of storage class "{claim.storage_class}"')

    def _provisioned(self, claim: Claim, of_class: StorageClass, called: str) -> Iterator[Reach]:
        """Yield where a volume can be made for the claim."""
        if claim.selected:
            there = Requirement("metadata.name", "In", (claim.selected,))
            yield Reach(Predicate.VOLUME_BINDING, called, (NodeTerm(fields=(there,)),))
        if of_class.topologies is not None:
            yield Reach(Predicate.VOLUME_BINDING, called, of_class.topologies)
        driver = self._table.find(Driver, of_class.provisioner)
        if driver is not None and driver.tracks and claim.size is not None:
            terms = self._with_storage(of_class.name, claim.size)
            if terms is not None:
                yield Reach(Predicate.VOLUME_BINDING, f"{called}, by storage capacity", terms)

    def _with_storage(self, storage_class: str, size: int) -> tuple[NodeTerm, ...] | None:
        """Return the nodes that reach enough storage for one volume; None where all do."""
        offers = self._table.from_capacities(
            storage_class, lambda: _offers(storage_class, self._table)
        )
        enough = bisect_left(offers, size, key=_size)
        return self._table.from_capacities(
            (storage_class, enough), lambda: _reached(offers[enough:])
        )

    def _counted(self, driver: str) -> tuple[str, ...]:
        return (driver,) if driver in self._limits else ()


def _offers(storage_class: str, table: StorageTable) -> Sequence[Capacity]:
    """Return what storage of a class there is, the least first."""
    told = (each for each in table.all(Capacity) if each.storage_class == storage_class)
    return sorted((each for each in told if each.size is not None), key=_size)


def _size(capacity: Capacity) -> int:
    return capacity.size or 0


def _reached(offers: Iterable[Capacity]) -> NodeTerms | None:
    """Return from where some of the storage is reached; None where from everywhere."""
    found = [each.selector for each in offers if each.selector is not None]
    return None if () in found else _merged(found)


class _Mounting:
    """One gang whose pods mount claims, and the claims that are given away already."""

    def __init__(
        self, gang: PendingGang, effects: Mapping[Unit, Effect], promised: Set[str]
    ) -> None:
        self._gang = gang
        self._effects = effects
        self._promised = promised
        self._taken: set[str] = set()

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
        return replace(self._gang, minimum=minimum, surplus=surplus, members=members)

    def _batch(self, groups: tuple[Group, ...]) -> tuple[Group, ...]:
        """Give shapes their effects, and the claims that only one pod may have to these groups."""
        pods: Counter[tuple[str, Predicate]] = Counter()
        for group in (group for group in groups if group.shape.volumes):
            for single in self._effect(group).single:
                pods[single] += group.count
        changed = tuple(
            replace(g, shape=_shaped(g.shape, self._judged(g, pods))) if g.shape.volumes else g
            for g in groups
        )
        self._taken |= {name for name, _ in pods}
        return changed

    def _effect(self, group: Group) -> Effect:
        return self._effects.get((group.pod_set, group.shape), _UNKNOWN)

    def _judged(self, group: Group, pods: Mapping[tuple[str, Predicate], int]) -> Effect:
        """Return the effect on a group, with what follows from who else mounts its claims."""
        effect = self._effect(group)
        for name, predicate in sorted(effect.single):
            called = _called(Mount(name))
            if name in self._taken or name in self._promised:
                why = f"{called} is kept for another pod"
                effect += Effect((Reach(predicate, why, ()),))
            elif pods[name, predicate] > 1:
                effect += _shared(called, predicate, pods[name, predicate])
        return effect


def _shared(called: str, predicate: Predicate, pods: int) -> Effect:
    """Say what it means that several pods, to be placed together, want a claim for one."""
    if predicate == Predicate.VOLUME_RESTRICTIONS:
        why = f"{called} is ReadWriteOncePod and {pods} pods of the gang mount it"
        return Effect((Reach(predicate, why, ()),))
    name = f"{called}, not bound yet and mounted by {pods} pods"
    return Effect(unsupported=frozenset({name}))


def _shaped(shape: PodShape, effect: Effect) -> PodShape:
    disks = Counter(attach_row(driver) for driver in effect.drivers)
    return replace(
        shape,
        requests=sorted_requests({**dict(shape.requests), **disks}),
        unsupported=tuple(sorted({*shape.unsupported, *effect.unsupported})),
        reach=effect.reach,
        came_as=shape.key,
    )


def _common(of_pods: Iterable[Effect]) -> Effect:
    """Return one effect for all pods of a shape.

    They differ only by their ephemeral volumes: while one of them cannot go anywhere, none can.
    """
    effects = set({id(each): each for each in of_pods}.values())
    hopeless = [each for each in effects if each.is_hopeless]
    if hopeless:
        return min(hopeless, key=repr)
    if len(effects) == 1:
        return next(iter(effects))
    name = "generic ephemeral volumes that differ between pods of one group"
    return Effect(unsupported=frozenset({name}))


def _called(mount: Mount) -> str:
    if not mount.claim:
        return f'disk "{mount.owner}"'
    return f'ephemeral volume "{mount.volume}"' if mount.volume else f'volume claim "{mount.claim}"'


def _none(called: str, why: str) -> Effect:
    return Effect((Reach(Predicate.VOLUME_BINDING, f"{called} {why}", ()),))


def _problem(claim: Claim | None, mount: Mount) -> str:
    """Say why kube-scheduler refuses a pod with this claim wherever it would go; empty if not."""
    if claim is None:
        return "has no claim yet" if mount.volume else "does not exist"
    if claim.lost:
        return "has lost its volume"
    if claim.deleted:
        return "is being deleted"
    if mount.volume and claim.owner != mount.owner:
        return f'has a claim "{claim.name}" that was not made for it'
    return ""


def _first(claim: Claim, mount: Mount) -> frozenset[tuple[str, Predicate]]:
    """Say that the first pod with this claim decides where its volume is."""
    return frozenset() if mount.volume else frozenset({(claim.name, Predicate.VOLUME_BINDING)})


def _merged(selectors: Iterable[tuple[Requirement, ...]]) -> NodeTerms:
    """Return ORed terms; those that ask for one value of a label, as most do, become one."""
    values: defaultdict[str, set[str]] = defaultdict(set)
    terms: set[NodeTerm] = set()
    for selector in selectors:
        if len(selector) == 1 and selector[0].operator == "In":
            values[selector[0].key].update(selector[0].values)
        else:
            terms.add(NodeTerm(selector))
    one = (Requirement(key, "In", tuple(sorted(each))) for key, each in values.items())
    return NodeTerms(sorted({*terms, *(NodeTerm((each,)) for each in one)}, key=repr))


def _among(terms: tuple[NodeTerm, ...] | None, names: Requirement) -> Iterator[NodeTerm]:
    """Yield terms that hold on these nodes only; None holds on all of them."""
    for term in (NodeTerm(),) if terms is None else terms:
        if terms is None or term.labels:  # an empty term matches no node
            yield NodeTerm((*term.labels, names))


def _is_made_by_somebody(provisioner: str) -> bool:
    """Say whether a provisioner may exist: of Kubernetes' own only those that drivers took over."""
    return provisioner in IN_TREE_DRIVERS or not (provisioner or _IN_TREE).startswith(_IN_TREE)


def _in_zone(key: str, values: tuple[str, ...]) -> tuple[NodeTerm, ...]:
    """Write down what plugin VolumeZone asks of a node for one label of a volume.

    A node without any zone passes; one that has not the old label may have the new one instead.
    """
    terms = [_UNZONED, NodeTerm((Requirement(key, "In", values),))]
    if key in _NEW_NAME:
        absent = Requirement(key, "DoesNotExist", ())
        terms.append(NodeTerm((absent, Requirement(_NEW_NAME[key], "In", values))))
    return tuple(terms)
