"""RayJobs as victims: suspended and resumed, never lost."""

import pytest

from coordinator.gang.eviction.endings import LAST_PAUSE
from coordinator.messages.actions import (
    EvictPod,
    ResumeRayJob,
    SuspendRayJob,
    TryEviction,
    TrySuspension,
    WriteGangStatus,
)
from kube.objects import names
from tests.coordinator.builders import OPTED_IN, gang_of, node
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.preemption.unsure_worlds import LEAST, asks
from tests.coordinator.journeys.preemption.worlds import (
    IN_TEAM,
    LOWER,
    evicted,
    two_gangs,
    urgent,
    workers_of,
)
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.journeys.test_stopped_jobs import (
    SHUTDOWN,
    note_on,
    run,
    say,
    sent,
    set_spec,
    state_of,
    with_job,
)
from tests.coordinator.ray_jobs import job_of, ray_job
from tests.coordinator.stopping import (
    act_until,
    choose_whole,
    ending,
    names_of,
    out_of_sight,
    parts,
)
from tests.coordinator.world import World


def test_a_pod_that_ends_anyway_needs_no_dry_run() -> None:
    world = two_gangs()
    world.delete("pods", workers_of(world, "v")[0])
    world.leader.hear_all()
    choose_whole(world, "p", "v")
    assert sent(world, TryEviction) == 3


def test_the_suspension_of_a_rayjob_is_tried_once() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    with out_of_sight(world):
        pass  # all gangs are looked at
    assert (sent(world, TrySuspension), sent(world, TryEviction)) == (1, 0)


def test_nothing_is_tried_of_a_rayjob_that_would_be_lost() -> None:
    world = with_job()
    choose_whole(world, "p", "job-1")
    assert not world.leader.state.known.term.trials
    assert (sent(world, TrySuspension), sent(world, TryEviction)) == (0, 0)


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.HELD])
def test_a_rayjob_that_may_have_been_suspended_ends_whole_and_is_resumed(outcome: Outcome) -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: asks(world, SuspendRayJob))
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, SuspendRayJob))
    leader.act(at, outcome)
    world.delete("rayclusters", "p")
    leader.hear("rayclusters")
    leader.act_all_but(SuspendRayJob)
    assert ending(world, "job-1"), "it may be suspended"
    world.settle(seconds=LAST_PAUSE)
    while leader.client.held:
        leader.client.let_go()
    world.settle(seconds=LAST_PAUSE)
    assert (state_of(world), note_on(world)) == ("Initializing", None)
    assert not job_of(world.api, "job")["spec"].get("suspend")
    assert world.status("job-2")["phase"] == "Running"


def test_a_rayjob_whose_suspension_was_not_sent_goes_on_where_it_is_needed_no_more() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: asks(world, SuspendRayJob))
    at = next(at for at, each in enumerate(world.leader.todo) if isinstance(each, SuspendRayJob))
    world.leader.act(at, Outcome.UNSENT)
    world.delete("rayclusters", "p")
    world.settle(seconds=LAST_PAUSE)
    assert (state_of(world), ending(world, "job-1")) == ("Running", [])
    assert sent(world, SuspendRayJob) == 1


@pytest.mark.parametrize("outcome", [Outcome.LOST, Outcome.HELD])
def test_a_resumption_of_unknown_outcome_comes_to_pass_once(outcome: Outcome) -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    while not asks(world, ResumeRayJob):
        world.controllers()
        leader.hear_all()
        leader.act_all_but(ResumeRayJob)
    at = next(at for at, each in enumerate(leader.todo) if isinstance(each, ResumeRayJob))
    leader.act(at, outcome)
    world.settle(seconds=LAST_PAUSE)
    while leader.client.held:
        leader.client.let_go()
    set_spec(world, suspend=True)  # a person wants it suspended from now on
    world.settle(seconds=LAST_PAUSE)
    assert (state_of(world), note_on(world)) == ("Suspended", None)
    assert sent(world, ResumeRayJob) == (1 if outcome is Outcome.LOST else 2)


# ---- RayJobs that come to another state meanwhile


def test_a_rayjob_that_would_be_lost_since_its_end_was_written_goes_on() -> None:
    """Its last retry began between the write and the first eviction."""
    world = with_job(backoffLimit=1)
    choose_whole(world, "p", "job-1")
    before = names_of(world.pods("job-1"))
    while not any(
        isinstance(each, WriteGangStatus) and each.status.get("evictions")
        for each in world.leader.todo
    ):
        world.leader.act()
        world.leader.hear_all()
    say(world, failed=1)
    world.leader.hear("rayjobs")
    world.settle(seconds=60)
    assert (sent(world, EvictPod), ending(world, "job-1")) == (0, [])
    assert names_of(world.pods("job-1")) == before


@pytest.mark.parametrize("state", ["Complete", "Failed", "ValidationFailed"])
def test_a_rayjob_that_ends_as_it_is_suspended_loses_the_note_and_its_pods_go(state: str) -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: note_on(world) is not None)
    say(world, jobDeploymentStatus=state)
    world.settle(seconds=30)
    assert note_on(world) is None
    assert sent(world, ResumeRayJob) == 1
    assert world.status("p")["phase"] == "Running"


@pytest.mark.parametrize("state", ["Complete", "Failed", "Retrying"])
def test_the_gang_of_a_rayjob_that_has_ended_is_stopped_by_evictions(state: str) -> None:
    world = with_job()
    say(world, jobDeploymentStatus=state)
    world.leader.hear("rayjobs")
    assert parts(world, "job-1")[0].kept_because == ""
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: evicted(world))
    assert sent(world, SuspendRayJob) == 0


def test_surplus_of_a_rayjob_that_would_be_lost_whole_ends() -> None:
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    annotations = {LEAST: "workers=1"}
    world.create(ray_job("job", gang_of("", 3, labels=labels, annotations=annotations)))
    world.settle(seconds=10)
    run(world)
    world.create(urgent("p", 1, labels=IN_TEAM))
    world.settle(seconds=30)
    assert (world.bound("job-1").total(), world.gated("job-1")) == (2, 2)
    assert world.status("p")["phase"] == "Running"
