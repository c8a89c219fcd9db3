"""Nominations of large gangs, in few looks and writes."""

import pytest

from coordinator.gang import nominations as rules
from coordinator.gang import start_window
from coordinator.gang.nominations import Guard
from coordinator.gang.pods.nominating import LONGEST_ASTRAY, MOST_IN_FLIGHT, PARTS, Nominating
from coordinator.messages.actions import Action, NominatePod, ReleasePod
from coordinator.reconcile.look import Scene
from coordinator.reconcile.pod_writes.nominations import PAUSE
from coordinator.state import gang_looks
from coordinator.state.known import Known
from scheduling.model.gang import GangKey
from tests.coordinator.builders import gang_of, node
from tests.coordinator.journeys.nominations.disturbed_worlds import each_is_of
from tests.coordinator.journeys.nominations.test_writes import LAST, with_a_line
from tests.coordinator.journeys.nominations.worlds import (
    fields,
    guarded,
    nominate,
    nominations,
    pass_time,
)
from tests.coordinator.validate import validate
from tests.coordinator.world import World

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


def test_nominations_that_are_under_way_hold_up_none_that_is_taken_back() -> None:
    state = Nominating()
    for number in range(MOST_IN_FLIGHT):
        assert state.may_write(str(number), "n1", MOST_IN_FLIGHT, 0.0)
        state.ask(str(number), "n1", 0.0)
    assert not state.may_write("more", "n1", MOST_IN_FLIGHT, 0.0)
    assert state.may_write("ending", "", MOST_IN_FLIGHT, 0.0)
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
