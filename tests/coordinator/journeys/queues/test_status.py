"""What a GangQueue says of itself."""

from coordinator.queues.holes import EACH as HOLES_EACH
from tests.coordinator.api import Key
from tests.coordinator.builders import GPU, foreign_pod, gang_of, node
from tests.coordinator.journeys.queues.worlds import (
    QUEUE_WRITES,
    active,
    change,
    conditions,
    gang_in,
    phases,
    queue,
    queue_writes,
    status_of,
)
from tests.coordinator.world import World

# ---- what the object of a queue says


def test_a_queue_says_what_waits_in_it_and_what_it_holds() -> None:
    world = World(
        node("n1", cpu=100),
        queue("all"),
        queue("red", cpu=4, parent="all"),
        queue("blue", cpu=4, parent="all"),
    )
    world.create(gang_in("red", "a", 5), gang_in("red", "b", 5))
    world.settle(seconds=20)

    red = status_of(world, "red")
    assert (red["pending"], red["admitted"]) == (1, 1)
    assert red["usage"] == {"cpu": "6000m"}
    assert red["borrowed"] == {"cpu": "2000m"}
    assert red["reserved"] == {"cpu": "0m"}
    assert red["summary"] == "cpu 6/4"
    assert status_of(world, "all")["summary"] == "cpu 6/8"
    assert (status_of(world, "all")["pending"], status_of(world, "all")["admitted"]) == (0, 0)
    assert status_of(world, "blue")["summary"] == "cpu 0/4"
    assert active(world, "red") == ("True", "Active", "")


def test_the_queue_above_says_what_those_below_it_use_of_its_quota() -> None:
    world = World(node("n1", cpu=100), queue("all"), queue("red", cpu=4, parent="all"))
    world.settle(seconds=20)
    world.create(gang_in("red", "a", 3))
    world.settle(seconds=20)
    assert status_of(world, "all")["summary"] == "cpu 4/4"


def test_surplus_of_a_gang_that_runs_does_not_count_as_waiting() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=20)
    world.scale("a", 5)
    world.settle(seconds=20)
    assert world.gated("a") == 2
    assert (status_of(world, "team")["pending"], status_of(world, "team")["admitted"]) == (0, 1)


def test_a_queue_and_the_one_above_it_never_contradict_each_other() -> None:
    """Although the one below was written a moment ago."""
    world = World(queue("a", parent="all"))
    world.settle(seconds=1.5)
    assert active(world, "a")[:2] == ("False", "MissingParent")
    world.create(queue("all"))
    world.settle(seconds=1.5)
    assert active(world, "all")[:2] == ("True", "Active")
    assert active(world, "a")[:2] == ("True", "Active")
    world.api.remove(Key("gangqueues", "", "all"))
    world.settle(seconds=1.5)
    assert active(world, "a")[:2] == ("False", "MissingParent")


def test_room_of_pods_that_are_not_bound_is_reserved() -> None:
    world = World(node("n1", cpu=100), queue("team", cpu=4))
    world.grudges.add("n1")
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert status_of(world, "team")["reserved"] == {"cpu": "4000m"}
    assert status_of(world, "team")["usage"] == {"cpu": "4000m"}
    world.grudges.clear()
    world.settle(seconds=60)
    assert status_of(world, "team")["reserved"] == {"cpu": "0m"}


def test_a_condition_keeps_the_time_of_its_change_and_names_the_generation() -> None:
    world = World(node("n1"), queue("team", cpu=4))
    world.settle(seconds=10)
    (before,) = status_of(world, "team")["conditions"]
    change(world, "team", quota={"cpu": "5"})
    world.settle(seconds=10)
    (after,) = status_of(world, "team")["conditions"]
    assert (before["observedGeneration"], after["observedGeneration"]) == (1, 2)
    assert after["lastTransitionTime"] == before["lastTransitionTime"]

    change(world, "team", parent="none")
    world.settle(seconds=10)
    (inactive,) = status_of(world, "team")["conditions"]
    assert inactive["lastTransitionTime"] > before["lastTransitionTime"]


def test_a_selector_that_matches_no_namespace_is_told_as_long_as_it_does_not() -> None:
    of_red = {"matchLabels": {"team": "red"}}
    world = World(node("n1"), queue("red", namespaceSelector=of_red), queue("inner"))
    change(world, "inner", namespaceSelector=None)
    world.settle(seconds=20)
    assert conditions(world, "red") == {
        "Active": ("True", "Active"),
        "NamespacesSelected": ("False", "NoNamespace"),
    }
    assert conditions(world, "inner") == {"Active": ("True", "Active")}

    before = len(queue_writes(world.leader.log))
    made = {"kind": "Namespace", "metadata": {"name": "r", "labels": {"team": "red"}}}
    world.create(made)
    world.settle(seconds=20)
    assert conditions(world, "red") == {"Active": ("True", "Active")}
    for at in range(20):
        name = f"more-{at}"
        world.create({"kind": "Namespace", "metadata": {"name": name, "labels": {"team": "red"}}})
        world.settle(seconds=1)
    world.settle(seconds=20)
    assert len(queue_writes(world.leader.log)) == before + 1

    world.api.delete(Key("namespaces", "", "r"))
    for at in range(20):
        world.api.delete(Key("namespaces", "", f"more-{at}"))
    world.settle(seconds=20)
    assert conditions(world, "red")["NamespacesSelected"] == ("False", "NoNamespace")


def test_a_node_selector_that_binds_no_pod_is_told() -> None:
    """Neither a queue above nor one below names a device."""
    world = World(node("n1"), queue("all", cpu=8), queue("team", cpu=4, parent="all"))
    change(world, "team", nodeSelector={"gpu": "a100"})
    world.settle(seconds=20)
    assert conditions(world, "team")["NodeSelectorUsed"] == ("False", "NoDeviceQuota")
    change(world, "all", quota={"nvidia.com/gpu": "8"})
    world.settle(seconds=20)
    assert conditions(world, "team") == {"Active": ("True", "Active")}
    change(world, "all", quota={"cpu": "8"})
    change(world, "team", nodeSelectorScope="All")
    world.settle(seconds=20)
    assert conditions(world, "team") == {"Active": ("True", "Active")}


def test_a_resource_that_queues_beside_have_quota_of_and_this_one_has_not_is_told() -> None:
    """It is unlimited there; a queue that takes no gangs of its own need not hear of it."""
    gpus = queue("gpus", parent="all", quota={GPU: "8"})
    world = World(queue("all"), queue("team", cpu=4, parent="all"), gpus, queue("apart", cpu=1))
    world.settle(seconds=10)
    told = {each["type"]: each for each in status_of(world, "team")["conditions"]}
    assert (told["ResourcesLimited"]["status"], told["ResourcesLimited"]["reason"]) == (
        "False",
        "UnlimitedResource",
    )
    assert told["ResourcesLimited"]["message"] == (
        f"spec.quota: {GPU} is unlimited in this queue, though another one below all has quota of "
        "it; allowed: an amount here or in a queue above, 0 for none"
    )
    assert "cpu is unlimited" in conditions_of(world, "gpus")["ResourcesLimited"]
    assert "ResourcesLimited" not in conditions_of(world, "apart")

    change(world, "all", quota={"cpu": "0", GPU: "0"})
    world.settle(seconds=20)
    assert "ResourcesLimited" not in conditions_of(world, "team")


def conditions_of(world: World, name: str) -> dict[str, str]:
    """The messages of a queue's conditions."""
    return {each["type"]: each.get("message", "") for each in status_of(world, name)["conditions"]}


def test_the_built_in_queue_is_not_written() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)
    assert phases(world, "a") == ["Running"]
    assert not [each for each in world.leader.log if isinstance(each, QUEUE_WRITES)]


# ---- holes


def holes_of(world: World, name: str) -> list[int]:
    """The pods of 1, 2, 4 and 8 GPUs that fit, as the queue says."""
    return [each.get("pods", 0) for each in status_of(world, name).get("holes", ())]


def test_a_queue_says_how_many_pods_of_each_size_still_fit_on_its_nodes() -> None:
    world = World(
        node("red", gpu=8, cpu=64, labels={"model": "red"}),
        node("blue", gpu=4, cpu=64, labels={"model": "blue"}),
        queue("any"),
        queue("reds", quota={GPU: "2"}, nodeSelector={"model": "red"}),
    )
    world.settle(seconds=2 * HOLES_EACH)
    assert holes_of(world, "any") == [12, 6, 3, 1]
    assert holes_of(world, "reds") == [8, 4, 2, 1], "whatever its quota"
    world.create(foreign_pod("one", "red", gpu=3))
    world.settle(seconds=2 * HOLES_EACH)
    assert holes_of(world, "any") == [9, 4, 2, 0]
    assert holes_of(world, "reds") == [5, 2, 1, 0]


def test_pods_that_come_and_go_cost_few_writes_of_holes() -> None:
    """Five pods a second for a minute, of no gang; then nothing moves any more."""
    world = World(node("n", gpu=1000, cpu=2000, pods=2000), queue("a"), queue("b"), queue("c"))
    world.settle(seconds=10)
    writes = len(queue_writes(world.leader.log))
    for at in range(65):
        for each in range(5):
            world.create(foreign_pod(f"p{at}-{each}", "n", gpu=1, cpu="1m"))
        for each in range(5 if at % 3 else 0):
            world.delete("pods", f"p{at}-{each}", namespace="others")
        world.settle(seconds=1)
    made = len(queue_writes(world.leader.log)) - writes
    assert 3 <= made <= 3 * (65 / HOLES_EACH + 1)
    world.settle(seconds=2 * HOLES_EACH)
    made = len(queue_writes(world.leader.log))
    world.settle(seconds=10 * HOLES_EACH)
    assert len(queue_writes(world.leader.log)) == made
