"""The gang of a RayJob starts where its submitter fits too."""

from typing import Any

import pytest

from kube.objects import names
from scheduling.model.gang import GangKey
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.deeds import decided
from tests.coordinator.held import held
from tests.coordinator.journeys.queues.worlds import queue
from tests.coordinator.journeys.submitters.worlds import (
    bind_submitter,
    has_room_for_another,
    kept_on,
    running,
    say,
    submitted,
    world_with,
)
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World


def template_of(cpu: str, **spec: Any) -> Json:
    return {"submitterPodTemplate": template(cpu=cpu, **spec)}


def waits(world: World, gang: str = "job-1") -> str:
    """Why a gang waits."""
    assert world.bound(gang) == {}
    assert world.status(gang)["phase"] == "Queued"
    return str(world.status(gang)["message"])


@pytest.mark.parametrize(
    ("spec", "starts"),
    [
        ({}, False),
        ({"submissionMode": "K8sJobMode"}, False),
        (template_of("10m"), False),
        ({"submissionMode": "HTTPMode"}, True),
        ({"submissionMode": "SidecarMode"}, True),
        ({"submissionMode": "InteractiveMode"}, True),
        (template_of("0"), True),
    ],
    ids=["usual", "by pod", "small", "HTTP", "sidecar", "interactive", "no CPU"],
)
def test_the_gang_of_a_rayjob_starts_only_where_its_submitter_fits_too(
    spec: Json, starts: bool
) -> None:
    world = world_with(node("n1", cpu=3), jobs=(submitted("job", 2, **spec),))
    assert bool(world.bound("job-1")) is starts


def test_what_does_not_fit_is_said_to_be_the_submitter() -> None:
    """A node is full when empty; where pods of others have a part of it, that may end."""
    world = world_with(node("n1", cpu=3), jobs=(submitted("job", 2),))
    said = "the gang with its submitter needs 3500m cpu in all"
    assert said in waits(world)
    world = world_with(node("n1", cpu=4))
    world.create(foreign_pod("other", "n1", cpu=1), submitted("job", 2))
    world.settle(seconds=5)
    said = waits(world)
    assert said.startswith("its submitter does not fit beside headgroup and workers: it needs 500m")
    assert "the gang with its submitter 3500m in all" in said
    world.api.remove(Key("pods", "others", "other"))
    world.settle(seconds=5)
    assert world.bound("job-1") == {"n1": 3}


def test_where_the_gang_itself_does_not_fit_nothing_is_said_of_its_submitter() -> None:
    world = world_with(node("n1", cpu=4))
    world.create(foreign_pod("other", "n1", cpu=2), submitted("job", 2))
    world.settle(seconds=5)
    assert waits(world).startswith("1 of 2 workers fit beside headgroup: each needs 1 cpu")
    assert "submitter does not fit" not in waits(world)


def test_no_record_of_the_gang_tells_of_its_submitter() -> None:
    """It is none of its pods: no slot is promised to it, and no quota counts it."""
    world = world_with(node("n1", cpu=4), jobs=(submitted("job", 2),))
    placed = world.status("job-1")["placement"]["podSets"]
    assert {each["name"] for each in placed} == {"headgroup", "workers"}
    told = [each.new for each in world.api.history if each.key.plural == "gangs"]
    assert "submitter" not in str(told)
    assert world.status("job-1")["message"] == "the minimum is ready"


def test_quota_does_not_count_the_submitter() -> None:
    world = World(node("n1", cpu=8), queue(names.DEFAULT_QUEUE, cpu=3))
    world.create(submitted("job", 2))
    world.settle(seconds=5)
    assert world.bound("job-1") == {"n1": 3}
    (counted,) = world.leader.state.known.quota.of(GangKey(TEAM, "job-1")).values()
    assert counted.amounts["cpu"] == 3000


def test_gangs_of_one_cycle_have_room_for_both_submitters() -> None:
    """What the verdict found is kept: the first, sought again, would take the other's only node."""
    rare = node("n1", cpu=2, labels={"rare": "yes"})
    world = World(node("n0", cpu=1), rare, node("n2", cpu=1), queue(names.DEFAULT_QUEUE, cpu=2))
    only = template_of("500m", nodeSelector={"rare": "yes"})
    world.create(submitted("a", 0, **template_of("1")), submitted("b", 0, **only))
    world.kuberay()
    decided(world)
    assert kept_on(world) == {"a-1": "n2", "b-2": "n1"}


def test_the_gang_goes_where_its_submitter_has_room_beside_it() -> None:
    """Either node has room for the gang: on the first nothing is left for the other pod."""
    tight = submitted("job", 2, **template_of("1", nodeSelector={"pool": "a"}))
    world = world_with(node("n1", cpu=3, labels={"pool": "a"}), node("n2", cpu=3), jobs=(tight,))
    assert world.bound("job-1")["n2"]
    assert world.bound("job-1")["n1"] <= 2


def test_a_node_that_is_cordoned_for_a_time_is_one_that_the_submitter_waits_for() -> None:
    world = world_with(node("n1", cpu=4, cordoned=True), jobs=(submitted("job", 2),))
    assert waits(world)
    world.create(gang_of("b", 0))
    world.settle(seconds=5)
    found = world.api.get(Key("nodes", "", "n1"))
    world.api.change(found, lambda obj: obj["spec"].update(unschedulable=False))
    world.settle(seconds=5)
    assert world.bound() == {"n1": 3}
    assert world.bound("job-1") == {"n1": 3}


def test_the_submitter_is_outside_the_domain_of_the_workers() -> None:
    """They fill their rack, and nothing holds it to that."""
    annotations = {names.TOPOLOGY_REQUIRED: "rack"}
    nodes = [node("a1", cpu=2, labels={"rack": "a"}), node("b1", cpu=2, labels={"rack": "b"})]
    job = ray_job("job", gang_of("", 2, annotations=annotations), submitterPodTemplate=None)
    world = world_with(*nodes, jobs=(job,))
    assert world.bound("job-1") == {"a1": 2, "b1": 1}


@pytest.mark.parametrize(
    "spec",
    [
        template_of("1", nodeSelector={"pool": "from zero"}),
        template_of("1", nodeName="n1"),
        template_of("1", schedulerName="of others"),
        template_of("1", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]),
        template_of("1", priorityClassName="unknown"),
        template_of("a lot"),
        template_of("3100m"),
        template_of("1", gpu=1),
        {"submitterPodTemplate": {"spec": {"containers": 3}}},
        {"submitterPodTemplate": {"metadata": {"labels": {"a": "b" * 9000}}, "spec": {}}},
    ],
    ids=[
        "no node",
        "bound",
        "scheduler",
        "claim",
        "class",
        "amount",
        "too much",
        "GPU",
        "type",
        "large",
    ],
)
def test_a_submitter_that_cannot_be_judged_holds_no_gang_up(spec: Json) -> None:
    world = world_with(node("n1", cpu=3), jobs=(submitted("job", 2, **spec),))
    assert world.bound("job-1") == {"n1": 3}


def test_the_submitter_of_a_held_gang_is_foreseen_too() -> None:
    job = submitted("job", 2)
    cluster = held(gang_of("", 2))
    job["spec"]["rayClusterSpec"] = cluster["spec"]
    job["metadata"]["annotations"] |= cluster["metadata"]["annotations"]
    world = world_with(node("n1", cpu=3), jobs=(job,))
    assert "with its submitter" in waits(world)
    world.create(node("n2", cpu=1))
    world.settle(seconds=5)
    assert sum(world.bound("job-1").values()) == 3
    assert not has_room_for_another(world)


@pytest.mark.parametrize("state", ["Initializing", "Running"])
def test_a_gang_that_runs_asks_for_no_submitter_again(state: str) -> None:
    """What it lost with a node is replaced, whatever became of the submitter."""
    world = world_with(node("n1", cpu=2), node("n2", cpu=2), jobs=(submitted("job", 2),))
    bind_submitter(world, kept_on(world)["job-1"])
    world.create(foreign_pod("other", "n1", cpu="500m"))
    say(world, state)
    world.settle(seconds=5)
    assert world.bound("job-1") == {"n1": 1, "n2": 2}
    world.delete("nodes", "n2")
    for pod in world.pods("job-1"):
        if pod["spec"]["nodeName"] == "n2":
            world.api.remove(Key("pods", TEAM, pod["metadata"]["name"]))
    world.create(node("n3", cpu=2))
    world.settle(seconds=60)
    assert world.bound("job-1") == {"n1": 1, "n3": 2}


def test_the_next_try_has_room_for_its_submitter_too() -> None:
    world = running()
    say(world, "Running")
    bind_submitter(world, "n1")
    world.settle(seconds=5)
    last = world.api.get(Key("pods", TEAM, "job-x"))
    world.api.hold(last, "batch.kubernetes.io/job-tracking")
    world.delete("pods", "job-x")
    say(world, "Retrying")
    world.settle(seconds=10)
    assert kept_on(world) == {"job-2": "n1"}
    last = world.api.get(Key("pods", TEAM, "job-x"))
    world.api.change(last, lambda obj: obj["status"].update(phase="Failed"))
    world.settle(seconds=5)
    assert kept_on(world) == {"job-2": "n1"}


def test_others_are_stopped_for_a_submitter_too() -> None:
    rules = {"withinQueue": "LowerPriority"}
    world = World(node("n1", cpu=4), queue(names.DEFAULT_QUEUE, preemption=rules))
    world.create(gang_of("low", 0))
    world.settle(seconds=5)
    kubelets, world.kubelets = world.kubelets, lambda: None  # type: ignore[method-assign]
    high = ray_cluster("", group("w", 2, priority=10), head=template(priority=10))
    world.create(ray_job("job", high, submitterPodTemplate=None))
    world.settle(seconds=30)
    planned = world.leader.state.known.views[GangKey(TEAM, "job-1")].queueing.planned
    assert planned is not None
    assert {each.pod_set for each in planned.assignments} == {"headgroup", "w"}
    world.kubelets = kubelets  # type: ignore[method-assign]
    world.settle(seconds=30)
    assert world.bound("job-1") == {"n1": 3}
    assert kept_on(world) == {"job-1": "n1"}


def test_where_the_queue_asks_for_nodes_the_submitter_may_have_one_made_for_it() -> None:
    """It is no pod that nodes are asked for; once it is there, any autoscaler sees it."""
    asking = {"className": "check-capacity.autoscaling.x-k8s.io"}
    world = World(node("n1", cpu=3), queue(names.DEFAULT_QUEUE, provisioning=asking))
    world.create(submitted("job", 2))
    world.settle(seconds=5)
    assert world.bound("job-1") == {"n1": 3}
