"""Pods without a gate that Muster did not release are kept, or deleted and placed anew.

Pods of before the opt-in, of a gang that was opted out and in again, and such as lost their gate.
"""

import itertools
from typing import Any

import pytest

from coordinator.gang.pods.adoption import LONGEST_PAUSE, Rounds
from coordinator.messages.actions import DeletePod
from coordinator.messages.clock import Patience
from kube.objects import names
from tests.coordinator.api import Key, key_of
from tests.coordinator.builders import TEAM, foreign_pod, gang_of, group, node, ray_cluster
from tests.coordinator.deeds import opt
from tests.coordinator.world import World, is_gated, name_of

Json = dict[str, Any]

PATIENCE = Patience()
WHY = "(created before the opt-in, or the gate was removed)"


def say(world: World, **status: object) -> None:
    """Have KubeRay say something of the Ray cluster."""
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj.update(status=status))


def provisioned(world: World) -> None:
    say(world, conditions=[{"type": "RayClusterProvisioned", "status": "True"}])


def partly_pending(cpu: int = 3) -> World:
    """A Ray cluster of a head and five workers, of which so many run and the rest is pending."""
    world = World(node("n1", cpu=cpu))
    world.create(gang_of("a", 5, labels={}))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": cpu}
    return world


def deleted(world: World) -> list[str]:
    return [each.name for each in world.leader.log if isinstance(each, DeletePod)]


def pod_sets(world: World, field: str) -> dict[str, int]:
    return {each["name"]: each.get(field, 0) for each in world.status("a")["podSets"]}


def test_pods_that_are_pending_are_not_placed() -> None:
    world = partly_pending()
    opt(world, "true")
    world.settle(seconds=10)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "NotReleasedByMuster")
    pending = f"3 pods were not released by Muster {WHY} and wait for kube-scheduler"
    bound = f"3 pods were not released by Muster {WHY} and are bound"
    assert status["message"] == f"3 of 6 pods are bound; {pending}; {bound}"
    assert pod_sets(world, "bound") == {"headgroup": 1, "workers": 2}
    assert pod_sets(world, "notReleased") == {"headgroup": 1, "workers": 5}
    assert pod_sets(world, "released") == pod_sets(world, "gated") == {"headgroup": 0, "workers": 0}
    assert deleted(world) == []


def test_pods_that_all_have_nodes_and_are_not_ready_are_as_good_as_admitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(World, "kubelets", lambda _: None)
    world = World(node("n1", cpu=6))
    world.create(gang_of("a", 5, labels={}))
    world.settle(seconds=1)
    opt(world, "true")
    world.settle(seconds=10)
    assert (world.status("a")["phase"], world.status("a")["reason"]) == ("Admitted", "Admitted")


def test_pods_that_kube_scheduler_cannot_place_come_back_gated_and_the_gang_starts_whole() -> None:
    world = partly_pending()
    bound = {name_of(pod) for pod in world.pods("a") if pod["spec"].get("nodeName")}
    opt(world, "true")
    world.settle(seconds=PATIENCE.bind - 1)
    assert deleted(world) == []
    world.settle(seconds=30)
    assert len(deleted(world)) == 3
    assert bound <= {name_of(pod) for pod in world.pods("a")}
    assert world.gated("a") == 3
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert f"; 3 pods were not released by Muster {WHY} and are bound" in status["message"]

    world.create(node("n2", cpu=3))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3, "n2": 3}
    assert world.status("a")["phase"] == "Running"
    assert pod_sets(world, "released") == {"headgroup": 0, "workers": 3}
    assert pod_sets(world, "notReleased") == {"headgroup": 1, "workers": 2}


def test_a_part_that_began_by_itself_is_given_back_if_the_rest_gets_no_room() -> None:
    """As a part that Muster released: the room is for a gang that fits."""
    world = partly_pending()
    opt(world, "true")
    world.settle(seconds=PATIENCE.torn + 60)
    assert (world.bound("a"), world.gated("a")) == ({}, 6)
    assert (world.status("a")["phase"], world.status("a")["ready"]) == ("Queued", "0/6")
    world.create(gang_of("b", 2))
    world.settle(seconds=60)
    assert world.bound("b") == {"n1": 3}


def test_what_ran_whole_before_the_opt_in_is_never_given_back() -> None:
    world = partly_pending(cpu=6)
    provisioned(world)
    opt(world, "true")
    world.settle(seconds=60)
    before = {name_of(pod) for pod in world.pods("a")}
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "Running")
    said = f"6 pods were not released by Muster {WHY} and are bound"
    assert status["message"] == f"the minimum is ready; {said}"
    assert not any(view.waits_for_room for view in world.leader.state.known.views.values())

    lost = world.pods("a")[-1]
    world.create(foreign_pod("thief", "n1"))
    world.api.remove(key_of(lost))
    world.settle(seconds=3 * PATIENCE.torn)
    assert deleted(world) == []
    assert before - {name_of(lost)} < {name_of(pod) for pod in world.pods("a")}
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "BelowMinimum")

    world.leader.restart()  # the next leader knows it too
    world.elect(0)
    world.settle(seconds=3 * PATIENCE.torn)
    assert (world.bound("a"), world.gated("a")) == ({"n1": 5}, 1)
    world.create(node("n2", cpu=1))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 5, "n2": 1}
    assert world.status("a")["reason"] == "Running"


def test_a_ray_cluster_that_ran_and_lost_a_pod_before_the_opt_in_runs() -> None:
    """KubeRay says that it was provisioned once: its workers are not deleted for the one."""
    world = partly_pending(cpu=5)
    provisioned(world)
    opt(world, "true")
    world.settle(seconds=3 * PATIENCE.torn)
    assert (world.bound("a"), world.gated("a")) == ({"n1": 5}, 1)
    assert len(deleted(world)) == 1
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "InsufficientResources")


def provisioned_by_deletion() -> World:
    """KubeRay saw only pods that run for a moment: those that were pending had been deleted."""
    world = partly_pending()
    opt(world, "true")
    world.settle(seconds=PATIENCE.bind + 1)
    assert (len(deleted(world)), world.gated("a")) == (3, 3)
    now = world.api._stamp()
    said = {"type": "RayClusterProvisioned", "status": "True", "lastTransitionTime": now}
    say(world, conditions=[said], state="ready")
    return world


def test_what_kuberay_says_after_pods_were_deleted_does_not_count_as_having_run() -> None:
    world = provisioned_by_deletion()
    world.settle(seconds=PATIENCE.torn + 60)
    assert (world.bound("a"), world.gated("a")) == ({}, 6)
    assert world.status("a")["phase"] == "Queued"


def test_a_new_leader_sees_that_kuberay_said_so_without_the_gated_pods() -> None:
    world = provisioned_by_deletion()
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=PATIENCE.torn + 60)
    assert (world.bound("a"), world.gated("a")) == ({}, 6)


def test_a_bound_pod_that_muster_did_not_release_takes_no_slot() -> None:
    """The lost worker's successor goes to the node where another worker is since before."""
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2, labels={}))
    world.settle(seconds=60)
    provisioned(world)
    opt(world, "true")
    world.settle(seconds=60)
    lost = world.pods("a")[-1]
    cordon(world, "n1", True)
    world.api.remove(key_of(lost))
    world.settle(seconds=60)
    assert (world.bound("a"), world.gated("a")) == ({"n1": 2}, 1)
    cordon(world, "n1", False)
    world.settle(seconds=60)
    assert (world.bound("a"), world.status("a")["reason"]) == ({"n1": 3}, "Running")
    assert pod_sets(world, "released") == {"headgroup": 0, "workers": 1}


def cordon(world: World, name: str, value: bool) -> None:
    machine = world.api.get(Key("nodes", "", name))
    world.api.change(machine, lambda obj: obj["spec"].update(unschedulable=value))


def test_the_state_tells_of_having_run_where_conditions_are_switched_off() -> None:
    world = partly_pending(cpu=5)
    say(world, state="ready")
    opt(world, "true")
    world.settle(seconds=3 * PATIENCE.torn)
    assert world.bound("a") == {"n1": 5}


def test_a_gang_that_is_opted_out_and_in_again_while_it_waits_is_decided_as_a_whole() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 3))
    world.settle(seconds=60)
    opt(world, "false")
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2}
    opt(world, "true")
    world.settle(seconds=5)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "NotReleasedByMuster")
    assert status["message"].startswith("2 of 4 pods are bound; 2 pods were not released by Muster")
    world.settle(seconds=PATIENCE.torn + 60)
    assert (world.bound("a"), world.gated("a")) == ({}, 4)
    world.create(node("n2", cpu=2))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 2, "n2": 2}
    assert pod_sets(world, "notReleased") == {"headgroup": 0, "workers": 0}


def test_gates_that_others_take_off_are_told_and_the_rest_waits() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 3))
    world.settle(seconds=30)
    assert world.gated("a") == 4
    for pod in world.pods("a")[:3]:
        world.api.change(pod, lambda obj: obj["spec"].update(schedulingGates=[]))
    world.settle(seconds=15)
    assert (world.bound("a"), world.gated("a")) == ({"n1": 2}, 1)
    message = world.status("a")["message"]
    assert message.startswith("2 of 4 pods are bound and 1 gated; 1 pod was not released by Muster")
    assert f"2 pods were not released by Muster {WHY} and are bound" in message
    assert world.leader.releases() == []


def test_a_pod_that_others_hold_back_is_told_and_left_alone() -> None:
    """Nor does it count as having room: it has neither pin nor node."""
    held = {"name": "example.com/quota"}
    world = World(node("n1", cpu=4))
    world.create(ray_cluster("a", group("workers", 3, schedulingGates=[held]), labels={}))
    world.settle(seconds=5)
    opt(world, "true")
    world.settle(seconds=PATIENCE.bind + 60)
    status = world.status("a")
    assert status["reason"] == "NotReleasedByMuster"
    assert "and wait for other gates: example.com/quota" in status["message"]
    assert deleted(world) == []


def test_a_pod_that_others_hold_back_stays_where_the_rest_of_a_torn_gang_is_deleted() -> None:
    held = {"name": "example.com/quota"}
    world = World(node("n1", cpu=4))
    late = group("late", 1, schedulingGates=[held])
    world.create(ray_cluster("a", group("workers", 2), late, labels={}))
    world.settle(seconds=5)
    [waits] = [name_of(pod) for pod in world.pods("a") if "late" in name_of(pod)]
    opt(world, "true")
    world.settle(seconds=PATIENCE.torn + 60)
    assert (world.bound("a"), world.gated("a"), len(deleted(world))) == ({}, 3, 3)
    assert waits in {name_of(pod) for pod in world.pods("a")}


def test_kube_scheduler_may_win_the_race_with_the_deletion() -> None:
    """It bound the pod when the deletion was on its way: which fails, and the pod stays."""
    world = partly_pending(cpu=5)
    provisioned(world)
    opt(world, "true")
    world.settle(seconds=PATIENCE.bind - 1)
    pending = next(pod for pod in world.pods("a") if not pod["spec"].get("nodeName"))
    world.api.now += 1
    leader = world.leader
    leader.tick()
    assert [each.name for each in leader.todo if isinstance(each, DeletePod)] == [name_of(pending)]
    world.create(node("n2", cpu=1))
    world.schedule()
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 5, "n2": 1}
    assert name_of(pending) in {name_of(pod) for pod in world.pods("a")}


def nominate(world: World, names_of: list[str], where: str) -> None:
    """Have kube-scheduler evict others for pods, or no longer."""
    for pod in [pod for pod in world.pods("a") if name_of(pod) in names_of]:
        world.api.change(pod, lambda obj: obj["status"].update(nominatedNodeName=where))


def test_a_pod_for_which_kube_scheduler_evicts_others_is_not_deleted() -> None:
    """Neither as one without a place nor with the rest of a torn gang."""
    world = partly_pending(cpu=5)
    [pending] = [name_of(pod) for pod in world.pods("a") if not pod["spec"].get("nodeName")]
    opt(world, "true")
    world.settle(seconds=PATIENCE.bind / 2)
    nominate(world, [pending], "n1")
    world.settle(seconds=PATIENCE.torn + 60)
    assert pending not in deleted(world)


def test_a_pod_that_is_nominated_no_longer_has_its_time_anew() -> None:
    world = partly_pending(cpu=5)
    provisioned(world)
    [pending] = [name_of(pod) for pod in world.pods("a") if not pod["spec"].get("nodeName")]
    opt(world, "true")
    world.settle(seconds=PATIENCE.bind / 2)
    nominate(world, [pending], "n1")
    world.settle(seconds=PATIENCE.bind)
    nominate(world, [pending], "")
    world.settle(seconds=PATIENCE.bind - 1)
    assert deleted(world) == []
    world.settle(seconds=2)
    assert deleted(world) == [pending]


def test_pods_that_come_back_without_gate_are_deleted_ever_more_seldom() -> None:
    """Where the webhook is gone, deleting gains nothing, and must not go on and on."""
    world = partly_pending(cpu=5)
    provisioned(world)
    world.webhook = False
    opt(world, "true")
    world.settle(seconds=3600)
    assert 3 <= len(deleted(world)) <= 7
    assert not any(is_gated(pod) for pod in world.pods("a"))


def test_a_round_lasts_and_the_pause_between_two_doubles_up_to_an_hour() -> None:
    began: list[float] = []
    rounds, now = Rounds(), 0.0
    while now < 5 * LONGEST_PAUSE:
        if rounds.are_open(now, 30.0) and (not began or now >= began[-1] + 30.0):
            began.append(now)
        now += 10.0
    pauses = [after - before for before, after in itertools.pairwise(began)]
    assert pauses[:4] == [60.0, 120.0, 240.0, 480.0]
    assert pauses[-1] == LONGEST_PAUSE


def test_a_surplus_pod_that_is_pending_comes_back_gated_while_the_gang_runs() -> None:
    world = World(node("n1", cpu=3))
    least = {names.MIN_REPLICAS: "workers=2"}
    world.create(gang_of("a", 3, labels={}, annotations=least))
    world.settle(seconds=60)
    opt(world, "true")
    world.settle(seconds=10)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Running", "Running")
    assert f"1 pod was not released by Muster {WHY} and waits for" in status["message"]
    world.settle(seconds=60)
    assert (world.bound("a"), world.gated("a")) == ({"n1": 3}, 1)
    world.create(node("n2", cpu=1))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 3, "n2": 1}
