"""What does the cluster say of volumes, and which pods mount which claims on which nodes?

The table is kept from events by one owner. A fact is a value and replaces the one of its key; what
follows from several of them (which disk is behind a claim, what is attached where) is looked up
when it is asked for, because the facts come in any order.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from scheduling.model import Mount, NodeTerm, Requirement


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim.

    `volume` is the one it names, `bound` says that both sides know of it. `owner` is the uid of
    its controller. `once`: ReadWriteOncePod. `size` in bytes, None where it asks for none.
    `selected` is the node for which a volume is being provisioned.
    """

    namespace: str
    name: str
    owner: str = ""
    storage_class: str = ""
    volume: str = ""
    bound: bool = False
    lost: bool = False
    deleted: bool = False
    once: bool = False
    selected: str = ""
    size: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume.

    `terms` is its node affinity (None: everywhere), `zones` its labels of zone and region with
    their values. `driver` and `handle` name the CSI disk. `in_tree` is the kind of source of one
    that kube-scheduler may take for a CSI disk. `claim` is whom it is bound to or kept for.
    `open` says that it may still be bound: it is not taken, not being deleted.
    """

    name: str
    storage_class: str = ""
    claim: tuple[str, str] | None = None
    open: bool = False
    terms: tuple[NodeTerm, ...] | None = None
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    driver: str = ""
    handle: str = ""
    in_tree: str = ""

    @property
    def key(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True, slots=True)
class StorageClass:
    """A StorageClass; `waits` says that a claim is bound for its first consumer.

    `topologies` are the allowed ones, as terms for nodes; None where all nodes are allowed.
    """

    name: str
    provisioner: str = ""
    waits: bool = False
    topologies: tuple[NodeTerm, ...] | None = None

    @property
    def key(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Driver:
    """A CSIDriver; `tracks` says that it publishes how much storage there is where."""

    name: str
    tracks: bool = False

    @property
    def key(self) -> str:
        """Return the name."""
        return self.name


@dataclass(frozen=True, slots=True)
class Capacity:
    """A CSIStorageCapacity: a volume of up to `size` bytes can be had on the selected nodes.

    Without a size there is none; without a selector no node reaches it, an empty one is all nodes.
    """

    namespace: str
    name: str
    storage_class: str = ""
    size: int | None = None
    selector: tuple[Requirement, ...] | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name."""
        return self.namespace, self.name


@dataclass(frozen=True, slots=True)
class Limits:
    """A CSINode: how many volumes of which driver a node takes."""

    name: str
    counts: tuple[tuple[str, int], ...] = ()

    @property
    def key(self) -> str:
        """Return the name, which is the node's."""
        return self.name


@dataclass(frozen=True, slots=True)
class Attachment:
    """A VolumeAttachment: a volume that a driver attaches, or detaches, on a node."""

    name: str
    node: str = ""
    driver: str = ""
    volume: str = ""

    @property
    def key(self) -> str:
        """Return the name."""
        return self.name


Fact = Claim | Volume | StorageClass | Driver | Capacity | Limits | Attachment
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

IN_TREE_DRIVERS: Mapping[str, str] = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "azureFile": "file.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
    "portworxVolume": "pxd.portworx.com",
    "vsphereVolume": "csi.vsphere.vmware.com",
}
"""Kinds of disk that count as a CSI driver's where it took them over (csi-translation-lib)."""

Disk = tuple[str, str]
"""Driver and handle."""


class StorageTable:
    """What is known of volumes, kept from events by one owner."""

    def __init__(self) -> None:
        self._facts: dict[type, dict[Hashable, Fact]] = {kind: {} for kind in KINDS}
        self._unseen: set[type[Fact]] = set(KINDS)
        self._mounted: defaultdict[str, Counter[tuple[str, Mount]]] = defaultdict(Counter)
        self._users: Counter[tuple[str, str]] = Counter()
        self._attached: dict[str, Counter[str]] | None = None
        self._from_capacities: dict[Hashable, object] = {}

    # ---- taking in

    def put(self, fact: Fact) -> bool:
        """Take in a fact; say whether it is news."""
        known = self._facts[type(fact)]
        if known.get(fact.key) == fact:
            return False
        known[fact.key] = fact
        self._outdate(fact)
        return True

    def drop(self, fact: Fact) -> None:
        """Forget the fact of this kind and key."""
        self._facts[type(fact)].pop(fact.key, None)
        self._outdate(fact)

    def _outdate(self, fact: Fact) -> None:
        self._attached = None
        if isinstance(fact, Capacity):
            self._from_capacities.clear()

    def see(self, kind: type[Fact]) -> None:
        """Note that all facts of a kind are known."""
        self._unseen.discard(kind)

    def lose_sight(self, kind: type[Fact]) -> None:
        """Note that facts of a kind may be out of date."""
        self._unseen.add(kind)

    def use(self, namespace: str, mounts: Iterable[Mount], node: str, sign: int) -> None:
        """Add (+1) or take back (-1) a pod with these mounts on a node."""
        self._attached = None
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

    def is_used(self, namespace: str, claim: str) -> bool:
        """Say whether a pod that names the claim has its room on some node."""
        return self._users[namespace, claim] > 0

    def limits(self) -> dict[str, dict[str, int]]:
        """Return driver -> node -> how many volumes it takes; who is not named has no limit."""
        found: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for node in self.all(Limits):
            for driver, count in node.counts:
                found[driver][node.name] = count
        return dict(found)

    def attached(self) -> Mapping[str, Counter[str]]:
        """Return driver -> node -> number of disks that count there (plugin NodeVolumeLimits).

        Those of the pods on the node and those that are attached to it, each once.
        """
        if self._attached is None:
            counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
            for node, (driver, _) in {*self._disks_of_pods(), *self._disks_attached()}:
                counts[driver][node] += 1
            self._attached = dict(counts)
        return self._attached

    def _disks_of_pods(self) -> Iterator[tuple[str, Disk]]:
        for node, mounts in self._mounted.items():
            for namespace, mount in mounts:
                disk = self._disk(namespace, mount)
                if disk is not None:
                    yield node, disk

    def _disks_attached(self) -> Iterator[tuple[str, Disk]]:
        for each in self.all(Attachment):
            volume = self.find(Volume, each.volume)
            if each.driver and volume is not None and volume.driver:
                yield each.node, (each.driver, volume.handle)

    def _disk(self, namespace: str, mount: Mount) -> Disk | None:
        """Return the disk that a mount counts as; of what is not bound yet, the one to come."""
        if not mount.claim:
            return IN_TREE_DRIVERS[mount.volume], mount.owner
        claim = self.find(Claim, (namespace, mount.claim))
        if claim is None:
            return None
        volume = self.find(Volume, claim.volume)
        if volume is not None:
            driver = volume.driver or IN_TREE_DRIVERS.get(volume.in_tree, "")
            return (driver, volume.handle or volume.name) if driver else None
        of_class = self.find(StorageClass, claim.storage_class)
        return (of_class.provisioner, f"{namespace}/{claim.name}") if of_class else None


def _count(counts: Counter[K], key: K, sign: int) -> None:
    """Count; what comes to nothing is forgotten."""
    counts[key] += sign
    if not counts[key]:
        del counts[key]
