"""A gang stays in its domain, and each replica in its own, through losses and changes."""

from collections import Counter, defaultdict

import msgspec

from kube.codec.placement import placement_from_status
from kube.objects import names
from kube.objects.gang import GangPlacement
from reservation.slots import slots_of
from scheduling.model.placement import Placement
from tests.coordinator.api import key_of
from tests.coordinator.builders import Json, foreign_pod, group, node, ray_cluster
from tests.coordinator.deeds import decided
from tests.coordinator.world import World, is_gated, name_of

ZONE = "topology.kubernetes.io/zone"
RACK = "rack"


def zoned(zone: str, *cpus: int, rack: str = "") -> list[Json]:
    labels = {ZONE: zone, **({RACK: rack} if rack else {})}
    return [node(f"{rack or zone}-{at}", cpu=cpu, labels=labels) for at, cpu in enumerate(cpus)]


def gang(name: str, workers: int, *, hosts: int = 1, **keys: str) -> Json:
    """A head of 1 CPU and workers of 2 CPU; `keys` are annotations."""
    marks = {f"muster.dev/{key.replace('_', '-')}": said for key, said in keys.items()}
    return ray_cluster(name, group("workers", workers, hosts=hosts, cpu=2), annotations=marks)


def values_of(world: World, name: str, key: str = ZONE) -> Counter[str]:
    """The values of the label on the nodes of the bound workers."""
    labels = {name_of(each): each["metadata"]["labels"] for each in world.api.all("nodes")}
    workers = (p for p in world.pods(name) if p["metadata"]["labels"][names.RAY_GROUP] == "workers")
    on = (pod["spec"].get("nodeName") for pod in workers)
    return Counter(labels[where].get(key, "") for where in on if where)


def racks(world: World, name: str) -> dict[str, Counter[str]]:
    """The racks of each replica that has a bound pod."""
    labels = {name_of(each): each["metadata"]["labels"] for each in world.api.all("nodes")}
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in world.pods(name):
        replica = pod["metadata"]["labels"].get(names.RAY_REPLICA_NAME)
        if replica and pod["spec"].get("nodeName"):
            found[replica][labels[pod["spec"]["nodeName"]][RACK]] += 1
    return dict(found)


def in_one_rack_each(world: World, name: str, replicas: int, hosts: int) -> bool:
    found = racks(world, name)
    return len(found) == replicas and all([*on.values()] == [hosts] for on in found.values())


def test_a_gang_starts_inside_one_zone_and_two_take_one_each() -> None:
    world = World(*zoned("a", 4, 4), *zoned("b", 4, 4, 1), *zoned("c", 2))
    world.create(gang("one", 3, topology_required=ZONE), gang("two", 3, topology_required=ZONE))
    world.settle(seconds=5)
    assert {tuple(values_of(world, name).items()) for name in ("one", "two")} == {
        (("a", 3),),
        (("b", 3),),
    }


def test_a_gang_that_no_zone_holds_waits_and_says_which_comes_closest() -> None:
    world = World(*zoned("a", 4), *zoned("b", 4, 2), *zoned("c", 2))
    world.create(gang("one", 4, topology_required=ZONE))
    world.settle(seconds=30)
    status = world.status("one")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    said = (
        f"no single {ZONE} holds the workers; b comes closest: 3 of 4 workers fit: each needs 2 cpu"
    )
    assert status["message"].startswith(said)
    busy = len(world.leader.log)
    world.settle(seconds=300)
    assert len(world.leader.log) == busy

    world.create(*zoned("b", 4, 2, 2)[2:])
    world.settle(seconds=30)
    assert values_of(world, "one") == {"b": 4}


def test_surplus_and_lost_members_stay_in_the_zone() -> None:
    world = World(*zoned("a", 4, 1), *zoned("b", 64))
    world.create(foreign_pod("big", "b-0", cpu=62))
    world.create(gang("one", 2, topology_required=ZONE))
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 2}
    world.delete("pods", "big", "others")
    world.api.remove(next(key_of(p) for p in world.api.all("pods") if name_of(p) == "big"))
    world.scale("one", 3)
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 2}
    assert f"the workers must be in {ZONE} a: 0 of 1 " in world.status("one")["message"]

    world.create(*zoned("a", 4, 1, 2)[2:])
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 3}
    world.delete("nodes", "a-2")
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 2}
    world.create(*zoned("a", 4, 1, 1, 2)[3:])
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 3}


def test_workers_that_lost_their_zone_wait_for_one_that_holds_all_of_them() -> None:
    """As many as fit would choose a zone for the others, in which these never fit."""
    world = World(node("head", cpu=1), *zoned("a", 4), *zoned("b", 2))
    world.create(gang("one", 2, topology_required=ZONE))
    world.settle(seconds=60)
    assert values_of(world, "one") == {"a": 2}
    world.delete("nodes", "a-0")
    world.settle(seconds=30)
    assert values_of(world, "one") == {}
    world.create(*zoned("c", 4))
    world.settle(seconds=5)
    assert values_of(world, "one") == {"c": 2}


def test_surplus_replicas_above_the_minimum_stay_in_the_zone() -> None:
    world = World(*zoned("a", 6), *zoned("b", 8, 8))
    world.create(foreign_pod("big", "b-0", cpu=8), foreign_pod("huge", "b-1", cpu=7))
    world.create(gang("one", 4, topology_required=ZONE, min_replicas="workers=2"))
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 3}
    world.api.remove(next(key_of(p) for p in world.api.all("pods") if name_of(p) == "big"))
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 3}


def test_a_preferred_zone_that_is_full_does_not_hold_a_gang_back() -> None:
    world = World(*zoned("a", 4), *zoned("b", 5))
    world.create(gang("one", 4, topology_preferred=ZONE))
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 2, "b": 2}


def test_another_zone_label_than_that_of_the_running_pods_is_said() -> None:
    world = World(*zoned("a", 5), *zoned("b", 4))
    world.create(gang("one", 4))
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 2, "b": 2}
    cluster = next(world.api.all("rayclusters"))
    marks = {names.TOPOLOGY_REQUIRED: ZONE}
    world.api.change(cluster, lambda obj: obj["metadata"].update(annotations=marks))
    world.scale("one", 5)
    world.settle(seconds=5)
    assert world.status("one")["message"].endswith("but those placed already are in a, b")


def test_each_replica_is_promised_and_started_in_one_rack() -> None:
    world = World(*zoned("a", 2, 2, 3, rack="r1"), *zoned("a", 2, 2, 2, rack="r2"))
    world.create(gang("one", 2, hosts=2, replica_topology_required=RACK))
    world.settle(seconds=5)
    assert in_one_rack_each(world, "one", 2, 2)
    placed = world.status("one")["placement"]["podSets"][1]["assignments"]
    assert [each["replica"] for each in placed] == sorted(racks(world, "one"))
    assert world.gang("one")["spec"]["podSets"][1]["hosts"] == 2
    assert world.gang("one")["spec"]["topology"] == {"replica": RACK}


def test_replicas_that_no_rack_holds_wait_in_numbers() -> None:
    world = World(*zoned("a", 2, 2, 3, rack="r1"), *zoned("a", 2, rack="r2"))
    world.create(gang("one", 2, hosts=2, replica_topology_required=RACK))
    world.settle(seconds=30)
    assert world.status("one")["message"].startswith(
        "1 of 2 replicas of workers fit beside headgroup: each needs 2 pods inside one rack"
    )


def test_a_replica_that_lost_a_pod_comes_back_whole_into_its_slots() -> None:
    """Another gang waits for that very room."""
    world = World(*zoned("a", 2, 2, 1, rack="r1"), *zoned("a", 2, 2, rack="r2"))
    world.create(gang("one", 2, hosts=2, replica_topology_required=RACK))
    world.settle(seconds=5)
    before = world.bound("one")
    world.create(gang("two", 1))
    victim = next(p for p in world.pods("one") if names.RAY_REPLICA_NAME in p["metadata"]["labels"])
    lost = victim["metadata"]["labels"][names.RAY_REPLICA_NAME]
    world.api.delete(key_of(victim))
    world.settle(seconds=30)
    assert in_one_rack_each(world, "one", 2, 2)
    assert lost not in racks(world, "one")
    assert world.bound("one") == before
    assert world.bound("two") == {}
    placed = world.status("one")["placement"]["podSets"][1]["assignments"]
    assert sorted(each["replica"] for each in placed) == sorted(racks(world, "one"))


def test_a_replica_whose_node_died_goes_whole_to_another_rack_of_the_zone() -> None:
    spare = [*zoned("a", 2, 2, rack="r2"), *zoned("a", 2, 2, rack="r3")]
    world = World(*zoned("a", 2, 2, 1, rack="r1"), *spare, *zoned("b", 2, 2, rack="r4"))
    world.create(gang("one", 2, hosts=2, topology_required=ZONE, replica_topology_required=RACK))
    world.settle(seconds=5)
    before = values_of(world, "one", RACK)
    assert before == {"r1": 2, "r2": 2}
    world.delete("nodes", "r2-0")
    world.settle(seconds=30)
    assert in_one_rack_each(world, "one", 2, 2)
    assert values_of(world, "one", RACK) == {"r1": 2, "r3": 2}
    assert sum(slots_of(_placement(world, "one")).values()) == 5


def test_surplus_replicas_go_to_racks_as_they_come_free() -> None:
    world = World(*zoned("a", 2, 2, 3, rack="r1"), *zoned("a", 2, 1, rack="r2"))
    world.create(gang("one", 2, hosts=2, replica_topology_required=RACK, min_replicas="workers=1"))
    world.settle(seconds=5)
    assert in_one_rack_each(world, "one", 1, 2)
    world.create(*zoned("a", 2, 1, 2, rack="r2")[2:])
    world.settle(seconds=5)
    assert in_one_rack_each(world, "one", 2, 2)


def test_a_new_leader_completes_the_placement_with_its_replicas() -> None:
    """The old one died after it had released one pod of a replica."""
    world = World(*zoned("a", 2, 2, 3, rack="r1"), *zoned("a", 2, 2, 2, rack="r2"), replicas=2)
    world.create(gang("one", 2, hosts=2, replica_topology_required=RACK))
    decided(world)
    old = world.leader
    while not any(pod.startswith("one-workers") for pod, _ in old.releases()):
        old.act()
        old.hear_all()
    old.act()
    old.todo.clear()
    promised = _placement(world, "one")
    world.elect(1)
    world.settle(seconds=5)
    assert in_one_rack_each(world, "one", 2, 2)
    assert _placement(world, "one") == promised
    assert world.bound("one") == _nodes(promised)


def test_a_lost_record_is_rebuilt_from_half_a_replica_in_its_rack() -> None:
    world = World(*zoned("a", 2, 2, 1, rack="r1"), *zoned("a", 2, 2, 2, rack="r2"))
    world.create(gang("one", 1, hosts=2, replica_topology_required=RACK))
    decided(world)
    leader = world.leader
    while not any(pod.startswith("one-workers") for pod, _ in leader.releases()):
        leader.act()
        leader.hear_all()
    leader.act()
    world.api.remove(key_of(world.gang("one")))
    leader.restart()
    world.elect(0)
    world.settle(seconds=30)
    assert in_one_rack_each(world, "one", 1, 2)


def test_a_replica_that_is_made_again_before_its_release_takes_the_same_slots() -> None:
    world = World(*zoned("a", 2, 2, 1, rack="r1"), *zoned("a", 2, 2, rack="r2"))
    world.create(gang("one", 2, hosts=2, replica_topology_required=RACK))
    decided(world)
    promised = _nodes(_placement(world, "one"))
    victim = next(p for p in world.pods("one") if names.RAY_REPLICA_NAME in p["metadata"]["labels"])
    assert is_gated(victim)
    world.api.delete(key_of(victim))
    world.settle(seconds=30)
    assert in_one_rack_each(world, "one", 2, 2)
    assert world.bound("one") == promised


def test_pods_that_do_not_say_their_replica_are_not_guessed_at() -> None:
    world = World(*zoned("a", 2, 2, 1, rack="r1"))
    world.create(gang("one", 1, hosts=2, replica_topology_required=RACK))
    world.kuberay()
    for pod in world.pods("one"):
        world.api.change(pod, lambda obj: obj["metadata"]["labels"].pop(names.RAY_REPLICA_NAME, ""))
    leader = world.leader
    for _ in range(4):
        leader.hear_all()
        leader.act_all()
        leader.cycle()
        world.api.now += 20
        leader.tick()
    status = world.status("one")
    assert status["reason"] == "Unsupported"
    assert names.RAY_REPLICA_NAME in status["message"]


def test_a_name_that_a_template_gives_to_single_pods_means_nothing() -> None:
    """The label is KubeRay's, but a template may bear it as well."""
    world = World(*zoned("a", 5))
    world.create(gang("one", 2))
    world.kuberay()
    for pod in world.pods("one")[1:]:
        world.api.change(pod, _name_the_same)
    world.settle(seconds=30)
    assert values_of(world, "one") == {"a": 2}
    assert world.status("one")["phase"] == "Running"


def test_a_gang_whose_annotations_break_keeps_its_domain_under_the_next_leader() -> None:
    world = World(*zoned("a", 3, 2), *zoned("b", 8, 8))
    world.create(foreign_pod("b", "b-0", cpu=8), foreign_pod("c", "b-1", cpu=8))
    world.create(gang("one", 2, topology_required=ZONE))
    world.settle(seconds=5)
    assert values_of(world, "one") == {"a": 2}
    cluster = next(world.api.all("rayclusters"))
    broken = {names.TOPOLOGY_REQUIRED: "no/such/key"}
    world.api.change(cluster, lambda obj: obj["metadata"].update(annotations=broken))
    for name in ("b", "c"):
        world.api.remove(next(key_of(p) for p in world.api.all("pods") if name_of(p) == name))
    world.leader.restart()
    world.elect(0)
    world.delete("nodes", "a-1")
    world.settle(seconds=30)
    assert values_of(world, "one") == {"a": 1}
    world.create(zoned("a", 3, 2)[1])
    world.settle(seconds=30)
    assert values_of(world, "one") == {"a": 2}


def _name_the_same(pod: Json) -> None:
    pod["metadata"]["labels"][names.RAY_REPLICA_NAME] = "same"


def _placement(world: World, name: str) -> Placement:
    written = msgspec.convert(world.status(name)["placement"], GangPlacement)
    return placement_from_status(written)


def _nodes(placement: Placement) -> Counter[str]:
    nodes = Counter[str]()
    for slot, count in slots_of(placement).items():
        nodes[slot.node] += count
    return nodes
