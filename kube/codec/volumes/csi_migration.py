"""Translates in-tree volumes into those of the CSI drivers that took them over.

Volumes of five kinds count as those of the CSI driver that took them over (plugins
NodeVolumeLimits and VolumeBinding of 1.36 with csi-translation-lib). A volume's node affinity is
rewritten for nodes whose CSINode says that the kind is taken over there. No plugin looks at volumes
of the other kinds.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from kube.objects.core import VolumeSource
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.volume import IN_TREE_DRIVERS

MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
"""Annotation of a CSINode: the plugins that CSI drivers have taken over there."""

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
ZONE_BEFORE = "failure-domain.beta.kubernetes.io/zone"
REGION_BEFORE = "failure-domain.beta.kubernetes.io/region"
_BETWEEN_ZONES = "__"
_AMAZON = re.compile(r"aws://[\w.-]*/+(vol-[\w-]*)/*", re.ASCII)  # others might not parse in Go


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A kind of disk: the plugin that it had, and the label of zones of its driver now.

    `handle` tells the disk by its source and its volume's labels, and raises ValueError where the
    driver cannot take it over. Without a `zone_key` node affinity stays as it is.
    """

    plugin: str
    handle: Callable[[VolumeSource, Mapping[str, str]], str]
    zone_key: str = ""

    @property
    def driver(self) -> str:
        """Return the CSI driver."""
        return IN_TREE_DRIVERS[self.plugin]


def _google(source: VolumeSource, labels: Mapping[str, str]) -> str:
    zones = (labels.get(ZONE_BEFORE) or labels.get(ZONE, "")).split(_BETWEEN_ZONES)
    where = f"zones/{zones[0] or 'UNSPECIFIED'}" if len(zones) == 1 else f"regions/{_region(zones)}"
    return f"projects/UNSPECIFIED/{where}/disks/{source.pd_name}"


def _region(zones: Iterable[str]) -> str:
    """Name the one region of Google's zones, each as in us-east1-b."""
    parts = [zone.split("-") for zone in zones]
    regions = {"-".join(each[:2]) for each in parts}
    if len(regions) > 1 or any(len(each) != 3 for each in parts):
        raise ValueError(f"zones {zones} of no one region")
    return regions.pop()


def _amazon(source: VolumeSource, _: Mapping[str, str]) -> str:
    if not source.volume_id.startswith("aws://"):
        return source.volume_id
    found = _AMAZON.fullmatch(source.volume_id)
    if found is None:
        raise ValueError(f"volume id {source.volume_id}")
    return found[1]


def _azure(source: VolumeSource, _: Mapping[str, str]) -> str:
    if source.kind is not None and source.kind.lower() != "managed":
        raise ValueError(f"disk of kind {source.kind}")
    return source.disk_uri


def _by_id(source: VolumeSource, _: Mapping[str, str]) -> str:
    return source.volume_id


TAKEN_OVER: Mapping[str, TakenOver] = {
    "awsElasticBlockStore": TakenOver(
        "kubernetes.io/aws-ebs", _amazon, "topology.ebs.csi.aws.com/zone"
    ),
    "azureDisk": TakenOver("kubernetes.io/azure-disk", _azure),
    "cinder": TakenOver("kubernetes.io/cinder", _by_id, "topology.cinder.csi.openstack.org/zone"),
    "gcePersistentDisk": TakenOver("kubernetes.io/gce-pd", _google, "topology.gke.io/zone"),
    "portworxVolume": TakenOver("kubernetes.io/portworx-volume", _by_id),
}
"""By the name of the source; azureFile and vsphereVolume are never asked for."""


def handle_of(kind: str, source: VolumeSource, labels: Mapping[str, str]) -> str:
    """Return the CSI driver's handle of a disk; empty where no driver can take it over."""
    try:
        return TAKEN_OVER[kind].handle(source, labels)
    except ValueError:
        return ""


def moved(
    terms: tuple[NodeTerm, ...] | None, labels: Mapping[str, str], zone_key: str
) -> tuple[NodeTerm, ...] | None:
    """Return a volume's node affinity as it is where a driver has taken the kind over.

    Its zones become those of the driver, named by the affinity or else by the volume's labels;
    the old name of regions gives way to the new one (translateTopologyFromInTreeToCSI).
    """
    if not zone_key:
        return terms
    is_old = _uses_old_names(terms or (), labels)
    zone = ZONE_BEFORE if is_old else ZONE
    if _has_values(terms or (), zone):
        terms = _renamed(terms or (), zone, zone_key)
    else:
        terms = _with_zones(terms, labels.get(zone, ""), zone_key)
    if is_old and _has_values(terms or (), REGION_BEFORE):
        terms = _renamed(terms or (), REGION_BEFORE, REGION)
    return terms


def _uses_old_names(terms: tuple[NodeTerm, ...], labels: Mapping[str, str]) -> bool:
    keys = {each.key for term in terms for each in term.labels}
    for found in (keys, labels):
        if ZONE in found or ZONE_BEFORE in found:
            return ZONE not in found
    return False


def _has_values(terms: tuple[NodeTerm, ...], key: str) -> bool:
    return any(each.values for term in terms for each in term.labels if each.key == key)


def _renamed(terms: tuple[NodeTerm, ...], old: str, new: str) -> tuple[NodeTerm, ...]:
    def named(each: Requirement) -> Requirement:
        return replace(each, key=new) if each.key == old else each

    return tuple(replace(term, labels=tuple(map(named, term.labels))) for term in terms)


def _with_zones(
    terms: tuple[NodeTerm, ...] | None, label: str, key: str
) -> tuple[NodeTerm, ...] | None:
    zones = sorted({zone for part in label.split(_BETWEEN_ZONES) if (zone := part.strip())})
    if not zones:
        return terms
    one = Requirement(key, "In", tuple(zones))
    return tuple(replace(term, labels=(*term.labels, one)) for term in terms or (NodeTerm(),))
