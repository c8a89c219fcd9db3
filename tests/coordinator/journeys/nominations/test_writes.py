"""Which pods are nominated, when, and when their release follows."""

import copy

import pytest

from coordinator.gang import nominations as rules
from coordinator.gang import start_window
from coordinator.gang.nominations import Guard
from coordinator.gang.pods.nominating import MOST_IN_FLIGHT
from coordinator.gang.start_window import UNDER_WAY
from coordinator.messages.actions import NominatePod, ReleasePod, WriteGangStatus
from coordinator.messages.events import SchedulerSeen
from coordinator.reconcile.pod_writes.nominations import PAUSE
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    Json,
    gang_of,
    group,
    node,
    ray_cluster,
)
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import apart, decided, opt, zone
from tests.coordinator.journeys.nominations.worlds import (
    SPREAD,
    field_of,
    fields,
    go_on,
    guarded,
    nominate,
    nominations,
    pass_time,
    with_a_plan,
)
from tests.coordinator.journeys.queues.worlds import change
from tests.coordinator.world import World, is_gated, name_of

LAST = f"g{UNDER_WAY}"
"""The gang that waits for its turn to be released."""


def with_a_line(guard: Guard) -> World:
    """As many gangs as are released at one time, none of which is yet, and one that waits.

    That one has lost room before, so that it is nominated after a moment.
    """
    world = World(node("n1", cpu=64), guard=guard)
    for number in range(UNDER_WAY + 1):
        world.create(ray_cluster(f"g{number}", group("workers", 1), created=1 + number))
    decided(world)
    state, last = world.leader.state, GangKey(TEAM, LAST)
    state.known.views[last].repairs.lost_room = True
    state.known.agenda.dirty.add(last)
    world.leader.handle([])
    return world


def test_a_gang_that_has_lost_room_and_waits_for_its_turn_is_nominated_after_a_moment() -> None:
    world = with_a_line(Guard.NOMINATION)
    pass_time(world, PAUSE / 2)
    assert nominations(world) == []
    pass_time(world, PAUSE / 2)
    last = sorted(name_of(pod) for pod in world.pods(LAST))
    assert sorted(nominations(world, LAST)) == [(name, "n1") for name in last]
    world.leader.act_all_but(ReleasePod)
    assert {field_of(world, name) for name in last} == {"n1"}
    world.settle(seconds=5)
    assert len(nominations(world, LAST)) == len(last)
    assert world.status(LAST)["phase"] == "Running"


@pytest.mark.parametrize("guard", [Guard.EXTENDER, Guard.NONE])
def test_without_that_guard_no_pod_is_nominated(guard: Guard) -> None:
    world = with_a_line(guard)
    pass_time(world, 2 * PAUSE)
    assert nominations(world) == []


def test_no_pod_is_nominated_before_the_placement_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1"))
    world.create(gang_of("a", 3))
    world.kuberay()
    leader = world.leader
    leader.hear_all()
    leader.act_all()
    leader.cycle()
    [write] = [each for each in leader.todo if isinstance(each, WriteGangStatus)]
    assert write.decides
    assert nominations(world) == []
    leader.act_all_but(NominatePod, ReleasePod)
    assert len(nominations(world)) == 4


def test_of_a_large_gang_the_later_pods_are_nominated_and_then_released(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 2)
    world = guarded(node("n1"))
    world.create(gang_of("a", 5))
    decided(world)
    assert len(world.leader.releases()) == 1  # the head goes first
    world.settle(seconds=5)
    names = [name for name, _ in nominations(world)]
    order = [
        (type(each), each.pod.metadata.name)
        for each in world.leader.log
        if isinstance(each, NominatePod | ReleasePod)
    ]
    assert len(names) == 4
    for name in names:
        assert order.index((NominatePod, name)) < order.index((ReleasePod, name))
    assert world.bound("a") == {"n1": 6}


def test_a_nomination_that_fails_holds_up_no_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1"))
    world.create(gang_of("a", 3))
    decided(world)
    leader = world.leader
    for _ in range(100):
        bad = bool(leader.todo) and isinstance(leader.todo[0], NominatePod)
        for _ in leader.todo[:1]:
            leader.act(0, Outcome.BROKEN if bad else Outcome.DONE)
    world.settle(seconds=5)
    assert len(nominations(world)) >= 3
    assert world.status("a")["phase"] == "Running"


def test_no_more_than_some_nominations_of_a_gang_are_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1", cpu=64))
    world.create(gang_of("a", MOST_IN_FLIGHT + 5))
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    world.leader.cycle()
    world.leader.act_all_but(NominatePod)
    assert len(nominations(world)) == MOST_IN_FLIGHT
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": MOST_IN_FLIGHT + 6}


def test_pods_of_a_gang_that_count_each_other_are_not_nominated() -> None:
    """One that was nominated by others, or before it had constraints, is so no longer."""
    world = guarded(*(zone(f"{name}1") for name in "hw"))
    world.create(apart(1))
    decided(world)
    [head] = [pod for pod in world.pods("a") if "workers" not in name_of(pod)]
    nominate(world, head, "h1")
    world.leader.hear_all()
    assert nominations(world) == [(name_of(head), "")]
    world.leader.act_all_but(ReleasePod)
    assert field_of(world, name_of(head)) == ""


def held_up(world: World) -> list[str]:
    """Have a gang wait that has a placement, nominated; return the names of its pods."""
    pass_time(world, PAUSE)
    world.leader.act_all_but(ReleasePod)
    return [name_of(pod) for pod in world.pods(LAST)]


def test_a_field_that_others_clear_is_written_again_ever_more_seldom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    name, *_ = held_up(world)
    asked = len(nominations(world, LAST))
    waits = []
    for _ in range(4):
        nominate(world, world.api.get(Key("pods", TEAM, name)), "")
        world.leader.hear_all()
        begun = world.api.now
        for _ in range(500):
            if len(nominations(world, LAST)) == asked:
                pass_time(world, 0.01)
        waits.append(world.api.now - begun)
        asked = len(nominations(world, LAST))
        world.leader.act_all_but(ReleasePod)
        assert field_of(world, name) == "n1"
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]


def test_another_kube_scheduler_is_told_of_the_nominations_that_stand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows of none. The annotation says that it was told, so no leader tells it twice."""
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    world.leader.handle([SchedulerSeen("first")])
    pods = held_up(world)
    before = len(nominations(world, LAST))
    versions = {name: _version(world, name) for name in pods}
    world.leader.handle([SchedulerSeen("first")])
    assert len(nominations(world, LAST)) == before
    pass_time(world, 1.0)
    world.leader.handle([SchedulerSeen("second")])
    assert nominations(world, LAST)[before:] == [(name, "n1") for name in pods]
    world.leader.act_all_but(ReleasePod)
    assert all(_version(world, name) > versions[name] for name in pods)
    world.elect(0)
    world.leader.handle([SchedulerSeen("second")])
    pass_time(world, PAUSE)
    assert len(nominations(world, LAST)) == before + len(pods)


def _version(world: World, name: str) -> int:
    return int(world.api.get(Key("pods", TEAM, name))["metadata"]["resourceVersion"])


def test_a_nomination_follows_the_placement() -> None:
    """The node is gone before the release: the gang is placed anew."""
    world = with_a_line(Guard.NOMINATION)
    pods = held_up(world)
    world.create(node("n2", cpu=64))
    world.delete("nodes", "n1")
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    leader.act_all_but(ReleasePod)
    pass_time(world, PAUSE)
    leader.act_all_but(ReleasePod)
    state = leader.state
    assert {field_of(world, name) for name in pods} <= {"", "n2"}
    assert not [pod for pod in state.known.cache.pods.values() if pod.nominated_to == "n1"]


def test_nominations_of_a_gang_that_is_being_deleted_are_taken_back() -> None:
    """A finalizer holds the RayCluster, and with it the pods."""
    world = with_a_line(Guard.NOMINATION)
    pods = held_up(world)
    cluster = world.api.get(Key("rayclusters", TEAM, LAST))
    world.api.change(cluster, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.leader.hear_all()
    world.leader.act_all_but(ReleasePod)
    pass_time(world, 1.0)
    world.leader.act_all_but(ReleasePod)
    assert {field_of(world, name) for name in pods} == {""}


def test_a_gang_whose_pods_others_count_on_their_way_is_not_nominated() -> None:
    """The spread constraint of another gang of its namespace binds pods that are pinned, too."""
    world = with_a_plan()
    assert fields(world, "p") == {"n1"}
    counting: Json = copy.deepcopy(SPREAD)
    counting["topologySpreadConstraints"][0]["nodeAffinityPolicy"] = "Ignore"
    world.create(ray_cluster("s", group("workers", 1, **counting), created=5))
    world.settle(seconds=1)
    assert fields(world, "p") == {""}
    world.delete("rayclusters", "s")
    world.settle(seconds=30)
    assert fields(world, "p") == {"n1"}


def test_a_gang_that_is_opted_out_leaves_its_nominations_to_kube_scheduler() -> None:
    world = with_a_plan()
    """Its pods go unpinned; kube-scheduler, which has them now, clears the field as it tries them.

    No release of others waits for that.
    """
    opt(world, "false", "p")
    world.settle(seconds=3)
    assert not any(is_gated(pod) for pod in world.pods("p"))
    assert world.leader.state.known.term.misnominated == {}
    go_on(world)
    assert world.bound("p") == {"n1": 4}


def test_a_gang_that_stops_asking_is_nominated_for_no_plan() -> None:
    """Its queue becomes inactive; no cycle is needed for that."""
    world = with_a_plan()
    change(world, "team", parent="missing")
    leader = world.leader
    leader.hear_all()
    assert nominations(world, "p")[4:] == [(name_of(pod), "") for pod in world.pods("p")]


def test_pods_of_a_gang_that_is_being_stopped_are_not_nominated() -> None:
    world = with_a_plan()
    pod = next(pod for pod in world.pods("v") if is_gated(pod))
    nominate(world, pod, "n1")
    world.leader.hear_all()
    assert nominations(world, "v") == [(name_of(pod), "")]


def test_a_release_that_is_not_answered_holds_the_whole_gang_up() -> None:
    """Also the pod that is on its way: the write may never arrive."""
    world = guarded(node("n1"))
    world.create(gang_of("a", 3))
    decided(world)
    assert len(world.leader.releases()) == 1
    pass_time(world, PAUSE)
    assert sorted(nominations(world)) == [
        (name, "n1") for name in sorted(map(name_of, world.pods("a")))
    ]


def test_a_gang_that_is_released_pod_by_pod_is_not_nominated() -> None:
    world = guarded(node("n1"))
    world.create(gang_of("a", 5))
    decided(world)
    leader = world.leader
    for _ in range(5):
        pass_time(world, 0.8 * PAUSE)
        leader.act(next(at for at, a in enumerate(leader.todo) if isinstance(a, ReleasePod)))
        leader.hear_all()
    assert nominations(world) == []
    assert world.gated("a") == 1
