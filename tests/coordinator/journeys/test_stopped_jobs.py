"""Gangs of RayJobs that are stopped: through the RayJob, so that its work begins again."""

from typing import Any, cast

import pytest

from coordinator.messages.actions import EvictPod, ResumeRayJob, SuspendRayJob, TrySuspension
from kube.api.errors import Forbidden
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    OPTED_IN,
    TEAM,
    Json,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.client import Outcome
from tests.coordinator.journeys.queues.worlds import change, queue
from tests.coordinator.ray_jobs import job_of, ray_job
from tests.coordinator.stopping import act_until, choose_whole, ending, parts
from tests.coordinator.world import World
from tests.examples import every_other

SHUTDOWN = {"shutdownAfterJobFinishes": True}


def with_job(replicas: int = 1, workers: int = 3, **spec: Any) -> World:
    """The gang of a RayJob has all of the room, and p waits for it."""
    rules = spec.pop("rules", {})
    world = World(node("n1", cpu=4), queue("team", preemption=rules), replicas=replicas)
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world.create(ray_job("job", gang_of("", workers, labels=labels), **spec))
    world.settle(seconds=10)
    run(world)
    waiting = ray_cluster(
        "p", group("workers", 3, priority=10), head=template(priority=10), labels=labels
    )
    world.create(waiting)
    world.settle(seconds=10)
    change(world, "team", preemption={**rules, "withinQueue": "LowerPriority"})
    world.leader.hear("gangqueues")
    return world


def run(world: World, name: str = "job-1") -> None:
    """Have KubeRay find the RayCluster ready, and submit the job."""
    cluster = world.api.get(Key("rayclusters", TEAM, name))
    provisioned = {"type": "RayClusterProvisioned", "status": "True"}
    world._say(cluster, {"conditions": [provisioned], "state": "ready"})
    say(world, jobDeploymentStatus="Running")
    world.settle(seconds=1)


def say(world: World, **status: object) -> None:
    world.api.change(job_of(world.api, "job"), lambda obj: obj["status"].update(status))


def set_spec(world: World, **spec: object) -> None:
    world.api.change(job_of(world.api, "job"), lambda obj: obj["spec"].update(spec))


def state_of(world: World) -> str:
    return cast(str, job_of(world.api, "job")["status"]["jobDeploymentStatus"])


def sent(world: World, kind: type) -> int:
    return sum(isinstance(each, kind) for replica in world.replicas for each in replica.log)


def note_on(world: World) -> str | None:
    meta = job_of(world.api, "job")["metadata"]
    note: str | None = meta["annotations"].get(names.SUSPENDED_FOR)
    return note.removesuffix(f" {meta['uid']}") if note is not None else None


def test_a_rayjob_is_suspended_and_resumed_and_waits_in_its_place() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    world.settle(seconds=30)
    assert (sent(world, SuspendRayJob), sent(world, ResumeRayJob), sent(world, EvictPod)) == (
        1,
        1,
        0,
    )
    assert world.status("p")["phase"] == "Running"
    assert note_on(world) is None
    assert job_of(world.api, "job")["spec"]["suspend"] is False
    assert state_of(world) == "Initializing"
    assert (world.status("job-2")["phase"], world.gated("job-2")) == ("Queued", 4)
    world.create(gang_of("later", 3, labels={**OPTED_IN, names.QUEUE: "team"}))
    world.settle(seconds=10)
    assert [world.status(each)["position"] for each in ("job-2", "later")] == [1, 2]
    world.delete("rayclusters", "p")
    world.settle(seconds=30)
    assert world.status("job-2")["phase"] == "Running"


def test_a_rayjob_is_suspended_only_once_its_gang_is_written_to_be_stopped() -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    assert [type(each) for each in leader.todo] == [TrySuspension]
    while not sent(world, SuspendRayJob):
        assert note_on(world) is None
        leader.act()
        leader.hear_all()
    assert ending(world, "job-1")[0]["preemptor"] == "team/p"
    leader.act_all()
    assert note_on(world) == "team/p"


def test_a_rayjob_is_not_resumed_before_its_raycluster_is_gone() -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    leader.act_all()
    leader.hear_all()
    leader.act_all()
    assert note_on(world) == "team/p"
    for state in ("Running", "Suspending"):
        say(world, jobDeploymentStatus=state)
        leader.hear_all()
        leader.act_all()
        assert sent(world, ResumeRayJob) == 0
    world.settle(seconds=20)
    assert sent(world, ResumeRayJob) == 1


def test_a_rayjob_that_a_user_suspended_is_left_alone() -> None:
    world = with_job(**SHUTDOWN)
    set_spec(world, suspend=True)
    world.settle(seconds=60)
    assert state_of(world) == "Suspended"
    assert sent(world, ResumeRayJob) == 0
    assert job_of(world.api, "job")["spec"]["suspend"] is True


def test_a_rayjob_with_the_note_of_another_one_is_left_alone() -> None:
    """Its manifest was read off a RayJob that Muster had suspended."""
    world = World(node("n1", cpu=4), queue("team"))
    job = ray_job("job", gang_of("", 1), suspend=True)
    job["metadata"]["annotations"][names.SUSPENDED_FOR] = "team/p uid-of-another"
    world.create(job)
    world.settle(seconds=60)
    assert sent(world, ResumeRayJob) == 0
    assert job_of(world.api, "job")["spec"]["suspend"] is True


def test_a_rayjob_whose_user_takes_the_note_off_stays_suspended() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: note_on(world) is not None)
    world.api.change(
        job_of(world.api, "job"),
        lambda obj: obj["metadata"]["annotations"].pop(names.SUSPENDED_FOR),
    )
    world.settle(seconds=60)
    assert (state_of(world), sent(world, ResumeRayJob)) == ("Suspended", 0)


def test_a_rayjob_that_a_user_resumes_loses_the_note() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    act_until(world, lambda: note_on(world) is not None)
    set_spec(world, suspend=False)
    world.settle(seconds=30)
    assert note_on(world) is None
    set_spec(world, suspend=True)
    world.settle(seconds=60)
    assert state_of(world) == "Suspended"


def test_a_rayjob_that_others_resume_before_kuberay_acts_is_suspended_again() -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    for _ in range(200):
        if note_on(world) is not None:
            set_spec(world, suspend=False)
        leader.hear_all()
        leader.act_all()
        world.api.now += 1
        leader.tick()
    assert 4 < sent(world, SuspendRayJob) < 12  # the pause doubles up to a minute
    assert world.status("p")["phase"] == "Queued"
    world.settle(seconds=90)
    assert world.status("p")["phase"] == "Running"
    assert (state_of(world), note_on(world)) == ("Initializing", None)


def test_a_resumption_that_fails_is_tried_again() -> None:
    world = with_job(**SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    while not any(isinstance(each, ResumeRayJob) for each in leader.todo):
        world.controllers()
        leader.hear_all()
        leader.act_all_but(ResumeRayJob)
    leader.act(0, Outcome.BROKEN)
    leader.act_all_but(ResumeRayJob)
    assert leader.todo == []
    world.settle(seconds=30)
    assert sent(world, ResumeRayJob) == 2
    assert state_of(world) == "Initializing"


def test_a_rayjob_whose_suspension_would_be_refused_is_no_victim() -> None:
    world = with_job(**SHUTDOWN)
    world.api.refusals["job"] = Forbidden(403, "Forbidden", "a policy is against it")
    choose_whole(world, "p", "job-1")
    world.settle(seconds=10)
    assert (sent(world, SuspendRayJob), ending(world, "job-1")) == (0, [])
    assert "a policy is against it" in parts(world, "job-1")[0].kept_because


def test_a_rayjob_that_changes_meanwhile_is_suspended_in_its_new_version() -> None:
    world = with_job(**SHUTDOWN)
    choose_whole(world, "p", "job-1")
    say(world, failed=0)
    world.leader.act()
    act_until(world, lambda: any(isinstance(each, SuspendRayJob) for each in world.leader.todo))
    say(world, failed=1)
    world.settle(seconds=60)
    assert sent(world, SuspendRayJob) == 2
    assert world.status("p")["phase"] == "Running"


def test_a_rayjob_that_may_be_tried_again_has_its_pods_evicted() -> None:
    world = with_job(backoffLimit=1)
    choose_whole(world, "p", "job-1")
    world.settle(seconds=10)
    assert (sent(world, SuspendRayJob), sent(world, EvictPod)) == (0, 4)


@pytest.mark.parametrize("spec", [{}, {"backoffLimit": 1}, {"backoffLimit": 0}])
def test_a_rayjob_that_would_be_lost_is_no_victim(spec: Json) -> None:
    world = with_job(**spec)
    say(world, failed=1)
    world.settle(seconds=1)
    said = parts(world, "job-1")[0].kept_because
    assert said.startswith("RayJob job would be lost: it has no retry left (spec.backoffLimit)")
    assert "GangQueue team does not allow it (spec.preemption.jobsMayBeLost)" in said
    choose_whole(world, "p", "job-1")
    world.settle(seconds=10)
    assert (sent(world, EvictPod), ending(world, "job-1")) == (0, [])


def test_a_retry_does_not_save_a_rayjob_in_http_mode() -> None:
    """From KubeRay 1.7 on it fails while its dashboard does not answer, and is not retried."""
    world = with_job(backoffLimit=1, submissionMode="HTTPMode")
    said = parts(world, "job-1")[0].kept_because
    assert said.startswith("RayJob job would be lost: in HTTPMode (spec.submissionMode) it is not")
    choose_whole(world, "p", "job-1")
    world.settle(seconds=10)
    assert (sent(world, EvictPod), ending(world, "job-1")) == (0, [])


def test_a_raycluster_whose_rayjob_is_not_known_yet_is_no_victim() -> None:
    world = with_job(backoffLimit=1)
    assert parts(world, "job-1")[0].kept_because == ""
    uid = job_of(world.api, "job")["metadata"]["uid"]
    world.leader.state.known.cache.owners.drop(uid)
    assert parts(world, "job-1")[0].kept_because.startswith("RayJob job is not known to Muster")
    choose_whole(world, "p", "job-1")
    world.settle(seconds=10)
    assert (sent(world, EvictPod), ending(world, "job-1")) == (0, [])


def test_a_queue_may_allow_that_a_rayjob_is_lost() -> None:
    world = with_job(rules={"jobsMayBeLost": True})
    assert parts(world, "job-1")[0].kept_because == ""
    choose_whole(world, "p", "job-1")
    world.settle(seconds=10)
    assert sent(world, EvictPod) == 4


def test_a_rayjob_that_was_not_submitted_yet_has_its_pods_evicted() -> None:
    world = with_job()
    cluster = world.api.get(Key("rayclusters", TEAM, "job-1"))
    world.api.change(cluster, lambda obj: obj.update(status={}))
    say(world, jobDeploymentStatus="Initializing")
    world.settle(seconds=10)
    assert (sent(world, EvictPod), world.status("p")["phase"]) == (4, "Running")


def test_surplus_of_a_rayjob_is_evicted() -> None:
    labels = {**OPTED_IN, names.QUEUE: "team"}
    world = World(node("n1", cpu=4), queue("team"))
    elastic = gang_of("", 3, labels=labels, annotations={names.MIN_REPLICAS: "workers=1"})
    world.create(ray_job("job", elastic))
    world.settle(seconds=10)
    run(world)
    assert parts(world, "job-1")[0].kept_because
    assert [part.kept_because for part in parts(world, "job-1")[1:]] == ["", ""]


@pytest.mark.parametrize("acts", every_other(range(14)))
def test_another_leader_suspends_and_resumes_what_one_began(acts: int) -> None:
    world = with_job(replicas=2, **SHUTDOWN)
    leader = world.leader
    choose_whole(world, "p", "job-1")
    for _ in range(acts):
        if leader.todo:
            leader.act()
        else:
            world.controllers()
        leader.hear_all()
    leader.resign()
    world.elect(1)
    world.settle(seconds=60)
    assert note_on(world) is None
    assert not job_of(world.api, "job")["spec"].get("suspend")
    running = [each["metadata"]["name"] for each in world.api.all("gangs")]
    phases = {name: world.status(name)["phase"] for name in running}
    assert phases == {"job-2": "Queued", "p": "Running"}  # what was not written is chosen anew
