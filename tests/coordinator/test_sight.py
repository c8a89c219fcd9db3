"""Is anything decided or released while a watch is down?"""

from coordinator.actions import ReleasePod
from coordinator.events import SightLost, SightRegained
from tests.coordinator.builders import gang_of, node
from tests.coordinator.world import World


def test_nothing_is_decided_while_a_watch_is_down() -> None:
    """What it told last may be long past: somebody may have taken the room that looks free."""
    world = World(node("n1"))
    world.leader.handle([SightLost("pods")])
    world.create(gang_of("a", 4))
    world.settle(seconds=60)
    assert "placement" not in world.status("a")

    world.leader.handle([SightRegained("pods")])
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 5}


def test_all_watches_must_be_back() -> None:
    world = World(node("n1"))
    world.leader.handle([SightLost("pods"), SightLost("nodes"), SightRegained("pods")])
    world.create(gang_of("a", 4))
    world.settle(seconds=60)
    assert world.gated("a") == 5

    world.leader.handle([SightRegained("nodes")])
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
    world.leader.handle([SightLost("nodes")])
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 1}

    world.leader.handle([SightRegained("nodes")])
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 5}


def test_a_term_that_begins_blind_waits_as_well() -> None:
    """The blindness is the replica's, not the term's."""
    world = World(node("n1"), replicas=2)
    other = world.replicas[1]
    other.handle([SightLost("nodes")])
    world.replicas[0].resign()
    world.elect(1)
    world.create(gang_of("a", 4))
    world.settle(seconds=60)
    assert world.gated("a") == 5

    other.handle([SightRegained("nodes")])
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 5}
