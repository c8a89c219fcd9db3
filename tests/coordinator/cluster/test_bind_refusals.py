"""A node on which kube-scheduler refuses a pod is avoided for a while, though it looks free."""

import msgspec
import pytest

from coordinator.cluster.bind_refusals import MOST, TEXT_LIMIT, Refusals
from coordinator.messages.actions import DeletePod
from coordinator.messages.clock import Patience
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects.core import Pod
from scheduling.model.gang import GangKey
from scheduling.model.verdict import MESSAGE_LIMIT
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    foreign_pod,
    gang_of,
    group,
    node,
    pod_of,
    ray_cluster,
    template,
)
from tests.coordinator.deeds import decided
from tests.coordinator.world import World, name_of

PATIENCE = Patience()
KEY = GangKey(TEAM, "a")


def refused_world(*more: str) -> World:
    """A gang of three was placed on n1, where kube-scheduler admits none; `more` are nodes too."""
    world = World(node("n1", cpu=3))
    world.grudges.add("n1")
    world.create(gang_of("a", 2))
    world.settle(seconds=1)
    assert {pod for pod, _ in world.leader.releases()} == {name_of(p) for p in world.pods("a")}
    world.create(*(node(name, cpu=3) for name in more))
    return world


def deletions(world: World) -> int:
    return sum(isinstance(action, DeletePod) for action in world.leader.log)


def test_a_gang_that_kube_scheduler_refuses_on_a_node_starts_on_another() -> None:
    world = refused_world("n2")
    world.settle(seconds=PATIENCE.bind + 1)
    assert world.bound("a") == {"n2": 3}
    assert deletions(world) == 3
    assert world.status("a")["message"] == "the minimum is ready"


def test_it_waits_and_says_what_kube_scheduler_said_where_there_is_no_other() -> None:
    """The node is not tried again and again: in ten minutes three pods were deleted once."""
    world = refused_world()
    world.settle(seconds=PATIENCE.refusal)
    assert deletions(world) == 3
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "NoFeasibleNode")
    assert "1 refused such a pod recently" in status["message"]
    assert "kube-scheduler refuses a-" in status["message"]
    assert "on n1, which is avoided now: 0 nodes available" in status["message"]
    assert "placement" not in status


def test_its_user_is_told_once_by_an_event() -> None:
    world = refused_world()
    world.settle(seconds=PATIENCE.refusal)
    told = [each for each in world.leader.emitted if each.reason == "BindRefused"]
    assert [each.warning for each in told] == [True]
    assert "0 nodes available" in told[0].message


def test_the_node_is_tried_again_after_a_while() -> None:
    world = refused_world()
    world.settle(seconds=PATIENCE.bind + 1)
    world.grudges.clear()
    world.settle(seconds=PATIENCE.refusal - 60)
    assert world.bound("a") == {}
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3}
    assert "refuses" not in world.status("a")["message"]


def test_a_node_that_changes_is_tried_again_at_once() -> None:
    world = refused_world()
    world.settle(seconds=PATIENCE.bind + 1)
    world.grudges.clear()
    changed = world.api.get(Key("nodes", "", "n1"))
    world.api.change(changed, lambda obj: obj["metadata"]["labels"].update(mended="yes"))
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 3}


def test_pods_of_another_shape_and_of_other_namespaces_may_go_there() -> None:
    world = refused_world()
    world.settle(seconds=PATIENCE.bind + 1)
    world.grudges.clear()
    world.create({"kind": "Namespace", "metadata": {"name": "others"}})
    world.create(gang_of("b", 0, namespace="others"))
    world.create(ray_cluster("c", group("workers", 0), head=template(cpu="1500m")))
    world.settle(seconds=5)
    assert {
        name_of(pod).partition("-")[0]: pod["spec"].get("nodeName") for pod in world.pods()
    } == {
        "a": None,
        "b": "n1",
        "c": "n1",
    }


def test_what_the_verdict_knows_itself_needs_no_memory() -> None:
    """The room was taken: as soon as it is free again the gang may start there."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    decided(world)
    world.leader.act_all()
    world.create(foreign_pod("thief", "n1", cpu=1))
    world.settle(seconds=PATIENCE.bind + PATIENCE.torn + 60)
    assert world.bound("a") == {}
    world.api.remove(Key("pods", "others", "thief"))
    world.settle(seconds=1)
    assert world.bound("a") == {"n1": 3}


def test_a_slot_on_a_node_that_refuses_the_replacement_is_given_up_for_another() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=1))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 2, "n2": 1}
    world.grudges.add("n2")
    world.create(node("n3", cpu=1))
    [victim] = [pod for pod in world.pods("a") if pod["spec"]["nodeName"] == "n2"]
    world.api.remove(Key("pods", TEAM, name_of(victim)))
    world.settle(seconds=PATIENCE.bind + 1)
    assert world.bound("a") == {"n1": 2, "n3": 1}


def test_the_next_leader_begins_without_it() -> None:
    world = refused_world()
    world.settle(seconds=PATIENCE.bind + 1)
    world.leader.resign()
    assert not world.leader.state.known.term.refusals.namespaces


def refused(node_name: str, said: str = "no") -> ObservedPod:
    cluster = ray_cluster("a")
    cluster["metadata"]["uid"] = "a"
    raw = pod_of(cluster, "workers", "a-1", template(nodeName=node_name), "", [])
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    raw["status"]["conditions"] = [{**condition, "message": said}]
    return observe(msgspec.convert(raw, Pod))


def test_no_more_are_remembered_than_are_bounded_and_the_oldest_goes_first() -> None:
    refusals = Refusals()
    for number in range(MOST + 1):
        refusals.note(refused(f"n{number}"), 10.0 + number)
    assert refusals.nodes_avoided == MOST
    assert refusals.next_end == 11.0


def test_the_same_refusal_is_news_only_once() -> None:
    refusals = Refusals()
    assert refusals.note(refused("n1"), 10.0)
    assert not refusals.note(refused("n1"), 20.0)
    assert refusals.expire(10.0) == set()
    assert refusals.expire(20.0) == {KEY}
    assert refusals.note(refused("n1"), 30.0)


@pytest.mark.parametrize("length", [10, 10_000])
def test_what_kube_scheduler_said_fits_into_a_message(length: int) -> None:
    text = Refusals().note(refused("n1", "x" * length), 10.0)
    assert len(text) <= TEXT_LIMIT < MESSAGE_LIMIT
