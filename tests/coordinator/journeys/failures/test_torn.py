"""Gangs of which a part stays away give their room back."""

from coordinator.messages.actions import DeletePod, ReleasePod, WriteGangStatus
from coordinator.messages.clock import Patience
from coordinator.messages.events import NodeGone
from kube.api.errors import Invalid
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, node, template
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import decided
from tests.coordinator.journeys.failures.worlds import about_to_start
from tests.coordinator.world import World, name_of

PATIENCE = Patience()


def test_room_taken_by_others_after_the_release_is_waited_for_and_then_given_up() -> None:
    world = about_to_start()
    leader = world.leader
    leader.act_all()
    world.create(foreign_pod("thief", "n1", cpu=1), node("n2", cpu=1))
    world.settle(seconds=PATIENCE.bind / 2)
    assert world.bound("a") == {"n1": 2}
    assert not [a for a in leader.log if isinstance(a, DeletePod)]

    world.settle(seconds=PATIENCE.bind)
    assert world.bound("a") == {"n1": 2, "n2": 1}


def test_a_gang_that_stays_torn_before_it_ever_ran_gives_all_of_its_room_back() -> None:
    """The two that were bound are deleted, and nothing is held for those that come after them."""
    world = about_to_start()
    world.leader.act_all()
    world.create(foreign_pod("thief", "n1", cpu=1))
    world.settle(seconds=PATIENCE.bind + PATIENCE.torn + 60)

    assert world.bound("a") == {}
    assert world.gated("a") == 3
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert "placement" not in status

    world.create(gang_of("b", 1))
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 2}


def test_a_gang_that_ran_whole_is_never_given_up_for_a_member_that_it_lost() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=1))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    world.delete("nodes", "n2")
    world.settle(seconds=3 * PATIENCE.torn)

    assert world.bound("a") == {"n1": 2}
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "BelowMinimum")
    ready = next(c for c in status["conditions"] if c["type"] == "Ready")
    assert ready["status"] == "False"

    world.leader.restart()  # the next leader knows it from the record
    world.elect(0)
    world.settle(seconds=3 * PATIENCE.torn)
    assert world.bound("a") == {"n1": 2}
    world.create(node("n3", cpu=1))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2, "n3": 1}
    assert world.status("a")["reason"] == "Running"


def test_a_head_that_comes_back_held_by_others_takes_the_placement_with_it() -> None:
    """Nothing was released yet: the workers alone must not start, and must not hold the room."""
    foreign = {"name": "example.com/quota"}
    world = about_to_start()
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    head = template(cpu=1, schedulingGates=[foreign])
    world.api.change(cluster, lambda obj: obj["spec"].update(headGroupSpec={"template": head}))
    world.api.delete(key_of(world.pods("a")[0]))
    world.settle(seconds=5)
    assert world.gated("a") == 3
    assert world.status("a")["reason"] == "ForeignGates"
    assert "placement" not in world.status("a")


def test_a_placement_that_is_being_taken_back_is_not_released_on_when_it_is_decided_again() -> None:
    """The record still holds it, word for word, while the write that removes it is under way."""
    world = about_to_start()
    leader = world.leader
    world.api.delete(key_of(world.pods("a")[0]))
    leader.act()  # the release of the head that is gone: the placement is given up
    [taken_back] = leader.todo
    assert isinstance(taken_back, WriteGangStatus)
    assert "placement" not in taken_back.status
    world.kuberay()
    leader.hear_all()
    leader.cycle()
    assert leader.todo == [taken_back]
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}


def test_a_head_that_is_deleted_as_stranded_has_its_workers_wait_for_its_replacement() -> None:
    """It was released to a node that was gone already; the workers alone are no gang."""
    world = World(node("n1", cpu=2), node("n2", cpu=2))
    world.create(gang_of("a", 1))
    world.settle(seconds=5)
    [before] = world.bound("a")
    leader = world.leader
    leader.log.clear()
    world.delete("nodes", before)
    world.collect_garbage()
    world.kuberay()
    leader.hear("pods")
    leader.act_all_but(ReleasePod)
    release = leader.todo.pop()
    for event in leader.carried_out(release, Outcome.DONE):
        leader.handle([NodeGone(before), event])  # its node is gone before its end is known
    world.settle(seconds=5)

    after = ({"n1", "n2"} - {before}).pop()
    assert world.bound("a") == {after: 2}
    sets = [pod.split("-")[1] for pod, _ in leader.releases()]
    assert sets == ["headgroup", "headgroup", "workers"]


def test_a_release_that_arrives_when_its_placement_is_gone_is_cleared_away() -> None:
    world = World(node("n1", cpu=1))
    world.create(gang_of("a", 0))
    decided(world)
    leader = world.leader
    world.delete("nodes", "n1")
    leader.hear("nodes")
    assert next(iter(leader.state.known.views.values())).reservation.placement is None
    world.create(node("n2", cpu=1))
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 1}


def test_no_more_of_a_starting_gang_is_released_while_it_lacks_a_pod() -> None:
    """A worker vanished while the release of the head was on its way: the other one waits."""
    world = about_to_start()
    leader = world.leader
    world.api.delete(key_of(world.pods("a")[2]))
    leader.hear("pods")
    leader.act()
    assert len(leader.releases()) == 1
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}


def test_a_gang_whose_last_pod_never_comes_back_gives_the_rest_up() -> None:
    """It never ran whole, and a quota keeps KubeRay from making the pod that was lost."""
    world = about_to_start()
    leader = world.leader
    leader.act_all()
    world.schedule()
    world.api.remove(key_of(world.pods("a")[2]))
    leader.hear_all()
    world.api.now += PATIENCE.torn + 1.0
    leader.tick()
    assert len([a for a in leader.todo if isinstance(a, DeletePod)]) == 2


def test_patience_ends_at_the_moment_that_the_coordinator_asked_to_be_woken_at() -> None:
    """Sums of floats: 10.05 + 30 is reached although 40.05 - 10.05 is less than 30."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.api.now = 10.05
    decided(world)
    world.leader.act_all()
    world.create(foreign_pod("thief", "n1", cpu=1), node("n2", cpu=1))
    world.settle(seconds=2 * PATIENCE.bind)
    assert world.bound("a") == {"n1": 2, "n2": 1}


def test_a_lost_member_keeps_its_slot_until_its_replacement_comes() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=60)
    victim = key_of(world.pods("a")[1])
    world.api.delete(victim)
    world.api.remove(victim)
    world.leader.hear_all()
    world.create(gang_of("b", 0))
    world.settle(seconds=60)

    assert world.bound("a") == {"n1": 3}
    assert world.bound("b") == {}


def test_a_gang_whose_ray_cluster_is_being_deleted_is_let_go() -> None:
    """A finalizer keeps the RayCluster: its Gang is not made again, its room is free."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 3))
    world.settle()
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.api.remove(Key("gangs", TEAM, "a"))
    world.settle(seconds=60)
    assert list(world.api.all("gangs")) == []


def test_a_part_whose_rest_is_refused_for_ever_gives_its_room_back() -> None:
    """A policy refuses one worker's release: the others must not hold their room without end."""
    world = about_to_start()
    refused = name_of(world.pods("a")[2])
    world.api.refusals[refused] = Invalid(422, "Invalid", "not this one")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}
    first = {name_of(pod) for pod in world.pods("a")}
    world.settle(seconds=PATIENCE.torn + 60)

    assert {name_of(pod) for pod in world.pods("a")} & first <= {refused}


def test_the_slots_of_a_gang_of_which_nothing_is_left_are_given_up() -> None:
    """It ran, all of its pods are gone and none comes back: as for one pod that was lost."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    for pod in world.pods("a"):
        world.api.remove(key_of(pod))
    leader = world.leader
    leader.hear_all()
    assert all(view.reservation.placement is not None for view in leader.state.known.views.values())
    world.api.now += PATIENCE.slot - 1.0
    leader.tick()
    assert all(view.reservation.placement is not None for view in leader.state.known.views.values())
    world.api.now += 1.0
    leader.tick()

    assert [view.reservation.placement for view in leader.state.known.views.values()] == [None]
