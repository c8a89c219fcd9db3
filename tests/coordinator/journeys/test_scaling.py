"""A gang grows and shrinks, and its surplus waits for room."""

from collections import Counter
from typing import Any

import pytest

from coordinator.messages.actions import FencePod, ReleasePod
from coordinator.messages.clock import Patience
from kube.objects import names
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import foreign_pod, gang_of, group, node, ray_cluster, template
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import decided
from tests.coordinator.world import World, is_gated

PATIENCE = Patience()


def surplus(name: str, replicas: int, least: int, *, hosts: int = 1) -> dict[str, object]:
    return ray_cluster(
        name,
        group("workers", replicas, hosts=hosts),
        annotations={names.MIN_REPLICAS: f"workers={least}"},
    )


def replicas_started(world: World, name: str) -> dict[str, int]:
    """How many pods of each replica are released."""
    labels = [pod["metadata"]["labels"] for pod in world.pods(name) if not is_gated(pod)]
    started = Counter(each.get(names.RAY_REPLICA_NAME, "") for each in labels)
    return {replica: count for replica, count in started.items() if replica}


def test_a_gang_that_grows_before_anything_was_released_is_decided_anew() -> None:
    """It would start as a part otherwise: 3 of 9 pods."""
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 2))
    decided(world)
    world.leader.todo.clear()
    world.leader.restart()
    world.scale("a", 8)
    world.elect(0)
    world.settle(seconds=30)
    assert world.gated("a") == 9
    assert world.status("a")["phase"] == "Queued"
    assert "placement" not in world.status("a")


def test_a_gang_that_shrinks_frees_its_room() -> None:
    world = World(node("n1", cpu=8))
    world.create(gang_of("a", 6))
    world.settle(seconds=5)
    world.create(gang_of("b", 3))
    world.settle(seconds=5)
    assert world.bound("b") == {}
    world.scale("a", 3)
    world.settle(seconds=5)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 4}, {"n1": 4})
    placed = world.status("a")["placement"]["podSets"]
    assert [each["assignments"][0]["nodes"] for each in placed] == [{"n1": 1}, {"n1": 3}]


@pytest.mark.parametrize("change", [{"workerGroupSpecs": [group("workers", 0)]}, {"suspend": True}])
def test_room_of_a_release_that_is_on_its_way_is_kept_when_its_gang_asks_for_less(
    change: dict[str, Any],
) -> None:
    """Found by the soak: the room was given to another gang, and the release arrived after that."""
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 3))
    decided(world)
    world.leader.act()  # the head; three releases follow it
    world.create(gang_of("b", 2))
    world.kuberay()
    _come_to_releases(world)
    world.edit("a", **change)
    _come_to_releases(world)
    assert [pod for pod, _ in world.leader.releases() if pod.startswith("b-")] == []

    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 3}


def test_room_of_a_release_by_an_earlier_leader_is_kept_until_its_pod_is_fenced() -> None:
    """It is not known which pods the earlier leader was releasing."""
    world = World(node("n1", cpu=4), replicas=2)
    world.create(gang_of("a", 3))
    decided(world)
    world.create(gang_of("b", 2))
    world.kuberay()
    world.edit("a", suspend=True)
    second = world.elect(1)
    second.cycle()
    assert [each for each in second.todo if isinstance(each, FencePod)]
    assert second.releases() == []

    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 3}


def _come_to_releases(world: World) -> None:
    """Have the leader do everything but send the releases that it wants."""
    for _ in range(3):
        world.leader.hear_all()
        world.leader.act_all_but(ReleasePod)
        world.leader.cycle()


def test_a_waiting_gang_that_shrinks_until_it_fits_starts() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("a", 6))
    world.settle(seconds=5)
    world.scale("a", 3)
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}
    assert world.status("a")["ready"] == "4/4"


def test_surplus_starts_as_far_as_it_fits_and_the_rest_when_room_comes() -> None:
    world = World(node("n1", cpu=4))
    world.create(surplus("a", 6, 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}
    assert world.status("a")["phase"] == "Running"
    assert world.status("a")["ready"] == "4/7"
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4, "n2": 2}


def test_surplus_of_replicas_with_two_hosts_starts_whole_replicas_only() -> None:
    world = World(node("n1", cpu=6))
    world.create(surplus("a", 4, 1, hosts=2))
    world.settle(seconds=5)
    assert sorted(replicas_started(world, "a").values()) == [2, 2]
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert sorted(replicas_started(world, "a").values()) == [2, 2, 2]


def test_no_slot_goes_to_half_a_replica_while_a_whole_one_waits() -> None:
    """KubeRay has made one pod of the first replica and all of the second."""
    world = World(node("n1", cpu=3))
    world.create(surplus("a", 2, 1, hosts=2))
    world.kuberay()
    first = min(p["metadata"]["labels"][names.RAY_REPLICA_NAME] for p in world.pods("a")[1:])
    half = [
        p for p in world.pods("a") if p["metadata"]["labels"].get(names.RAY_REPLICA_NAME) == first
    ]
    world.api.remove(key_of(half[1]))
    leader = world.leader
    for _ in range(4):
        leader.hear_all()
        leader.act_all()
        leader.cycle()
    started = replicas_started(world, "a")
    assert list(started.values()) == [2]
    assert first not in started


def test_a_lost_host_takes_its_replica_along_and_another_comes_whole() -> None:
    world = World(node("n1", cpu=3), node("n2", cpu=2))
    world.create(ray_cluster("a", group("workers", 2, hosts=2)))
    world.settle(seconds=5)
    assert world.bound("a").total() == 5
    victim = next(p for p in world.pods("a") if names.RAY_REPLICA_NAME in p["metadata"]["labels"])
    world.api.delete(key_of(victim))
    world.settle(seconds=5)
    assert sorted(replicas_started(world, "a").values()) == [2, 2]
    assert world.bound("a").total() == 5


def test_half_of_a_spare_replica_keeps_no_slot_when_the_node_of_the_other_half_dies() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=2))
    world.create(surplus("a", 1, 0, hosts=2))
    world.settle(seconds=5)
    assert world.bound("a").total() == 3
    [lost] = [name for name, count in world.bound("a").items() if count == 1]
    world.delete("nodes", lost)
    world.settle(seconds=5)
    assert world.bound("a").total() == 1
    assert replicas_started(world, "a") == {}
    world.create(node("n3", cpu=1))
    world.settle(seconds=5)
    assert world.bound("a").total() == 3


def test_with_autoscaling_the_minimum_is_that_of_the_groups() -> None:
    world = World(node("n1", cpu=3))
    workers = group("workers", 5, least=2, most=10)
    world.create(ray_cluster("a", workers, enableInTreeAutoscaling=True))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    assert world.gang("a")["spec"]["podSets"][1] == {"name": "workers", "count": 5, "minimum": 2}
    assert world.status("a")["phase"] == "Running"


def test_an_autoscaled_group_without_a_minimum_starts_with_its_head_alone() -> None:
    world = World(node("n1", cpu=1))
    world.create(ray_cluster("a", group("workers", 2, least=0), enableInTreeAutoscaling=True))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 1}
    assert world.status("a")["phase"] == "Running"


def test_a_gang_of_a_head_alone_runs() -> None:
    world = World(node("n1", cpu=1))
    world.create(ray_cluster("a"))
    world.settle(seconds=5)
    assert world.status("a")["ready"] == "1/1"


def test_a_gang_of_thirty_groups_starts_whole() -> None:
    """Kueue takes 17."""
    world = World(node("n1", cpu=31))
    world.create(ray_cluster("a", *(group(f"group-{at}", 1) for at in range(30))))
    world.settle(seconds=5)
    assert (world.bound("a"), world.status("a")["ready"]) == ({"n1": 31}, "31/31")


def test_pods_of_two_shapes_in_one_group_each_get_their_own_slot() -> None:
    """Something changed one of the pods on its way in."""
    world = World(node("n1", cpu=3), node("n2", cpu=4))
    world.create(gang_of("a", 2, cpu=2))
    world.kuberay()
    fat = world.pods("a")[1]
    requests = {"cpu": "4"}
    world.api.change(
        fat, lambda pod: pod["spec"]["containers"][0].update(resources={"requests": requests})
    )
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 2, "n2": 1}
    assert not [a for a in world.leader.log if isinstance(a, FencePod)]


def test_a_group_that_is_removed_gives_back_its_room() -> None:
    world = World(node("n1", cpu=5))
    world.create(ray_cluster("a", group("one", 2), group("two", 2)))
    world.settle(seconds=5)
    world.edit("a", workerGroupSpecs=[group("one", 2)])
    world.settle(seconds=5)
    world.create(ray_cluster("b", head=template(cpu=2)))
    world.settle(seconds=5)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 3}, {"n1": 1})


def test_room_that_a_pod_gives_back_in_place_is_seen() -> None:
    world = World(node("n1", cpu=3))
    fat = foreign_pod("fat", "n1", cpu=2)
    world.create(fat, gang_of("a", 1))
    world.settle(seconds=5)
    assert world.bound("a") == {}
    requests = {"cpu": "1"}
    world.api.change(
        fat, lambda pod: pod["spec"]["containers"][0].update(resources={"requests": requests})
    )
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 2}


def test_surplus_that_was_released_late_leaves_the_next_slot_to_the_other_pods() -> None:
    """Its own slot was dropped by then; nothing would ask again for the pod that lost this one."""
    world = World(node("n1", cpu=1), node("n2", cpu=2))
    world.create(surplus("a", 2, 0))
    decided(world)
    leader = world.leader
    leader.act()  # the head, which takes all of its node
    leader.act(outcome=Outcome.HELD, reads_fail=True)
    leader.act(outcome=Outcome.UNSENT)
    world.create(foreign_pod("f", "n2", cpu=2))
    leader.hear("pods")  # no room is left for the slots
    assert leader.client.let_go() is None  # before the fence
    world.settle(seconds=1)
    assert world.gated("a") == 1

    world.api.remove(Key("pods", "others", "f"))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 1, "n2": 2}
