from tests.coordinator.builders import *
from tests.coordinator.journeys.test_queues import gang_in, phases, queue, change
from tests.coordinator.journeys.test_preemption import urgent, LOWER, IN_TEAM, RECLAIM
from tests.coordinator.world import World, name_of, is_gated
from tests.coordinator.gang.test_kept_slots import QUOTA, failure, lose_workers
from tests.coordinator.ray_jobs import owned_by, ray_service
from tests.coordinator.api import Key, key_of
from coordinator.messages.clock import Patience
from coordinator.messages.actions import DeletePod, EvictPod
from kube.objects import names
import pytest
PATIENCE = Patience()


def autoscaled(name, replicas, least, most=20, hosts=1, **more):
    return ray_cluster(name, group("workers", replicas, least=least, most=most, hosts=hosts), enableInTreeAutoscaling=True, **more)


@pytest.mark.parametrize("new_leader", [False, True])
def test_a_lost_worker_of_growth_comes_back_to_its_slot(new_leader):
    world = World(node("n1", cpu=5))
    world.create(autoscaled("a", 1, 1))
    world.settle(seconds=10)
    world.scale("a", 4)
    world.settle(seconds=10)
    assert world.bound("a").total() == 5
    world.create(gang_of("filler", 0))
    world.settle(seconds=10)
    lost = [p for p in world.pods("a") if "workers" in name_of(p)][-1]
    made = world.kuberay
    world.kuberay = lambda: None
    world.api.remove(key_of(lost))
    world.settle(seconds=30)
    assert world.bound("filler") == {}
    if new_leader:
        world.leader.restart()
        world.elect(0)
    world.kuberay = made
    world.settle(seconds=1)
    assert (world.bound("a").total(), world.bound("filler")) == (5, {})


def test_one_of_three_replacements_starts_without_the_others():
    world = World(node("n1", cpu=5))
    world.create(gang_of("a", 4))
    world.settle(seconds=60)
    made = world.kuberay
    made_pod = world._make_replica
    lose_workers(world, 3)
    left = [1]
    def only_one(*args):
        if left[0]:
            left[0] -= 1
            made_pod(*args)
    world._make_replica = only_one
    world.settle(seconds=1)
    assert world.bound("a").total() == 3
    world._make_replica = made_pod
    world.settle(seconds=1)
    assert world.bound("a").total() == 5


def test_two_nodes_at_once():
    world = World(*(node(f"n{at}", cpu=2) for at in range(5)))
    world.create(gang_of("a", 5))
    world.settle(seconds=60)
    used = world.bound("a")
    head = next(p["spec"]["nodeName"] for p in world.pods("a") if "head" in name_of(p))
    before = {p["metadata"]["uid"] for p in world.pods("a") if p["spec"]["nodeName"] == head}
    lost = [n for n in used if n != head]
    assert len(lost) == 2
    for n in lost:
        world.delete("nodes", n)
    world.settle(seconds=1)
    assert world.bound("a").total() == 6
    assert not world.bound("a").keys() & set(lost)
    assert before <= {p["metadata"]["uid"] for p in world.pods("a")}


@pytest.mark.parametrize("hosts", [1, 2])
def test_group_from_nothing(hosts):
    world = World(node("n1", cpu=8))
    none = group("more", 0, least=0, most=9, hosts=hosts)
    cpus = group("workers", 1, least=1, most=9)
    world.create(ray_cluster("a", cpus, none, enableInTreeAutoscaling=True))
    world.settle(seconds=10)
    assert world.bound("a").total() == 2
    world.edit("a", workerGroupSpecs=[cpus, {**none, "replicas": 2}])
    world.settle(seconds=5)
    assert world.bound("a").total() == 2 + 2 * hosts
    world.edit("a", workerGroupSpecs=[cpus, {**none, "replicas": 0}])
    world.settle(seconds=5)
    assert world.bound("a").total() == 2
    world.edit("a", workerGroupSpecs=[cpus, {**none, "replicas": 1}])
    world.settle(seconds=5)
    assert world.bound("a").total() == 2 + hosts


def test_many_groups():
    world = World(node("n1", cpu=31))
    world.create(ray_cluster("a", *(group(f"g{at}", 1) for at in range(30))))
    world.settle(seconds=10)
    assert world.bound("a") == {"n1": 31}
    assert world.status("a")["ready"] == "31/31"


def test_sidecar_of_head():
    world = World(node("n1", cpu=3))
    world.create(autoscaled("a", 2, 2))
    reviewed = world._reviewed
    def with_autoscaler(cluster, pod):
        if "headgroup" in pod["metadata"]["generateName"]:
            own = template(cpu="500m")["spec"]["containers"][0]
            pod["spec"]["containers"] = [*pod["spec"]["containers"], {**own, "name": "autoscaler"}]
        return reviewed(cluster, pod)
    world._reviewed = with_autoscaler
    world.settle(seconds=30)
    assert world.bound("a") == {}
    print(world.status("a")["message"])
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a").total() == 3


def test_service_keeps_minimum():
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(ray_service("serve"))
    service = world.api.get(Key("rayservices", TEAM, "serve"))
    world.create(owned_by(service, ray_cluster("one", group("workers", 3), labels=IN_TEAM, annotations={names.MIN_REPLICAS: "workers=1"})))
    world.api.change(service, lambda obj: obj["status"].update(activeServiceStatus={"rayClusterName": "one"}))
    world.settle(seconds=10)
    assert world.bound("one").total() == 4
    head = [name_of(p) for p in world.pods("one") if "head" in name_of(p)]
    world.create(urgent("p", 1, labels=IN_TEAM))
    world.settle(seconds=30)
    assert world.bound("p").total() == 2
    assert world.bound("one").total() == 2
    assert [name_of(p) for p in world.pods("one") if "head" in name_of(p)] == head
    assert world.status("one")["phase"] == "Running"


def test_waits_a_week():
    world = World(node("n1", cpu=2), queue("team"))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    before = {p["metadata"]["uid"] for p in world.pods("a")}
    world.settle(seconds=7 * 86400)
    assert {p["metadata"]["uid"] for p in world.pods("a")} == before
    assert not [e for e in world.leader.log if isinstance(e, DeletePod)]
    said = [e for e in world.leader.emitted]
    print([(e.reason, e.message) for e in said], len(said))
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a").total() == 4


def test_grown_gang_comes_back_with_its_minimum():
    world = World(node("n1", cpu=5), queue("team", preemption=LOWER))
    world.create(autoscaled("a", 1, 1, labels=IN_TEAM))
    world.settle(seconds=10)
    world.scale("a", 4)
    world.settle(seconds=10)
    assert world.bound("a").total() == 5
    world.create(urgent("p", 4, labels=IN_TEAM))
    world.settle(seconds=60)
    assert (world.bound("p").total(), world.bound("a").total()) == (5, 0)
    world.create(node("n2", cpu=2))
    world.settle(seconds=60)
    assert world.bound("a") == {"n2": 2}
    assert world.status("a")["phase"] == "Running"


def test_nine_of_ten():
    world = World(node("n1", cpu=9))
    world.create(gang_of("a", 9))
    world.settle(seconds=5)
    world.create(gang_of("b", 8))
    world.settle(seconds=1)
    assert (world.bound("a").total(), world.bound("b").total()) == (0, 9)
