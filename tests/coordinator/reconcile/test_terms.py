"""What a gang was promised outlives its terms."""

from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, gang_of, node
from tests.coordinator.deeds import decided
from tests.coordinator.world import World


def test_a_gang_of_which_no_terms_are_known_keeps_its_room() -> None:
    """Its annotation broke and its record is empty: the next leader knows its placement alone."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    world.leader.act_all()
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    broken = {names.MIN_REPLICAS: "nope=1"}
    world.api.change(cluster, lambda obj: obj["metadata"]["annotations"].update(broken))
    world.api.change(world.gang("a"), lambda obj: obj["spec"].update(podSets=[]))
    placed = world.status("a")["placement"]
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=30)
    assert world.status("a")["reason"] == "Misconfigured"
    assert world.status("a")["placement"] == placed
