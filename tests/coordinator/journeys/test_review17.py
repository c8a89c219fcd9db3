"""Faults looked for by a reviewer."""
import copy
from typing import Any

import pytest

from coordinator.messages.actions import FencePod, ReleasePod
from coordinator.messages.clock import Patience
from kube.api.errors import Forbidden
from kube.objects import names
from tests.coordinator.api import Key, Outcome
from tests.coordinator.builders import GPU, TEAM, Json, gang_of, group, node, ray_cluster, foreign_pod
from tests.coordinator.deeds import decided
from tests.coordinator.journeys.test_calling_for_nodes import elastic, gpu_gang, requests, templates, waiting, IN_QUEUE, say, message
from tests.coordinator.journeys.test_queues import queue
from tests.coordinator.journeys.test_owners import with_job, warnings
from tests.coordinator.ray_jobs import job_of, ray_job
from tests.coordinator.world import World, name_of

PATIENCE = Patience()


@pytest.mark.parametrize("began", ["9999-12-31T23:59:59Z", "soon", "2016-12-31T23:59:60Z"])
def test_deadline_of_a_start_that_cannot_be_read(began: str) -> None:
    world = World(node("n1", cpu=4))
    world.create(foreign_pod("other", "n1", cpu=2))
    world.create(ray_job("job", gang_of("", 3), activeDeadlineSeconds=2**31 - 1))
    world.api.change(job_of(world.api, "job"), lambda obj: obj["status"].update(startTime=began))
    world.settle(seconds=10)
    assert world.status("job-1")["phase"] == "Queued"


@pytest.mark.parametrize("seconds", [-5, 0, 10**12])
def test_deadline_odd(seconds: int) -> None:
    world = with_job(activeDeadlineSeconds=seconds)
    world.settle(seconds=50)
    assert warnings(world) == []


def test_warned_once() -> None:
    world = with_job(activeDeadlineSeconds=400)
    world.settle(seconds=310)
    for i in range(5):
        c = world.api.get(Key("rayclusters", TEAM, "job-1"))
        world.api.change(c, lambda obj: obj["metadata"]["annotations"].update(x=str(i), **{"muster.dev/expected-duration": f"{i+1}h"}))
        world.settle(seconds=1)
    assert len(warnings(world)) == 1


def test_quota_bounds_the_sum_of_what_is_asked_for() -> None:
    world = waiting(quota={GPU: "2"})
    for name in "bcde":
        world.create(gpu_gang(name, 2))
    world.settle(seconds=60)
    print([message(world, n) for n in "abcde"])
    assert len(requests(world)) == 1


def test_release_that_was_queued_for_long() -> None:
    """The time in which a release may arrive begins when it ends unanswered, not when its gang gave up."""
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 1))
    decided(world)
    leader = world.leader
    world.api.hold(world.api.get(Key("rayclusters", TEAM, "a")), "x/y")
    world.create(gang_of("b", 1))
    world.kuberay()
    world.delete("rayclusters", "a")
    world.kuberay = lambda: None
    leader.hear_all()
    leader.act_all_but(ReleasePod)
    assert [name_of(p) for p in world.pods("b")]
    head = name_of(world.pods("a")[0])
    world.api.now += PATIENCE.arrival - 5  # the API server answers nobody: the queue does not move
    leader.tick()
    leader.act_all_but(ReleasePod)
    at = next(i for i, each in enumerate(leader.todo) if isinstance(each, ReleasePod))
    leader.act(at, outcome=Outcome.HELD)
    world.api.frozen[head] = Forbidden(403, "Forbidden", "no")
    world.settle(seconds=10)
    assert (world.released_by(leader) , [p for p, _ in leader.releases() if p.startswith("b")]) == ([], [])


def test_room_of_an_earlier_leaders_release_when_one_of_two_workers_goes() -> None:
    world = World(node("n1", cpu=1), node("n2", cpu=1), node("n3", cpu=1), replicas=2)
    world.create(gang_of("a", 2))
    decided(world)
    leader = world.leader
    leader.act()
    world.controllers()
    leader.hear_all(); leader.act_all_but(ReleasePod); leader.cycle(); leader.act_all_but(ReleasePod)
    print([(a.pod.metadata.name, a.node) for a in leader.todo])
    at = max(range(2), key=lambda i: leader.todo[i].node)
    where = leader.todo[at].node
    late = leader.todo[at].pod.metadata.name
    leader.act(at, outcome=Outcome.HELD)
    other = next(name_of(p) for p in world.pods("a") if name_of(p) != late and "workers" in name_of(p))
    world.scale("a", 1)
    world.api.remove(Key("pods", TEAM, other))
    world.kuberay = lambda: None
    second = world.elect(1)
    cluster = gang_of("b", 0)
    world.create(cluster)
    del world.kuberay
    world.kuberay()
    for _ in range(3):
        second.hear_all(); second.act_all_but(FencePod); second.cycle()
    print(second.releases(), world.status("a").get("placement"))
    print(second.todo, where, late)
    assert [p for p, n in second.releases() if p.startswith("b") and n == where] == []


@pytest.mark.parametrize("deed", ["pod", "group"])
def test_void_placement_of_an_earlier_leader_whose_release_is_under_way(deed: str) -> None:
    world = World(node("n1", cpu=2), replicas=2)
    world.create(gang_of("a", 1))
    decided(world)
    leader = world.leader
    at = next(i for i, each in enumerate(leader.todo))
    leader.act(at, outcome=Outcome.HELD)
    if deed == "pod":
        world.api.remove(Key("pods", TEAM, next(name_of(p) for p in world.pods("a") if "workers" in name_of(p))))
    else:
        world.scale("a", 5)
    world.kuberay = lambda: None
    second = world.elect(1)
    world.create(gang_of("b", 1))
    del world.kuberay
    if deed == "group":
        world.kuberay()
    else:
        made = [k for k in []]
        # only the pods of b
        cluster = world.api.get(Key("rayclusters", TEAM, "a"))
        world.api.change(cluster, lambda obj: obj["metadata"].update(name="a"))
        world.kuberay()
        for p in world.pods("a"):
            if name_of(p) not in {name_of(q) for q in world.pods("a")[:1]}:
                world.api.remove(Key("pods", TEAM, name_of(p)))
    for _ in range(3):
        second.hear_all(); second.act_all_but(FencePod); second.cycle()
    print(second.releases(), world.status("a").get("placement"), len(world.pods("b")))
    print([type(a).__name__ for a in second.todo])
    assert [p for p, n in second.releases() if p.startswith("b")] == []


def test_recreated_with_another_group_starts_whole() -> None:
    """upgradeStrategy Recreate: KubeRay deletes all pods, and makes those of the new spec."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    world.edit("a", workerGroupSpecs=[group("others", 4)])
    for pod in world.pods("a"):
        world.delete("pods", name_of(pod))
    world.settle(seconds=1000)
    print(world.status("a"))
    assert world.bound("a") == {}


def test_an_earlier_template_of_that_name_is_not_what_is_asked_for() -> None:
    """A tenant may write PodTemplates, and know the name beforehand."""
    world = waiting()
    world.settle(seconds=20)
    [request] = requests(world)
    names_ = [name_of(t) for t in templates(world)]
    world2 = waiting()
    for name in names_:
        world2.create({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name, "namespace": TEAM},
          "template": {"metadata": {}, "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {GPU: "100"}}}]}}})
    world2.settle(seconds=20)
    assert len(requests(world2)) == 1
    assert "100" not in [t["template"]["spec"]["containers"][0]["resources"]["requests"].get(GPU) for t in templates(world2)]


def test_forged_request_deletes_no_templates_of_others() -> None:
    world = waiting()
    world.settle(seconds=20)
    gang = world.gang("a")
    meta = {"name": "t", "namespace": TEAM}
    world.create({"apiVersion": "v1", "kind": "PodTemplate", "metadata": meta, "template": {}})
    world.create({"apiVersion": "autoscaling.x-k8s.io/v1", "kind": "ProvisioningRequest",
        "metadata": {"name": "forged", "namespace": TEAM, "labels": {names.NODES_FOR: "gang"},
          "ownerReferences": [{"apiVersion": names.API_VERSION, "kind": "Gang", "name": "a", "uid": gang["metadata"]["uid"]}]},
        "spec": {"provisioningClassName": "x", "podSets": [{"podTemplateRef": {"name": "t"}, "count": 1}]}})
    world.settle(seconds=20)
    assert "t" in [name_of(t) for t in templates(world)]
