"""Room is kept for a submitter until it is bound, and no longer than that."""

import pytest

from coordinator.messages.clock import Patience
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    foreign_pod,
    gang_of,
    node,
)
from tests.coordinator.deeds import decided
from tests.coordinator.journeys.submitters.worlds import (
    bind_submitter,
    has_room_for_another,
    kept_on,
    running,
    say,
    submitted,
)
from tests.coordinator.ray_jobs import job_of
from tests.coordinator.validate import validate
from tests.coordinator.world import World

PATIENCE = Patience()


def test_room_for_the_submitter_is_kept_until_it_is_bound_there() -> None:
    world = running()
    assert not has_room_for_another(world)
    say(world, "Running")
    world.settle(seconds=PATIENCE.torn - 10)
    assert not world.bound("b")
    bind_submitter(world, "n1")
    world.settle(seconds=10)
    world.api.remove(Key("pods", TEAM, "job-x"))
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 1}


def test_where_the_submitter_is_bound_elsewhere_its_room_is_free_at_once() -> None:
    world = running()
    world.create(node("n2", cpu="500m"))
    assert not has_room_for_another(world)
    bind_submitter(world, "n2")
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 1}
    validate(world.leader.state)


def test_a_submitter_that_is_bound_is_not_waited_for_again() -> None:
    """Before KubeRay says that the job runs, its pod may be there."""
    world = running()
    world.create(node("n2", cpu="500m"))
    bind_submitter(world, "n2")
    world.settle(seconds=5)
    began = {"startTime": world.api._stamp()}
    world.api.change(job_of(world.api, "job"), lambda obj: obj["status"].update(began))
    world.settle(seconds=5)
    assert has_room_for_another(world)


@pytest.mark.parametrize("state", ["Complete", "Failed", "Suspending", "Retrying"])
def test_the_room_of_a_submitter_that_does_not_come_any_more_is_free(state: str) -> None:
    world = running()
    assert not has_room_for_another(world)
    say(world, "Running")
    world.settle(seconds=5)
    assert not world.bound("b")
    say(world, state)
    world.leader.hear_all()
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 1}


def test_the_room_is_kept_for_a_bounded_time_once_kuberay_has_made_the_job() -> None:
    """Until then it may take for ever: KubeRay makes it when surplus workers run, too."""
    world = running()
    assert not has_room_for_another(world)
    world.settle(seconds=3 * PATIENCE.torn)
    assert not world.bound("b")
    say(world, "Running")
    world.settle(seconds=PATIENCE.torn - 1)
    assert not world.bound("b")
    world.settle(seconds=2)
    assert world.bound("b") == {"n1": 1}
    validate(world.leader.state)


def test_a_pod_without_a_gate_takes_the_room_and_no_gang_is_moved_for_it() -> None:
    """Nothing keeps kube-scheduler from it: then there is none to be kept."""
    world = running()
    world.create(foreign_pod("other", "n1", cpu=1))
    world.settle(seconds=5)
    assert world.bound("job-1") == {"n1": 3}
    world.api.remove(Key("pods", "others", "other"))
    world.settle(seconds=5)
    assert not has_room_for_another(world)  # it has its room again


def test_a_gang_is_not_moved_where_the_room_of_its_submitter_is_taken_before_its_release() -> None:
    """Its node would look overfull."""
    world = World(node("n1", cpu=4))
    world.create(submitted("job", 2))
    world.kuberay()
    decided(world)
    assert kept_on(world) == {"job-1": "n1"}
    world.create(foreign_pod("other", "n1", cpu=1))
    world.settle(seconds=5)
    assert world.bound("job-1") == {"n1": 3}
    assert kept_on(world) == {}
    validate(world.leader.state)


def test_a_gang_that_gave_its_room_back_asks_for_both_anew() -> None:
    world = World(node("n1", cpu=4))
    world.grudges.add("n1")
    world.create(submitted("job", 2))
    world.settle(seconds=5)
    assert kept_on(world) == {"job-1": "n1"}
    world.settle(seconds=PATIENCE.torn + 10)
    assert world.status("job-1")["phase"] == "Queued"
    assert kept_on(world) == {}
    world.grudges.clear()
    world.settle(seconds=2 * PATIENCE.setback)
    assert world.bound("job-1") == {"n1": 3}


def test_the_room_goes_with_the_gang() -> None:
    world = running()
    world.delete("rayjobs", "job")
    world.delete("rayclusters", "job-1")
    world.settle(seconds=5)
    world.create(gang_of("b", 3))
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 4}
    validate(world.leader.state)


def test_a_new_leader_finds_room_for_it_anew() -> None:
    world = World(node("n1", cpu=4), replicas=2)
    world.create(submitted("job", 2))
    world.settle(seconds=5)
    world.elect(1)
    assert not has_room_for_another(world)


def test_a_leader_keeps_nothing_of_its_last_term_where_the_job_runs_already() -> None:
    world = running()
    say(world, "Running")
    world.elect(0)
    assert has_room_for_another(world)
    validate(world.leader.state)
