"""Disks of the kinds that Kubernetes once knew itself, as kube-scheduler takes them."""

from typing import Any

import msgspec
import pytest

from kube.codec.pod import pod_shape
from kube.codec.volumes.csi_migration import moved
from kube.codec.volumes.pod_volumes import mounts
from kube.codec.volumes.storage import volume
from kube.objects import core as core_objects
from kube.objects import storage as storage_objects
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.pod import Mount
from tests.builders import require

Json = dict[str, Any]

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
DRIVERS_ZONE = "topology.gke.io/zone"


def pod(**source: Json) -> core_objects.Pod:
    made = {"metadata": {"uid": "u"}, "spec": {"volumes": [{"name": "v", **source}]}}
    return msgspec.convert(made, core_objects.Pod)


HANDLES = [
    ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "ebs.csi.aws.com", "vol-1"),
    ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}, "ebs.csi.aws.com", "vol-1"),
    ({"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, "ebs.csi.aws.com", "vol-1"),
    ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, "disk.csi.azure.com", "/d"),
    ({"azureDisk": {"diskURI": "/d", "kind": "Managed"}}, "disk.csi.azure.com", "/d"),
    ({"cinder": {"volumeID": "c"}}, "cinder.csi.openstack.org", "c"),
    (
        {"gcePersistentDisk": {"pdName": "g"}},
        "pd.csi.storage.gke.io",
        "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/g",
    ),
    ({"portworxVolume": {"volumeID": "p"}}, "pxd.portworx.com", "p"),
]


@pytest.mark.parametrize(("source", "driver", "handle"), HANDLES)
def test_a_disk_that_a_pod_or_a_volume_names_is_its_drivers(
    source: Json, driver: str, handle: str
) -> None:
    assert mounts(pod(**source)) == (Mount("", driver, handle),)
    made = {"metadata": {"name": "pv"}, "spec": source}
    found = volume(msgspec.convert(made, storage_objects.PersistentVolume))
    assert (found.driver, found.handle) == (driver, handle)
    assert found.plugin.startswith("kubernetes.io/")


@pytest.mark.parametrize(
    "source",
    [
        {"awsElasticBlockStore": {"volumeID": "aws://z/other"}},
        {"awsElasticBlockStore": {"volumeID": "aws://["}},
        {"awsElasticBlockStore": {"volumeID": "aws://z/vol-\t1"}},
        {"awsElasticBlockStore": {"volumeID": "aws://z/vol-%zz"}},
        {"awsElasticBlockStore": {"volumeID": "aws://z:port/vol-1"}},
        {"azureDisk": {"diskURI": "/d", "kind": "Dedicated"}},
    ],
)
def test_a_disk_that_no_driver_can_take_over_has_no_handle_and_is_named(source: Json) -> None:
    [kind] = source
    assert [mount.owner for mount in mounts(pod(**source))] == [""]
    [named] = pod_shape(pod(**source)).unsupported
    assert named.startswith(f"volume of kind {kind} ")
    assert named.endswith("(use a PersistentVolumeClaim instead)")
    made = {"metadata": {"name": "pv"}, "spec": source}
    assert volume(msgspec.convert(made, storage_objects.PersistentVolume)).handle == ""


@pytest.mark.parametrize("kind", ["azureFile", "vsphereVolume", "iscsi", "rbd"])
def test_other_kinds_are_no_drivers_disks(kind: str) -> None:
    assert mounts(pod(**{kind: {"volumeID": "x"}})) == ()
    made = {"metadata": {"name": "pv"}, "spec": {kind: {"volumeID": "x"}}}
    assert volume(msgspec.convert(made, storage_objects.PersistentVolume)).plugin == ""


@pytest.mark.parametrize(
    ("labels", "handle"),
    [
        ({ZONE: "us-east1-b"}, "projects/UNSPECIFIED/zones/us-east1-b/disks/g"),
        ({ZONE: "no", OLD_ZONE: "us-east1-b"}, "projects/UNSPECIFIED/zones/us-east1-b/disks/g"),
        ({ZONE: "us-east1-b__us-east1-c"}, "projects/UNSPECIFIED/regions/us-east1/disks/g"),
        ({ZONE: "us-east1-b__us-west1-c"}, ""),
        ({ZONE: "us-east1-b__b"}, ""),
    ],
)
def test_googles_disks_are_told_by_their_zones(labels: Json, handle: str) -> None:
    spec = {"gcePersistentDisk": {"pdName": "g"}}
    made = {"metadata": {"name": "pv", "labels": labels}, "spec": spec}
    assert volume(msgspec.convert(made, storage_objects.PersistentVolume)).handle == handle


def terms(*requirements: Requirement) -> tuple[NodeTerm, ...]:
    return (NodeTerm(requirements),)


IN_A, THERE = require(ZONE, "In", "a"), require(DRIVERS_ZONE, "In", "a")
HOST = require("host", "In", "h")


@pytest.mark.parametrize(
    ("before", "labels", "after"),
    [
        (None, {}, None),
        (terms(HOST), {}, terms(HOST)),
        (terms(IN_A, HOST), {ZONE: "b"}, terms(THERE, HOST)),
        (terms(require(OLD_ZONE, "In", "a")), {ZONE: "b"}, terms(THERE)),
        (None, {ZONE: "a__ b __"}, terms(require(DRIVERS_ZONE, "In", "a", "b"))),
        (terms(HOST), {OLD_ZONE: "a"}, terms(HOST, THERE)),
        (None, {ZONE: "", OLD_ZONE: "a"}, None),
        (terms(IN_A, HOST), {OLD_ZONE: "b"}, terms(THERE, HOST)),
        (
            terms(require(OLD_ZONE, "In", "a"), require(OLD_REGION, "In", "r")),
            {},
            terms(THERE, require(REGION, "In", "r")),
        ),
        (terms(require(OLD_REGION, "In", "r")), {}, terms(require(OLD_REGION, "In", "r"))),
        (terms(require(ZONE, "Exists")), {}, terms(require(ZONE, "Exists"))),
        (terms(require(ZONE, "Exists")), {ZONE: "a"}, terms(require(ZONE, "Exists"), THERE)),
    ],
)
def test_the_node_affinity_of_a_volume_moves_to_the_zones_of_the_driver(
    before: tuple[NodeTerm, ...] | None, labels: Json, after: tuple[NodeTerm, ...] | None
) -> None:
    assert moved(before, labels, DRIVERS_ZONE) == after
    assert moved(before, labels, "") == before
