"""A gang whose pods only go on as decided is looked at less often, and never too late."""

from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from coordinator.gang.pods.expected_changes import ExpectedChanges
from coordinator.messages.actions import ReleasePod
from coordinator.messages.events import CycleDue
from coordinator.reconcile.advance import advance
from coordinator.reconcile.look import Look
from coordinator.state.agenda import LATER
from tests.coordinator.api import Json, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, node
from tests.coordinator.client import Outcome
from tests.coordinator.deeds import decided
from tests.coordinator.validate import validate
from tests.coordinator.world import World, key, name_of

WORKERS = 30


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each gang was looked at; a test may clear it."""
    found: Counter[str] = Counter()

    def counting(look: Look) -> None:
        found[look.view.key.name] += 1
        advance(look)

    monkeypatch.setattr("coordinator.state.gang_looks.advance", counting)
    return found


def head_released() -> World:
    """A gang of a head and thirty workers; the releases of the workers are asked for."""
    world = World(node("n1", cpu=WORKERS + 1))
    world.create(gang_of("a", WORKERS))
    decided(world)
    world.leader.act()
    return world


def one_by_one(world: World) -> None:
    """Hear of every change of a pod by itself, with the bookkeeping checked each time."""
    while world.leader.watch.queues["pods"]:
        world.leader.hear("pods", 1)
        validate(world.leader.state)


def later(world: World) -> None:
    """Let what was put off be looked at."""
    world.api.now += LATER
    world.leader.tick()


def test_releases_that_end_well_cost_one_look_a_moment_later(counted: Counter[str]) -> None:
    world = head_released()
    counted.clear()
    while [each for each in world.leader.todo if isinstance(each, ReleasePod)]:
        world.leader.act()
        validate(world.leader.state)
    one_by_one(world)
    assert counted["a"] == 0
    later(world)
    assert counted["a"] == 1
    assert not world.leader.state.known.views[key("a")].pod_writes.inflight


def test_the_end_of_the_heads_release_has_the_workers_released(counted: Counter[str]) -> None:
    world = World(node("n1", cpu=WORKERS + 1))
    world.create(gang_of("a", WORKERS))
    decided(world)
    counted.clear()
    world.leader.act()
    assert counted["a"] == 1
    assert len([each for each in world.leader.todo if isinstance(each, ReleasePod)]) == WORKERS


def test_binds_cost_no_look_of_their_own_and_readiness_one_at_the_last(
    counted: Counter[str],
) -> None:
    world = head_released()
    world.leader.act_all()
    one_by_one(world)
    counted.clear()
    world.schedule()
    one_by_one(world)
    assert counted["a"] == 0
    world.kubelets()
    one_by_one(world)
    assert counted["a"] == 1
    world.settle()
    assert world.status("a")["reason"] == "Running"


def _update_status(pod: Json, change: Json) -> None:
    pod["status"].update(change)


def test_the_bind_of_a_pod_that_is_nominated_there_costs_no_look(counted: Counter[str]) -> None:
    """Before 1.35 the field stays; since then the bind clears it."""
    world = head_released()
    world.leader.act_all()
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["status"].update(nominatedNodeName="n1"))
    world.leader.hear_all()
    later(world)
    counted.clear()
    for number, pod in enumerate(world.pods("a")):
        left = "n1" if number % 2 else ""
        world.api.change(pod, lambda obj: obj["spec"].update(nodeName="n1"))
        change = {"nominatedNodeName": left}
        world.api.change(pod, partial(_update_status, change=change))
    one_by_one(world)
    assert not counted


def test_the_room_of_a_pod_is_used_and_no_longer_reserved_at_its_bind() -> None:
    world = head_released()
    world.leader.act_all()
    world.schedule()
    world.leader.hear("pods", 10)
    view = world.leader.state.known.views[key("a")]
    before = view.reservation.reserved.room.total()
    world.leader.hear("pods", WORKERS)
    validate(world.leader.state)
    assert view.reservation.reserved.room.total() < before
    assert world.leader.state.known.cache.columns().free.min() >= 0


def test_a_release_that_fails_has_the_gang_looked_at_at_once(counted: Counter[str]) -> None:
    world = head_released()
    world.leader.act()
    counted.clear()
    world.leader.act(outcome=Outcome.BROKEN)
    assert counted["a"] == 1


def test_a_pod_that_kube_scheduler_refuses_has_the_gang_looked_at_at_once() -> None:
    world = head_released()
    world.leader.act_all()
    one_by_one(world)
    world.create(foreign_pod("thief", "n1", cpu=1))
    world.leader.hear("pods")
    world.schedule()
    one_by_one(world)
    [view] = world.leader.state.known.views.values()
    assert len(view.repairs.stuck_since) == 1


def partly_bound() -> World:
    """Five binds are known, the rest is not."""
    world = head_released()
    world.leader.act_all()
    one_by_one(world)
    world.schedule()
    world.leader.hear("pods", 5)
    return world


def known_bound(world: World) -> int:
    return sum(each.bound for each in world.leader.state.known.views[key("a")].survey.standing)


def test_a_part_that_went_on_is_looked_at_after_a_moment() -> None:
    """The rest may never come: the numbers must not wait for it."""
    world = partly_bound()
    assert known_bound(world) == 0
    world.api.now += LATER
    world.leader.tick()
    assert known_bound(world) == 5


def test_a_cycle_knows_what_was_bound_a_moment_ago() -> None:
    """Else a pod would be counted where it is and, as promised, where it goes."""
    world = partly_bound()
    world.leader.handle([CycleDue()])
    assert known_bound(world) == 5


def test_a_pod_that_vanishes_on_its_way_has_the_gang_looked_at_at_once(
    counted: Counter[str],
) -> None:
    world = head_released()
    world.leader.act_all()
    one_by_one(world)
    counted.clear()
    world.api.remove(key_of(world.pods("a")[-1]))
    one_by_one(world)
    assert counted["a"] == 1


@pytest.mark.parametrize("in_steps", [False, True])
def test_only_a_next_wave_waits_for_the_last_bind(*, in_steps: bool) -> None:
    world = head_released()
    world.leader.act_all()
    one_by_one(world)
    view = world.leader.state.known.views[key("a")]
    [before, *_] = world.leader.state.known.cache.members(key("a"), view.cluster_uid)
    course = ExpectedChanges()
    course.begin(view.survey.standing, set(), in_steps=in_steps)
    course.binding = {before.uid}
    assert course.is_last(before, replace(before, node="n1", holds="n1")) is in_steps


def test_pods_that_come_one_by_one_cost_one_look_when_the_minimum_is_there(
    counted: Counter[str],
) -> None:
    world = World(node("n1", cpu=WORKERS + 1))
    world.create(gang_of("a", WORKERS))
    world.leader.hear("rayclusters")
    world.kuberay()
    world.leader.act_all()
    world.leader.hear("gangs")
    counted.clear()
    one_by_one(world)
    assert counted["a"] == 1
    assert world.leader.state.cycle_wanted


def test_the_first_of_several_replacements_has_a_placed_gang_looked_at_at_once(
    counted: Counter[str],
) -> None:
    world = head_released()
    for pod in world.pods("a")[-2:]:
        world.api.remove(key_of(pod))
    one_by_one(world)
    world.kuberay()
    counted.clear()
    world.leader.hear("pods", 1)
    assert counted["a"] == 1


def test_a_gang_that_comes_by_half_is_looked_at_after_a_moment(counted: Counter[str]) -> None:
    world = World(node("n1", cpu=WORKERS + 1))
    world.create(gang_of("a", WORKERS))
    world.leader.hear("rayclusters")
    world.kuberay()
    counted.clear()
    world.leader.hear("pods", WORKERS // 2)
    assert counted["a"] == 0
    later(world)
    assert counted["a"] == 1


def say_of(world: World, status: Json) -> None:
    [cluster] = world.api.all("rayclusters")
    world.api.change(cluster, lambda obj: obj.update(status=status))
    world.leader.hear("rayclusters")


def test_what_kuberay_says_to_its_own_users_costs_no_look(counted: Counter[str]) -> None:
    world = head_released()
    counted.clear()
    ready = {"type": "HeadPodReady", "status": "True", "reason": "HeadPodRunningAndReady"}
    said: list[Json] = [{"conditions": [ready]}, {"observedGeneration": 1}]
    for each in said:
        say_of(world, each)
    assert counted["a"] == 0
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreateWorkerPod"}
    say_of(world, {"conditions": [ready, failed]})
    assert counted["a"] == 1
    say_of(world, {"conditions": [ready, failed], "state": "ready"})
    assert counted["a"] == 2


def test_the_echo_of_a_write_costs_no_look_beside_its_end(counted: Counter[str]) -> None:
    world = World(node("n1", cpu=WORKERS + 1))
    world.create(gang_of("a", WORKERS))
    world.kuberay()
    world.leader.hear_all()
    counted.clear()
    [write] = world.leader.todo
    world.leader.todo.clear()
    ended = world.leader.carried_out(write, Outcome.DONE)
    world.leader.hear("gangs")
    assert counted["a"] == 0
    world.leader.handle(ended)
    assert counted["a"] == 1
    world.settle()
    assert world.status("a")["reason"] == "Running"


def test_another_version_of_a_pod_that_says_nothing_new_costs_no_look(
    counted: Counter[str],
) -> None:
    """As kubelets and controllers write all the time: annotations, times of conditions."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    counted.clear()
    for pod in world.pods("a"):
        world.api.change(
            pod, lambda obj: obj["metadata"].setdefault("annotations", {}).update(x="y")
        )
    one_by_one(world)
    later(world)
    assert counted["a"] == 0
    [lost, *_] = world.pods("a")
    known = world.leader.state.known.cache.pods[TEAM, name_of(lost)]
    assert known.resource_version == lost["metadata"]["resourceVersion"]
    world.api.change(lost, lambda obj: obj["status"].update(phase="Failed"))
    world.leader.hear("pods")
    assert counted["a"] == 1
