"""Nothing is decided or released while a watch is down."""

from coordinator.messages.actions import ReleasePod
from coordinator.messages.events import NodeGone, WatchLost, WatchRecovered
from coordinator.state_machine import CoordinatorState
from runtime.controller.moment import Moment
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, gang_of, node
from tests.coordinator.world import World


def test_nothing_is_decided_while_a_watch_is_down() -> None:
    """What it told last may be long past: other pods may have taken the room that looks free."""
    world = World(node("n1"))
    world.leader.handle([WatchLost("pods")])
    world.create(gang_of("a", 4))
    world.settle(seconds=60)
    assert "placement" not in world.status("a")

    world.leader.handle([WatchRecovered("pods")])
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 5}


def test_all_watches_must_be_back() -> None:
    world = World(node("n1"))
    world.leader.handle([WatchLost("pods"), WatchLost("nodes"), WatchRecovered("pods")])
    world.create(gang_of("a", 4))
    world.settle(seconds=60)
    assert world.gated("a") == 5

    world.leader.handle([WatchRecovered("nodes")])
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 5}


def test_what_was_decided_before_is_not_released_while_a_watch_is_down() -> None:
    """The head's release was under way; the workers wait, and go on where they were."""
    world = World(node("n1"))
    world.create(gang_of("a", 4))
    for _ in range(10):
        world.controllers()
        world.leader.hear_all()
        world.leader.act_all_but(ReleasePod)
        world.leader.cycle()
    assert len(world.leader.releases()) == 1
    world.leader.handle([WatchLost("nodes")])
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 1}

    world.leader.handle([WatchRecovered("nodes")])
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 5}


def test_a_term_that_begins_blind_waits_as_well() -> None:
    """The blindness is the replica's, not the term's."""
    world = World(node("n1"), replicas=2)
    other = world.replicas[1]
    other.handle([WatchLost("nodes")])
    world.replicas[0].resign()
    world.elect(1)
    world.create(gang_of("a", 4))
    world.settle(seconds=60)
    assert world.gated("a") == 5

    other.handle([WatchRecovered("nodes")])
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 5}


def test_a_gang_is_not_taken_for_opted_out_while_a_watch_is_down() -> None:
    """The webhook gated its pods for a namespace's label of which the blind watch has not told."""
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 4))
    world.settle(seconds=1)
    world.leader.handle([WatchLost("namespaces")])
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].clear())
    world.settle(seconds=60)
    assert world.gated("a") == 5

    world.leader.handle([WatchRecovered("namespaces")])
    world.settle(seconds=60)
    assert world.gated("a") == 0


def test_a_replica_without_a_term_asks_for_no_cycle() -> None:
    state = CoordinatorState()
    state.handle([NodeGone("n1")], Moment(1.0, ""))
    assert not state.cycle_wanted
