"""Gangs start inside one zone, and replicas of several hosts inside one rack."""

from collections import Counter, defaultdict

import pytest

from kube.objects import names
from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot, label
from tests.controlplane.rayclusters import Json, gang, group

ZONE = "topology.kubernetes.io/zone"
RACK = "example.com/rack"


def add_zone(plot: Plot, zone: str, *cpus: int) -> None:
    """Add nodes of one zone, named after it."""
    plot.add_nodes(
        *(NodeSpec(f"{zone}-{at}", cpu, labels={ZONE: zone}) for at, cpu in enumerate(cpus))
    )


def add_rack(plot: Plot, rack: str, *cpus: int) -> None:
    labels = {RACK: rack, ZONE: "zone-of-racks"}
    plot.add_nodes(*(NodeSpec(f"{rack}-{at}", cpu, labels=labels) for at, cpu in enumerate(cpus)))


def domains(plot: Plot, name: str) -> Counter[str]:
    """The zones, or racks, of the bound workers: what their nodes' names begin with."""
    return Counter(node.rpartition("-")[0] for node in plot.bound(name, "worker").values())


def racks(plot: Plot, name: str) -> dict[str, Counter[str]]:
    """The racks of each replica."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    bound = plot.bound(name, "worker")
    for pod in plot.pods(name, "worker"):
        replica = label(pod, names.RAY_REPLICA_NAME)
        found[replica][bound[pod["metadata"]["name"]].rpartition("-")[0]] += 1
    return dict(found)


def within(key: str) -> dict[str, str]:
    return {names.TOPOLOGY_REQUIRED: key}


def of_two_hosts(name: str, replicas: int, **marks: str) -> Json:
    annotations = {names.REPLICA_TOPOLOGY_REQUIRED: RACK, **marks}
    return gang(name, group(replicas=replicas, hosts=2), annotations=annotations)


def test_a_gang_starts_inside_one_zone(plot: Plot) -> None:
    """Three zones have room for two workers, one of them for all three."""
    for zone, cpus in (("zone-a", (1, 1)), ("zone-b", (2, 1)), ("zone-c", (2,))):
        add_zone(plot, zone, *cpus)
    plot.create(gang("together", group(replicas=3), annotations=within(ZONE)))
    plot.wait_running("together", 4)
    assert domains(plot, "together") == {"zone-b": 3}


def test_a_lost_worker_comes_back_in_the_zone_of_the_others(plot: Plot) -> None:
    """Its node is cordoned and another zone has more room; it waits for the zone."""
    add_zone(plot, "zone-a", 1, 1, 1)
    plot.create(gang("stays", group(replicas=2), annotations=within(ZONE)))
    plot.wait_running("stays", 3)
    add_zone(plot, "zone-b", 8)
    victim, where = next(iter(plot.bound("stays", "worker").items()))
    plot.patch_node(where, {"spec": {"unschedulable": True}})
    plot.delete("Pod", victim)
    plot.wait_message("stays", f"the workers must be in {ZONE} zone-a: 0 of 1 workers fits")
    plot.add_nodes(NodeSpec("zone-a-3", 1, labels={ZONE: "zone-a"}))
    plot.wait_running("stays", 3)
    assert domains(plot, "stays") == {"zone-a": 2}


def test_each_replica_of_two_hosts_lands_in_one_rack(plot: Plot) -> None:
    """Neither rack holds both; the odd node out holds no half of one."""
    add_rack(plot, "rack-a", 1, 2)
    add_rack(plot, "rack-b", 1, 1)
    add_rack(plot, "rack-c", 1)
    plot.create(of_two_hosts("sliced", 2, **within(ZONE)))
    plot.wait_running("sliced", 5)
    found = racks(plot, "sliced")
    assert sorted(found.values(), key=str) == [{"rack-a": 2}, {"rack-b": 2}]
    sets = plot.status("sliced")["placement"]["podSets"]
    placed = next(each for each in sets if each["name"] == "workers")
    assert {each["replica"] for each in placed["assignments"]} == found.keys()


@pytest.mark.variant
def test_a_replica_that_lost_a_pod_is_made_again_into_its_rack(plot: Plot) -> None:
    """KubeRay deletes the other half; the new replica takes the slots, no other gang does."""
    add_rack(plot, "rack-a", 1, 2)
    plot.create(of_two_hosts("sliced", 1))
    plot.wait_running("sliced", 3)
    [before] = racks(plot, "sliced")
    plot.create(gang("waiting", group(replicas=0)))
    plot.wait_phase("waiting", "Queued", "InsufficientResources")
    plot.delete("Pod", plot.pods("sliced", "worker")[0]["metadata"]["name"])
    plot.wait(
        lambda: len(plot.pods("sliced", "worker")) == 2 and before not in _replicas(plot, "sliced"),
        "the replica to be made again",
    )
    plot.wait_running("sliced", 3)
    assert list(racks(plot, "sliced").values()) == [{"rack-a": 2}]
    assert plot.bound("waiting") == {}


def _replicas(plot: Plot, name: str) -> set[str]:
    return {label(pod, names.RAY_REPLICA_NAME) for pod in plot.pods(name, "worker")}
