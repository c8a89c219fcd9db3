"""Indexes claims, volumes and the pods that mount them on which nodes, kept from events."""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from scheduling.model.constraints import NodeNames
from scheduling.model.pod import Mount
from scheduling.model.volume import (
    Attachment,
    Capacity,
    Claim,
    Driver,
    Fact,
    Limits,
    Pool,
    StorageClass,
    Volume,
)

F = TypeVar("F", bound=Fact)
K = TypeVar("K", bound=Hashable)
T = TypeVar("T")

DERIVED_KEPT = 64
"""What follows from capacities: a list of alternatives for each class and amount that differs."""


KINDS: tuple[type[Fact], ...] = (
    *(Claim, Volume, StorageClass, Driver),
    *(Capacity, Limits, Attachment),
)
"""All kinds of fact; without one of them nothing can be said of volumes."""


Disk = tuple[str, str]
"""Driver and handle."""


class VolumeIndex:
    """What is known of volumes, kept from events by one owner."""

    def __init__(self) -> None:
        self._facts: dict[type, dict[Hashable, Fact]] = {kind: {} for kind in KINDS}
        self._unseen: set[type[Fact]] = set(KINDS)
        self._mounted: defaultdict[str, Counter[tuple[str, Mount]]] = defaultdict(Counter)
        self._users: Counter[tuple[str, str]] = Counter()
        self._attached: dict[str, Counter[str]] | None = None
        self._from_capacities: dict[Hashable, object] = {}
        self._migrated: dict[str, NodeNames] = {}
        self._keys: dict[str, tuple[str, ...] | None] = {}
        self._free: defaultdict[str, dict[Pool, Counter[int]]] = defaultdict(dict)
        self._named: Counter[str] = Counter()
        self._kept: dict[tuple[str, str], Counter[str]] = {}
        self._disks: dict[str, set[Disk]] | None = None

    # ---- taking in

    def put(self, fact: Fact) -> bool:
        """Take in a fact; say whether it is news."""
        known = self._facts[type(fact)]
        before = known.get(fact.key)
        if before == fact:
            return False
        if before is not None:
            self._file(before, -1)
        known[fact.key] = fact
        self._file(fact, +1)
        self._outdate(fact)
        return True

    def drop(self, fact: Fact) -> None:
        """Forget the fact of this kind and key."""
        known = self._facts[type(fact)].pop(fact.key, None)
        if known is not None:
            self._file(known, -1)
        self._outdate(fact)

    def _file(self, fact: Fact, sign: int) -> None:
        """Add (+1) or take back (-1) a volume where claims look for it, or a claim's volume."""
        if isinstance(fact, Claim) and fact.volume:
            self._name(fact.volume, sign)
        if isinstance(fact, Volume):
            self._file_volume(fact, sign)

    def _name(self, volume: str, sign: int) -> None:
        """Count the claims that name a volume: while any does, no other claim may have it."""
        known = self.find(Volume, volume)
        if known is not None:
            self._file_volume(known, -1)
        _count(self._named, volume, sign)
        if known is not None:
            self._file_volume(known, +1)

    def _file_volume(self, fact: Volume, sign: int) -> None:
        if fact.open and fact.name not in self._named:
            pools = self._free[fact.storage_class]
            _count(pools.setdefault(fact.pool, Counter()), fact.size, sign)
            if not pools[fact.pool]:
                del pools[fact.pool]
        if fact.claim is not None:
            _count(self._kept.setdefault(fact.claim, Counter()), fact.name, sign)
            if not self._kept[fact.claim]:
                del self._kept[fact.claim]

    def _outdate(self, fact: Fact) -> None:
        self._attached = self._disks = None
        if isinstance(fact, Capacity):
            self._from_capacities.clear()
        if isinstance(fact, Limits):
            self._migrated.clear()
            self._keys.clear()

    def see(self, kind: type[Fact]) -> None:
        """Note that all facts of a kind are known."""
        self._unseen.discard(kind)

    def lose_sight(self, kind: type[Fact]) -> None:
        """Note that facts of a kind may be out of date."""
        self._unseen.add(kind)

    def use(self, namespace: str, mounts: Iterable[Mount], node: str, sign: int) -> None:
        """Add (+1) or take back (-1) a pod with these mounts on a node."""
        self._attached = self._disks = None
        for mount in mounts:
            _count(self._mounted[node], (namespace, mount), sign)
            if not mount.volume:
                _count(self._users, (namespace, mount.claim), sign)
        if not self._mounted[node]:
            del self._mounted[node]

    # ---- looking up

    @property
    def is_seen(self) -> bool:
        """Say whether everything about volumes is known."""
        return not self._unseen

    def find(self, kind: type[F], key: Hashable) -> F | None:
        """Return the fact of this kind and key."""
        return self._facts[kind].get(key)  # type: ignore[return-value] # kept by kind

    def all(self, kind: type[F]) -> Iterable[F]:
        """Return all facts of a kind."""
        return self._facts[kind].values()  # type: ignore[return-value] # kept by kind

    def from_capacities(self, key: Hashable, derive: Callable[[], T]) -> T:
        """Return what `derive` said for this key, asked anew only after a Capacity has changed.

        So it is the very same object from cycle to cycle, and comparing it costs nothing.
        """
        if key not in self._from_capacities:
            if len(self._from_capacities) >= DERIVED_KEPT:
                self._from_capacities.clear()
            self._from_capacities[key] = derive()
        return self._from_capacities[key]  # type: ignore[return-value] # a key names one derivation

    def kept_for(self, claim: Claim) -> list[Volume]:
        """Return the volumes that are kept for a claim, by name."""
        names = sorted(self._kept.get(claim.key, ()))
        found = (self.find(Volume, name) for name in names)
        return [each for each in found if each is not None and each.is_kept_for(claim)]

    def has_free(self, storage_class: str) -> bool:
        """Say whether a class has any free volume, of whatever size and wherever it is."""
        return bool(self._free.get(storage_class))

    def free(self, storage_class: str) -> Mapping[Pool, Counter[int]]:
        """Return how many free volumes of each size a class has, of those that are alike."""
        return self._free.get(storage_class, {})

    def claims_on_nodes(self) -> Iterator[Claim]:
        """Yield the claims of pods that have their room on some node, each as often as mounted."""
        for namespace, mount in chain.from_iterable(self._mounted.values()):
            claim = self.find(Claim, (namespace, mount.claim))
            if claim is not None:
                yield claim

    def is_used(self, namespace: str, claim: str) -> bool:
        """Say whether a pod that names the claim has its room on some node."""
        return self._users[namespace, claim] > 0

    def limits(self) -> dict[str, dict[str, int]]:
        """Return driver -> node -> how many volumes it takes; a node without entry has no limit."""
        found: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for node in self.all(Limits):
            for driver, count in node.counts:
                found[driver][node.name] = count
        return dict(found)

    def migrated(self, plugin: str) -> NodeNames:
        """Return the nodes, by name, where a CSI driver has taken over what a plugin did."""
        if plugin not in self._migrated:
            nodes = (each.name for each in self.all(Limits) if plugin in each.migrated)
            self._migrated[plugin] = NodeNames(sorted(nodes))
        return self._migrated[plugin]

    def keys_of(self, driver: str) -> tuple[str, ...] | None:
        """Return the topology keys of a driver; None where it is on no node."""
        if driver not in self._keys:
            everywhere = chain.from_iterable(each.drivers for each in self.all(Limits))
            found = [keys for name, keys in everywhere if name == driver]
            self._keys[driver] = tuple(sorted({*chain.from_iterable(found)})) if found else None
        return self._keys[driver]

    def broken(self) -> Iterator[str]:
        """Yield the nodes with a pod that has a disk of its own which no driver can take over.

        There kube-scheduler fails to count disks, and lets no pod in that has any.
        """
        for node, mounts in self._mounted.items():
            if any(not (mount.claim or mount.owner) for _, mount in mounts):
                yield node

    def attached(self) -> Mapping[str, Counter[str]]:
        """Return driver -> node -> number of disks that count there (plugin NodeVolumeLimits).

        Those of the pods on the node and those that are attached to it, each once.
        """
        if self._attached is None:
            counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
            for node, disks in self.disks_on().items():
                for driver, _ in disks:
                    counts[driver][node] += 1
            self._attached = dict(counts)
        return self._attached

    def disks_on(self) -> Mapping[str, set[Disk]]:
        """Return node -> disks of the pods there and of what is attached there."""
        if self._disks is None:
            found: defaultdict[str, set[Disk]] = defaultdict(set)
            for node, disk in chain(self._disks_of_pods(), self._disks_attached()):
                found[node].add(disk)
            self._disks = dict(found)
        return self._disks

    def is_attached(self, namespace: str, mount: Mount) -> bool:
        """Say whether any node has a disk already."""
        disk = self.disk(namespace, mount)
        return disk is not None and any(disk in disks for disks in self.disks_on().values())

    def _disks_of_pods(self) -> Iterator[tuple[str, Disk]]:
        for node, mounts in self._mounted.items():
            for namespace, mount in mounts:
                disk = self.disk(namespace, mount)
                if disk is not None:
                    yield node, disk

    def _disks_attached(self) -> Iterator[tuple[str, Disk]]:
        for each in self.all(Attachment):
            volume = self.find(Volume, each.volume)
            if each.driver and volume is not None and volume.driver and not volume.plugin:
                yield each.node, (each.driver, volume.handle)

    def disk(self, namespace: str, mount: Mount) -> Disk | None:
        """Return the disk that a mount counts as; of what is not bound yet, the one to come."""
        if not mount.claim:
            return (mount.volume, mount.owner) if mount.owner else None
        claim = self.find(Claim, (namespace, mount.claim))
        if claim is None:
            return None
        volume = self.find(Volume, claim.volume)
        if volume is not None:
            return (volume.driver, volume.handle) if volume.driver and volume.handle else None
        of_class = self.find(StorageClass, claim.storage_class)
        driver = of_class.driver if of_class else ""
        return (driver, f"{namespace}/{claim.name}") if driver else None


def _count(counts: Counter[K], key: K, sign: int) -> None:
    """Count; what comes to nothing is forgotten."""
    counts[key] += sign
    if not counts[key]:
        del counts[key]
