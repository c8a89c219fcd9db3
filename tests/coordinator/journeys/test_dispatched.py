"""Gangs that other clusters run: order and quota are decided here, and nothing else."""

import msgspec
import pytest

from coordinator.messages.actions import (
    EmitEvent,
    EvictPod,
    ReleasePod,
    ResumeRayCluster,
    SuspendRayCluster,
    WriteGangStatus,
)
from kube.objects import names
from kube.objects.clusters.dispatch import is_its_turn, is_to_end
from kube.objects.gang import GangStatus
from tests.coordinator.api import Key
from tests.coordinator.builders import node
from tests.coordinator.dispatches import (
    closed,
    dispatch,
    far,
    manager,
    runs,
    said,
    sent,
    suspend,
    used,
)
from tests.coordinator.journeys.queues.test_order import aged
from tests.coordinator.journeys.queues.worlds import (
    change,
    conditions,
    found,
    gang_in,
    queue,
)
from tests.coordinator.world import World

LOWER = {"withinQueue": "LowerPriority"}
HIGH = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}


def status(world: World, name: str) -> GangStatus:
    return msgspec.convert(world.status(name), GangStatus)


def urgent(name: str, workers: int = 1) -> dict[str, object]:
    made = sent(name, workers)
    for each in (made["spec"]["headGroupSpec"], *made["spec"]["workerGroupSpecs"]):
        each["template"]["spec"] |= {"priorityClassName": "high", "priority": 7}
    return made


# ---- order and quota


def test_quota_is_reserved_in_order_and_nothing_is_written_to_what_another_cluster_runs() -> None:
    world = manager(sent("a"), sent("b"), sent("c"))
    assert [said(world, each) for each in "abc"] == [
        ("QuotaReserved", "QuotaReserved"),
        ("QuotaReserved", "QuotaReserved"),
        ("Queued", "QuotaExceeded"),
    ]
    assert [is_its_turn(status(world, each)) for each in "abc"] == [True, True, False]
    assert used(world) == {"cpu": "4000m"}
    assert not world.pods()
    kinds = (ReleasePod, EvictPod, ResumeRayCluster, SuspendRayCluster)
    assert not [each for each in world.leader.log if isinstance(each, kinds)]


def test_an_event_tells_of_its_turn_if_no_cluster_takes_it_soon() -> None:
    world = World(far(cpu=4))
    world.create(sent("a"), sent("b"))
    world.settle(seconds=1)
    dispatch(world, "a", cluster="east", phase="Offered")
    dispatch(world, "a", phase="Started")
    told = [each for each in world.leader.log if isinstance(each, EmitEvent)]
    assert {(each.key.name, each.reason) for each in told} == {("b", "QuotaReserved")}


@pytest.mark.parametrize("rule", ["Strict", "BestEffort"])
def test_what_may_pass_a_gang_that_waits_for_quota_is_the_rule_of_the_queue(rule: str) -> None:
    world = manager(sent("a", 2), sent("big", 2), sent("small", 0), whenBlocked=rule)
    passed = "Queued" if rule == "Strict" else "QuotaReserved"
    assert [said(world, each)[0] for each in ("a", "big", "small")] == [
        "QuotaReserved",
        "Queued",
        passed,
    ]


def test_a_gang_of_another_cluster_runs_where_the_dispatcher_says() -> None:
    world = manager(sent("a"))
    dispatch(world, "a", phase="Asked")
    assert said(world, "a")[0] == "QuotaReserved"
    dispatch(world, "a", phase="Offered", cluster="east")
    assert said(world, "a") == ("Admitted", "Admitted")
    assert "cluster east" in world.status("a")["message"]
    dispatch(world, "a", phase="Started")
    assert said(world, "a") == ("Running", "Running")
    assert world.status("a")["message"] == "it runs on cluster east"
    dispatch(world, "a", message="east is not connected")
    assert "east is not connected" in world.status("a")["message"]
    assert not is_to_end(status(world, "a"))


def test_that_a_cluster_has_room_is_written_where_it_does_not_start_within_a_second() -> None:
    world = manager(sent("a"), sent("b"))
    for name, seconds in (("a", 0.5), ("b", 1.5)):
        dispatch(world, name, seconds=seconds, phase="Offered", cluster="east")
        dispatch(world, name, phase="Started")
    written = [each for each in world.leader.log if isinstance(each, WriteGangStatus)]
    said_of = {
        name: [each.status["phase"] for each in written if each.key.name == name] for name in "ab"
    }
    assert said_of == {
        "a": ["QuotaReserved", "Running"],
        "b": ["QuotaReserved", "Admitted", "Running"],
    }


def test_why_it_is_not_whole_where_it_runs_is_said_with_the_cluster() -> None:
    world = manager(sent("a"))
    runs(world, "a")
    dispatch(world, "a", reason="BelowMinimum", message="1 of 3 workers run")
    assert said(world, "a") == ("Running", "BelowMinimum")
    assert world.status("a")["message"] == "on cluster east: 1 of 3 workers run"
    assert not is_to_end(status(world, "a"))
    assert used(world) == {"cpu": "2000m"}
    (ready,) = (each for each in world.status("a")["conditions"] if each["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "BelowMinimum")
    assert len([e for e in world.leader.emitted if e.reason == "BelowMinimum"]) == 1
    dispatch(world, "a", reason="OfANewerRelease", message="so it is")
    assert said(world, "a") == ("Running", "Running")
    text = "it runs on cluster east: OfANewerRelease: so it is"
    assert world.status("a")["message"] == text
    dispatch(world, "a", reason="", message="")
    assert world.status("a")["message"] == "it runs on cluster east"


def test_it_needs_no_nodes_whatever_its_templates_ask_of_them() -> None:
    made = sent("a")
    for each in (made["spec"]["headGroupSpec"], *made["spec"]["workerGroupSpecs"]):
        each["template"]["spec"] |= {
            "nodeSelector": {"gpu": "b200"},
            "hostNetwork": True,
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": "one"}],
        }
    world = manager(made)
    assert said(world, "a")[0] == "QuotaReserved"


def test_it_takes_no_room_of_nodes_that_are_here() -> None:
    world = manager(node("n1", cpu=2), queue("near", 100), sent("a", 3))
    world.create(gang_in("near", "b", 1))
    world.settle(seconds=5)
    assert said(world, "a")[0] == "QuotaReserved"
    assert said(world, "b") == ("Running", "Running")


def test_quota_that_a_parent_lends_is_counted_for_both_kinds_of_queues() -> None:
    world = World(
        node("n1", cpu=100),
        queue("all", 4),
        far(0, parent="all"),
        queue("near", 0, parent="all"),
    )
    world.create(sent("a", 2))
    world.settle(seconds=5)
    world.create(gang_in("near", "b", 1))
    world.settle(seconds=5)
    assert said(world, "a")[0] == "QuotaReserved"
    assert said(world, "b") == ("Queued", "QuotaExceeded")


def test_a_queue_whose_gangs_leave_lost_clusters_tells_the_price() -> None:
    world = manager(whenClusterLost="Requeue")
    (found,) = (
        each
        for each in world.api.get(Key("gangqueues", "", "far"))["status"]["conditions"]
        if each["type"] == "OutlastsManager"
    )
    assert (found["status"], found["reason"]) == ("False", "StopsWhenLost")
    assert "is away for 900 s" in found["message"]
    assert "OutlastsManager" not in conditions(manager(), "far")


def test_rules_about_nodes_are_said_not_to_apply_and_nothing_ages() -> None:
    world = manager(
        sent("a", 2), sent("big", 3), whenBlocked="BestEffort", ageing={"maxWaitSeconds": 10}
    )
    runs(world, "a")
    world.settle(seconds=60)
    said_of = conditions(world, "far")
    assert said_of["NodeRulesApply"] == ("False", "RunsElsewhere")
    assert not aged(world, "big")
    world.create(sent("small", 0))
    world.settle(seconds=5)
    assert said(world, "small")[0] == "QuotaReserved"
    assert "NodeRulesApply" not in conditions(manager(), "far")


def test_a_gang_that_no_cluster_has_room_for_lets_others_have_its_quota_for_a_time() -> None:
    world = manager(sent("big", 3), sent("small", 0), whenBlocked="BestEffort")
    dispatch(world, "big", phase="Asked")
    world.settle(seconds=30)
    assert said(world, "big")[0] == "QuotaReserved"
    assert said(world, "small") == ("Queued", "QuotaExceeded")
    world.settle(seconds=40)
    assert said(world, "big") == ("Queued", "Held")
    assert "no cluster had room" in world.status("big")["message"]
    assert said(world, "small")[0] == "QuotaReserved"
    assert is_to_end(status(world, "big"))
    closed(world, "big")
    world.delete("rayclusters", "small")
    world.settle(seconds=60)
    assert said(world, "big")[0] == "QuotaReserved"
    world.settle(seconds=300)
    assert said(world, "big")[0] == "QuotaReserved"  # nobody waits for it


def test_a_strict_queue_waits_for_a_cluster_with_room() -> None:
    world = manager(sent("big", 3), sent("small", 0))
    world.settle(seconds=300)
    assert said(world, "big")[0] == "QuotaReserved"
    assert said(world, "small")[0] == "Queued"


# ---- closed


def test_a_gang_whose_attempt_is_closed_waits_anew_in_its_old_place() -> None:
    world = manager(sent("a", 3), sent("b", 3))
    runs(world, "a")
    assert said(world, "b") == ("Queued", "QuotaExceeded")
    closed(world, "a", "east: RoomLost: node n1 is gone")
    assert said(world, "a")[0] == "QuotaReserved"  # it came first
    assert said(world, "b")[0] == "Queued"
    assert "back from cluster east: RoomLost" in world.status("a")["message"]
    assert world.status("a")["dispatchAfter"] == 1
    assert is_its_turn(status(world, "a"))
    dispatch(world, "a", attempt=2, phase="Asked", cluster="", message="")
    dispatch(world, "a", phase="Offered", cluster="west")
    assert "back from" not in world.status("a")["message"]


def test_a_new_leader_keeps_the_quota_of_what_runs_and_hears_of_what_was_closed() -> None:
    world = manager(sent("a"), sent("b"), replicas=2)
    runs(world, "a")
    runs(world, "b", "west")
    world.elect(1)
    world.settle(seconds=5)
    assert [said(world, each)[0] for each in "ab"] == ["Running", "Running"]
    assert used(world) == {"cpu": "4000m"}
    world.replicas[1].resign()
    closed(world, "a")
    world.create(sent("c"))
    world.elect(0)
    world.settle(seconds=5)
    assert [said(world, each)[0] for each in "abc"] == ["QuotaReserved", "Running", "Queued"]
    assert world.status("a")["dispatchAfter"] == 1


# ---- stopped


def test_preemption_takes_quota_and_what_runs_elsewhere_keeps_its_own_until_it_is_closed() -> None:
    world = manager(HIGH, sent("a", 3), preemption=LOWER)
    runs(world, "a")
    world.create(urgent("b", 3))
    world.settle(seconds=5)
    assert said(world, "a") == ("Preempting", "Preempted")
    assert "ends on cluster east first" in world.status("a")["message"]
    assert is_to_end(status(world, "a"))
    assert said(world, "b") == ("Queued", "Preempting")
    assert used(world) == {"cpu": "4000m"}
    world.settle(seconds=600)
    assert said(world, "b")[0] == "Queued"  # however long the cluster takes
    closed(world, "a", "east: Withdrawn")
    assert said(world, "b")[0] == "QuotaReserved"
    assert said(world, "a")[0] == "Queued"
    assert not is_its_turn(status(world, "a"))


def test_a_gang_that_no_cluster_has_yet_makes_way_at_once() -> None:
    world = manager(HIGH, sent("a", 3), preemption=LOWER)
    world.create(urgent("b", 3))
    world.settle(seconds=5)
    assert said(world, "b")[0] == "QuotaReserved"
    assert said(world, "a")[0] == "Queued"


def test_what_a_stopped_queue_drains_is_ended_where_it_runs() -> None:
    world = manager(sent("a"))
    runs(world, "a")
    change(world, "far", stop="HoldAndDrain")
    world.settle(seconds=5)
    assert said(world, "a") == ("Preempting", "QueueStopped")
    assert is_to_end(status(world, "a"))
    closed(world, "a")
    assert said(world, "a") == ("Queued", "QueueStopped")


def test_a_suspended_one_waits_for_its_user_and_one_that_runs_is_suspended_where_it_runs() -> None:
    waits = sent("a")
    waits["spec"]["suspend"] = True
    world = manager(waits, sent("b"))
    runs(world, "b")
    assert said(world, "a")[1] == "Suspended"
    assert used(world) == {"cpu": "2000m"}
    suspend(world, "b")
    assert said(world, "b")[0] == "Running"
    assert not is_to_end(status(world, "b"))
    closed(world, "b")
    assert said(world, "b")[1] == "Suspended"
    suspend(world, "a", suspended=False)
    assert said(world, "a")[0] == "QuotaReserved"
    suspend(world, "a")
    assert said(world, "a")[1] == "Suspended"
    assert is_to_end(status(world, "a"))


def test_what_is_deleted_gives_its_quota_back() -> None:
    world = manager(sent("a", 3), sent("b", 3))
    runs(world, "a")
    world.delete("rayclusters", "a")
    world.settle(seconds=15)
    assert said(world, "b")[0] == "QuotaReserved"
    assert used(world) == {"cpu": "4000m"}


def test_growth_is_counted_and_waits_for_quota() -> None:
    world = manager(sent("a", 1), cpu=3)
    runs(world, "a")
    world.scale("a", 2)
    world.settle(seconds=5)
    assert used(world) == {"cpu": "3000m"}
    assert said(world, "a")[0] == "Running"
    world.scale("a", 1)
    world.settle(seconds=5)
    assert used(world) == {"cpu": "2000m"}


# ---- bad input


def test_what_was_created_before_its_queue_had_clusters_says_to_create_it_anew() -> None:
    world = World(node("n1", cpu=4), queue("far", 100))
    world.create(gang_in("far", "a", 5))
    world.settle(seconds=5)
    change(world, "far", clusters={})
    world.create(gang_in("far", "b", 1))
    world.settle(seconds=10)
    for each in "ab":
        assert said(world, each)[1] == "Misconfigured"
        assert "create the RayCluster anew" in world.status(each)["message"]


def test_what_is_managed_elsewhere_waits_in_no_queue_without_clusters_and_runs_on() -> None:
    world = manager(sent("a"))
    runs(world, "a")
    world.api.change(found(world, "far"), lambda obj: obj["spec"].pop("clusters"))
    world.create(sent("b"))
    world.settle(seconds=10)
    assert said(world, "a")[0] == "Running"
    assert "has no clusters" in world.status("a")["message"]
    assert said(world, "b")[1] == "Misconfigured"
    closed(world, "a")
    assert said(world, "a")[1] == "Misconfigured"


def test_what_is_of_kueue_is_left_to_kueue() -> None:
    made = sent("a")
    made["metadata"]["labels"][names.KUEUE_QUEUE] = "theirs"
    world = manager(made)
    assert not list(world.api.all("gangs"))


def test_members_of_a_group_are_sent_nowhere() -> None:
    made = sent("a")
    made["metadata"].setdefault("annotations", {})[names.TOGETHER] = "pair"
    world = manager(made)
    assert said(world, "a")[1] == "Misconfigured"
