"""Objects of storage are read into the facts of the core."""

from typing import Any

import msgspec
import pytest

from kube.codec.pod import pod_shape
from kube.codec.volumes.csi_migration import MIGRATED
from kube.codec.volumes.pod_volumes import mounts
from kube.codec.volumes.storage import WATCHES
from kube.objects import core as core_objects
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.pod import Mount
from scheduling.model.quantity import LARGEST_SIZE
from scheduling.model.volume import (
    Attachment,
    Capacity,
    Claim,
    Driver,
    Fact,
    Limits,
    StorageClass,
    Volume,
)
from scheduling.state.volume_index import KINDS

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def fact(kind: str, obj: Json) -> Fact:
    [watch] = [each for each in WATCHES if each.kind.__name__ == kind]
    told = watch.observe(msgspec.json.decode(msgspec.json.encode(obj), type=watch.kind))
    assert (told.metadata.name, told.metadata.namespace) == (
        obj["metadata"]["name"],
        obj["metadata"].get("namespace", ""),
    )
    assert isinstance(told.fact, watch.fact)
    return told.fact


def test_every_kind_of_fact_has_a_watch() -> None:
    assert {each.fact for each in WATCHES} == set(KINDS)


def test_a_claim() -> None:
    owners = [{"uid": "other"}, {"uid": "pod", "controller": True}]
    annotations = {
        "pv.kubernetes.io/bind-completed": "yes",
        "volume.kubernetes.io/selected-node": "n1",
    }
    meta = {"name": "data", "namespace": "team", "uid": "c", "annotations": annotations}
    spec = {
        "accessModes": ["ReadWriteOncePod"],
        "resources": {"requests": {"storage": "1.5Gi"}},
        "storageClassName": "fast",
        "volumeName": "pv",
        "volumeMode": "Block",
        "volumeAttributesClassName": "gold",
        "selector": {"matchLabels": {"disk": "ssd"}},
    }
    made = {"metadata": {**meta, "ownerReferences": owners}, "spec": spec}
    expected = Claim(
        "team", "data", "pod", "fast", "pv",
        bound=True, once=True, selected="n1", size=1_610_612_736, uid="c",
        kind="Block", attributes="gold", modes=("ReadWriteOncePod",),
        selector=(Requirement("disk", "In", ("ssd",)),),
    )  # fmt: skip
    assert fact("PersistentVolumeClaim", made) == expected
    bare: Json = {"metadata": {"name": "data", "namespace": "team"}, "spec": {"accessModes": None}}
    assert fact("PersistentVolumeClaim", bare) == Claim("team", "data")
    ending = {**bare, "metadata": {**bare["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert fact("PersistentVolumeClaim", ending) == Claim("team", "data", deleted=True)
    lost = {**bare, "status": {"phase": "Lost"}}
    assert fact("PersistentVolumeClaim", lost) == Claim("team", "data", lost=True)
    old = {"volume.beta.kubernetes.io/storage-class": "old"}
    before = {**made, "metadata": {**meta, "annotations": old}}
    assert fact("PersistentVolumeClaim", before).storage_class == "old"  # type: ignore[union-attr]


def claim_of(size: str) -> Claim:
    spec = {"resources": {"requests": {"storage": size}}}
    found = fact("PersistentVolumeClaim", {"metadata": {"name": "x"}, "spec": spec})
    assert isinstance(found, Claim)
    return found


def volume_of(size: str) -> Volume:
    spec = {"capacity": {"storage": size}, "csi": {"driver": "disk", "volumeHandle": "h"}}
    found = fact("PersistentVolume", {"metadata": {"name": "x"}, "spec": spec})
    assert isinstance(found, Volume)
    return found


def capacity_of(size: str) -> int | None:
    found = fact("CSIStorageCapacity", {"metadata": {"name": "x"}, "capacity": size})
    assert isinstance(found, Capacity)
    return found.size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("10E", 10**19),
        ("1e19", 10**19),
        ("16Ei", 2**64),
        ("1e36", LARGEST_SIZE),
        ("1e999999999", LARGEST_SIZE),
        ("9" * 100, LARGEST_SIZE),
    ],
)
def test_sizes_beyond_64_bits_are_sizes(text: str, size: int) -> None:
    """A volume that was left out would be a disk that is not counted."""
    assert (claim_of(text).size, volume_of(text).size) == (size, size)
    assert volume_of(text).handle == "h"


@pytest.mark.parametrize("text", ["much", "-1", ""])
def test_a_volume_without_a_readable_size_is_there_and_fits_no_claim(text: str) -> None:
    assert (claim_of(text).size, volume_of(text).size) == (LARGEST_SIZE, 0)
    assert volume_of(text).handle == "h"
    assert capacity_of(text) is None


def test_capacities_beyond_64_bits_are_none() -> None:
    """So kube-scheduler reads them (Quantity.Value)."""
    assert capacity_of("8E") == 8 * 10**18
    assert capacity_of("10E") is None
    assert capacity_of("9223372036854775808") is None


def test_a_volume() -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
    field = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    spec = {
        "storageClassName": "fast",
        "claimRef": {"namespace": "team", "name": "data", "uid": "u"},
        "csi": {"driver": "disk", "volumeHandle": "h"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term, field]}},
    }
    labels = {ZONE: "a__b", "topology.kubernetes.io/region": "r____s", "app": "x"}
    made = {
        "metadata": {"name": "pv", "labels": labels},
        "spec": spec,
        "status": {"phase": "Bound"},
    }
    assert fact("PersistentVolume", made) == Volume(
        "pv",
        "fast",
        ("team", "data"),
        "u",
        terms=(NodeTerm((Requirement(ZONE, "In", ("a",)),)),),
        zones=((ZONE, ("a", "b")),),
        driver="disk",
        handle="h",
    )


@pytest.mark.parametrize(
    ("phase", "is_open"),
    [
        ("Available", True),
        ("Pending", False),
        ("Bound", False),
        ("Released", False),
        ("Failed", False),
    ],
)
def test_an_unclaimed_volume_may_still_be_bound(phase: str, is_open: bool) -> None:
    """kube-scheduler takes none that is not Available, unless it is kept for the claim."""
    made = {"metadata": {"name": "pv"}, "spec": {}, "status": {"phase": phase}}
    assert fact("PersistentVolume", made) == Volume("pv", open=is_open)
    ending = {**made, "metadata": {"name": "pv", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert fact("PersistentVolume", ending) == Volume("pv", deleted=True)
    kept = {**made, "spec": {"claimRef": {"namespace": "team", "name": "data"}}}
    assert fact("PersistentVolume", kept) == Volume("pv", claim=("team", "data"))


def test_what_claims_ask_of_a_volume_is_read() -> None:
    spec = {
        "storageClassName": "local",
        "capacity": {"storage": "1500m"},
        "volumeMode": "Block",
        "volumeAttributesClassName": "gold",
    }
    status = {"phase": "Available"}
    made = {"metadata": {"name": "pv"}, "spec": spec, "status": status}
    assert fact("PersistentVolume", made) == Volume(
        "pv", "local", open=True, size=1, kind="Block", attributes="gold"
    )


def test_a_volume_of_a_kind_that_a_driver_takes_over_has_two_affinities() -> None:
    """That of nodes where the driver has taken over, and that of the others."""
    labels = {ZONE: "a"}
    made = {"metadata": {"name": "pv", "labels": labels}, "spec": {"cinder": {"volumeID": "x"}}}
    there = Requirement("topology.cinder.csi.openstack.org/zone", "In", ("a",))
    assert fact("PersistentVolume", made) == Volume(
        "pv",
        zones=((ZONE, ("a",)),),
        driver="cinder.csi.openstack.org",
        handle="x",
        plugin="kubernetes.io/cinder",
        moved=(NodeTerm((there,)),),
    )


def test_a_storage_class() -> None:
    allowed = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
    made = {
        "metadata": {"name": "fast"},
        "provisioner": "disk",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": allowed,
    }
    terms = (NodeTerm((Requirement(ZONE, "In", ("a", "b")),)),)
    assert fact("StorageClass", made) == StorageClass("fast", "disk", waits=True, topologies=terms)
    bare = {"metadata": {"name": "now"}, "provisioner": "disk", "volumeBindingMode": "Immediate"}
    assert fact("StorageClass", bare) == StorageClass("now", "disk")


def test_what_drivers_say() -> None:
    assert fact("CSIDriver", {"metadata": {"name": "disk"}}) == Driver("disk")
    tracking = {"metadata": {"name": "disk"}, "spec": {"storageCapacity": True}}
    assert fact("CSIDriver", tracking) == Driver("disk", tracks=True)
    drivers = [
        {"name": "disk", "nodeID": "n", "allocatable": {"count": 0}},
        {"name": "share", "nodeID": "n", "allocatable": {}, "topologyKeys": [ZONE]},
        {"name": "other", "nodeID": "n", "topologyKeys": None},
    ]
    made = {"metadata": {"name": "n1"}, "spec": {"drivers": drivers}}
    told = (("disk", ()), ("share", (ZONE,)), ("other", ()))
    assert fact("CSINode", made) == Limits("n1", (("disk", 0),), drivers=told)
    plugins = {MIGRATED: "kubernetes.io/gce-pd,kubernetes.io/aws-ebs,kubernetes.io/gce-pd,other"}
    moved = {"metadata": {"name": "n1", "annotations": plugins}, "spec": {"drivers": None}}
    both = ("kubernetes.io/aws-ebs", "kubernetes.io/gce-pd")
    assert fact("CSINode", moved) == Limits("n1", migrated=both)
    spec = {"attacher": "disk", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}
    attached = {"metadata": {"name": "va"}, "spec": spec}
    assert fact("VolumeAttachment", attached) == Attachment("va", "n1", "disk", "pv")


def test_storage_capacity_counts_the_largest_volume_before_the_sum() -> None:
    meta = {"name": "c", "namespace": "kube-system"}
    topology = {"matchLabels": {ZONE: "a"}}
    made = {"metadata": meta, "storageClassName": "fast", "capacity": "10Gi"}
    assert fact("CSIStorageCapacity", made) == Capacity("kube-system", "c", "fast", 10 << 30)
    more = {**made, "maximumVolumeSize": "1Gi", "nodeTopology": topology}
    here = (Requirement(ZONE, "In", ("a",)),)
    assert fact("CSIStorageCapacity", more) == Capacity("kube-system", "c", "fast", 1 << 30, here)
    everywhere = {**made, "nodeTopology": {}}
    assert fact("CSIStorageCapacity", everywhere).selector == ()  # type: ignore[union-attr]


# ---- what pods mount


def pod(*volumes: Json, name: str = "p", uid: str = "u") -> core_objects.Pod:
    meta = {"name": name, "namespace": "team", "uid": uid}
    return msgspec.convert({"metadata": meta, "spec": {"volumes": list(volumes)}}, core_objects.Pod)


DATA = {"name": "d", "persistentVolumeClaim": {"claimName": "data"}}
SCRATCH = {"name": "s", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
SHM = {"name": "shm", "emptyDir": {"medium": "Memory"}}


def test_a_pod_mounts_claims_by_name_and_ephemeral_volumes_by_its_own() -> None:
    inline = {"name": "i", "gcePersistentDisk": {"pdName": "x"}}
    assert mounts(pod(DATA, SHM, SCRATCH, inline)) == (
        Mount("data"),
        Mount("p-s", "s", "u"),
        Mount("", "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/x"),
    )
    assert mounts(pod(SHM)) == ()


def test_pods_are_of_one_shape_unless_they_name_different_claims() -> None:
    other = {"name": "d", "persistentVolumeClaim": {"claimName": "other"}}
    one, two = (pod_shape(pod(DATA, SCRATCH, name=n, uid=n)) for n in "ab")
    assert one == two
    assert one.key == two.key
    assert pod_shape(pod(other, SCRATCH)).key != one.key
    assert pod_shape(pod(DATA)).key != one.key
    assert pod_shape(pod(SHM)).key == pod_shape(pod()).key
