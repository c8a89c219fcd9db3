"""Reads which claims a pod mounts, and which of its volumes are unsupported."""

from collections.abc import Iterable, Iterator, Mapping

from kube.codec.volumes.csi_migration import TAKEN_OVER, handle_of
from kube.objects import base as base_objects
from kube.objects.core import Pod, PodSpec, VolumeSource
from scheduling.model.pod import Mount

MOST_VOLUMES = 100  # claims and disks; no node attaches as many, and each costs a look at all
CLAIM, EPHEMERAL = "persistentVolumeClaim", "ephemeral"
_MOUNTED = frozenset((CLAIM, EPHEMERAL, *TAKEN_OVER))


# Disks that plugin VolumeRestrictions gives to one pod of a node, if pods name them themselves.
_EXCLUSIVE_DISKS = frozenset(("awsElasticBlockStore", "gcePersistentDisk", "iscsi", "rbd"))


# Volumes that no Filter plugin looks at, those of claims, and the kinds of disk of `csi_migration`.
# Any other kind is of a later release.
_MODELLED_VOLUMES = frozenset(
    (
        *(CLAIM, EPHEMERAL, "azureFile", "vsphereVolume"),
        *TAKEN_OVER,
        *("configMap", "csi", "downwardAPI", "emptyDir", "hostPath", "image", "projected"),
        *("secret", "nfs", "cephfs", "fc", "flexVolume", "gitRepo", "glusterfs"),
        *("flocker", "photonPersistentDisk", "quobyte", "scaleIO", "storageos"),
    )
)


# What none of the functions here that look at volumes has anything to say of.
_PLAIN = frozenset(("name", *_MODELLED_VOLUMES - _MOUNTED - _EXCLUSIVE_DISKS))


def volumes(spec: PodSpec) -> Iterator[str]:
    """Name the volumes of a pod that are not modelled."""
    if sum(kind in _MOUNTED for _, kind, _ in _sources(spec)) > MOST_VOLUMES:
        yield f"more than {MOST_VOLUMES} volumes of claims and disks (use fewer)"
    remedy = "use a PersistentVolumeClaim instead"
    for _, kind, source in _sources(spec):
        if kind in _EXCLUSIVE_DISKS or kind not in _MODELLED_VOLUMES:
            yield f"volume of kind {kind} ({remedy})"
        elif kind in TAKEN_OVER and not handle_of(kind, source, {}):
            yield f"volume of kind {kind} that no CSI driver can take over ({remedy})"


def _sources(spec: PodSpec) -> Iterator[tuple[str, str, VolumeSource]]:
    """Yield name, kind and source of each volume that is more than files in the container."""
    for volume in telling_volumes(spec):
        for kind, source in volume.items():
            if isinstance(source, VolumeSource):
                yield str(volume.get("name", "")), kind, source


def telling_volumes(spec: PodSpec) -> tuple[Mapping[str, str | VolumeSource | None], ...]:
    """List the volumes that may decide where a pod goes; most pods have none."""
    return tuple(each for each in spec.volumes if not each.keys() <= _PLAIN)


def mounts(pod: Pod) -> tuple[Mount, ...]:
    """List the claims that a pod mounts, and the disks it names that count as a driver's.

    A disk has no claim: `volume` is its driver and `owner` its handle.
    """
    found = (_mount(pod.metadata, *each) for each in _sources(pod.spec))
    return tuple(mount for mount in found if mount is not None)


def _mount(
    pod: base_objects.ObjectMeta, volume: str, kind: str, source: VolumeSource
) -> Mount | None:
    if kind == CLAIM:
        return Mount(source.claim_name)
    if kind == EPHEMERAL:
        return Mount(f"{pod.name}-{volume}", volume, pod.uid)
    if kind in TAKEN_OVER:
        return Mount("", TAKEN_OVER[kind].driver, handle_of(kind, source, {}))
    return None


def volume_names(found: Iterable[Mount]) -> tuple[str, ...]:
    """Name the volumes that tell shapes apart: claims, but a pod's own claim by its volume."""
    return tuple(sorted({_volume_name(each) for each in found}))


def _volume_name(found: Mount) -> str:
    if not found.claim:
        return f"{found.volume} {found.owner}"
    return f"{EPHEMERAL} {found.volume}" if found.volume else f"{CLAIM} {found.claim}"
