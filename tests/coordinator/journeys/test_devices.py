"""Gangs whose pods ask for devices by claim: what is promised counts before it is allocated."""

import msgspec

from coordinator.messages.events import DeviceFactSeen, DeviceFactsLost, DeviceFactsSeen
from kube.devices.resource_claims import resource_claim
from kube.devices.resource_slices import ReadSlice
from kube.objects.core import DeviceObject
from scheduling.model.devices.resource_claim import ResourceClaim
from tests.coordinator.builders import TEAM, Json, group, node, ray_cluster
from tests.coordinator.device_world import (
    ANY,
    asking,
    claim_template,
    device_class,
    device_slice,
)
from tests.coordinator.held import had_pods, held
from tests.coordinator.world import World
from tests.kube.devices.objects import GPU

NIC = "nic.example.com"


def offering(devices: int, *names: str) -> list[Json]:
    """Nodes with so many devices each, their class, and a template `one` of one."""
    names = names or ("n1",)
    slices = [device_slice(each, devices) for each in names]
    nodes = [node(each, cpu=64) for each in names]
    return [*nodes, *slices, device_class(), claim_template("one")]


def gang(name: str, workers: int, *templates: str) -> Json:
    return ray_cluster(name, group("w", workers, **asking(*templates or ("one",))))


def given(world: World) -> list[str]:
    """The nodes of all devices that are taken."""
    claims = world.api.all("resourceclaims")
    found = [each.get("status", {}).get("allocation", {}).get("devices", {}) for each in claims]
    return sorted(d["pool"] for devices in found for d in devices.get("results", ()))


def test_one_gang_runs_and_the_other_waits_in_numbers_until_it_is_gone() -> None:
    world = World(*offering(4))
    world.create(gang("a", 3))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}
    world.create(gang("b", 3))
    world.settle(seconds=5)
    assert (world.status("b")["phase"], world.gated("b")) == ("Queued", 4)
    assert "gpu.example.com" in world.status("b")["message"]
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 4}
    assert given(world) == ["n1"] * 3


def test_gangs_that_are_decided_together_share_what_there_is() -> None:
    """Nothing of the first is allocated when the second is decided."""
    world = World(*offering(4))
    world.create(gang("a", 3), gang("b", 3))
    world.settle(seconds=5)
    assert sorted(sum(world.bound(name).values()) for name in "ab") == [0, 4]


def test_what_is_promised_counts_for_this_leader_and_the_next() -> None:
    """Nothing is allocated yet, for kube-scheduler is late. What is left another gang gets."""
    world = World(*offering(4), replicas=2)
    world.scheduler = False
    world.create(gang("a", 3))
    world.settle(seconds=5)
    assert (world.status("a")["phase"], given(world)) == ("Admitted", [])
    world.create(gang("b", 2))
    world.settle(seconds=5)
    assert (world.status("b")["phase"], world.gated("b")) == ("Queued", 3)
    world.elect(1)
    world.replicas.reverse()
    world.create(gang("c", 2), gang("d", 1))
    world.settle(seconds=5)
    assert [world.gated(name) for name in "bcd"] == [3, 3, 0]
    world.scheduler = True
    world.settle(seconds=5)
    assert [sum(world.bound(name).values()) for name in "abcd"] == [4, 0, 0, 2]


def test_a_gang_waits_for_what_is_not_made_and_says_so() -> None:
    world = World(*offering(4)[:-1])
    world.create(gang("a", 2))
    world.settle(seconds=40)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Gathering", "GangIncomplete")
    assert "ResourceClaimTemplate one does not exist" in status["message"]
    [gathered] = [each for each in status["conditions"] if each["type"] == "Gathered"]
    assert gathered["status"] == "False"
    world.create(claim_template("one"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}


def test_while_a_watch_is_down_nothing_is_decided_for_claims_and_all_else_goes_on() -> None:
    world = World(*offering(4))
    world.create(gang("first", 1))
    world.settle(seconds=5)
    world.leader.handle([DeviceFactsLost(ReadSlice)])
    world.create(gang("a", 2), ray_cluster("usual", group("w", 2)))
    world.settle(seconds=40)
    assert world.bound("usual") == {"n1": 3}
    assert "not all is read yet: resourceslices" in world.status("a")["message"]
    world.leader.handle([DeviceFactsSeen(ReadSlice)])
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}


def test_a_gang_over_two_classes_goes_where_there_is_enough_of_both() -> None:
    nics = [device_slice("n2", 3, NIC), device_class(NIC)]
    world = World(*offering(4, "n1", "n2"), *nics, claim_template("nic", of_class=NIC))
    world.create(gang("a", 3, "one", "nic"))
    world.settle(seconds=5)
    assert world.bound("a")["n2"] >= 3


def test_devices_that_go_and_come_back_are_counted_as_they_are() -> None:
    """The driver of a node takes its slice away, and publishes another one."""
    world = World(*offering(4))
    world.delete("resourceslices", "n1-gpu.example.com", namespace="")
    world.create(gang("a", 2))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Queued"
    world.create(device_slice("n1", 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}


def two_waves() -> World:
    """A worker takes any device, the first of which is the GPU that another one asks for."""
    nic = device_slice("n1", 1, NIC)
    return World(*offering(1), nic, device_class(ANY), claim_template("any", of_class=ANY))


def in_two_waves() -> Json:
    one, other = group("picky", 1, **asking("one")), group("any", 1, **asking("any"))
    return ray_cluster("a", other, one)


def foreign_claim(world: World, device: str) -> None:
    """A pod of no gang is given a device, which no verdict of ours foresaw."""
    spec = claim_template("x", of_class=NIC)["spec"]["spec"]
    given = {"request": "r", "driver": device, "pool": "n1", "device": "d-0"}
    status = {"allocation": {"devices": {"results": [given]}}}
    meta = {"name": "foreign", "namespace": TEAM}
    world.create({"kind": "ResourceClaim", "metadata": meta, "spec": spec, "status": status})


def test_pods_that_would_take_the_devices_of_others_come_in_a_later_wave() -> None:
    world = two_waves()
    world.create(in_two_waves())
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    waves = {
        each["name"]: each["assignments"][0] for each in world.status("a")["placement"]["podSets"]
    }
    assert waves["any"]["wave"] > waves["picky"].get("wave", 0)


def test_the_next_wave_is_judged_by_what_was_allocated_and_not_by_what_was_foreseen() -> None:
    """What was left is taken meanwhile: the pod keeps its gate, and the gang says why."""
    world = two_waves()
    world.scheduler = False
    world.create(in_two_waves())
    world.settle(seconds=5)
    assert world.gated("a") == 1
    foreign_claim(world, NIC)
    world.scheduler = True
    world.settle(seconds=20)
    assert world.bound("a") == {"n1": 2}
    assert world.gated("a") == 1
    assert "any.example.com" in world.status("a")["message"]
    world.delete("resourceclaims", "foreign")
    world.settle(seconds=20)
    assert world.bound("a") == {"n1": 3}


def test_a_tenant_with_ten_thousand_claims_holds_nobody_up() -> None:
    """They are no matter to a gang that waits for devices; those that were given any are."""
    world = World(*offering(4))
    world.create(gang("a", 3), gang("b", 3))
    world.settle(seconds=5)
    assert world.status("b")["phase"] == "Queued"
    known = world.leader.state.known
    before = known.cache.devices.index.edition
    for number in range(10_000):
        world.leader.handle([DeviceFactSeen(claim_of_loud(number))])
    assert not known.agenda.cycle_wanted
    assert not known.agenda.dirty
    assert known.cache.devices.index.edition == before
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 4}


def claim_of_loud(number: int) -> ResourceClaim:
    meta = {"name": f"c{number}", "namespace": "loud", "uid": f"loud-{number}"}
    spec = claim_template("x")["spec"]["spec"]
    found = msgspec.convert({"metadata": meta, "spec": spec}, DeviceObject)
    return resource_claim(found)


# ---- a claim that several pods share


def sharing(name: str, workers: int) -> Json:
    asked: Json = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "ours"}]}
    return ray_cluster(name, group("w", workers, **asked))


def shared_claim(count: int = 1) -> Json:
    made = claim_template("ours", count)
    return {"kind": "ResourceClaim", "metadata": made["metadata"], "spec": made["spec"]["spec"]}


def released(world: World) -> int:
    gated = (pod for pod in world.api.all("pods") if not pod["spec"].get("schedulingGates"))
    return sum(pod["metadata"]["labels"]["ray.io/node-type"] == "worker" for pod in gated)


def test_of_workers_that_share_a_device_one_goes_first_and_all_go_to_one_node() -> None:
    """The device is given to the first; kube-scheduler would refuse the others until then."""
    world = World(*offering(1, "n1", "n2"), shared_claim())
    world.scheduler = False
    world.create(sharing("a", 3))
    world.settle(seconds=5)
    assert (world.status("a")["phase"], released(world)) == ("Admitted", 1)
    world.scheduler = True
    world.settle(seconds=5)
    [node_of_workers] = set(given(world))
    assert world.bound("a")[node_of_workers] >= 3
    assert sum(world.bound("a").values()) == 4
    assert len(given(world)) == 1


def test_what_pods_share_is_promised_once() -> None:
    """Of two devices one is left for another gang, while nothing is allocated."""
    world = World(*offering(2), shared_claim())
    world.scheduler = False
    world.create(sharing("a", 3))
    world.settle(seconds=5)
    world.create(gang("b", 1), gang("c", 1))
    world.settle(seconds=5)
    phases = [world.status(name)["phase"] for name in "bc"]
    assert sorted(phases) == ["Admitted", "Queued"]
    world.scheduler = True
    world.settle(seconds=5)
    assert sum(world.bound("a").values()) == 4
    assert len(given(world)) == 2


def test_a_worker_that_comes_later_finds_what_the_others_were_given() -> None:
    world = World(*offering(1, "n1", "n2"), shared_claim())
    world.create(sharing("a", 2))
    world.settle(seconds=5)
    [at] = set(given(world))
    lost = next(pod for pod in world.api.all("pods") if pod["spec"].get("nodeName") == at)
    world.delete("pods", lost["metadata"]["name"])
    world.settle(seconds=60)
    assert sum(world.bound("a").values()) == 3
    assert given(world) == [at]


def test_no_node_has_the_devices_that_pods_share() -> None:
    world = World(*offering(1, "n1", "n2"), shared_claim(2))
    world.create(sharing("a", 2))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Queued"
    assert "0 of 2 w fit by their claims" in world.status("a")["message"]


RESOURCE = "example.com/gpu"


def by_resource(name: str, workers: int) -> Json:
    """A gang whose workers ask for one of an extended resource each."""
    amounts = {"requests": {"cpu": "1", RESOURCE: "1"}, "limits": {RESOURCE: "1"}}
    container = {"name": "ray", "resources": amounts}
    return ray_cluster(name, group("w", workers, containers=[container]))


def giving(devices: int) -> list[Json]:
    """A node with so many devices, of a class that gives the resource."""
    return [node("n1", cpu=64), device_slice("n1", devices), device_class(GPU, RESOURCE)]


def test_what_a_class_gives_is_promised_once_and_free_again_in_the_end() -> None:
    """Both gangs are decided before any claim is made."""
    world = World(*giving(4))
    world.create(by_resource("a", 3), by_resource("b", 3))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("b")) == ({"n1": 4}, 4)
    assert given(world) == ["n1"] * 3
    assert world.status("b")["reason"] == "InsufficientResources"
    world.delete("rayclusters", "a")
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 4}


def test_a_resource_that_each_node_with_devices_lists_is_given_by_none() -> None:
    """It is the device plugin's, and preemption and constraints between pods are as always."""
    listed = node("n1", cpu=64)
    listed["status"]["allocatable"][RESOURCE] = "2"
    world = World(listed, device_slice("n1", 8), device_class(GPU, RESOURCE))
    world.create(by_resource("a", 2), by_resource("b", 1))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("b")) == ({"n1": 3}, 2)
    assert given(world) == []


def test_a_gang_is_looked_at_again_once_a_node_has_devices_at_all() -> None:
    world = World(node("n1", cpu=64), device_class(GPU, RESOURCE))
    world.create(by_resource("a", 2))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "InsufficientResources"
    world.create(device_slice("n1", 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}


def test_a_held_gang_is_decided_by_what_classes_give_and_its_devices_are_promised() -> None:
    """No claim has to exist before its pods: it waits without any, and so does the next."""
    world = World(*giving(3))
    world.create(held(by_resource("a", 3)), held(by_resource("b", 3)))
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    assert not had_pods(world.api, "b")
    assert world.status("b")["reason"] == "InsufficientResources"
    world.delete("rayclusters", "a")
    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 4}
