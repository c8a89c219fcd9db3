"""The volumes of a pod are read by kind, and those that are not modelled are named."""

import pytest

from kube.codec.pod import pod_shape
from tests.kube.codec.pods import pod, unsupported


def test_volumes_of_kinds_that_are_not_known_are_named() -> None:
    kind = "somethingOfALaterRelease"
    assert unsupported(volumes=[{"name": "v", kind: {}}]) == (
        f"volume of kind {kind} (use a PersistentVolumeClaim instead)",
    )


@pytest.mark.parametrize(
    "kind",
    ["emptyDir", "configMap", "secret", "projected", "downwardAPI", "hostPath", "csi", "nfs",
     "image", "persistentVolumeClaim", "ephemeral"],
)  # fmt: skip
def test_volumes_that_go_anywhere_or_that_a_claim_stands_for_are_not_named(kind: str) -> None:
    assert unsupported(volumes=[{"name": "v", kind: {}, "rbd": None}]) == ()


@pytest.mark.parametrize("kind", ["awsElasticBlockStore", "gcePersistentDisk", "iscsi", "rbd"])
def test_disks_that_pods_keep_from_each_other_are_named_with_a_remedy(kind: str) -> None:
    """Plugin VolumeRestrictions looks at those that pods name themselves, and at no claim's."""
    named = f"volume of kind {kind} (use a PersistentVolumeClaim instead)"
    assert unsupported(volumes=[{"name": "v", kind: {}}]) == (named,)
    assert unsupported(volumes=[{"name": "v", kind: None, "emptyDir": {}}]) == ()


@pytest.mark.parametrize("count", [100, 101])
def test_of_more_than_a_hundred_volumes_none_is_asked_about(count: int) -> None:
    claims = [{"persistentVolumeClaim": {"claimName": f"c{at}"}} for at in range(count - 1)]
    volumes = [*claims, {"cinder": {"volumeID": "d"}}, {"emptyDir": {}}, {"secret": {}}]
    shape = pod_shape(pod({"volumes": volumes}))
    too_many = ("more than 100 volumes of claims and disks (use fewer)",) if count > 100 else ()
    assert (shape.unsupported, len(shape.volumes)) == (too_many, 0 if too_many else count)
