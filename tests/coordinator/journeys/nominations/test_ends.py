"""Nominations that end with their gang."""

from math import inf

import pytest

from coordinator.gang import start_window
from coordinator.gang.nominations import Guard
from coordinator.gang.pods.left_nominations import LEFT_DELAY
from coordinator.messages.actions import NominatePod, ReleasePod
from coordinator.messages.events import WatchLost, WatchRecovered
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, group, ray_cluster
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import opt
from tests.coordinator.journeys.nominations.disturbed_worlds import each_is_of
from tests.coordinator.journeys.nominations.test_writes import LAST, held_up, with_a_line
from tests.coordinator.journeys.nominations.worlds import (
    fields,
    go_on,
    nominate,
    nominations,
    pass_time,
    with_a_plan,
)
from tests.coordinator.world import World, is_gated

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
    leader.handle([WatchLost("pods")])
    pass_time(world, LEFT_DELAY)
    assert len(nominations(world)) == before
    assert (leader.state.next_wake or inf) > world.api.now
    leader.handle([WatchRecovered("pods")])
    assert [node for _, node in nominations(world)[before:]] == [""] * 4
