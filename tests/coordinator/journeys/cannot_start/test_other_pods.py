"""Gangs that heed other pods: affinity, nominations, host ports, devices."""

import pytest

from coordinator.messages.actions import DeletePod, FencePod
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    GPU,
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.world import World, is_gated, name_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def host(name: str, cpu: int = 8) -> Json:
    return node(name, cpu=cpu, labels={"host": name})


def terms(**selected: str) -> Json:
    """A required term about pods of the team with this label."""
    selector = {"matchLabels": selected}
    return {REQUIRED: [{"labelSelector": selector, "namespaces": [TEAM], "topologyKey": "host"}]}


def test_a_pod_that_keeps_ours_away_closes_its_node() -> None:
    keep_away = {"podAntiAffinity": terms(**{names.RAY_CLUSTER: "a"})}
    world = World(host("n1"))
    world.create(foreign_pod("loner", "n1", affinity=keep_away))
    world.create(gang_of("a", 1))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode"
    assert (
        "1 is ruled out by affinity or anti-affinity between pods" in world.status("a")["message"]
    )
    world.api.remove(Key("pods", "others", "loner"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 2}


def test_a_pod_that_comes_to_keep_ours_away_is_heeded_before_the_next_decision() -> None:
    keep_away = {"podAntiAffinity": terms(**{names.RAY_CLUSTER: "a"})}
    world = World(host("n1", cpu=2))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    world.create(foreign_pod("loner", "n1", cpu=0, affinity=keep_away))
    world.create(host("n2", cpu=2))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode" or not world.bound("a")
    world.api.change(
        world.api.get(Key("pods", "others", "loner")),
        lambda pod: pod["status"].update(phase="Succeeded"),
    )
    world.settle(seconds=5)
    assert world.bound("a").total() == 3


def test_workers_that_keep_apart_wait_for_a_node_each() -> None:
    apart = {"podAntiAffinity": terms(**{names.RAY_GROUP: "workers"})}
    world = World(host("n1"), host("n2"))
    world.create(ray_cluster("a", group("workers", 3, affinity=apart)))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode"
    assert "2 of 3 workers fit" in world.status("a")["message"]
    world.create(host("n3"))
    world.settle(seconds=5)
    assert world.bound("a").total() == 4
    assert set(world.bound("a")) == {"n1", "n2", "n3"}


def test_a_gang_waits_for_the_pod_that_it_wants_to_be_near() -> None:
    near = {"podAffinity": {REQUIRED: [{**terms(x="y")[REQUIRED][0], "namespaces": ["others"]}]}}
    world = World(host("n1"), host("n2"))
    world.create(ray_cluster("a", group("workers", 2, affinity=near)))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode"
    friend = foreign_pod("friend", "n2")
    friend["metadata"]["labels"] = {"x": "y"}
    world.create(friend)
    world.settle(seconds=5)
    assert world.bound("a")["n2"] >= 2


def test_a_gang_heeds_pods_that_have_room_and_are_not_bound_yet() -> None:
    apart = {"podAntiAffinity": terms(**{names.RAY_GROUP: "workers"})}
    world = World(host("n1"))
    for name in "ab":
        world.create(ray_cluster(name, group("workers", 1, affinity=apart)))
    world.settle(seconds=5)
    assert sorted(world.status(name)["reason"] for name in "ab") == ["NoFeasibleNode", "Running"]


def test_twenty_gangs_of_more_than_half_the_room_run_one_after_another() -> None:
    """The third scene of the demo: never two at once, never a part of one."""
    world = World(node("n1", cpu=10))
    world.create(*(gang_of(f"g{number:02}", 5) for number in range(20)))
    seen = []
    for _ in range(20):
        world.settle(seconds=1)
        [running] = {name_of(pod)[:3] for pod in world.pods() if not is_gated(pod)}
        assert world.bound(running) == {"n1": 6}
        seen.append(running)
        world.delete("rayclusters", running)
    assert seen == sorted(seen)
    released = [pod for pod, _ in world.leader.releases()]
    assert len(released) == len(set(released)) == 120


@pytest.mark.parametrize(("priority", "starts"), [(10, False), (11, True)])
def test_a_nomination_of_lower_priority_is_in_nobodys_way(priority: int, starts: bool) -> None:
    """As for kube-scheduler; and what is placed there is not taken for too much afterwards."""
    waits = foreign_pod("waits", "", cpu=3, priority=10)
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waits["status"] = {"nominatedNodeName": "n1", "conditions": [unschedulable]}
    world = World(node("n1", cpu=4))
    world.create(waits)
    pods = template(cpu=1, priority=priority)
    world.create(ray_cluster("a", group("workers", 2, priority=priority), head=pods))
    world.settle(seconds=60)
    assert world.bound("a") == ({"n1": 3} if starts else {})
    assert not [each for each in world.leader.log if isinstance(each, FencePod | DeletePod)]


def test_where_a_class_may_give_devices_no_gang_is_told_that_it_never_fits() -> None:
    """None has any yet; nodes with a plugin are used as ever."""
    world = World(node("n1"))
    world.create(ray_cluster("a", group("workers", 1, gpu=1)))
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "NeverFits"
    named = {"extendedResourceName": GPU}
    world.create({"kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}, "spec": named})
    world.settle(seconds=60)
    status = world.status("a")
    assert status["reason"] == "InsufficientResources"
    assert "nvidia.com/gpu on one node; no node offers any" in status["message"]
    world.delete("deviceclasses", "gpu.example.com", namespace="")
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "NeverFits"
    world.create({"kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}, "spec": named})
    world.create(node("n2", gpu=1))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 1, "n2": 1} or world.bound("a") == {"n2": 2}


def head_on_ports(*ports: int, cpu: int = 1) -> Json:
    made = template(cpu=cpu)
    made["spec"]["containers"][0]["ports"] = [{"hostPort": port} for port in ports]
    return made


def test_a_host_port_is_kept_for_a_pod_that_is_on_its_way_and_costs_no_other_gang_its_own() -> None:
    """Four gangs wait with 42 ports each, and a fifth starts with a port of its own."""
    world = World(node("n1"))
    world.schedule = lambda: None  # type: ignore[method-assign]
    for at in range(4):
        many = range(1000 * (at + 1), 1000 * (at + 1) + 42)
        world.create(ray_cluster(f"crowd{at}", head=head_on_ports(*many, cpu=99)))
    for name, port in (("first", 80), ("second", 80), ("third", 81)):
        world.create(ray_cluster(name, head=head_on_ports(port)))
        world.settle(seconds=1)
    assert [name.split("-")[0] for name, _ in world.leader.releases()] == ["first", "third"]
    assert "it needs host port 80/TCP on one node" in world.status("second")["message"]
