"""The record of a gang that others end for says where it will be, so that the extender knows."""

from coordinator.gang.nominations import Guard
from coordinator.messages.actions import EvictPod, NominatePod, WriteGangStatus
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, node
from tests.coordinator.journeys.nominations.worlds import go_on, with_a_plan
from tests.coordinator.journeys.queues.worlds import change
from tests.coordinator.validate import validate
from tests.coordinator.world import World


def nodes_of(status: Json, kind: str) -> set[str]:
    """The nodes that a placement or a plan names."""
    sets = status.get(kind, {}).get("podSets", ())
    return {name for each in sets for made in each["assignments"] for name in made["nodes"]}


def written(world: World, gang: str) -> list[tuple[set[str], set[str]]]:
    """The plan and the placement in each status of a gang that was written."""
    found = [each for each in world.leader.log if isinstance(each, WriteGangStatus)]
    mine = [each.status for each in found if each.key.name == gang]
    return [(nodes_of(status, "planned"), nodes_of(status, "placement")) for status in mine]


def test_the_plan_is_recorded_until_the_placement_takes_its_place() -> None:
    """With one write: between the victims' end and the placement nobody finds the room open."""
    world = with_a_plan(Guard.EXTENDER)
    assert nodes_of(world.status("p"), "planned") == {"n1"}
    go_on(world)
    assert world.bound("p") == {"n1": 4}
    recorded = [each for each in written(world, "p") if each != (set(), set())]
    first = recorded.index((set(), {"n1"}))
    assert recorded[:first] == [({"n1"}, set())] * first
    assert first
    assert all(each == (set(), {"n1"}) for each in recorded[first:])
    assert not [each for each in world.leader.log if isinstance(each, NominatePod)]


def test_a_new_leader_leaves_the_plan_in_the_record_until_its_first_cycle_explains_it() -> None:
    world = with_a_plan(Guard.EXTENDER)
    before = world.status("p")["planned"]
    other = world.elect(1)
    other.act_all()
    assert world.status("p")["planned"] == before
    other.cycle()
    other.act_all()
    validate(other.state)
    assert world.status("p")["planned"] == before


def test_what_the_first_cycle_of_a_leader_does_not_explain_leaves_the_record() -> None:
    world = with_a_plan(Guard.EXTENDER)
    gang = world.api.get(Key("gangs", TEAM, "v"))
    world.api.change(gang, lambda obj: obj["status"].pop("evictions"))
    for pod in world.pods("v"):
        world.api.change(pod, lambda obj: obj["metadata"].pop("deletionTimestamp", None))
    change(world, "team", preemption={"withinQueue": "Never"})
    other = world.elect(1)
    other.act_all()
    other.cycle()
    other.act_all()
    assert "planned" not in world.status("p")


def test_nothing_is_kept_for_a_gang_that_has_room_elsewhere_or_asks_no_more() -> None:
    world = with_a_plan(Guard.EXTENDER)
    change(world, "team", parent="missing")
    world.settle(seconds=1)
    assert "planned" not in world.status("p")

    world = with_a_plan(Guard.EXTENDER)
    cluster = world.api.get(Key("rayclusters", TEAM, "p"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.settle(seconds=1)
    assert "planned" not in world.status("p")

    world = with_a_plan(Guard.EXTENDER)
    world.create(node("n2", cpu=4))
    world.settle(seconds=1)
    assert "planned" not in world.status("p")
    assert nodes_of(world.status("p"), "placement") == {"n2"}


def test_the_plan_is_on_its_way_before_a_victim_is_asked_to_end() -> None:
    """So the record has it before the first of their pods is gone."""
    log = with_a_plan(Guard.EXTENDER).leader.log
    evicted = next(at for at, each in enumerate(log) if isinstance(each, EvictPod))
    planned = next(
        at
        for at, each in enumerate(log)
        if isinstance(each, WriteGangStatus) and nodes_of(each.status, "planned")
    )
    assert planned < evicted
