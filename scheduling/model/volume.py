"""Claims, volumes, storage classes, drivers and their limits, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from scheduling.model.constraints import NodeTerm, Requirement

Terms = tuple[NodeTerm, ...] | None
"""From which nodes a volume is reached; None: from all."""

IN_TREE_DRIVERS: Mapping[str, str] = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "",
}
"""Plugins that a CSI driver took over, by the driver that their disks count as, if they do."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A PersistentVolumeClaim.

    `volume` is the one it names, `bound` says that both sides know of it. `owner` is the uid of
    its controller. `once`: ReadWriteOncePod. `size` in bytes, None where it asks for none.
    `selected` is the node for which a volume is being provisioned. `kind` is the mode that it asks
    for, file system or block, `attributes` the class of attributes; `modes` are the access modes,
    sorted, and `selector` is asked of the labels of a volume that no claim has yet.
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
    uid: str = ""
    kind: str = "Filesystem"
    attributes: str = ""
    modes: tuple[str, ...] = ()
    selector: tuple[Requirement, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Return namespace and name."""
        return self.namespace, self.name


class Pool(NamedTuple):
    """What free volumes of a class have in common that claims and nodes ask for, but their size.

    `labels` are sorted. `moves` says that a volume is reached from other nodes once it is bound.
    """

    terms: Terms
    kind: str
    attributes: str
    modes: tuple[str, ...]
    labels: tuple[tuple[str, str], ...]
    driver: str
    moves: bool


@dataclass(frozen=True, slots=True)
class Volume:
    """A PersistentVolume.

    `terms` is its node affinity (None: everywhere), `zones` its labels of zone and region with
    their values. `driver` and `handle` name the CSI disk. One of a kind that Kubernetes once knew
    itself has a `plugin`; `moved` is its node affinity where that is taken over, and without a
    handle no driver can. `claim` is the claim that it is bound to or kept for, `claim_uid` its uid
    where only one of that name is meant. `open` says that any claim may have it, `deleted` that
    none may. Claims ask for the rest: size in bytes, mode, the class of its attributes, and access
    modes, sorted. `labels`, sorted, are known of one that is open.
    """

    name: str
    storage_class: str = ""
    claim: tuple[str, str] | None = None
    claim_uid: str = ""
    open: bool = False
    deleted: bool = False
    size: int = 0
    kind: str = "Filesystem"
    attributes: str = ""
    terms: tuple[NodeTerm, ...] | None = None
    zones: tuple[tuple[str, tuple[str, ...]], ...] = ()
    driver: str = ""
    handle: str = ""
    plugin: str = ""
    moved: tuple[NodeTerm, ...] | None = None
    modes: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> str:
        """Return the name."""
        return self.name

    @property
    def pool(self) -> Pool:
        """Return what it has in common with the free volumes that may be bound in its place."""
        moves = bool(self.plugin) and (self.moved if self.handle else ()) != self.terms
        return Pool(
            *(self.terms, self.kind, self.attributes, self.modes, self.labels),
            *(self.driver, moves),
        )

    def is_kept_for(self, claim: Claim) -> bool:
        """Say whether it is kept for the claim, and kube-scheduler would take it for that."""
        return (
            self.claim == claim.key
            and self.claim_uid in ("", claim.uid)
            and not self.deleted
            and self.size >= (claim.size or 0)
            and (self.storage_class, self.kind, self.attributes)
            == (claim.storage_class, claim.kind, claim.attributes)
        )


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

    @property
    def driver(self) -> str:
        """Return the driver that its volumes count as; empty where they are not counted."""
        return IN_TREE_DRIVERS.get(self.provisioner, self.provisioner)


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
    """A CSINode: how many volumes of which driver a node takes, and which plugins moved there.

    `drivers` are those on the node, each with its topology keys.
    """

    name: str
    counts: tuple[tuple[str, int], ...] = ()
    migrated: tuple[str, ...] = ()
    drivers: tuple[tuple[str, tuple[str, ...]], ...] = ()

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
