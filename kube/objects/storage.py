"""Decodes claims, volumes and the other objects of storage."""

from kube.objects.base import LabelSelector, ObjectMeta, OrNull, Part, Quantities, Quantity, Slim
from kube.objects.core import NodeSelector, ResourceRequirements, VolumeSource


class ObjectReference(Slim, frozen=True):
    """Another object, by name, and by uid where one is meant."""

    namespace: str = ""
    name: str = ""
    uid: str = ""


class PersistentVolumeClaimSpec(Part, frozen=True):
    """What a claim asks for, and the volume that it names."""

    access_modes: OrNull[tuple[str, ...]] = ()
    resources: ResourceRequirements = ResourceRequirements()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    selector: LabelSelector | None = None


class Phase(Slim, frozen=True):
    """A status of which only the phase is read."""

    phase: str = ""


class PersistentVolumeClaim(Slim, frozen=True):
    """A claim."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: Phase = Phase()


class VolumeNodeAffinity(Slim, frozen=True):
    """The nodes from which a volume can be reached."""

    required: NodeSelector | None = None


class CSISource(Slim, frozen=True):
    """A disk of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class PersistentVolumeSpec(Part, frozen=True):
    """Where a volume is and whose it is; the in-tree kinds are those that CSI drivers take over."""

    capacity: OrNull[Quantities] = {}
    access_modes: OrNull[tuple[str, ...]] = ()
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None
    storage_class_name: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSISource | None = None
    aws_elastic_block_store: VolumeSource | None = None
    azure_disk: VolumeSource | None = None
    cinder: VolumeSource | None = None
    gce_persistent_disk: VolumeSource | None = None
    portworx_volume: VolumeSource | None = None


class PersistentVolume(Slim, frozen=True):
    """A volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: Phase = Phase()


class TopologyExpression(Part, frozen=True):
    """Values that a label of a node may have."""

    key: str = ""
    values: OrNull[tuple[str, ...]] = ()


class TopologyTerm(Part, frozen=True):
    """Expressions that must all hold."""

    match_label_expressions: OrNull[tuple[TopologyExpression, ...]] = ()


class StorageClass(Part, frozen=True):
    """A storage class."""

    metadata: ObjectMeta = ObjectMeta()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: OrNull[tuple[TopologyTerm, ...]] = ()


class CSIDriverSpec(Slim, frozen=True):
    """Whether a driver publishes how much storage it has where."""

    storage_capacity: bool | None = None


class CSIDriver(Slim, frozen=True):
    """A CSI driver."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Slim, frozen=True):
    """How much storage of a class there is for the nodes of one topology."""

    metadata: ObjectMeta = ObjectMeta()
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class VolumeCount(Slim, frozen=True):
    """How many volumes; None is no limit."""

    count: int | None = None


class CSINodeDriver(Part, frozen=True):
    """A driver on a node."""

    name: str = ""
    allocatable: VolumeCount | None = None
    topology_keys: OrNull[tuple[str, ...]] = ()


class CSINodeSpec(Part, frozen=True):
    """The drivers on a node."""

    drivers: OrNull[tuple[CSINodeDriver, ...]] = ()


class CSINode(Slim, frozen=True):
    """What CSI drivers say of a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: CSINodeSpec = CSINodeSpec()


class AttachmentSource(Slim, frozen=True):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Slim, frozen=True):
    """What is attached where, and by which driver."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Slim, frozen=True):
    """A volume that is to be attached to a node."""

    metadata: ObjectMeta = ObjectMeta()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
