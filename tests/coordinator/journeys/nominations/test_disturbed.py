"""Nominations while leaders, nodes and others change things."""

import pytest

from coordinator.gang import nominations as rules
from coordinator.gang import start_window
from coordinator.gang.nominations import Guard
from coordinator.messages.actions import NominatePod, ReleasePod
from coordinator.messages.events import SchedulerSeen
from coordinator.reconcile.pod_writes.nominations import PAUSE
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, group, node, ray_cluster
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.nominations.disturbed_worlds import each_is_of
from tests.coordinator.journeys.nominations.test_writes import LAST, held_up, with_a_line
from tests.coordinator.journeys.nominations.worlds import (
    field_of,
    fields,
    guarded,
    nominate,
    nominations,
    pass_time,
)
from tests.coordinator.validate import validate
from tests.coordinator.world import World, is_gated, name_of

STEPS = 14
"""More than the writes of a start of five pods, of which four are nominated."""
BOTH = "n1", "n2"


# ---- a leader is killed


def with_two_replicas(monkeypatch: pytest.MonkeyPatch) -> World:
    """A gang of which all but the first pod are nominated before their release."""
    monkeypatch.setattr(rules, "FIRST_RELEASES", 1)
    world = guarded(*(node(name, cpu=3) for name in BOTH), replicas=2)
    world.create(gang_of("a", 4))
    world.kuberay()
    world.leader.handle([SchedulerSeen("first")])
    return world


def begin(world: World, writes: int) -> None:
    """Have the first leader carry out so many writes, or all of the start."""
    leader = world.leader
    for _ in range(writes):
        leader.hear_all()
        leader.cycle()
        if leader.todo:
            leader.act()


def take_over(world: World) -> None:
    """Kill the first leader; the next one is told of the same kube-scheduler."""
    old, new = world.replicas
    old.restart()
    new.handle([SchedulerSeen("first")])
    world.elect(1)


def placed_by_name(world: World) -> dict[str, str]:
    """The slots of the pods that wait, as the next leader reads them."""
    [view] = world.replicas[1].state.known.views.values()
    return {pod.name: node for each in view.survey.standing for pod, node in each.with_slot}


@pytest.mark.parametrize("writes", range(STEPS))
def test_a_nominated_start_ends_whole_wherever_its_leader_is_killed(
    writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = with_two_replicas(monkeypatch)
    begin(world, writes)
    before = {name: node for name, node in world.leader.releases() if not gated(world, name)}
    take_over(world)
    for name, where in placed_by_name(world).items():
        assert field_of(world, name) in ("", where)
    world.settle(seconds=5)
    assert world.status("a")["phase"] == "Running"
    assert world.bound("a").total() == 5
    for name, where in before.items():
        assert world.api.get(Key("pods", TEAM, name))["spec"]["nodeName"] == where
    validate(world.replicas[1].state)


def gated(world: World, name: str) -> bool:
    return is_gated(world.api.get(Key("pods", TEAM, name)))


def test_what_an_earlier_leader_sent_is_taken_back_where_the_gang_is_elsewhere_by_now() -> None:
    """Its nominations arrive late, and name a node that is gone."""
    world = World(node("n1"), guard=Guard.NOMINATION, replicas=2)
    world.create(gang_of("a", 2))
    world.kuberay()
    old, new = world.replicas
    old.hear_all()
    old.act_all()
    old.cycle()
    old.act_all_but(ReleasePod)
    pass_time(world, PAUSE)
    for at in reversed(range(len(old.todo))):
        if isinstance(old.todo[at], NominatePod):
            old.act(at, Outcome.HELD)
    assert len(old.client.held) == 3
    world.create(node("n2"))
    world.delete("nodes", "n1")
    take_over(world)
    new.cycle()
    new.act_all_but(ReleasePod)
    while old.client.held:
        assert old.client.let_go() is None
    assert fields(world, "a") == {"n1"}
    world.settle(seconds=5)
    assert fields(world, "a") <= {"", "n2"}
    assert world.bound("a") == {"n2": 3}


# ---- others write the field


@pytest.mark.parametrize("guard", Guard)
def test_nominations_to_a_node_that_is_not_there_are_taken_back(guard: Guard) -> None:
    """The gang waits for room meanwhile, and is told so; then it starts where there is some."""
    world = World(node("n1", cpu=2), guard=guard)
    world.create(gang_of("a", 3))
    world.kuberay()
    for pod in world.pods("a"):
        nominate(world, pod, "nowhere")
    world.settle(seconds=1)
    assert fields(world, "a") == {""}
    assert world.status("a")["reason"] == "NeverFits"
    world.create(node("n2", cpu=4))
    world.settle(seconds=5)
    assert world.bound("a").total() == 4
    assert len(nominations(world, "a")) == 4


def test_a_nomination_that_others_overwrite_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until then kube-scheduler counts the pod on the other node: nothing is released there."""
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    world.create(node("n2", cpu=2))
    name, *_ = held_up(world)
    world.create(ray_cluster("b", group("workers", 1), created=100))
    nominate(world, world.api.get(Key("pods", TEAM, name)), "n2")
    leader = world.leader
    leader.hear_all()
    view = next(each for key, each in leader.state.known.views.items() if key.name == LAST)
    assert view.nominating.misnominated.keys() == {"n2"}
    for _ in range(100):
        leader.act_all_but(ReleasePod)
        pass_time(world, 0.01)
    assert field_of(world, name) == "n1"
    assert not view.nominating.misnominated
    assert [node for pod, node in nominations(world, LAST) if pod == name] == ["n1", "", "n1"]


def test_room_that_a_nomination_of_others_took_is_free_once_ours_has_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was written while ours was under way."""
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    world.create(node("n2", cpu=2))
    pass_time(world, PAUSE)
    leader = world.leader
    leader.hear_all()
    leader.cycle()
    ours, _ = (each for each in leader.todo if each_is_of(each, LAST))
    assert isinstance(ours, NominatePod)
    name = ours.pod.metadata.name
    nominate(world, world.api.get(Key("pods", TEAM, name)), "n2")
    leader.hear_all()
    assert not leader.state.cycle_wanted
    leader.act(leader.todo.index(ours))
    assert field_of(world, name) == "n1"
    assert leader.state.cycle_wanted
    validate(leader.state)


@pytest.mark.parametrize("guard", Guard)
def test_a_pod_that_joins_a_gang_nominated_is_placed_like_others(guard: Guard) -> None:
    """To a node where the gang has no slot; the coordinator hears of both at once."""
    world = World(node("n1", cpu=4), node("n2", cpu=1), guard=guard)
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.bound("a").total() == 3
    world.create(foreign_pod("other", "n2"))
    world.settle()
    world.scale("a", 3)
    world.kuberay()
    [new] = [pod for pod in world.pods("a") if is_gated(pod)]
    nominate(world, new, "n2")
    world.settle(seconds=5)
    assert world.api.get(Key("pods", TEAM, name_of(new)))["spec"]["nodeName"] == "n1"
    assert nominations(world, "a") == [(name_of(new), "")]


def test_nominations_go_with_the_placement_to_another_node() -> None:
    """Within the look in which the old placement ends they are taken back."""
    world = with_a_line(Guard.NOMINATION)
    held_up(world)
    world.create(node("n2", cpu=64))
    world.delete("nodes", "n1")
    leader = world.leader
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    assert fields(world, LAST) == {""}
    leader.cycle()
    for _ in range(10):
        leader.act_all_but(ReleasePod)
        pass_time(world, 0.1)
    assert fields(world, LAST) == {"n2"}


def test_room_is_decided_anew_when_a_nomination_that_took_it_is_taken_back() -> None:
    """Though no look at its gang follows before all of them are."""
    world = guarded(node("n1", cpu=2))
    world.create(ray_cluster("big", group("workers", 3), created=1))
    world.kuberay()
    for pod in world.pods("big"):
        nominate(world, pod, "n1")
    leader = world.leader
    leader.hear_all()
    leader.act_all_but(NominatePod)
    leader.cycle()
    assert sum(isinstance(each, NominatePod) for each in leader.todo) == 4
    leader.act_all_but(NominatePod)
    assert not leader.state.cycle_wanted
    leader.act(next(at for at, a in enumerate(leader.todo) if isinstance(a, NominatePod)))
    assert leader.state.cycle_wanted
