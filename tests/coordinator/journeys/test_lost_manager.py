"""Offers with a fence: what runs stops once the manager was not heard of for long."""

from datetime import UTC, datetime
from typing import Any

import pytest

from coordinator.messages.events import WatchLost, WatchRecovered
from coordinator.messages.offer_actions import StampLease, StopPods
from kube.objects import names
from tests.coordinator.api import Key, stamp_at
from tests.coordinator.builders import Json, gang_of
from tests.coordinator.journeys.test_offered_jobs import job
from tests.coordinator.journeys.test_offers import exists
from tests.coordinator.offers import (
    accept,
    answer,
    created_for,
    lease,
    member,
    offer,
)
from tests.coordinator.world import World

LOST_AFTER = 300
STOPS = 180
"""Seconds after the last renewal; the rest is for its pods to end in."""

LEASE = Key("leases", names.DEFAULT_NAMESPACE, lease(1)["metadata"]["name"])


def notes(world: World) -> Any:
    """What stands on the Lease of the manager."""
    return world.api.get(LEASE)["metadata"].get("annotations") or {}


def renew(world: World) -> None:
    """Have the manager write the stamp back that is there."""
    stamp = notes(world)[names.STAMP]
    found = world.api.get(LEASE)
    world.api.change(
        found, lambda obj: obj["metadata"]["annotations"].update({names.STAMP_READ: stamp})
    )


def asked(cluster: Json | None = None, *, replicas: int = 1) -> World:
    """A member that has offered with a fence, and whose stamp the manager has read."""
    made = cluster or gang_of("a", 3)
    world = member(lease(1), offer("a-1", made, lostAfterSeconds=LOST_AFTER), replicas=replicas)
    assert answer(world)["phase"] == "Offered"
    renew(world)
    return world


def started(*, replicas: int = 1) -> World:
    world = asked(replicas=replicas)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=5)
    assert len(world.bound("a")) == 1
    return world


def stops(world: World) -> list[StopPods]:
    return [each for each in world.leader.log if isinstance(each, StopPods)]


def test_the_member_stamps_the_lease_with_its_own_time_of_day() -> None:
    world = asked()
    now = datetime.fromisoformat(stamp_at(world.api.now)).astimezone(UTC).timestamp()
    assert now - 6 <= float(notes(world)[names.STAMP]) <= now
    world.settle(seconds=200)
    assert answer(world)["phase"] == "Closed"  # nobody accepted it
    before = notes(world)
    world.settle(seconds=100)
    assert notes(world) == before, "nothing is left that would stop"


def test_what_is_renewed_runs_on() -> None:
    world = started()
    for _ in range(20):
        world.settle(seconds=60)
        renew(world)
    assert answer(world)["phase"] == "Started"
    assert sum(world.bound("a").values()) == 4
    stamps = [each for each in world.leader.log if isinstance(each, StampLease)]
    assert 55 <= len(stamps) <= 75


def test_what_is_not_renewed_ends_and_is_closed_two_minutes_before_it_counts_as_lost() -> None:
    world = started()
    renew(world)
    read = world.api.now
    world.settle(seconds=STOPS - 25)
    assert sum(world.bound("a").values()) == 4
    world.settle(seconds=30)
    said = answer(world)
    assert (said["phase"], said["reason"]) == ("Closed", "ManagerLost")
    assert "300 s" in said["message"]
    assert not world.pods("a")
    assert not exists(world, "rayclusters", "a")
    assert world.api.now - read < LOST_AFTER
    world.settle(seconds=300)
    assert answer(world)["phase"] == "Closed"


def test_a_clock_that_is_set_back_lets_nothing_run_for_longer() -> None:
    world = started()
    renew(world)
    read = world.api.now
    world.settle(seconds=25)
    world.leader.clock_off = -3600.0
    world.settle(seconds=STOPS)
    assert answer(world)["reason"] == "ManagerLost"
    assert not world.pods("a")
    assert world.api.now - read < LOST_AFTER


def test_without_a_fence_nothing_stops_and_no_lease_is_touched() -> None:
    world = member(lease(1), offer("a-1", gang_of("a", 3)))
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, gang_of("a", 3)))
    world.settle(seconds=3600)
    assert answer(world)["phase"] == "Started"
    assert not notes(world)


def test_pods_that_no_budget_lets_go_and_that_end_slowly_are_deleted() -> None:
    world = started()
    world.create(
        {
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": "team"},
            "spec": {"maxUnavailable": 0, "selector": {}},
            "status": {"disruptionsAllowed": 0},
        }
    )
    world.collect_garbage = lambda: None  # type: ignore[method-assign]
    world.settle(seconds=STOPS + 10)
    assert answer(world)["reason"] == "ManagerLost"
    assert not world.pods("a")
    (stop,) = stops(world)
    assert (len(stop.pods), stop.grace) == (4, 60)


def test_an_offer_is_not_closed_while_a_pod_is_left() -> None:
    world = started()
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.settle(seconds=STOPS + 30)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Started", "ManagerLost")
    del world.kubelets
    world.settle(seconds=5)
    assert answer(world)["phase"] == "Closed"


def test_a_renewal_that_comes_late_keeps_nothing_alive_that_is_being_stopped() -> None:
    world = started()
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.settle(seconds=STOPS + 5)
    renew(world)
    world.settle(seconds=60)
    del world.kubelets
    world.settle(seconds=5)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "ManagerLost")


def test_no_stamp_is_written_before_what_ran_out_is_closed() -> None:
    world = started()
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.settle(seconds=STOPS + 5)
    before = notes(world)
    world.settle(seconds=100)
    assert notes(world) == before


def test_a_coordinator_that_comes_back_stops_them_before_all_else() -> None:
    world = started(replicas=2)
    world.leader.resign()
    world.settle(seconds=1000)
    assert sum(world.bound("a").values()) == 4, "nobody is there to stop them"
    before = notes(world)
    at = len(world.api.history)
    world.create(offer("b-1", gang_of("b", 1), attempt=2, lostAfterSeconds=LOST_AFTER))
    world.elect(1)
    world.settle(seconds=3)
    assert not world.pods("a")
    assert answer(world)["reason"] == "ManagerLost"
    touched = [each for each in world.api.history[at:] if each.key == LEASE and each.new]
    gone = [i for i, each in enumerate(world.api.history) if each.key.plural == "pods"]
    stamped = [i for i, each in enumerate(world.api.history) if each.key == LEASE]
    assert touched, "it says that it is there"
    assert max(gone) < stamped[-1]
    assert notes(world) != before


def test_a_new_coordinator_reads_the_lease_first_and_lets_run_what_may() -> None:
    world = started(replicas=2)
    renew(world)
    world.elect(1)
    world.settle(seconds=10)
    assert answer(world)["phase"] == "Started"
    assert sum(world.bound("a").values()) == 4
    assert not stops(world)


def test_a_lease_that_is_gone_counts_as_never_renewed() -> None:
    world = started(replicas=2)
    world.api.remove(LEASE)
    world.elect(1)
    world.settle(seconds=5)
    assert answer(world)["reason"] == "ManagerLost"


@pytest.mark.parametrize("renewed", [True, False])
def test_what_is_accepted_starts_only_where_the_manager_is_heard_of(renewed: bool) -> None:
    """The stamp is read afresh: a manager writes it back before it accepts."""
    made = gang_of("a", 3)
    world = member(lease(1), offer("a-1", made, lostAfterSeconds=LOST_AFTER))
    if renewed:
        renew(world)
    accept(world)
    world.settle(seconds=1)
    said = answer(world)
    expected = ("Started", "") if renewed else ("Closed", "ManagerLost")
    assert (said["phase"], said.get("reason", "")) == expected


def test_while_a_watch_is_down_they_stop_and_are_closed_after_it() -> None:
    world = started()
    world.leader.handle([WatchLost("nodes")])
    world.settle(seconds=STOPS + 20)
    assert not world.pods("a")
    assert answer(world)["phase"] == "Started"
    world.leader.handle([WatchRecovered("nodes")])
    world.settle(seconds=5)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "ManagerLost")


def test_a_job_that_was_stopped_so_is_not_taken_for_one_that_is_gone() -> None:
    world = asked(job())
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, job()))
    world.settle(seconds=10)
    assert len(world.pods()) == 4
    world.settle(seconds=STOPS + 10)
    assert not world.pods()
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "ManagerLost")
