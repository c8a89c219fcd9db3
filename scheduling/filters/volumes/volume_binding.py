"""VolumeBinding: which nodes the claims of a gang's pods allow.

Follows plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits of
kube-scheduler 1.36. Each claim is worked out to its effect: terms for nodes
(`VolumeNodeRestriction`) and disks that count against a limit. Pods whose claims differ in name
only, as those of generic ephemeral volumes, stay one shape. Feature gates StorageCapacityScoring
and VolumeLimitScaling are off.

Where several pods mount one claim that is not bound yet, the volume's place is known only after
the first of them has gone to its node: see `shared_claims`. Which free volume a claim is bound to:
see `static_volumes`.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from scheduling.filters.volumes.claim_effect import (
    BIND_IT,
    BINDING,
    NOTHING,
    Effect,
    Seeker,
    nowhere,
    spoken,
)
from scheduling.filters.volumes.node_terms import among
from scheduling.filters.volumes.node_volume_limits import (
    ATTACH,
    SharedDisk,
    SharedDisks,
    attach_row,
    counted,
)
from scheduling.filters.volumes.provisioning import (
    NO_PROVISIONER,
    domain_keys,
    may_be_provisioned,
    provisioned,
)
from scheduling.filters.volumes.static_volumes import StaticDemand, alike, asks_much, choices
from scheduling.filters.volumes.volume_restrictions import Mounting
from scheduling.filters.volumes.volume_zone import in_zone
from scheduling.model.amounts import LIMIT, Amounts
from scheduling.model.constraints import (
    NODE_NAME,
    Requirement,
    VolumeNodeRestriction,
)
from scheduling.model.gang import GangKey, GroupKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.pod import Mount
from scheduling.model.predicates import Predicate
from scheduling.model.volume import (
    Claim,
    StorageClass,
    Terms,
    Volume,
)
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.volume_index import VolumeIndex

ClaimKey = tuple[str, str]
"""Namespace and name."""


class Volumes:
    """The index at one moment of a cycle, with the claims of assumed pods.

    `reserved` says what assumed pods take of the made-up resources whose names begin in one way, by
    name and by node.
    """

    def __init__(
        self,
        table: VolumeIndex,
        reserved: Callable[[str], Mapping[str, Mapping[str, int]]] = lambda _: {},
        assumed: Iterable[ClaimKey] = (),
    ) -> None:
        self._table = table
        self._reserved = reserved
        self._assumed: defaultdict[str, set[str]] = defaultdict(set)
        for namespace, claim in assumed:
            self._assumed[namespace].add(claim)
        self._own: dict[tuple[str, Claim], Effect] = {}
        self._known: dict[GangKey, dict[GroupKey, Effect]] = {}
        self._left_open: dict[GangKey, tuple[str, ...]] = {}

    @cached_property
    def _limits(self) -> Mapping[str, Mapping[str, int]]:
        return self._table.limits()

    # ---- room

    def with_rows(self, columns: NodeSnapshot) -> NodeSnapshot:
        """Return the nodes with what they can attach, per driver that has a limit anywhere."""
        rows = self._limit_rows(columns)
        return columns.with_rows(rows) if rows else columns

    def _limit_rows(self, columns: NodeSnapshot) -> dict[str, tuple[Amounts, Amounts]]:
        attached = self._table.attached() if self._limits else {}
        reserved = self._reserved(ATTACH) if self._limits else {}
        rows = {}
        for driver, limits in self._limits.items():
            taken = Counter(attached.get(driver, {}))
            taken.update(reserved.get(attach_row(driver), {}))
            taken.update(dict.fromkeys(self._table.broken(), LIMIT))
            rows[attach_row(driver)] = counted(columns, limits, taken)
        return rows

    # ---- gangs

    def mounted(self, gang: PendingGang) -> PendingGang:
        """Return the gang with the restrictions by its volumes in its shapes."""
        if not any(group.shape.volumes for group in gang.groups()):
            return gang
        effects, assumed = self._effects(gang), self._assumed[gang.key.namespace]
        seeks = any(effect.seekers for effect in effects.values())
        others = self._on_their_way() if seeks else ()
        mounting = Mounting(gang, effects, assumed, StaticDemand(self._table, others))
        mounted = mounting.gang()
        self._left_open[gang.key] = tuple(sorted(mounting.left_open))
        return mounted

    def left_open(self, gang: PendingGang) -> tuple[str, ...]:
        """Name the claims of a gang that may be bound to volumes which it was not to count on."""
        return self._left_open.get(gang.key, ())

    def _on_their_way(self) -> Iterator[Claim]:
        """Yield the claims of pods that are not waiting any more, whether bound or not."""
        for namespace, names in self._assumed.items():
            found = (self._table.find(Claim, (namespace, name)) for name in names)
            yield from (claim for claim in found if claim is not None)
        yield from self._table.claims_on_nodes()

    def shared_disks(self, gang: PendingGang) -> SharedDisks:
        """Return the disks that are counted more often than nodes attach them, with their groups.

        They are counted for each pod; a node attaches a disk once however many pods mount it, and
        not again if it has it.
        """
        pods: Counter[SharedDisk] = Counter()
        groups: defaultdict[SharedDisk, set[tuple[str, str]]] = defaultdict(set)
        effects = self._effects(gang)
        for group in gang.groups():
            for disk in effects.get((group.pod_set, group.shape), NOTHING).named:
                pods[disk] += group.count
                groups[disk].add((group.pod_set, group.shape.key))
        return {
            disk: frozenset(groups[disk])
            for disk, count in pods.items()
            if count > 1 or self._table.is_attached(gang.key.namespace, disk.mount)
        }

    def assume(self, gang: PendingGang, placement: Placement) -> None:
        """Count the claims of pods that this cycle gives room to."""
        placed = {(each.pod_set, each.shape) for each in placement.assignments}
        claims = self._assumed[gang.key.namespace]
        for each in gang.members:
            if each.mounts and (each.pod_set, each.shape.key) in placed:
                claims.update(mount.claim for mount in each.mounts if mount.claim)

    def _effects(self, gang: PendingGang) -> dict[GroupKey, Effect]:
        """Return the effect of the claims of each group; it is the same all through a cycle."""
        if gang.key not in self._known:
            self._known[gang.key] = self._looked_up(gang)
        return self._known[gang.key]

    def _looked_up(self, gang: PendingGang) -> dict[GroupKey, Effect]:
        asked: defaultdict[GroupKey, dict[tuple[Mount, ...], None]] = defaultdict(dict)
        for each in gang.members:
            if each.shape.volumes:
                asked[each.pod_set, each.shape][each.mounts] = None
        return {
            group: _common(self._effect(gang.key.namespace, mounts) for mounts in found)
            for group, found in asked.items()
        }

    def _effect(self, namespace: str, mounts: Iterable[Mount]) -> Effect:
        effect = NOTHING
        for mount in sorted({*mounts}):
            effect += self._effect_of(namespace, mount)
        return effect

    # ---- one claim

    def _effect_of(self, namespace: str, mount: Mount) -> Effect:
        """Work out one claim, in the order in which plugin VolumeBinding asks."""
        called = spoken(mount)
        if not self._table.is_seen:
            return nowhere(called, "cannot be judged, because volumes cannot be watched")
        if not mount.claim:
            drivers = self._counted(mount.volume)
            return Effect(drivers=drivers, named=_named(drivers, mount))
        claim = self._table.find(Claim, (namespace, mount.claim))
        problem = _problem(claim, mount)
        if claim is None or problem:
            return nowhere(called, problem)
        if claim.bound and claim.volume:
            effect = self._bound(claim, mount)
        elif mount.volume:
            effect = self._unbound_own(claim, mount)
        else:
            effect = self._unbound(claim, mount)
        return effect + self._once(claim, mount)

    def _once(self, claim: Claim, mount: Mount) -> Effect:
        """Return the effect of ReadWriteOncePod; the plugin skips ephemeral volumes."""
        if not claim.once or mount.volume:
            return NOTHING
        single = Effect(single=frozenset({(claim.name, Predicate.VOLUME_RESTRICTIONS)}))
        if not self._table.is_used(*claim.key):
            return single
        why = f"{spoken(mount)} is ReadWriteOncePod and in use by another pod"
        return single + Effect((VolumeNodeRestriction(Predicate.VOLUME_RESTRICTIONS, why, ()),))

    def _bound(self, claim: Claim, mount: Mount) -> Effect:
        called = spoken(mount)
        volume = self._table.find(Volume, claim.volume)
        if volume is None:
            return nowhere(called, "is bound to a volume that does not exist")
        drivers = self._counted(volume.driver) if volume.handle else ()
        reach = tuple(self._from_where(volume, mount))
        return Effect(reach, drivers, named=_named(drivers, mount))

    def _from_where(self, volume: Volume, mount: Mount) -> Iterator[VolumeNodeRestriction]:
        """Yield from which nodes a bound volume can be reached; none where from all."""
        called, terms = spoken(mount), self._once_bound(volume)
        if terms is not None:
            yield VolumeNodeRestriction(BINDING, called, terms)
        for key, values in () if mount.volume else volume.zones:
            yield VolumeNodeRestriction(Predicate.VOLUME_ZONE, called, in_zone(key, values))

    def _once_bound(self, volume: Volume) -> Terms:
        """Return the node affinity of a bound volume, which a driver may have taken over somewhere.

        Where it has and there is no handle, kube-scheduler fails.
        """
        there = volume.moved if volume.handle else ()
        if not volume.plugin or there == volume.terms:
            return volume.terms
        names = self._table.migrated(volume.plugin)
        return (
            *among(there, Requirement(NODE_NAME, "In", names)),
            *among(volume.terms, Requirement(NODE_NAME, "NotIn", names)),
        )

    def _unbound_own(self, claim: Claim, mount: Mount) -> Effect:
        """Judge the claim of an ephemeral volume, once for all that are alike."""
        if self._table.kept_for(claim):
            return self._unbound(claim, mount)
        key = mount.volume, alike(claim)
        if key not in self._own:
            self._own[key] = self._unbound(claim, mount)
        return self._own[key]

    def _unbound(self, claim: Claim, mount: Mount) -> Effect:
        """Judge a claim that kube-scheduler has to bind, if it can be bound."""
        called = spoken(mount)
        of_class = self._table.find(StorageClass, claim.storage_class)
        problem = _unbindable(claim, of_class)
        if of_class is None or problem:
            return nowhere(called, problem)
        kept = self._table.kept_for(claim)
        if kept and not claim.selected:
            return self._kept(kept, mount)
        if of_class.provisioner == NO_PROVISIONER:
            return self._static(claim, mount)
        if not may_be_provisioned(of_class.provisioner):
            name = f'{called} of provisioner "{of_class.provisioner}" (use a class of a CSI driver)'
            return Effect(unsupported=frozenset({name}))
        return self._to_be_made(claim, mount, of_class)

    def _to_be_made(self, claim: Claim, mount: Mount, of_class: StorageClass) -> Effect:
        """Judge a claim for which a volume is made, unless the class has one that is free."""
        called = spoken(mount)
        reach = tuple(provisioned(self._table, claim, of_class, called))
        may_be_bound = not claim.selected and self._table.has_free(claim.storage_class)
        single = _first(claim, mount)
        keys = None if self._table.kept_for(claim) else domain_keys(self._table, of_class)
        drivers = self._counted(of_class.driver)
        return Effect(
            reach,
            drivers,
            single=single,
            shares=frozenset((name, keys) for name, _ in single),
            named=_named(drivers, mount),
            left_open=frozenset({called} if reach and may_be_bound else ()),
        )

    def _kept(self, kept: Iterable[Volume], mount: Mount) -> Effect:
        """Return where volumes are that are kept for a claim; it is bound to one without a pod."""
        terms = dict.fromkeys(t for each in kept for t in (each.terms, self._once_bound(each)))
        reach = (VolumeNodeRestriction(BINDING, spoken(mount), t) for t in terms if t is not None)
        drivers = tuple(sorted({d for each in kept for d in self._counted(each.driver)}))
        return Effect(tuple(reach), drivers, named=_named(drivers, mount))

    def _static(self, claim: Claim, mount: Mount) -> Effect:
        """Judge a claim of a class without provisioner: its volumes are made by hand.

        Where all that suit are reached from the same nodes, pods that share it need not know which
        it gets; else the first of them decides. It is judged beside all that seek one.
        """
        called = spoken(mount)
        if asks_much(claim):
            return Effect(unsupported=frozenset({f"{called}, whose selector is long ({BIND_IT})"}))
        found = [pool for pool, _ in choices(self._table, claim)]
        if not found:
            return nowhere(called, f'finds no free volume of storage class "{claim.storage_class}"')
        if any(pool.moves for pool in found):
            name = (
                f"{called}, for which there are free volumes of a kind that a CSI driver took over"
            )
            return Effect(unsupported=frozenset({f"{name} ({BIND_IT})"}))
        single = _first(claim, mount) if len(found) > 1 else frozenset()
        drivers = tuple(sorted({d for pool in found for d in self._counted(pool.driver)}))
        return Effect(
            drivers=drivers,
            single=single,
            shares=frozenset((name, None) for name, _ in single),
            named=_named(drivers, mount),
            seekers=frozenset({Seeker(alike(claim) if mount.volume else claim, called)}),
        )

    def _counted(self, driver: str) -> tuple[str, ...]:
        return (driver,) if driver in self._limits else ()


def _common(of_pods: Iterable[Effect]) -> Effect:
    """Return one effect for all pods of a shape.

    They differ only by their ephemeral volumes: while one of them fits no node, none does.
    """
    effects = set({id(each): each for each in of_pods}.values())
    hopeless = [each for each in effects if each.is_hopeless]
    if hopeless:
        return min(hopeless, key=repr)
    if len(effects) == 1:
        return next(iter(effects))
    name = "generic ephemeral volumes that differ between pods of one group"
    return Effect(
        unsupported=frozenset({f"{name} (use a class that waits for its first consumer)"})
    )


def _unbindable(claim: Claim, of_class: StorageClass | None) -> str:
    """Say why no pod has a claim bound; empty if one may."""
    if claim.volume or not claim.storage_class:
        return "is not bound"
    if of_class is None:
        return f'has storage class "{claim.storage_class}", which does not exist'
    if not of_class.waits:
        return "is not bound"
    if claim.selected and of_class.provisioner == NO_PROVISIONER:
        return "has a selected node, but its class has no provisioner"
    return ""


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


def _named(drivers: Iterable[str], mount: Mount) -> frozenset[SharedDisk]:
    """Name a disk, unless it is of an ephemeral volume: no other pod has that."""
    is_own = mount.claim and mount.volume
    return frozenset() if is_own else frozenset(SharedDisk(driver, mount) for driver in drivers)


def _first(claim: Claim, mount: Mount) -> frozenset[tuple[str, Predicate]]:
    """Say that the first pod with this claim decides where its volume is."""
    return frozenset() if mount.volume else frozenset({(claim.name, BINDING)})
