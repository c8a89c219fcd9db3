"""Held gangs whose pods come otherwise than foreseen, or can't be foreseen."""

from typing import Any

import pytest

from coordinator.cluster import foreseen_gangs
from coordinator.gang.held_start.learned_pods import LEARNED_FOR
from coordinator.messages.actions import (
    ResumeRayCluster,
    SuspendRayCluster,
)
from coordinator.messages.events import AdmissionRulesListed
from kube.api.errors import Forbidden
from kube.foreseen import namespace_quota
from kube.foreseen.gang import NeverAdmitted, Unforeseeable
from kube.objects import names
from kube.objects.admission import LimitRange
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
from tests.coordinator.held import had_pods, held, held_gang, is_suspended
from tests.coordinator.journeys.held_start.worlds import (
    crowded,
    phase_of,
    quota,
    sent,
    stopped_kuberay,
    with_injected,
)
from tests.coordinator.stopping import condition
from tests.coordinator.world import World, key


def test_pods_that_come_larger_and_fit_are_decided_again() -> None:
    world = World(node("n1", cpu=8))
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}
    assert sent(world, SuspendRayCluster) == 0


def test_pods_that_come_larger_and_do_not_fit_are_suspended_again_and_it_learns() -> None:
    world = World(node("n1", cpu=6))
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    world.settle(seconds=60)
    assert is_suspended(world.api, "a")
    assert not world.pods("a")
    status = world.status("a")
    assert (status["reason"], phase_of(world)) == ("NeverFits", "Waiting")
    assert "came with 2 cpu instead of 1" in status["message"]
    resumed = sent(world, ResumeRayCluster)
    world.settle(seconds=600)
    assert sent(world, ResumeRayCluster) == resumed  # it knows by now

    world.create(node("n2", cpu=6))
    world.settle(seconds=60)
    assert sum(world.bound("a").values()) == 4


def test_what_was_learned_of_its_pods_has_an_end() -> None:
    """The side-car is not injected any more, which no object tells."""
    world = World(node("n1", cpu=6))
    made = world._make_pod
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    world.settle(seconds=60)
    world._make_pod = made  # type: ignore[method-assign]
    world.settle(seconds=LEARNED_FOR / 2)
    assert phase_of(world) == "Waiting"
    world.settle(seconds=LEARNED_FOR / 2)
    assert world.bound("a") == {"n1": 4}


def test_a_node_that_is_lost_between_placement_and_pods_has_it_placed_elsewhere() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act_all()
    world.delete("nodes", "n1")
    world.create(node("n2", cpu=4))
    world.settle(seconds=60)
    assert world.bound("a") == {"n2": 4}


def test_what_can_only_be_known_of_pods_that_exist_is_not_held() -> None:
    world = crowded(held_gang("c", 0))
    leader = world.leader
    leader.state.known.foresee = lambda *_: Unforeseeable("headGroupSpec.template: spec.nodeName")
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert (world.gated("a"), phase_of(world)) == (4, "")
    told = condition(world, "a", "StartHeld")
    assert (told["status"], told["reason"]) == ("False", "NotHeld")
    assert "spec.nodeName" in told["message"]


def test_pods_that_nothing_would_admit_are_not_created() -> None:
    world = World(node("n1", cpu=4))
    world.leader.state.known.foresee = lambda *_: NeverAdmitted("LimitRange small: at most 1 cpu")
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert not had_pods(world.api, "a")
    status = world.status("a")
    assert (status["reason"], status["message"]) == (
        "PodsRefused",
        "LimitRange small: at most 1 cpu",
    )


def test_one_that_cannot_be_resumed_says_why_and_gives_its_room_to_others() -> None:
    world = World(node("n1", cpu=4))
    refusal = Forbidden(403, "Forbidden", "rayclusters is forbidden")
    patch = world.api.patch

    def refused(where: Key, operations: list[Json], subresource: str = "") -> Json:
        if where.plural == "rayclusters":
            raise refusal
        return patch(where, operations, subresource)

    world.api.patch = refused  # type: ignore[method-assign, assignment]
    world.create(held_gang("a", 3))
    world.settle(seconds=45)
    assert "placement" in world.status("a")
    world.create(gang_of("b", 3))
    world.settle(seconds=300)
    assert "it could not be resumed: 403" in world.status("a")["message"]
    assert world.bound("b") == {"n1": 4}


def test_a_hundred_pods_of_which_eighty_would_fit_are_not_created() -> None:
    world = World(*(node(f"n{at:02}", cpu=8, gpu=8) for at in range(13)))
    world.create(*(foreign_pod(f"p{at}", f"n{at:02}", gpu=8) for at in range(3)))
    world.create(held(ray_cluster("a", group("workers", 100, cpu=0, gpu=1))))
    world.settle(seconds=30)
    assert not had_pods(world.api, "a")
    assert "80 of 100 workers fit" in world.status("a")["message"]


def test_with_hosts_the_replicas_that_come_take_the_slots_of_those_foreseen() -> None:
    world = World(node("n1", cpu=4), node("n2", cpu=4))
    world.create(held(ray_cluster("a", group("workers", 3, hosts=2))))
    world.settle(seconds=30)
    assert sum(world.bound("a").values()) == 7
    assert world.status("a")["decided"] == 1  # nothing was decided again


def test_room_is_kept_while_pods_come_of_which_the_first_are_not_as_foreseen() -> None:
    """Until all have come it is not known what they need."""
    world = World(node("n1", cpu=8))
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act_all()
    leader.hear_all()
    world.kuberay()
    for _ in range(2):
        leader.hear("pods", 1)
        world.api.now += 1.0
        leader.tick()
        assert leader.state.known.views[key("a")].reservation.reserved.slots.total() == 4
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_nothing_is_foreseen_before_all_rules_of_admission_are_known() -> None:
    world = World(node("n1", cpu=4))
    world.leader.state.known.cache.admission.unlisted.add(LimitRange)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert not had_pods(world.api, "a")
    assert "waiting for the list of all LimitRange objects" in world.status("a")["message"]
    world.leader.handle([AdmissionRulesListed(LimitRange)])
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_pods_that_are_to_come_count_for_the_affinity_of_others() -> None:
    """Gang b keeps away from the pods of a, which do not exist yet and have their slots."""
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {}}}
    apart["labelSelector"] = {"matchLabels": {names.RAY_CLUSTER: "a"}}
    away = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    world = World(node("n1", labels={"kubernetes.io/hostname": "n1"}))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act_all()
    leader.hear_all()
    assert (phase_of(world), world.pods("a")) == ("Waiting", [])
    b = ray_cluster("b", head=template(affinity=away))
    world.create(b)
    made = world.api.get(Key("rayclusters", TEAM, "b"))
    world._make_pod(made, {"groupName": names.RAY_HEAD_GROUP, **made["spec"]["headGroupSpec"]}, "")
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    assert phase_of(world) == "Resumed"
    assert "placement" not in world.status("b")


def test_more_pods_than_can_be_kept_in_memory_are_judged_when_others_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A RayCluster of a few lines may ask for 20,000 pods, of which none has to exist."""
    monkeypatch.setattr(foreseen_gangs, "MOST_OF_A_NAMESPACE", 8)
    world = World(node("n1", cpu=1))
    world.create(held_gang("a", 3), held_gang("b", 3))
    world.settle(seconds=5)
    world.create(held_gang("c", 3))
    world.settle(seconds=5)
    status = world.status("c")
    assert status["reason"] == "Held"
    assert "its pods (4) are judged when fewer pods of held gangs wait" in status["message"]
    assert not world.leader.state.known.views[key("c")].held.expected.foresight.pods
    world.delete("rayclusters", "a")
    world.settle(seconds=10)
    assert world.status("c")["reason"] == "NeverFits"


def pods_counted(monkeypatch: pytest.MonkeyPatch, gangs: int) -> int:
    """Count how often the pods of a pod set are held against quotas while gangs are placed."""
    count, needed = 0, namespace_quota._needed

    def counted(pod_sets: Any) -> Any:
        nonlocal count
        count += len(pod_sets)
        return needed(pod_sets)

    monkeypatch.setattr(namespace_quota, "_needed", counted)
    world = World(node("n1", cpu=100), quota(1000))
    stopped_kuberay(world)
    world.create(*(held_gang(f"a{at:02}", 1) for at in range(gangs)))
    world.settle(seconds=5)
    assert not any(is_suspended(world.api, f"a{at:02}") for at in range(gangs))
    return count


def test_what_a_gang_costs_does_not_grow_with_the_others_that_are_being_created(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as few:
        of_few = pods_counted(few, 4)
    with monkeypatch.context() as many:
        assert pods_counted(many, 16) <= 5 * of_few
