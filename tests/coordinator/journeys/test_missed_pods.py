"""KubeRay is asked to look again where it makes no pod of a RayCluster and says nothing."""

import pytest

from coordinator.messages.actions import WakeKubeRay
from coordinator.reconcile.repair.missed_pods import WAKE_AFTER
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, gang_of, node
from tests.coordinator.gang.pods.test_kept_slots import QUOTA, failure
from tests.coordinator.world import World, name_of


def looking_only_when_woken(*nodes: Json) -> World:
    """KubeRay makes the first pods of gang a, and all others once it is asked to."""
    world = World(*nodes)
    world.create(gang_of("a", 3))
    make_pods = world.kuberay
    make_pods()

    def only_when_woken() -> None:
        if names.WOKEN in cluster(world)["metadata"].get("annotations", {}):
            make_pods()

    world.kuberay = only_when_woken  # type: ignore[method-assign]
    return world


def cluster(world: World) -> Json:
    return world.api.get(Key("rayclusters", TEAM, "a"))


def woken(world: World) -> int:
    return sum(isinstance(each, WakeKubeRay) for each in world.leader.log)


def lose(world: World, count: int) -> None:
    for pod in [pod for pod in world.pods("a") if "workers" in name_of(pod)][:count]:
        world.delete("pods", name_of(pod))


@pytest.mark.parametrize("cpus", [4, 3])
def test_kuberay_is_woken_where_pods_are_lost_and_not_made_again(cpus: int) -> None:
    """Of a gang that runs, and of one that waits for room, gated."""
    world = looking_only_when_woken(node("n1", cpu=cpus))
    world.settle(seconds=5)
    lose(world, 2)
    world.settle(seconds=WAKE_AFTER - 5)
    assert (woken(world), len(world.pods("a"))) == (0, 2)
    world.settle(seconds=10)
    assert (woken(world), len(world.pods("a"))) == (1, 4)
    assert world.bound("a").total() == (4 if cpus == 4 else 0)


def test_kuberay_is_woken_once_for_each_number_of_pods() -> None:
    world = looking_only_when_woken(node("n1", cpu=4))
    world.kuberay = lambda: None  # type: ignore[method-assign]
    lose(world, 1)
    world.settle(seconds=400)
    assert woken(world) == 1
    lose(world, 1)
    world.settle(seconds=400)
    assert woken(world) == 2


def test_kuberay_is_not_woken_where_it_says_why_no_pod_comes() -> None:
    """It tries again by itself, after a pause that doubles."""
    world = World(node("n1", cpu=4))
    with world.kuberay_refuses(failure(QUOTA)):
        world.create(gang_of("a", 3))
        world.settle(seconds=400)
    assert woken(world) == 0
