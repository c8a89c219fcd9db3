"""Nominations where a leader is killed, where others write the field too, and how soon they end."""

from math import inf

import pytest

from coordinator.gang import nominations as rules
from coordinator.gang import start_window
from coordinator.gang.nominations import Guard
from coordinator.gang.pods.left_nominations import LEFT_DELAY
from coordinator.gang.pods.nominating import LONGEST_ASTRAY, MOST_IN_FLIGHT, PARTS, Nominating
from coordinator.messages.actions import Action, NominatePod, ReleasePod
from coordinator.messages.events import SchedulerSeen, SightLost, SightRegained
from coordinator.reconcile.look import Scene
from coordinator.reconcile.pod_writes.nominations import PAUSE
from coordinator.state import gang_looks
from coordinator.state.known import Known
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key, Outcome, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, group, node, ray_cluster
from tests.coordinator.deeds import opt
from tests.coordinator.journeys.test_nominations import (
    LAST,
    field_of,
    fields,
    go_on,
    guarded,
    held_up,
    nominate,
    nominations,
    pass_time,
    with_a_line,
    with_a_plan,
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
    assert view.nominating.astray.keys() == {"n2"}
    for _ in range(100):
        leader.act_all_but(ReleasePod)
        pass_time(world, 0.01)
    assert field_of(world, name) == "n1"
    assert not view.nominating.astray
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


# ---- how soon they end


def test_nominations_end_at_once_with_a_ray_cluster_that_is_being_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing was released, so that there is nothing to wait for; a finalizer holds the pods.

    That others fought for the fields before, so that the next write would wait, is of no account.
    """
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    held_up(world)
    for _ in range(6):
        for pod in world.pods(LAST):
            nominate(world, pod, "")
        world.leader.hear_all()
        pass_time(world, 5.0)
        world.leader.act_all_but(ReleasePod)
        assert fields(world, LAST) == {"n1"}
    cluster = world.api.get(Key("rayclusters", TEAM, LAST))
    world.api.change(cluster, lambda obj: obj["metadata"].update(deletionTimestamp="now"))
    world.leader.hear_all()
    world.leader.act_all_but(ReleasePod)
    assert fields(world, LAST) == {""}


def test_nominations_end_with_the_opt_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are taken back before the pods go; the opt-out itself has to stand for 2 s."""
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    held_up(world)
    opt(world, "false", LAST)
    leader = world.leader
    leader.hear_all()
    pass_time(world, 2.0)
    sent = [type(each) for each in leader.todo if each_is_of(each, LAST)]
    assert sent[:2] == [NominatePod, NominatePod]
    leader.act_all()
    assert fields(world, LAST) == {""}
    assert not any(is_gated(pod) for pod in world.pods(LAST))


def lose_ray_cluster(world: World, name: str) -> None:
    """Its object goes at once; its pods stay."""
    world.collect_garbage = lambda: None  # type: ignore[method-assign]
    world.kuberay = lambda: None  # type: ignore[method-assign]
    world.api.remove(Key("rayclusters", TEAM, name))


@pytest.mark.parametrize("made_anew", [False, True])
def test_nominations_end_with_a_ray_cluster_that_is_gone_before_its_pods(
    *, made_anew: bool
) -> None:
    """Also where there is another one of its name by then, which pods of the old are not of."""
    world = with_a_plan()
    lose_ray_cluster(world, "p")
    if made_anew:
        world.create(ray_cluster("p", group("workers", 1), created=9))
    world.leader.hear_all()
    pass_time(world, LEFT_DELAY)
    world.leader.act_all()
    assert fields(world, "p") == {""}
    assert all(is_gated(pod) for pod in world.pods("p"))
    go_on(world)
    assert world.bound("v") == {"n1": 4} or not world.pods("v")
    assert len(nominations(world, "p")) == 8
    assert world.leader.state.known.term.left == {}


def test_nominations_that_cannot_be_taken_back_are_tried_ever_more_seldom() -> None:
    """Their RayCluster is gone, and a webhook of others refuses the writes."""
    world = with_a_plan()
    lose_ray_cluster(world, "p")
    leader, before = world.leader, len(nominations(world))
    leader.hear_all()
    for _ in range(100):
        while leader.todo:
            leader.act(0, Outcome.BROKEN)
        pass_time(world, 0.1)
    tries = (len(nominations(world)) - before) / len(world.pods("p"))
    assert 3 < tries < 12
    world.settle(seconds=20)
    assert fields(world, "p") == {""}


def test_nominations_of_pods_that_go_with_their_ray_cluster_are_not_written() -> None:
    """The garbage collector mostly needs less than a second."""
    world = with_a_plan()
    before = len(nominations(world))
    world.api.remove(Key("rayclusters", TEAM, "p"))
    world.leader.hear_all()
    pass_time(world, LEFT_DELAY / 2)
    for pod in world.pods("p"):
        world.api.remove(key_of(pod))
    world.leader.hear_all()
    pass_time(world, LEFT_DELAY)
    assert len(nominations(world)) == before
    assert world.leader.state.known.term.left == {}


def test_nominations_that_are_left_end_with_the_blindness() -> None:
    world = with_a_plan()
    leader, before = world.leader, len(nominations(world))
    lose_ray_cluster(world, "p")
    world.api.remove(Key("gangs", TEAM, "p"))
    leader.hear_all()
    leader.handle([SightLost("pods")])
    pass_time(world, LEFT_DELAY)
    assert len(nominations(world)) == before
    assert (leader.state.next_wake or inf) > world.api.now
    leader.handle([SightRegained("pods")])
    assert [node for _, node in nominations(world)[before:]] == [""] * 4


def each_is_of(action: object, gang: str) -> bool:
    """Whether an action is for a gang."""
    key = getattr(action, "gang", None)
    return key is not None and key.name == gang


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


# ---- what nominations cost


def count_looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The gangs that are looked at from now on."""
    looks: list[str] = []
    look_at = gang_looks.look_at

    def counted(known: Known, key: GangKey, scene: Scene) -> list[Action]:
        looks.append(key.name)
        return look_at(known, key, scene)

    monkeypatch.setattr(gang_looks, "look_at", counted)
    return looks


def test_a_nomination_that_was_asked_for_has_no_gang_of_the_node_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It takes no room. Its own gang is looked at once, when all of its writes are over."""
    monkeypatch.setattr(start_window, "SLACK", 1000.0)
    world = with_a_line(Guard.NOMINATION)
    pass_time(world, PAUSE)
    leader = world.leader
    own = [each for each in leader.todo if each_is_of(each, LAST)]
    assert [type(each) for each in own] == [NominatePod, NominatePod]
    looks = count_looks(monkeypatch)
    for each in own:
        leader.act(leader.todo.index(each))
        validate(leader.state)
    leader.hear_all()
    assert fields(world, LAST) == {"n1"}
    assert looks == [LAST]


def test_more_nominations_follow_before_all_that_are_under_way_have_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(node("n1", cpu=64))
    world.create(gang_of("a", MOST_IN_FLIGHT + 20))
    decided_but_not_nominated(world)
    leader = world.leader
    for _ in range(MOST_IN_FLIGHT // 2):
        leader.act(next(at for at, a in enumerate(leader.todo) if isinstance(a, NominatePod)))
    assert len(nominations(world)) == MOST_IN_FLIGHT + MOST_IN_FLIGHT // 2


LARGE = 2 * PARTS * MOST_IN_FLIGHT
"""Pods of a gang that is nominated in parts."""


def test_a_large_gang_is_nominated_and_released_in_a_fixed_number_of_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them costs as much as the gang has pods."""
    monkeypatch.setattr(rules, "FIRST_RELEASES", 0)
    world = guarded(*(node(f"n{number}", cpu=64) for number in range(LARGE // 64)))
    world.create(gang_of("a", LARGE - 1))
    decided_but_not_nominated(world)
    looks = count_looks(monkeypatch)
    world.leader.act_all()
    assert len(nominations(world)) == len(world.leader.releases()) == LARGE
    assert len(looks) < 3 * PARTS


def test_nominations_of_a_large_gang_are_taken_back_in_a_fixed_number_of_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = guarded(node("n1"))
    world.create(gang_of("a", LARGE - 1))
    world.kuberay()
    for pod in world.pods("a"):
        nominate(world, pod, "n1")
    leader = world.leader
    leader.hear_all()
    leader.act_all_but(NominatePod)
    leader.cycle()
    looks = count_looks(monkeypatch)
    leader.act_all()
    assert len(nominations(world)) == LARGE
    assert fields(world, "a") == {""}
    assert len(looks) < 3 * PARTS


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


def test_nominations_that_are_under_way_hold_up_none_that_is_taken_back() -> None:
    state = Nominating()
    state.begin_writes(1)
    for number in range(MOST_IN_FLIGHT):
        assert state.may_write(str(number), "n1", 0.0)
        state.ask(str(number), "n1", 0.0)
    assert not state.may_write("more", "n1", 0.0)
    assert state.may_write("ending", "", 0.0)
    state.ask("ending", "", 0.0)
    assert state.ended("ending")


def test_releases_wait_on_each_node_from_when_a_nomination_there_is_wrong() -> None:
    """One on another node may never end."""
    state = Nominating()
    state.mark_misnominated(frozenset({"n1"}), 0.0)
    later = 2 * LONGEST_ASTRAY
    state.mark_misnominated(frozenset({"n1", "n2"}), later)
    assert state.blocked_nodes_at(later) == {"n2"}
    assert state.next_at == LONGEST_ASTRAY
    assert state.blocked_nodes_at(later + LONGEST_ASTRAY) == set()


def decided_but_not_nominated(world: World) -> None:
    """Bring everything to where the first nominations are asked for."""
    world.kuberay()
    world.leader.hear_all()
    world.leader.act_all()
    world.leader.cycle()
    world.leader.act_all_but(NominatePod, ReleasePod)
