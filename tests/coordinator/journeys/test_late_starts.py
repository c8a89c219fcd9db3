"""Gangs whose minimum is not ready in time are stopped whole, started again, and given up at last.

An image that never comes, or a GCS that never answers: the pods are bound and stay unready.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import cast

import pytest

from coordinator.messages.actions import EvictPod, WriteGangStatus
from coordinator.messages.events import WatchLost, WatchRecovered
from coordinator.reconcile.decisions import GANG_STOPPED
from kube.api.errors import TooManyRequests
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    Json,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.held import cluster_of, held, is_suspended
from tests.coordinator.journeys.queues.worlds import change, gang_in, phases, queue, status_of
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World

RULES = {"readySeconds": 100, "retries": 1, "backoffSeconds": 60}
READY = 100.0
CAUSE = "the minimum was not ready within 100 s of its placement (start 1 of 2)"


class Unready(World):
    """Pods of the gangs in `slow` never get ready; they end as others do."""

    def __init__(self, *start: Json, slow: str, replicas: int = 1) -> None:
        self.slow = {slow}
        super().__init__(*start, replicas=replicas)

    def _condition(self, pod: Json, kind: str, status: str, reason: str, message: str) -> None:
        slow = kind == "Ready" and pod["metadata"]["labels"][names.RAY_CLUSTER] in self.slow
        super()._condition(pod, kind, "False" if slow else status, reason, message)


@pytest.fixture
def world() -> Unready:
    return begun()


def begun(replicas: int = 1, **rules: int) -> Unready:
    """A gang that is placed and never gets ready."""
    made = queue("team", cpu=4, timeouts={**RULES, **rules})
    world = Unready(node("n1", cpu=100), made, slow="a", replicas=replicas)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=10)
    assert phases(world, "a") == ["Admitted"]
    return world


def said(world: World) -> tuple[str, str]:
    status = world.status("a")
    return status["phase"], status["reason"]


def late(world: World) -> Json:
    return cast(Json, world.status("a").get("lateStarts", {}))


def test_a_gang_that_is_not_ready_in_time_waits_again_after_a_pause(world: World) -> None:
    world.settle(seconds=READY - 15)
    assert said(world) == ("Admitted", "Admitted")
    world.settle(seconds=10)
    assert said(world) == ("Queued", "ReadyTimeout")
    assert (world.bound("a"), world.gated("a")) == ({}, 4)
    assert late(world)["count"] == 1
    assert world.status("a")["message"].startswith("the gang may start again from 2026-01-01T00:02")
    assert CAUSE in world.status("a")["message"]
    assert "placement" not in world.status("a")
    assert status_of(world, "team")["summary"] == "cpu 0/4"
    assert status_of(world, "team")["pending"] == 1

    world.settle(seconds=60)
    assert phases(world, "a") == ["Admitted"]
    assert world.bound("a") == {"n1": 4}


def test_others_use_the_room_meanwhile(world: World) -> None:
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=READY)
    assert phases(world, "a", "b") == ["Queued", "Running"]
    world.settle(seconds=100)
    assert world.status("a")["reason"] == "QuotaExceeded"


def test_a_gang_that_is_late_too_often_is_failed_and_left_to_a_person(world: World) -> None:
    world.settle(seconds=3 * READY)
    assert said(world) == ("Failed", "RetriesExhausted")
    assert (world.bound("a"), world.gated("a")) == ({}, 4)
    assert late(world)["count"] == 2
    message = world.status("a")["message"]
    assert message.startswith("the gang is not started again before the spec of its RayCluster is")
    assert "muster.dev/retry" in message
    assert message.endswith("within 100 s of its placement (start 2 of 2)")
    before = writes(world)
    world.settle(seconds=5000)
    assert said(world) == ("Failed", "RetriesExhausted")
    assert writes(world) == before
    assert status_of(world, "team")["pending"] == 0


def writes(world: World) -> int:
    return sum(isinstance(each, WriteGangStatus) for each in world.leader.log)


def edited(world: World) -> None:
    world.edit("a", rayVersion="2.0")


def annotated(world: World) -> None:
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    value = {names.RETRY: "2026-01-02"}
    world.api.change(cluster, lambda obj: obj["metadata"]["annotations"].update(value))


def granted(world: World) -> None:
    change(world, "team", timeouts={**RULES, "retries": 5})


@pytest.mark.parametrize("by", [edited, annotated, granted])
def test_a_failed_gang_starts_again_when_a_person_says_so(
    world: Unready, by: Callable[[World], None]
) -> None:
    world.settle(seconds=3 * READY + 120)
    assert phases(world, "a") == ["Failed"]
    world.slow.clear()
    by(world)
    world.settle(seconds=10)
    assert phases(world, "a") == ["Running"]
    assert late(world) == {}


def test_a_gang_that_is_ready_in_time_is_never_stopped_and_forgets_late_starts(
    world: Unready,
) -> None:
    world.settle(seconds=READY)
    assert late(world)["count"] == 1
    world.slow.clear()
    world.settle(seconds=60)
    assert phases(world, "a") == ["Running"]
    assert late(world) == {}
    world.slow.add("a")
    world.settle(seconds=10 * READY)
    assert world.bound("a") == {"n1": 4}, "it ran; what gets unready later is no late start"


def test_without_a_timeout_a_gang_may_take_for_ever() -> None:
    world = Unready(node("n1", cpu=100), queue("team", cpu=4), slow="a")
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=20_000)
    assert said(world) == ("Admitted", "Admitted")


def test_a_timeout_that_comes_later_holds_for_gangs_that_start() -> None:
    world = Unready(node("n1", cpu=100), queue("team", cpu=4), slow="a")
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=500)
    change(world, "team", timeouts=RULES)
    world.settle(seconds=10)
    assert said(world) == ("Queued", "ReadyTimeout")


def test_other_leaders_go_on_with_the_time_the_count_and_the_pause() -> None:
    world = begun(replicas=2)
    leaders = leaders_in_turn(world)
    next(leaders)
    world.settle(seconds=READY - 15)
    assert phases(world, "a") == ["Admitted"]
    next(leaders)
    world.settle(seconds=10)
    assert said(world) == ("Queued", "ReadyTimeout")
    message = world.status("a")["message"]
    next(leaders)
    world.settle(seconds=30)
    assert (world.status("a")["message"], late(world)["count"]) == (message, 1)
    world.settle(seconds=30)
    assert phases(world, "a") == ["Admitted"]
    next(leaders)
    world.settle(seconds=READY)
    assert said(world) == ("Failed", "RetriesExhausted")
    next(leaders)
    world.settle(seconds=1000)
    assert said(world) == ("Failed", "RetriesExhausted")


def leaders_in_turn(world: World) -> Iterator[None]:
    while True:
        for at in (1, 0):
            world.replicas[1 - at].resign()
            world.elect(at)
            yield


def test_the_clock_stands_still_while_a_watch_is_down(world: World) -> None:
    world.leader.handle([WatchLost("raypods")])
    world.settle(seconds=5 * READY)
    assert world.bound("a") == {"n1": 4}
    world.leader.handle([WatchRecovered("raypods")])
    world.settle(seconds=10)
    assert said(world) == ("Queued", "ReadyTimeout")


def test_a_ray_job_is_not_suspended_for_a_start_that_is_late() -> None:
    """KubeRay submits nothing before the cluster is ready; a new one would count from nought."""
    team = queue("team", cpu=4, timeouts=RULES)
    world = Unready(node("n1", cpu=100), team, slow="job-1")
    cluster = gang_in("team", "job", 3)
    world.create(ray_job("job", cluster, shutdownAfterJobFinishes=True))
    world.settle(seconds=10)
    assert phases(world, "job-1") == ["Admitted"]
    world.settle(seconds=READY)
    assert phases(world, "job-1") == ["Queued"]
    job = world.api.get(Key("rayjobs", TEAM, "job"))
    assert not job["spec"].get("suspend")
    assert world.status("job-1")["lateStarts"]["count"] == 1


def test_a_late_start_is_logged_once(world: World) -> None:
    world.settle(seconds=READY + 20)
    (line,) = [each for each in world.leader.logged if each.what == GANG_STOPPED]
    assert (line.queue, line.pods, line.reason, line.message) == ("team", 4, "ReadyTimeout", CAUSE)
    assert not line.preempted


def test_a_budget_that_refuses_the_end_of_a_late_start_makes_no_more_of_them(
    world: Unready,
) -> None:
    names_of = [pod["metadata"]["name"] for pod in world.pods("a")]
    refusal = TooManyRequests(429, "TooManyRequests", "a disruption budget is against it")
    world.api.budgets.update(dict.fromkeys(names_of, refusal))
    world.settle(seconds=READY + 15)
    assert len(evictions(world)) > 0
    before = writes(world)
    world.settle(seconds=1800)
    assert late(world)["count"] == 1
    assert phases(world, "a") == ["Admitted"]
    assert world.bound("a") == {"n1": 4}
    assert writes(world) - before < 30
    world.api.budgets.clear()
    world.settle(seconds=700)
    assert late(world)["count"] == 2, "it was started again, late again, and is given up"
    assert said(world) == ("Failed", "RetriesExhausted")


def evictions(world: World) -> list[EvictPod]:
    return [each for each in world.leader.log if isinstance(each, EvictPod)]


def test_another_leader_counts_no_start_again_whose_end_a_budget_refuses() -> None:
    world = begun(replicas=2)
    refusal = TooManyRequests(429, "TooManyRequests", "a disruption budget is against it")
    world.api.budgets.update({pod["metadata"]["name"]: refusal for pod in world.pods("a")})
    world.settle(seconds=READY + 15)
    assert late(world)["count"] == 1
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=1800)
    assert late(world)["count"] == 1
    assert world.bound("a") == {"n1": 4}


def test_a_gang_that_never_becomes_ready_stops_others_more_and_more_seldom() -> None:
    rules = {"readySeconds": 60, "retries": 100, "backoffSeconds": 60}
    team = queue("team", preemption={"withinQueue": "LowerPriority"}, timeouts=rules)
    world = Unready(node("n1", cpu=4), team, slow="p")
    world.create(gang_in("team", "v", 3))
    world.settle(seconds=5)
    labels = {**OPTED_IN, names.QUEUE: "team"}
    urgent = group("workers", 3, priority=10)
    world.create(ray_cluster("p", urgent, head=template(priority=10), labels=labels))
    stops: list[float] = []
    ran = True
    for _ in range(200):
        world.settle(seconds=30)
        runs = bool(world.bound("v"))
        stops += [world.api.now] if ran and not runs else []
        ran = runs
    gaps = [after - before for before, after in pairwise(stops)]
    assert len(gaps) == 3
    assert all(
        least < gap < 1.5 * least for gap, least in zip(gaps, (600, 1200, 2400), strict=True)
    )


@pytest.mark.parametrize("replicas", [1, 2])
def test_late_starts_of_a_held_gang_are_counted_though_muster_edits_its_raycluster(
    replicas: int,
) -> None:
    """Each suspension and resumption is another generation of the RayCluster."""
    made = queue("team", cpu=4, timeouts=RULES)
    world = Unready(node("n1", cpu=100), made, slow="a", replicas=replicas)
    world.create(held(gang_in("team", "a", 3)))
    world.settle(seconds=READY + 10)
    assert late(world)["count"] == 1
    if replicas > 1:
        world.leader.resign()
        world.elect(1)
    world.settle(seconds=4 * READY)
    assert said(world) == ("Failed", "RetriesExhausted")


def test_a_held_gang_that_was_given_up_starts_again_when_it_is_asked_to() -> None:
    made = queue("team", cpu=4, timeouts={**RULES, "retries": 0})
    world = Unready(node("n1", cpu=100), made, slow="a")
    world.create(held(gang_in("team", "a", 3)))
    world.settle(seconds=2 * READY)
    assert said(world) == ("Failed", "RetriesExhausted")
    assert is_suspended(world.api, "a")
    world.slow.clear()
    cluster = cluster_of(world.api, "a")
    again = {names.RETRY: "1"}
    world.api.change(cluster, lambda obj: obj["metadata"]["annotations"].update(again))
    world.settle(seconds=READY)
    assert said(world) == ("Running", "Running")
