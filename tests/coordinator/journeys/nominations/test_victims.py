"""Room that victims free is nominated to the gang that they end for."""

from coordinator.gang.pods.nominating import LONGEST_ASTRAY
from coordinator.messages.actions import NominatePod, ReleasePod, WriteGangStatus
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    gang_of,
    node,
)
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.nominations.worlds import (
    fields,
    go_on,
    guarded,
    nominate,
    nominations,
    pass_time,
    slots_by_name,
    taken,
    with_a_plan,
)
from tests.coordinator.validate import validate
from tests.coordinator.world import name_of


def test_room_that_victims_free_is_kept_for_the_gang_that_they_end_for() -> None:
    """From when the record says that they end; the gang is then bound where it was nominated."""
    world = with_a_plan()
    assert fields(world, "p") == {"n1"}
    log = world.leader.log
    ended = [w for w in log if isinstance(w, WriteGangStatus) and w.status.get("evictions")]
    asked = [each for each in log if isinstance(each, NominatePod)]
    assert log.index(ended[0]) < log.index(asked[0])
    validate(world.leader.state)
    go_on(world)
    assert world.bound("p") == {"n1": 4}
    assert len(nominations(world)) == 4


def test_nominations_that_repeat_a_plan_take_nothing_beside_what_is_held() -> None:
    """Else their own gang would find no room, and have more end."""
    world = with_a_plan()
    state, before = world.leader.state, taken(world.leader.state)
    for pod in world.pods("p"):
        nominate(world, pod, "")
    world.leader.hear_all()
    assert {pod.nominated_to for pod in state.known.cache.pods.values()} == {""}
    assert taken(state) == before


def test_a_new_leader_lets_nominations_stand_until_its_first_cycle_explains_them() -> None:
    world = with_a_plan()
    other = world.elect(1)
    other.handle([])
    assert not [each for each in other.log if isinstance(each, NominatePod)]
    validate(other.state)
    other.cycle()
    other.act_all()
    assert other.state.known.cycles.memory is not None
    assert not [each for each in other.log if isinstance(each, NominatePod)]
    assert fields(world, "p") == {"n1"}


def test_a_new_leader_takes_back_what_its_first_cycle_does_not_explain() -> None:
    """Until that is done, or has failed for long, nothing is released to that node."""
    world = guarded(node("n1", cpu=2))
    world.create(gang_of("big", 3))
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    world.leader.cycle()
    for pod in world.pods("big"):
        nominate(world, pod, "n1")
    world.create(gang_of("small", 1))
    world.kuberay()
    leader = world.elect(0)
    leader.act_all()
    assert nominations(world) == []
    leader.cycle()
    leader.act_all_but(NominatePod)
    assert nominations(world) == [(name_of(pod), "") for pod in world.pods("big")]
    assert leader.releases() == []
    world.settle(seconds=3)
    assert fields(world, "big") == {""}
    assert world.bound("small") == {"n1": 2}


def test_a_release_waits_no_longer_than_some_seconds_for_a_nomination_to_end() -> None:
    world = guarded(node("n1", cpu=2), node("n2", cpu=2))
    world.create(gang_of("a", 1))
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    for pod in world.pods("a"):
        nominate(world, pod, "n2")
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    leader.act_all_but(NominatePod, ReleasePod)
    assert slots_by_name(leader.state).keys() == {name_of(pod) for pod in world.pods("a")}
    begun = world.api.now
    for _ in range(100):
        if not leader.releases():
            pass_time(world, 0.1)
            while leader.todo and not leader.releases():
                leader.act(0, Outcome.BROKEN)
    assert LONGEST_ASTRAY <= world.api.now - begun < LONGEST_ASTRAY + 1


def test_a_plan_that_ends_takes_its_nominations_with_it_before_others_are_released() -> None:
    """Another node came, which has room for the gang at once."""
    world = with_a_plan()
    world.create(node("n2", cpu=4))
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    leader.act_all_but(NominatePod)
    mine = {name_of(pod) for pod in world.pods("p")}
    assert nominations(world, "p")[4:] == [(name, "") for name in sorted(mine)]
    assert not mine & {pod for pod, _ in leader.releases()}
    go_on(world)
    assert world.bound("p") == {"n2": 4}
    order = [a for a in leader.log if isinstance(a, NominatePod | ReleasePod)]
    last = max(at for at, each in enumerate(order) if isinstance(each, NominatePod))
    released = (at for at, each in enumerate(order) if isinstance(each, ReleasePod))
    assert min(at for at in released if order[at].pod.metadata.name in mine) > last


def test_nominations_for_a_plan_end_with_the_gang_that_waits() -> None:
    """Its RayCluster is deleted, and a finalizer holds it."""
    world = with_a_plan()
    cluster = world.api.get(Key("rayclusters", TEAM, "p"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.leader.hear_all()
    world.leader.act_all()
    assert fields(world, "p") == {""}
