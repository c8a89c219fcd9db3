"""VolumeBinding: which nodes the claims of a gang's pods allow.

Follows plugins VolumeBinding, VolumeZone, VolumeRestrictions and NodeVolumeLimits of
kube-scheduler 1.36. Each claim is worked out to its effect: terms for nodes
(`VolumeNodeRestriction`) and disks that count against a limit. Pods whose claims differ in name
only, as those of generic ephemeral volumes, stay one shape. Feature gates StorageCapacityScoring
and VolumeLimitScaling are off.

Where several pods mount one claim that is not bound yet, the volume's place is known only after
the first of them has gone to its node: see `shared_claims`.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from scheduling.filters.volumes.claim_effect import BINDING, NOTHING, Effect, nowhere, spoken
from scheduling.filters.volumes.node_volume_limits import (
    ATTACH,
    SharedDisk,
    SharedDisks,
    attach_row,
    counted,
)
from scheduling.filters.volumes.shared_claims import Mounting
from scheduling.filters.volumes.volume_zone import ZONE_LABELS, in_zone
from scheduling.model.amounts import LIMIT, Amounts
from scheduling.model.constraints import (
    NODE_NAME,
    NodeTerm,
    NodeTerms,
    Requirement,
    VolumeNodeRestriction,
)
from scheduling.model.gang import GangKey, GroupKey, PendingGang
from scheduling.model.placement import Placement
from scheduling.model.plugins import Predicate
from scheduling.model.pod import Mount
from scheduling.model.volume import (
    IN_TREE_DRIVERS,
    Capacity,
    Claim,
    Driver,
    StorageClass,
    Terms,
    Volume,
)
from scheduling.state.node_snapshot import NodeSnapshot
from scheduling.state.volume_index import VolumeIndex

NO_PROVISIONER = "kubernetes.io/no-provisioner"
_IN_TREE = "kubernetes.io/"


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
        self._own: dict[tuple[object, ...], Effect] = {}
        self._known: dict[GangKey, dict[GroupKey, Effect]] = {}

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
        return Mounting(gang, self._effects(gang), self._assumed[gang.key.namespace]).gang()

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
                claims.update(mount.claim for mount in each.mounts if not mount.volume)

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
            *_among(there, Requirement(NODE_NAME, "In", names)),
            *_among(volume.terms, Requirement(NODE_NAME, "NotIn", names)),
        )

    def _unbound_own(self, claim: Claim, mount: Mount) -> Effect:
        """Judge the claim of an ephemeral volume, once for all that are alike."""
        if self._table.kept_for(claim):
            return self._unbound(claim, mount)
        alike = mount.volume, claim.volume + claim.selected, claim.storage_class, claim.size
        if alike not in self._own:
            self._own[alike] = self._unbound(claim, mount)
        return self._own[alike]

    def _unbound(self, claim: Claim, mount: Mount) -> Effect:
        """Judge a claim that kube-scheduler has to bind, if it can be bound."""
        called = spoken(mount)
        of_class = self._table.find(StorageClass, claim.storage_class)
        if claim.volume or not claim.storage_class:
            return nowhere(called, "is not bound")
        if of_class is None:
            return nowhere(
                called, f'has storage class "{claim.storage_class}", which does not exist'
            )
        if not of_class.waits:
            return nowhere(called, "is not bound")
        if of_class.provisioner == NO_PROVISIONER:
            return self._static(claim, mount)
        if not _may_be_provisioned(of_class.provisioner):
            name = f'{called} of provisioner "{of_class.provisioner}" (use a class of a CSI driver)'
            return Effect(unsupported=frozenset({name}))
        reach = tuple(self._provisioned(claim, of_class, called))
        single = _first(claim, mount)
        shares = frozenset((name, self._domain_keys(claim, of_class)) for name, _ in single)
        drivers = self._counted(of_class.driver)
        return Effect(reach, drivers, single=single, shares=shares, named=_named(drivers, mount))

    def _domain_keys(self, claim: Claim, of_class: StorageClass) -> tuple[str, ...] | None:
        """Return the labels whose values say from where a volume to be made will be reached.

        Before one is made kube-scheduler looks for one that is free. One of a plugin that a driver
        took over has the labels of zone and region, too.
        """
        if self._table.has_free(claim.storage_class) or self._table.kept_for(claim):
            return None
        if of_class.provisioner not in IN_TREE_DRIVERS:
            return self._table.keys_of(of_class.provisioner)
        keys = self._table.keys_of(of_class.driver)
        return None if keys is None else (*keys, *ZONE_LABELS[2:]) if keys else ()

    def _static(self, claim: Claim, mount: Mount) -> Effect:
        """Judge a claim of a class without provisioner: its volumes are made by hand.

        Of one that a volume is kept for it is known where that is, whichever pod comes first. Which
        of the free volumes another one takes kube-scheduler decides when a pod is there.
        """
        called = spoken(mount)
        if claim.selected:
            return nowhere(called, "has a selected node, but its class has no provisioner")
        kept = self._table.kept_for(claim)
        if not kept and not self._table.has_free(claim.storage_class):
            return nowhere(called, f'finds no free volume of storage class "{claim.storage_class}"')
        if not kept:
            name = f'{called} of storage class "{claim.storage_class}", which has no provisioner'
            also = "" if mount.volume else ", or bind the claim first"
            return Effect(unsupported=frozenset({f"{name} (use a class that has one{also})"}))
        terms = dict.fromkeys(t for each in kept for t in (each.terms, self._once_bound(each)))
        return Effect(
            tuple(
                VolumeNodeRestriction(BINDING, called, some) for some in terms if some is not None
            )
        )

    def _provisioned(
        self, claim: Claim, of_class: StorageClass, called: str
    ) -> Iterator[VolumeNodeRestriction]:
        """Yield where a volume can be made for the claim."""
        if claim.selected:
            there = Requirement("metadata.name", "In", (claim.selected,))
            yield VolumeNodeRestriction(BINDING, called, (NodeTerm(fields=(there,)),))
        if of_class.topologies is not None:
            yield VolumeNodeRestriction(BINDING, called, of_class.topologies)
        driver = self._table.find(Driver, of_class.provisioner)
        if driver is not None and driver.tracks and claim.size is not None:
            terms = self._with_storage(of_class.name, claim.size)
            if terms is not None:
                yield VolumeNodeRestriction(BINDING, f"{called} (storage capacity)", terms)

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


def _offers(storage_class: str, table: VolumeIndex) -> Sequence[Capacity]:
    """Return what storage of a class there is, the least first."""
    offered = (each for each in table.all(Capacity) if each.storage_class == storage_class)
    return sorted((each for each in offered if each.size is not None), key=_size)


def _size(capacity: Capacity) -> int:
    return capacity.size or 0


def _reached(offers: Iterable[Capacity]) -> NodeTerms | None:
    """Return from where some of the storage is reached; None where from everywhere."""
    found = [each.selector for each in offers if each.selector is not None]
    return None if () in found else _merged(found)


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


def _may_be_provisioned(provisioner: str) -> bool:
    """Say whether a provisioner may exist: of Kubernetes' own only those that drivers took over."""
    return provisioner in IN_TREE_DRIVERS or not (provisioner or _IN_TREE).startswith(_IN_TREE)
