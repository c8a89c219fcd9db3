"""Held gangs: their RayCluster is suspended until they are admitted, and no pod exists before."""

from typing import Any

import msgspec
import pytest

from coordinator.cluster import foreseen_gangs
from coordinator.gang.held_start.learned_pods import LEARNED_FOR
from coordinator.messages.actions import (
    DeletePod,
    EvictPod,
    FencePod,
    ReleasePod,
    ResumeRayCluster,
    SuspendRayCluster,
    WakeKubeRay,
    WriteGangStatus,
)
from coordinator.messages.events import AdmissionRulesListed
from kube.api.errors import Forbidden
from kube.foreseen import namespace_quota
from kube.foreseen.gang import NeverAdmitted, Unforeseeable, is_foreseen
from kube.objects import names
from kube.objects.admission import LimitRange
from tests.coordinator.api import Key, Outcome
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
from tests.coordinator.deeds import opt
from tests.coordinator.held import cluster_of, had_pods, held, held_gang, is_suspended
from tests.coordinator.journeys.test_queues import queue
from tests.coordinator.stopping import choose_whole, condition
from tests.coordinator.world import Replica, World, key


def phase_of(world: World, name: str = "a") -> str:
    """The phase of the held start as the record has it."""
    said: dict[str, Any] = world.status(name).get("held", {})
    return str(said.get("phase", ""))


def sent(world: World, kind: type) -> int:
    return sum(isinstance(each, kind) for replica in world.replicas for each in replica.log)


def set_suspend(world: World, value: bool, name: str = "a") -> None:
    """Have a person set the field."""
    world.edit(name, suspend=value)


def crowded(*clusters: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A world whose one node is full of gang b, which holds 4 CPUs."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(*clusters)
    world.settle(seconds=30)
    return world


def test_a_held_gang_that_fits_not_has_no_pods_and_runs_whole_once_there_is_room() -> None:
    world = crowded(held_gang("a", 3))
    assert not had_pods(world.api, "a")
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert status["position"] == 1
    assert phase_of(world) == "Waiting"
    assert all("gated" not in each for each in status["podSets"])

    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    assert world.status("a")["phase"] == "Running"
    assert phase_of(world) == "Resumed"
    assert names.HELD not in cluster_of(world.api, "a")["metadata"]["annotations"]


def test_it_is_resumed_only_after_its_placement_is_written() -> None:
    world = World(node("n1"))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()  # the Gang
    leader.cycle()
    assert [type(each) for each in leader.todo] == [WriteGangStatus]
    leader.act(outcome=Outcome.UNSENT)
    assert not any(isinstance(each, ResumeRayCluster) for each in leader.todo)
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    assert (sent(world, ResumeRayCluster), sent(world, SuspendRayCluster)) == (1, 0)


def test_nothing_is_ever_written_to_a_foreseen_pod() -> None:
    world = crowded(held_gang("a", 3), held_gang("c", 1), replicas=2)
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=30)
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    pods = [
        each.pod.metadata.name if isinstance(each, ReleasePod | FencePod) else each.name
        for replica in world.replicas
        for each in replica.log
        if isinstance(each, ReleasePod | FencePod | DeletePod | EvictPod)
    ]
    assert pods
    assert not [name for name in pods if "~" in name]
    heads = [each for replica in world.replicas for each in replica.echoed if each.regarding]
    assert not [each for each in heads if each.regarding and "~" in each.regarding.name]


def test_a_gang_whose_placement_is_written_keeps_its_room_until_its_pods_come() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act_all()
    leader.hear_all()  # resumed; KubeRay is slow
    assert not is_suspended(world.api, "a")
    world.create(gang_of("b", 0))
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    assert phase_of(world) == "Resumed"
    assert "0 of 4 pods exist" in world.status("a")["message"]
    assert "lost pod" not in world.status("a")["message"]
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}
    assert world.status("b")["phase"] == "Queued"


def test_pods_that_come_one_by_one_are_released_together() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    leader = world.leader
    leader.hear_all()
    leader.act()
    leader.cycle()
    leader.act_all()
    leader.hear_all()
    world.kuberay()
    for _ in range(3):
        leader.hear("pods", 1)
        leader.act_all()
        leader.cycle()
        assert not leader.releases()
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def stopped_kuberay(world: World) -> None:
    world.kuberay = lambda: None  # type: ignore[method-assign]


def test_where_no_pods_come_it_is_suspended_again_and_others_get_the_room() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    stopped_kuberay(world)
    world.settle(seconds=20)
    assert phase_of(world) == "Resumed"
    world.settle(seconds=45)
    assert sent(world, SuspendRayCluster) == 1
    assert "placement" not in world.status("a")
    assert "is KubeRay running?" in world.status("a")["message"]


def test_kuberay_is_woken_once_where_it_does_not_look_again_by_itself() -> None:
    """It makes no pod for 30 s where the last one was gone before its cache showed it."""
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    make_pods = world.kuberay

    def only_when_woken() -> None:
        if names.WOKEN in cluster_of(world.api, "a")["metadata"].get("annotations", {}):
            make_pods()

    world.kuberay = only_when_woken  # type: ignore[method-assign]
    world.settle(seconds=30)
    assert sent(world, WakeKubeRay) == 0
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}
    assert (sent(world, WakeKubeRay), sent(world, SuspendRayCluster)) == (1, 0)


def test_a_kuberay_that_is_gone_is_woken_no_more_than_once() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3))
    stopped_kuberay(world)
    world.settle(seconds=55)
    assert (sent(world, WakeKubeRay), phase_of(world)) == (1, "Resumed")


def test_a_new_leader_goes_on_in_every_state() -> None:
    """At each point of the way another replica takes over, and the gang runs whole."""
    for steps in range(14):
        world = World(node("n1", cpu=4), replicas=2)
        world.create(held_gang("a", 3))
        leader = world.replicas[0]
        for _ in range(steps):
            if leader.todo:
                leader.act()
            elif leader.watch.waiting():
                leader.hear_all()
            elif leader.state.cycle_wanted:
                leader.cycle()
            else:
                world.controllers()
        leader.restart()
        world.elect(1)
        world.settle(seconds=60)
        assert world.bound("a") == {"n1": 4}, steps
        assert phase_of(world) == "Resumed", steps
        assert sent(world, SuspendRayCluster) == 0, steps


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_person_who_resumes_it_has_its_pods_gated_and_decided_as_ever(replicas: int) -> None:
    world = crowded(held_gang("a", 3), replicas=replicas)
    set_suspend(world, False)
    world.settle(seconds=30)
    assert (world.gated("a"), phase_of(world)) == (4, "")
    if replicas > 1:
        world.elect(1)
        world.settle(seconds=30)
    assert world.gated("a") == 4
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_person_who_suspends_it_while_it_runs_keeps_it_suspended(replicas: int) -> None:
    world = World(node("n1", cpu=4), replicas=replicas)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    set_suspend(world, True)
    world.settle(seconds=30)
    if replicas > 1:
        world.elect(1)
        world.settle(seconds=30)
    assert is_suspended(world.api, "a")
    assert (world.status("a")["reason"], phase_of(world)) == ("Suspended", "")
    set_suspend(world, False)
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_a_persons_own_suspension_is_left_alone() -> None:
    world = World(node("n1", cpu=4))
    cluster = gang_of("a", 3, annotations={names.CREATE_PODS: names.CREATE_WHEN_ADMITTED})
    cluster["spec"]["suspend"] = True
    world.create(cluster)
    world.settle(seconds=60)
    assert is_suspended(world.api, "a")
    assert world.status("a")["reason"] == "Suspended"


@pytest.mark.parametrize("replicas", [1, 2])
def test_an_opt_out_resumes_it_and_leaves_nothing(replicas: int) -> None:
    world = crowded(held_gang("a", 3), replicas=replicas)
    opt(world, "false")
    if replicas > 1:
        world.elect(1)
    world.settle(seconds=30)
    assert not is_suspended(world.api, "a")
    assert len(world.pods("a")) == 4
    assert world.gated("a") == 0
    assert not [each for each in world.api.all("gangs") if each["metadata"]["name"] == "a"]


def test_an_opt_out_before_the_first_look_resumes_it_too() -> None:
    world = World(node("n1", cpu=4))
    world.create(held_gang("a", 3, labels={names.OPT_IN: "false"}))
    world.settle(seconds=30)
    assert not is_suspended(world.api, "a")
    assert world.bound("a") == {"n1": 4}


def test_when_it_is_deleted_its_gang_goes_and_nothing_is_kept() -> None:
    world = crowded(held_gang("a", 3))
    world.delete("rayclusters", "a")
    world.settle(seconds=30)
    assert [each["metadata"]["name"] for each in world.api.all("gangs")] == ["b"]


def test_an_edited_template_is_decided_anew() -> None:
    world = crowded(held_gang("a", 3))
    groups = msgspec.to_builtins(cluster_of(world.api, "a")["spec"]["workerGroupSpecs"])
    groups[0]["replicas"] = 0
    world.edit("a", workerGroupSpecs=groups)
    world.scale("b", 2)
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 1}


def test_create_pods_always_resumes_it_at_once() -> None:
    world = crowded(held_gang("a", 3))
    cluster = cluster_of(world.api, "a")
    world.api.change(
        cluster, lambda obj: obj["metadata"]["annotations"].update({names.CREATE_PODS: "always"})
    )
    world.settle(seconds=30)
    assert (world.gated("a"), phase_of(world)) == (4, "")


def with_injected(world: World, extra: int) -> None:
    """Have a foreign webhook add a container of so many CPUs to every pod of a."""
    made = world._make_pod

    def make_pod(cluster: Json, pod_set: Json, replica: str) -> None:
        side_car = {"name": "proxy", "resources": {"requests": {"cpu": str(extra)}}}
        template = msgspec.to_builtins(pod_set["template"])
        template["spec"]["containers"] = [*template["spec"]["containers"], side_car]
        made(cluster, {**pod_set, "template": template}, replica)

    world._make_pod = make_pod  # type: ignore[method-assign]


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


def quota(pods: int, used: int = 0) -> Json:
    return {
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": TEAM},
        "spec": {"hard": {"pods": str(pods)}},
        "status": {"hard": {"pods": str(pods)}, "used": {"pods": str(used)}},
    }


def test_a_quota_of_the_namespace_keeps_it_waiting_and_nothing_is_created() -> None:
    world = World(node("n1", cpu=4), quota(3))
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert not had_pods(world.api, "a")
    status = world.status("a")
    assert status["reason"] == "PodsRefused"
    assert "ResourceQuota few: the gang needs 4 of pods; 3 of 3 are left" in status["message"]

    raised = next(world.api.all("resourcequotas"))
    world.api.change(raised, lambda obj: obj.update(quota(4) | {"metadata": obj["metadata"]}))
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_queues_count_it_and_evictions_of_it_need_no_pods() -> None:
    world = crowded(held_gang("a", 3))
    assert world.leader.state.known.reports.census.pending["default"] == 1
    assert is_foreseen(world.leader.state.known.views[key("a")].held.expected.foresight.pods[0])


LOWER = {"withinQueue": "LowerPriority"}
IN_TEAM = {names.OPT_IN: "true", names.QUEUE: "team"}


def urgent(name: str, workers: int) -> Json:
    """A Ray cluster of priority 10 in the queue team."""
    workers_of_it = group("workers", workers, priority=10)
    return ray_cluster(name, workers_of_it, head=template(priority=10), labels=IN_TEAM)


def test_a_held_gang_may_stop_others_and_starts_in_their_room() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(gang_of("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    world.create(held(urgent("p", 3)))
    world.settle(seconds=60)
    assert world.bound("p") == {"n1": 4}
    assert world.status("low")["phase"] == "Queued"


def test_a_held_gang_that_is_stopped_for_another_is_suspended_again_and_comes_back() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    world.create(urgent("p", 3))
    world.settle(seconds=60)
    assert world.bound("p") == {"n1": 4}
    assert (is_suspended(world.api, "low"), world.pods("low")) == (True, [])
    assert phase_of(world, "low") == "Waiting"
    assert world.status("low")["phase"] == "Queued"

    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.bound("low") == {"n1": 4}


def test_a_held_gang_that_has_a_placement_and_no_pods_is_stopped_at_once() -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(held_gang("low", 3, labels=IN_TEAM))
    leader = world.leader
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all_but(ResumeRayCluster)
    while any(isinstance(each, ResumeRayCluster) for each in leader.todo):
        leader.act(outcome=Outcome.UNSENT)
    assert "placement" in world.status("low")
    world.create(urgent("p", 3))
    world.kuberay()
    leader.hear_all()
    leader.act_all_but(ResumeRayCluster)
    choose_whole(world, "p", "low")
    assert leader.state.known.views[key("low")].eviction.last is not None
    leader.act_all_but(ResumeRayCluster)
    assert "placement" not in world.status("low")
    assert not had_pods(world.api, "low")


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


def test_a_new_leader_does_not_judge_an_older_raycluster_by_a_newer_phase() -> None:
    """Its watch of RayClusters is behind: it looks as if others had suspended a resumed one."""
    world = World(node("n1", cpu=4), replicas=2)
    world.create(held_gang("a", 3))
    world.replicas[1].hear_all()
    world._work(world.replicas[0])
    world._work(world.replicas[0])
    world._work(world.replicas[0])
    assert phase_of(world) == "Resumed"
    world.replicas[0].restart()
    follower = world.elect(1, hear="gangs")
    follower.act_all()
    follower.cycle()
    follower.act_all()
    assert phase_of(world) == "Resumed"
    assert "placement" in world.status("a")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_one_that_others_resumed_and_suspended_is_theirs_also_for_a_new_leader() -> None:
    """Muster's note stays on the RayCluster where others resume it."""
    world = crowded(held_gang("a", 3), replicas=2)
    set_suspend(world, False)
    world.settle(seconds=30)
    set_suspend(world, True)
    world.settle(seconds=30)
    assert cluster_of(world.api, "a")["metadata"]["annotations"][names.HELD] == "true"
    world.elect(1)
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert is_suspended(world.api, "a")
    assert world.status("a")["reason"] == "Suspended"


def about_to_suspend() -> tuple[World, Replica]:
    """A gang whose pods came too large: its leader, the first of two, has its suspension to do."""
    world = World(node("n1", cpu=6), replicas=2)
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    first = world.replicas[0]
    for _ in range(60):
        if any(isinstance(each, SuspendRayCluster) for each in first.todo):
            return world, first
        world.api.now += 1.0
        world.controllers()
        first.hear_all()
        first.tick()
        first.cycle()
        first.act_all_but(SuspendRayCluster)
    raise AssertionError("its suspension was not asked for within a minute")


def test_a_suspension_that_arrives_late_does_not_end_a_gang_that_runs() -> None:
    world, first = about_to_suspend()
    first.act(outcome=Outcome.HELD)
    first.restart()
    world.elect(1)
    world.settle(seconds=30)
    assert phase_of(world) == "Waiting"
    world.create(node("n2", cpu=6))
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    assert first.client.let_go() is not None  # refused
    world.settle(seconds=30)
    assert world.status("a")["phase"] == "Running"


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


def test_a_quota_is_not_given_to_another_while_pods_are_to_come() -> None:
    world = World(node("n1", cpu=8), quota(4), replicas=1)
    world.create(held_gang("a", 3))
    leader = world.leader
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    world.create(held_gang("b", 3))
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    assert (phase_of(world, "a"), is_suspended(world.api, "b")) == ("Resumed", True)


def test_one_that_waits_for_a_quota_is_looked_at_when_another_goes_before_its_pods_come() -> None:
    """No quota changes then: only what the other was promised of it is free again."""
    world = World(node("n1", cpu=8), quota(4))
    world.create(held_gang("a", 3))
    creates = world.kuberay
    stopped_kuberay(world)
    world.settle(seconds=5)
    world.create(held_gang("b", 3))
    world.settle(seconds=5)
    assert "with those of 1 other gang that is being created" in world.status("b")["message"]
    world.delete("rayclusters", "a")
    world.kuberay = creates  # type: ignore[method-assign]
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 4}


def test_gangs_that_were_placed_in_one_cycle_get_a_quota_in_that_order() -> None:
    world = World(node("n1", cpu=16), quota(4))
    world.create(held_gang("a", 3), held_gang("b", 3), held_gang("c", 3))
    stopped_kuberay(world)
    world.settle(seconds=5)
    assert [is_suspended(world.api, name) for name in "abc"] == [False, True, True]


def without_pods(world: World, *names_of_it: str) -> None:
    """Have nothing create pods of these RayClusters."""
    made = world._make_pod

    def make_pod(cluster: Json, *more: Any) -> None:
        if cluster["metadata"]["name"] not in names_of_it:
            made(cluster, *more)

    world._make_pod = make_pod  # type: ignore[method-assign, assignment]


def times_stopped(world: World, name: str, seconds: int) -> int:
    """Count how often a gang that runs is stopped in a time."""
    end, runs, stopped = world.api.now + seconds, True, 0
    while world.api.now < end:
        world.settle(seconds=20)
        ran, runs = runs, bool(world.bound(name))
        stopped += ran and not runs
    return stopped


@pytest.mark.parametrize("replicas", [1, 2])
def test_one_whose_pods_never_come_stops_others_ever_more_rarely(replicas: int) -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), replicas=replicas)
    world.create(gang_of("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    without_pods(world, "p")
    world.create(held(urgent("p", 3)))
    assert times_stopped(world, "low", 400) == 1
    held_back = world.status("p")["held"]
    assert held_back["failures"] == 1
    assert held_back["until"]
    if replicas > 1:
        world.leader.resign()
        world.elect(1)
    assert times_stopped(world, "low", 3600) <= 3
    assert world.status("p")["held"]["failures"] > 1
    assert world.bound("low") == {"n1": 4}


def test_one_whose_pods_did_not_come_waits_behind_others_until_they_come() -> None:
    world = World(node("n1", cpu=4))
    made = world._make_pod
    without_pods(world, "a")
    world.create(held_gang("a", 3))
    world.settle(seconds=80)
    assert world.status("a")["held"]["failures"] == 1
    world.create(gang_of("b", 3))
    world.settle(seconds=40)
    assert world.bound("b") == {"n1": 4}
    world._make_pod = made  # type: ignore[method-assign]
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}
    assert "failures" not in world.status("a")["held"]


def lost_gang(world: World, name: str) -> None:
    """Lose the Gang of a RayCluster while the coordinator is away, as a restored backup does."""
    world.leader.restart()
    world.delete("gangs", name)
    world.elect(1)


@pytest.mark.parametrize("opted_out", [False, True])
def test_one_that_was_suspended_again_is_known_without_its_gang(opted_out: bool) -> None:
    """Also where Muster is removed: no RayCluster stays suspended by it."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), replicas=2)
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    assert names.HELD not in cluster_of(world.api, "low")["metadata"]["annotations"]
    world.create(urgent("p", 3))
    world.settle(seconds=60)
    assert is_suspended(world.api, "low")
    lost_gang(world, "low")
    world.settle(seconds=30)
    assert phase_of(world, "low") == "Waiting"
    if opted_out:
        opt(world, "false", "low")
        world.settle(seconds=30)
        assert not is_suspended(world.api, "low")
    world.delete("rayclusters", "p")
    world.settle(seconds=60)
    assert world.bound("low") == {"n1": 4}


def sleeps_unless_resumed(world: World) -> None:
    """Have KubeRay make no pods of what it has put to sleep before the field is an explicit false.

    A field that is removed does not wake it.
    """
    made, kuberay, asleep = world._make_pod, world.kuberay, set[str]()

    def make_pod(cluster: Json, *more: Any) -> None:
        if cluster["metadata"]["name"] not in asleep:
            made(cluster, *more)

    def put_to_sleep() -> None:
        for cluster in world.api.all("rayclusters"):
            said = cluster["spec"].get("suspend")
            if said is not None:
                (asleep.add if said else asleep.discard)(cluster["metadata"]["name"])
        kuberay()

    world._make_pod = make_pod  # type: ignore[method-assign, assignment]
    world.kuberay = put_to_sleep  # type: ignore[method-assign]


def replaced_by_copy(world: World, name: str = "a") -> None:
    """Have a client put its own copy, without the field, in place of a RayCluster."""
    world.api.change(cluster_of(world.api, name), lambda obj: obj["spec"].pop("suspend"))


@pytest.mark.parametrize("opted_out", [False, True])
def test_one_that_is_replaced_by_a_copy_without_the_field_does_not_sleep_for_ever(
    opted_out: bool,
) -> None:
    world = World(node("n1", cpu=4))
    sleeps_unless_resumed(world)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    replaced_by_copy(world)
    world.settle(seconds=30)
    if opted_out:
        opt(world, "false")
        world.settle(seconds=30)
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 4}


@pytest.mark.parametrize("was_resumed", [False, True])
def test_a_record_of_an_earlier_release_does_not_make_it_a_persons(was_resumed: bool) -> None:
    """That release led for a moment, or the Gangs' definition is of it: the field is not there."""
    world = crowded(held_gang("a", 3), replicas=2)
    if was_resumed:
        set_suspend(world, False)
        world.settle(seconds=30)
        set_suspend(world, True)
        world.settle(seconds=30)
    world.leader.restart()
    gang = world.api.get(Key("gangs", TEAM, "a"))
    world.api.change(gang, lambda obj: obj["status"].pop("held", None), "status")
    world.elect(1)
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert is_suspended(world.api, "a") is was_resumed


def dropping_held(world: World) -> None:
    """Have the API server keep nothing that the Gangs' definition of an earlier release lacks."""
    update = world.api._update

    def pruned(at: Key, old: Json, asked: Json, subresource: str) -> Json:
        status = {key: said for key, said in asked.get("status", {}).items() if key != "held"}
        return update(at, old, {**asked, "status": status} if status else asked, subresource)

    world.api._update = pruned  # type: ignore[method-assign, assignment]


@pytest.mark.parametrize("replicas", [1, 2])
def test_where_its_phase_cannot_be_written_it_is_not_held(replicas: int) -> None:
    world = World(node("n1", cpu=4), replicas=replicas)
    dropping_held(world)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(held_gang("a", 3))
    world.settle(seconds=30)
    assert (is_suspended(world.api, "a"), world.gated("a")) == (False, 4)
    told = condition(world, "a", "StartHeld")
    assert (told["status"], told["reason"]) == ("False", "NotHeld")
    assert "their definition (CRD) is of an earlier release" in told["message"]
    writes = sent(world, WriteGangStatus)
    world.settle(seconds=300)
    assert sent(world, WriteGangStatus) - writes <= 5
    if replicas > 1:
        world.leader.resign()
        world.elect(1)
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert world.bound("a") == {"n1": 4}


def test_where_its_phase_is_lost_once_it_was_resumed_it_is_not_suspended_again() -> None:
    """The definition was replaced by that of an earlier release while it started."""
    world = World(node("n1", cpu=6))
    with_injected(world, 1)
    world.create(held_gang("a", 3))
    leader = world.leader
    for _ in range(3):
        leader.hear_all()
        leader.cycle()
        leader.act_all()
    assert phase_of(world) == "Resumed"
    dropping_held(world)
    world.settle(seconds=60)
    assert (sent(world, SuspendRayCluster), world.gated("a")) == (0, 4)
    assert world.status("a")["reason"] == "NeverFits"


def test_a_suspension_that_was_only_decided_is_dropped_where_its_pods_run_by_now() -> None:
    """The coordinator was away, and the gates were taken off by hand."""
    world, first = about_to_suspend()
    assert phase_of(world) == "Suspending"
    first.restart()
    world.create(node("n2", cpu=6))
    for pod in world.pods("a"):
        world.api.change(pod, lambda obj: obj["spec"].pop("schedulingGates"))
    world.controllers()
    assert sum(world.bound("a").values()) == 4
    ran = {pod["metadata"]["uid"] for pod in world.pods("a")}
    world.elect(1)
    world.settle(seconds=30)
    assert {pod["metadata"]["uid"] for pod in world.pods("a")} == ran


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


def test_a_resumption_that_changes_nothing_gives_its_room_to_others() -> None:
    """A policy of others keeps the field as it is; the API server says that all is well."""
    world = World(node("n1", cpu=4))
    update = world.api._update

    def kept(at: Key, old: Json, asked: Json, subresource: str) -> Json:
        if at.plural == "rayclusters" and at.name == "a":
            asked = {**asked, "spec": {**asked["spec"], "suspend": True}}
        return update(at, old, asked, subresource)

    world.api._update = kept  # type: ignore[method-assign, assignment]
    world.create(held_gang("a", 3))
    world.settle(seconds=60)
    world.create(gang_of("b", 3))
    world.settle(seconds=300)
    assert world.bound("b") == {"n1": 4}
    said = "it could not be resumed: the API server took it and changed nothing"
    assert said in world.status("a")["message"]
    world.delete("rayclusters", "b")
    world.api._update = update  # type: ignore[method-assign]
    world.settle(seconds=120)
    assert world.bound("a") == {"n1": 4}


@pytest.mark.parametrize("others", [{}, {"example.com/owner": "me"}])
def test_the_note_of_a_suspension_leaves_other_annotations_alone(others: Json) -> None:
    """Of annotations of others it is only known that there are some."""
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER))
    world.create(held_gang("low", 3, labels=IN_TEAM))
    world.settle(seconds=30)
    low = cluster_of(world.api, "low")
    world.api.change(low, lambda obj: obj["metadata"].update(annotations=others))
    world.create(urgent("p", 3))
    world.settle(seconds=60)
    after = cluster_of(world.api, "low")
    assert after["spec"]["suspend"] is True
    assert after["metadata"]["annotations"] == {**others, names.HELD: "true"}


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
