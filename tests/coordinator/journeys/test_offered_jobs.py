"""GangOffers for RayJobs: what is accepted starts in its room, and its end is never forgotten."""

from typing import Any

import pytest

from coordinator.messages.actions import EvictPod
from kube.objects import names
from tests.coordinator import ray_jobs
from tests.coordinator.api import Key
from tests.coordinator.builders import TEAM, Json, gang_of, node
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.offers import accept, answer, created_for, member, offer
from tests.coordinator.world import World


def job(workers: int = 3, **spec: Any) -> Json:
    return ray_jobs.ray_job("a", gang_of("a", workers), **spec)


def jobs(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.api.all("rayjobs")]


def clusters(world: World) -> list[str]:
    return [each["metadata"]["name"] for each in world.api.all("rayclusters")]


def where(world: World) -> list[str]:
    return [pod["spec"].get("nodeName", "") for pod in world.pods()]


def say(world: World, **status: object) -> None:
    found = ray_jobs.job_of(world.api, "a")
    world.api.change(found, lambda obj: obj["status"].update(status))


def runs(replicas: int = 1, **spec: Any) -> World:
    """A member on which an offer was accepted, and its RayJob runs."""
    world = member(offer("a-1", job(**spec)), replicas=replicas)
    assert answer(world)["phase"] == "Offered", answer(world)
    accept(world)
    world.settle(seconds=1)
    assert answer(world)["phase"] == "Started"
    world.create(created_for(world, job(**spec)))
    world.settle(seconds=10)
    say(world, jobDeploymentStatus="Running")
    world.settle(seconds=1)
    return world


def end(world: World, state: str = "Complete") -> None:
    """End the job, and its RayCluster, as KubeRay does."""
    say(world, jobDeploymentStatus=state)
    for name in clusters(world):
        world.delete("rayclusters", name)
    world.settle(seconds=10)


def test_the_raycluster_of_an_accepted_rayjob_takes_the_room_over() -> None:
    world = member(offer("a-1", job()))
    accept(world)
    world.create(gang_of("b", 3))  # which would fit but for the offer
    world.settle(seconds=1)
    world.create(created_for(world, job()))
    world.settle(seconds=10)
    assert sorted(clusters(world)) == ["a-1", "b"]
    running = [pod for pod in world.pods("a-1") if pod["spec"].get("nodeName") == "n1"]
    assert len(running) == 4
    assert not any(pod["spec"].get("nodeName") for pod in world.pods("b"))
    assert answer(world)["objectUid"] == ray_jobs.job_of(world.api, "a")["metadata"]["uid"]


@pytest.mark.parametrize(
    ("state", "reason"), [("Complete", "JobComplete"), ("Failed", "JobFailed")]
)
def test_a_job_that_ended_is_closed_with_its_end_and_stays_until_it_is_withdrawn(
    state: str, reason: str
) -> None:
    world = runs()
    end(world, state)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", reason)
    world.settle(seconds=100)
    assert jobs(world) == ["a"]
    world.delete("gangoffers", "a-1")
    world.settle(seconds=10)
    assert not jobs(world)
    assert not list(world.api.all("gangoffers"))


def test_an_ended_job_whose_raycluster_is_left_is_not_closed() -> None:
    world = runs()
    say(world, jobDeploymentStatus="Complete")
    world.settle(seconds=100)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Started", "JobComplete")


def test_a_retry_stays_on_the_member() -> None:
    world = runs(backoffLimit=1)
    ray_jobs.fail(world.api, "a")
    world.settle(seconds=20)
    assert clusters(world) == ["a-2"]
    assert where(world) == ["n1"] * 4
    assert answer(world)["phase"] == "Started"
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]


def vanish(world: World, replicas: int) -> None:
    """Have the job go with its RayClusters, seen by the leader or by the one after it."""
    if replicas > 1:
        world.leader.resign()
    world.delete("rayjobs", "a")
    for name in clusters(world):
        world.delete("rayclusters", name)
    if replicas > 1:
        world.elect(1)


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_job_that_deletes_itself_is_closed_with_its_end(replicas: int) -> None:
    world = runs(replicas)
    say(world, jobDeploymentStatus="Complete")
    world.settle(seconds=5)
    vanish(world, replicas)
    world.settle(seconds=10)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "JobComplete")


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_job_that_is_gone_with_its_end_unknown_is_closed_as_gone(replicas: int) -> None:
    world = runs(replicas)
    vanish(world, replicas)
    world.settle(seconds=100)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "JobGone")


def test_a_withdrawn_job_goes_with_its_pods_before_its_offer_goes() -> None:
    world = runs()
    world.delete("gangoffers", "a-1")
    world.settle(seconds=5)
    assert not jobs(world)
    for name in clusters(world):  # the garbage collector
        world.delete("rayclusters", name)
    world.settle(seconds=10)
    assert not list(world.api.all("gangoffers"))
    assert not world.pods()
    changes = [each for each in world.api.history if each.key.plural == "gangoffers" and each.new]
    said = [each.new["status"] for each in changes if each.new][-1]
    assert said["phase"] == "Started", "that it is gone says that it is over"


def test_a_withdrawn_job_that_has_ended_is_closed_with_its_end_before_its_offer_goes() -> None:
    """The manager would begin anew what is gone without a word."""
    world = runs()
    say(world, jobDeploymentStatus="Complete")
    world.settle(seconds=5)
    world.delete("gangoffers", "a-1")
    world.settle(seconds=5)
    for name in clusters(world):  # the garbage collector
        world.delete("rayclusters", name)
    world.settle(seconds=10)
    assert not list(world.api.all("gangoffers"))
    changes = [each for each in world.api.history if each.key.plural == "gangoffers" and each.new]
    said = [each.new["status"] for each in changes if each.new][-1]
    assert (said["phase"], said["reason"]) == ("Closed", "JobComplete")


def test_a_job_that_is_preempted_after_its_start_is_closed_and_not_resumed() -> None:
    team = queue("team", preemption={"withinQueue": "LowerPriority"})
    high = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    world = World(node("n1", cpu=4), team, high)
    labels = {names.OPT_IN: "true", names.QUEUE: "team"}
    made = ray_jobs.ray_job("a", gang_of("a", 3, labels=labels), shutdownAfterJobFinishes=True)
    world.create(offer("a-1", made))
    world.settle(seconds=5)
    accept(world)
    world.settle(seconds=1)
    world.create(created_for(world, made))
    world.settle(seconds=10)
    say(world, jobDeploymentStatus="Running")
    urgent = gang_of("b", 3, labels=labels)
    for each in (urgent["spec"]["headGroupSpec"], *urgent["spec"]["workerGroupSpecs"]):
        each["template"]["spec"] |= {"priorityClassName": "high", "priority": 7}
    world.create(urgent)
    world.settle(seconds=30)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "Stopped")
    assert "team/b" in answer(world)["message"]
    assert not jobs(world)
    assert clusters(world) == ["b"]


def test_a_name_that_a_rayjob_has_is_taken() -> None:
    world = member(job(1), cpu=8)
    world.create(offer("a-1", job()))
    world.settle(seconds=5)
    assert (answer(world)["phase"], answer(world)["reason"]) == ("Closed", "NameTaken")
    assert Key("rayjobs", TEAM, "a") in world.api.objects


def test_a_rayjob_of_another_name_takes_no_room_over() -> None:
    world = member(offer("a-1", job()), cpu=8)
    accept(world)
    world.settle(seconds=1)
    other = created_for(world, job())
    other["metadata"] = {**other["metadata"], "name": "other"}
    world.create(other)
    world.settle(seconds=10)
    assert not any(where(world))
    assert answer(world)["phase"] == "Started"


def test_what_cannot_be_foreseen_is_not_offered() -> None:
    for spec, said in (
        ({"submissionMode": "SidecarMode"}, "spec.submissionMode"),
        ({"clusterSelector": {"ray.io/cluster": "b"}}, "spec.clusterSelector"),
        ({"rayClusterSpec": []}, "spec.template.spec: Expected `object"),
    ):
        world = member(offer("a-1", job(**spec)))
        assert answer(world)["phase"] == "Asked"
        assert said in answer(world)["message"]
