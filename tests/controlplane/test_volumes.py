"""Gangs start where their volumes are, and name the claim that they wait for."""

import pytest

from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import Json, gang, group

ZONE = "topology.kubernetes.io/zone"
DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
SHM = {"name": "shm", "emptyDir": {"medium": "Memory"}}


def claim() -> Json:
    """A claim that no class provides for."""
    spec = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
    }
    return {"kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}


def only_in(zone: str) -> Json:
    """Node affinity of a volume."""
    expression = {"key": ZONE, "operator": "In", "values": [zone]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}


def scratch(storage_class: str) -> Json:
    """A volume for each worker with a claim of its own."""
    wanted = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    return {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}


def add_local_disk(plot: Plot, name: str, storage_class: str, node: str, **spec: object) -> None:
    """Add a volume that one node reaches."""
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [plot.node(node)]}
    plot.add_volume(
        name,
        nodeAffinity={"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
        storageClassName=storage_class,
        **spec,
    )


def test_workers_start_in_the_zone_of_their_volume(plot: Plot) -> None:
    """There is room for all on either node; the tighter one is in the wrong zone."""
    plot.add_nodes(
        NodeSpec("near", cpus=8, labels={ZONE: "here"}),
        NodeSpec("far", cpus=4, labels={ZONE: "there"}),
    )
    plot.create(claim())
    plot.add_volume("data", nodeAffinity=only_in("here"))
    plot.create(gang("trainer", group(replicas=3, volumes=[DATA, SHM])))
    plot.wait_running("trainer", 4)
    assert set(plot.bound("trainer", "worker").values()) == {"near"}


def test_a_gang_names_the_claim_that_it_waits_for_and_starts_once_it_is_bound(plot: Plot) -> None:
    """First the claim is missing, then its volume; a gang without claims does not wait."""
    plot.add_node(8)
    plot.create(gang("trainer", group(replicas=2, volumes=[DATA])))
    plot.wait_phase("trainer", "Queued", "NoFeasibleNode")
    plot.wait_message("trainer", 'VolumeBinding: volume claim "data" does not exist')
    plot.create(gang("usual", group(replicas=2)))
    plot.wait_running("usual", 3)
    plot.create(claim())
    plot.wait_message("trainer", 'volume claim "data" is not bound')
    assert all(is_held(pod) for pod in plot.pods("trainer"))
    plot.add_volume("data")
    plot.wait_running("trainer", 3)


@pytest.mark.variant
def test_a_claim_is_named_for_which_there_may_be_no_volume_until_one_is_kept(plot: Plot) -> None:
    """Two claims, and a disk on each node: on one node only one of them would find its volume."""
    plot.add_nodes(NodeSpec("one", cpus=8), NodeSpec("two", cpus=8))
    storage_class = plot.add_storage_class("local", provisioner="kubernetes.io/no-provisioner")
    for disk, node in (("a", "one"), ("b", "two")):
        add_local_disk(plot, disk, storage_class, node, claimRef=None)
    asked = claim()
    spec = {**asked["spec"], "storageClassName": storage_class}
    for name in ("data", "more"):
        plot.create({**asked, "metadata": {"name": name}, "spec": spec})
    more = {"name": "more", "persistentVolumeClaim": {"claimName": "more"}}
    plot.create(gang("trainer", group(replicas=2, volumes=[DATA, more])))
    plot.wait_message("trainer", "there may be too few free volumes beside other claims")
    assert all(is_held(pod) for pod in plot.pods("trainer"))
    add_local_disk(plot, "data", storage_class, "two")
    plot.wait_running("trainer", 3)
    assert set(plot.bound("trainer", "worker").values()) == {"two"}
