"""Reads claims, volumes, classes and drivers into the facts of the core.

Each watch tells of one kind of object, and each object is reduced to one fact. A quantity that
cannot be read leaves no object out: its disk still counts where it is attached. A claim then asks
for more than any volume has, a volume is empty, and of a capacity there is none.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from kube.api import resources
from kube.api.resources import Resource
from kube.codec.selectors import node_terms, selector
from kube.codec.volumes.csi_migration import MIGRATED, TAKEN_OVER, handle_of, moved
from kube.objects import base as base_objects
from kube.objects import storage as storage_objects
from kube.objects.base import ObjectMeta
from scheduling.filters.volumes.volume_zone import ZONE_LABELS
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.quantity import (
    LARGEST_SIZE,
    BadQuantity,
    allocatable_amount,
    offered_size,
    requested_size,
)
from scheduling.model.volume import (
    IN_TREE_DRIVERS,
    Attachment,
    Capacity,
    Claim,
    Driver,
    Fact,
    Limits,
    StorageClass,
    Volume,
)

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
CLASS_BEFORE = "volume.beta.kubernetes.io/storage-class"
ONE_POD = "ReadWriteOncePod"
FILE_SYSTEM = "Filesystem"


@dataclass(frozen=True, slots=True)
class ObservedFact:
    """A fact, and of its object what a reflector asks for."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    fact: Fact

    @property
    def metadata(self) -> "ObservedFact":
        """Return its name, namespace, uid and resource version."""
        return self


def claim(found: storage_objects.PersistentVolumeClaim) -> Claim:
    """Read a PersistentVolumeClaim."""
    meta, spec = found.metadata, found.spec
    return Claim(
        namespace=meta.namespace,
        name=meta.name,
        owner=_controller(meta),
        storage_class=_class_of(meta, spec.storage_class_name),
        volume=spec.volume_name,
        bound=BIND_COMPLETED in meta.annotations,
        lost=found.status.phase == "Lost",
        deleted=meta.deletion_timestamp is not None,
        once=ONE_POD in spec.access_modes,
        selected=meta.annotations.get(SELECTED_NODE, ""),
        size=_asked(spec.resources.requests.get("storage")),
        uid=meta.uid,
        kind=spec.volume_mode or FILE_SYSTEM,
        attributes=spec.volume_attributes_class_name or "",
        modes=tuple(sorted(spec.access_modes)),
        selector=() if spec.selector is None else selector(spec.selector),
    )


def volume(found: storage_objects.PersistentVolume) -> Volume:
    """Read a PersistentVolume."""
    meta, spec = found.metadata, found.spec
    deleted, held_by = meta.deletion_timestamp is not None, spec.claim_ref
    is_open = found.status.phase == "Available" and not (deleted or held_by)
    terms = _reachable(spec.node_affinity)
    csi = spec.csi or storage_objects.CSISource()
    disk = _in_tree(spec, meta.labels) or _Disk("", csi.driver, csi.volume_handle)
    return Volume(
        name=meta.name,
        storage_class=_class_of(meta, spec.storage_class_name),
        claim=(held_by.namespace, held_by.name) if held_by else None,
        claim_uid=held_by.uid if held_by else "",
        open=is_open,
        deleted=deleted,
        size=_capacity(spec.capacity),
        kind=spec.volume_mode or FILE_SYSTEM,
        attributes=spec.volume_attributes_class_name or "",
        terms=_by_labels(terms),
        zones=tuple(_zones(meta.labels)),
        driver=disk.driver,
        handle=disk.handle,
        plugin=disk.plugin,
        moved=_by_labels(moved(terms, meta.labels, disk.zone_key)) if disk.plugin else None,
        modes=tuple(sorted(spec.access_modes)),
        labels=tuple(sorted(meta.labels.items())) if is_open else (),
    )


def storage_class(found: storage_objects.StorageClass) -> StorageClass:
    """Read a StorageClass."""
    allowed = found.allowed_topologies
    return StorageClass(
        name=found.metadata.name,
        provisioner=found.provisioner,
        waits=found.volume_binding_mode == "WaitForFirstConsumer",
        topologies=tuple(map(_topology, allowed)) if allowed else None,
    )


def driver(found: storage_objects.CSIDriver) -> Driver:
    """Read a CSIDriver."""
    return Driver(found.metadata.name, tracks=bool(found.spec.storage_capacity))


def capacity(found: storage_objects.CSIStorageCapacity) -> Capacity:
    """Read a CSIStorageCapacity; the largest volume counts before the sum."""
    largest = found.maximum_volume_size
    return Capacity(
        namespace=found.metadata.namespace,
        name=found.metadata.name,
        storage_class=found.storage_class_name,
        size=_published(found.capacity if largest is None else largest),
        selector=None if found.node_topology is None else selector(found.node_topology),
    )


def limits(found: storage_objects.CSINode) -> Limits:
    """Read a CSINode."""
    counts = (
        (each.name, each.allocatable.count)
        for each in found.spec.drivers
        if each.allocatable is not None and each.allocatable.count is not None
    )
    plugins = found.metadata.annotations.get(MIGRATED, "").split(",")
    known = (name for name in plugins if name in IN_TREE_DRIVERS)
    drivers = ((each.name, each.topology_keys) for each in found.spec.drivers)
    migrated = tuple(sorted({*known}))
    return Limits(found.metadata.name, tuple(counts), migrated, tuple(drivers))


def attachment(found: storage_objects.VolumeAttachment) -> Attachment:
    """Read a VolumeAttachment."""
    spec = found.spec
    of = spec.source.persistent_volume_name or ""
    return Attachment(found.metadata.name, spec.node_name, spec.attacher, of)


class StorageWatch(NamedTuple):
    """One kind of object, and how it is read."""

    resource: Resource
    kind: type[Any]
    fact: type[Fact]
    read: Callable[[Any], Fact]

    def observe(self, found: Any) -> ObservedFact:
        """Reduce an object; one that cannot be read is a ValueError."""
        meta = found.metadata
        fact = self.read(found)
        return ObservedFact(meta.namespace, meta.name, meta.uid, meta.resource_version, fact)


WATCHES = (
    StorageWatch(resources.CLAIMS, storage_objects.PersistentVolumeClaim, Claim, claim),
    StorageWatch(resources.VOLUMES, storage_objects.PersistentVolume, Volume, volume),
    StorageWatch(
        resources.STORAGE_CLASSES, storage_objects.StorageClass, StorageClass, storage_class
    ),
    StorageWatch(resources.CSI_DRIVERS, storage_objects.CSIDriver, Driver, driver),
    StorageWatch(resources.CSI_CAPACITIES, storage_objects.CSIStorageCapacity, Capacity, capacity),
    StorageWatch(resources.CSI_NODES, storage_objects.CSINode, Limits, limits),
    StorageWatch(resources.ATTACHMENTS, storage_objects.VolumeAttachment, Attachment, attachment),
)
"""All that is watched for the sake of volumes."""


def _controller(meta: ObjectMeta) -> str:
    return next((each.uid for each in meta.owner_references if each.controller), "")


def _class_of(meta: ObjectMeta, named: str | None) -> str:
    """Name the storage class; the annotation of old comes first."""
    return meta.annotations.get(CLASS_BEFORE, named or "")


def _asked(quantity: base_objects.Quantity | None) -> int | None:
    try:
        return None if quantity is None else requested_size(str(quantity))
    except BadQuantity:
        return LARGEST_SIZE


def _capacity(offered: base_objects.Quantities) -> int:
    """Read how large a volume is; one that does not say it is empty."""
    try:
        return offered_size(str(offered.get("storage", 0)))
    except BadQuantity:
        return 0


def _published(quantity: base_objects.Quantity | None) -> int | None:
    """Read how large a volume may become; beyond 64 bits kube-scheduler reads no more than 0."""
    try:
        return None if quantity is None else allocatable_amount("storage", str(quantity))
    except BadQuantity:
        return None


def _reachable(found: storage_objects.VolumeNodeAffinity | None) -> tuple[NodeTerm, ...] | None:
    """Read the node affinity."""
    return None if found is None or found.required is None else node_terms(found.required)


def _by_labels(terms: tuple[NodeTerm, ...] | None) -> tuple[NodeTerm, ...] | None:
    """Leave out terms with fields: kube-scheduler asks labels alone, so they never match."""
    return None if terms is None else tuple(term for term in terms if not term.fields)


def _zones(labels: Mapping[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Read the labels of zone and region; one with an empty value between its dividers is none.

    What no label of a node can be is left out of the values.
    """
    for key in ZONE_LABELS:
        values = [value.strip() for value in labels.get(key, "").split("__")]
        if all(values):
            yield key, tuple(sorted({v for v in values if v[0].isalnum() and v[-1].isalnum()}))


def _topology(found: storage_objects.TopologyTerm) -> NodeTerm:
    return NodeTerm(
        tuple(Requirement(each.key, "In", each.values) for each in found.match_label_expressions)
    )


class _Disk(NamedTuple):
    """The CSI disk that a volume is; of one that a driver took over also the plugin and its zones.

    A disk that no driver can take over has no handle.
    """

    plugin: str
    driver: str
    handle: str
    zone_key: str = ""


def _in_tree(spec: storage_objects.PersistentVolumeSpec, labels: Mapping[str, str]) -> _Disk | None:
    """Return what a volume is where a CSI driver has taken its kind over; None for other kinds."""
    for field in msgspec.structs.fields(spec):
        source, kind = getattr(spec, field.name), field.encode_name
        if kind in TAKEN_OVER and source is not None:
            known, handle = TAKEN_OVER[kind], handle_of(kind, source, labels)
            return _Disk(known.plugin, known.driver, handle, known.zone_key)
    return None
