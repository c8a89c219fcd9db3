"""Gangs are told apart by owner uid: objects that are deleted, made again, or edited by hand."""

from coordinator.messages.actions import CreateGang, DeleteGang
from coordinator.record.urgency import SETTLE_DELAY
from tests.coordinator.api import Json, Key
from tests.coordinator.builders import TEAM, gang_of, node
from tests.coordinator.deeds import decided
from tests.coordinator.world import World, key


def test_a_ray_cluster_made_again_under_its_name_gets_a_gang_of_its_own() -> None:
    """The old Gang goes first, by its uid; the old pods count for nothing but their room."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    old = world.gang("a")["metadata"]["uid"]
    world.delete("rayclusters", "a")
    world.create(gang_of("a", 1))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    assert [type(a) for a in leader.todo] == [DeleteGang]
    assert leader.todo[0] == DeleteGang(key("a"), old)
    leader.act_all()
    leader.cycle()
    leader.act_all()
    assert CreateGang in [type(a) for a in leader.log[-3:]]
    world.api.now += SETTLE_DELAY
    leader.tick()
    leader.act_all()
    assert world.status("a")["reason"] == "InsufficientResources"

    world.settle(seconds=5)
    assert world.gang("a")["metadata"]["uid"] != old
    assert world.bound("a") == {"n1": 2}


def test_a_gang_deleted_by_hand_while_half_released_is_rebuilt_from_the_pins() -> None:
    world = World(node("n1", cpu=4), node("n2", cpu=4))
    world.create(gang_of("a", 5))
    decided(world)
    leader = world.leader
    for _ in range(3):
        leader.act()
    leader.restart()  # and the leader dies as well
    world.delete("gangs", "a")
    world.schedule()
    released = world.bound("a")
    world.elect(0)
    world.settle(seconds=5)

    assert released - world.bound("a") == {}
    assert world.bound("a").total() == 6
    assert world.status("a")["phase"] == "Running"
    pods = [pod for pod, _ in leader.releases()]
    assert len(pods) - len(set(pods)) <= 3  # those that were never sent


def test_a_placement_whose_shapes_another_release_named_is_completed() -> None:
    """Pods that are released stay where they are, and the others come to what is free."""
    world = World(node("n1", cpu=4), node("n2", cpu=4))
    world.create(gang_of("a", 5))
    decided(world)
    leader = world.leader
    for _ in range(3):
        leader.act()
    leader.restart()
    world.api.change(world.gang("a"), with_other_shapes, "status")
    world.schedule()
    released = world.bound("a")
    assert released
    world.elect(0)
    world.settle(seconds=5)
    assert released - world.bound("a") == {}
    assert world.bound("a").total() == 6
    assert world.status("a")["phase"] == "Running"


def with_other_shapes(gang: Json) -> None:
    """Name the shapes of a placement as no shape of this release is named."""
    for pod_set in gang["status"]["placement"]["podSets"]:
        for assignment in pod_set["assignments"]:
            assignment["shape"] = assignment["shape"][::-1]


def test_a_gang_deleted_by_hand_under_its_leader_is_made_again_as_it_was() -> None:
    world = World(node("n1", cpu=4), node("n2", cpu=4))
    world.create(gang_of("a", 5))
    decided(world)
    world.leader.act()
    placement = world.status("a")["placement"]
    world.delete("gangs", "a")
    world.settle(seconds=5)
    assert world.status("a")["placement"] == placement
    assert world.status("a")["phase"] == "Running"


def test_a_status_edited_by_hand_is_restored() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    before = world.status("a")
    world.api.change(
        world.gang("a"),
        lambda gang: gang["status"].update(phase="Queued", placement=None),
        "status",
    )
    world.settle(seconds=60)
    assert world.status("a") == before


def test_a_status_edited_into_nonsense_is_restored_by_the_next_leader_too() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    world.leader.restart()
    pod_sets = [{"name": "workers", "assignments": [{"shape": "?", "requests": {"cpu": "lots"}}]}]
    world.api.change(
        world.gang("a"),
        lambda gang: gang["status"].update(
            placement={"podSets": pod_sets}, conditions=[{"type": "Ready", "status": "True"}]
        ),
        "status",
    )
    world.elect(0)
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    assert world.bound("a") == {"n1": 3}
    [workers] = world.status("a")["placement"]["podSets"][1]["assignments"]
    assert workers["nodes"] == {"n1": 2}


def test_a_spec_edited_by_hand_is_restored() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    before = world.gang("a")["spec"]
    world.api.change(world.gang("a"), lambda gang: gang["spec"].update(queue="mine", podSets=[]))
    world.settle(seconds=60)
    assert world.gang("a")["spec"] == before


def test_a_gang_that_others_made_is_replaced() -> None:
    world = World(node("n1"))
    world.create({"kind": "Gang", "metadata": {"name": "a", "namespace": TEAM}, "spec": {}})
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    owner = world.gang("a")["metadata"]["ownerReferences"][0]["uid"]
    assert owner == world.api.get(Key("rayclusters", TEAM, "a"))["metadata"]["uid"]
