"""Gangs that lose pods while they run: slots, replacements, and what is lost for good.

The failures of neighbours that concern a running gang are tests here: a replacement that stays
gated (Kueue 9986), one that is refused because the count is short (scheduler-plugins 358), and a
broken gang whose room others take (Volcano 5805).
"""

from typing import Any

import pytest

from coordinator.messages.actions import EmitEvent, EvictPod
from coordinator.messages.clock import Patience
from coordinator.messages.events import SightLost, SightRegained
from kube.api.errors import TooManyRequests
from kube.objects import names
from scheduling.model.gang import PendingGang
from tests.coordinator.api import Key, key_of
from tests.coordinator.app_wrappers import app_wrapper, job
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
from tests.coordinator.deeds import slots
from tests.coordinator.gang.pods.test_kept_slots import INVALID, QUOTA, failure, kept, lose_workers
from tests.coordinator.journeys.test_queues import change, gang_in, phases, queue
from tests.coordinator.ray_jobs import ray_job
from tests.coordinator.world import World, is_gated, key, name_of

PATIENCE = Patience()
REQUEUE: dict[str, Any] = {"whenBroken": "Requeue"}


def begun(*nodes: Json, **rules: Any) -> World:
    """A gang of a head and three workers of 1 CPU, in a queue of such rules."""
    world = World(*(nodes or (node("n1", cpu=2), node("n2", cpu=2))), queue("team", **rules))
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=60)
    assert world.bound("a").total() == 4
    return world


def said(world: World, name: str = "a") -> tuple[str, str]:
    status = world.status(name)
    return status["phase"], status["reason"]


def autoscaled(name: str, least: int, **more: Any) -> Json:
    """A Ray cluster that begins with its least workers, and that Ray's autoscaler may grow."""
    workers = group("workers", least, least=least, most=20)
    return ray_cluster(name, workers, enableInTreeAutoscaling=True, **more)


def events(world: World, reason: str) -> list[EmitEvent]:
    return [each for each in world.leader.emitted if each.reason == reason]


def without_a_node(world: World) -> str:
    """Take a node away that has workers alone, and return its name."""
    (head,) = (pod for pod in world.pods("a") if "headgroup" in name_of(pod))
    gone = ({"n1", "n2"} - {head["spec"]["nodeName"]}).pop()
    world.delete("nodes", gone)
    return gone


# ---- how long slots are kept


def test_a_queue_says_for_how_long_slots_are_kept() -> None:
    world = begun(timeouts={"slotSeconds": 60})
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=50)
        assert (kept(world), slots(world)) == ({"workers": 1}, 4)
        world.settle(seconds=15)
        assert (kept(world), slots(world)) == ({}, 3)


def test_a_queue_whose_slots_are_not_kept_gives_the_room_to_the_next_at_once() -> None:
    world = begun(timeouts={"slotSeconds": 0})
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=5)
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=1)
        assert world.bound("b").total() == 1


def test_a_queue_that_says_otherwise_later_is_heard_for_slots_that_are_kept_already() -> None:
    world = begun()
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=100)
        change(world, "team", timeouts={"slotSeconds": 90})
        world.settle(seconds=5)
        assert slots(world) == 3


# ---- replacements


def test_a_failed_pod_keeps_its_slot_and_its_replacement_is_released_at_once() -> None:
    """KubeRay deletes a pod in phase Failed, and makes the next one after it (Kueue 9986)."""
    world = begun()
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=5)
    worker = next(pod for pod in world.pods("a") if "workers" in name_of(pod))
    world.api.change(worker, lambda obj: obj["status"].update(phase="Failed"))
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.settle(seconds=5)
    assert (slots(world), world.bound("b")) == (4, {})
    del world.kubelets
    world.delete("pods", name_of(worker))
    world.settle(seconds=1)
    assert (world.bound("a"), world.bound("b")) == ({"n1": 2, "n2": 2}, {})
    assert said(world) == ("Running", "Running")


def test_a_replacement_goes_elsewhere_at_once_where_its_node_is_gone() -> None:
    """Short of its minimum as the gang is: no count is asked for anew (scheduler-plugins 358)."""
    world = begun(node("n1", cpu=2), node("n2", cpu=2), node("n3", cpu=1), node("n4", cpu=1))
    nodes = world.bound("a").keys()
    gone = max(nodes)
    world.delete("nodes", gone)
    world.settle(seconds=1)
    assert world.bound("a").total() == 4
    assert gone not in world.bound("a")


@pytest.mark.parametrize("out_of_reach", [True, False])
def test_a_replica_of_which_one_host_hangs_is_made_again_elsewhere(out_of_reach: bool) -> None:
    """Its other slot is of no use to the next one, which has another name; else that waits."""
    world = World(*(node(f"n{at}", cpu=1) for at in range(1, 5)))
    world.create(ray_cluster("a", group("slices", 1, hosts=2)))
    world.settle(seconds=10)
    stuck, other = (pod for pod in world.pods("a") if "slices" in name_of(pod))
    spare = ({"n1", "n2", "n3", "n4"} - world.bound("a").keys()).pop()
    world.kubelets = lambda: None  # type: ignore[method-assign]
    if out_of_reach:
        lost = world.api.get(Key("nodes", "", stuck["spec"]["nodeName"]))
        taints = [{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}]
        world.api.change(lost, lambda obj: obj["spec"].update(taints=taints))
    world.delete("pods", name_of(stuck))
    world.api.remove(key_of(other))
    world.settle(seconds=5)
    fresh = [pod for pod in world.pods("a") if "slices" in name_of(pod) and pod != stuck]
    nodes = {pod["spec"].get("nodeName") for pod in fresh} - {stuck["spec"]["nodeName"]}
    assert nodes == ({other["spec"]["nodeName"], spare} if out_of_reach else {None})


@pytest.mark.parametrize("new_leader", [False, True])
def test_a_lost_worker_that_the_autoscaler_had_added_comes_back_to_its_slot(
    new_leader: bool,
) -> None:
    """What a cluster has grown by is no second gang, of which a pod could be left (Kueue 9986)."""
    world = World(node("n1", cpu=5))
    world.create(autoscaled("a", least=1))
    world.settle(seconds=10)
    world.scale("a", 4)
    world.settle(seconds=10)
    world.create(gang_of("filler", 0))
    world.settle(seconds=10)
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=30)
        if new_leader:
            world.leader.restart()
            world.elect(0)
    world.settle(seconds=1)
    assert (world.bound("a").total(), world.bound("filler")) == (5, {})


@pytest.mark.parametrize("with_node", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_one_of_three_replacements_starts_without_the_others(with_node: bool, held: bool) -> None:
    """KubeRay could not make them yet, or gates of others hold them (scheduler-plugins 358)."""
    world = World(node("n1", cpu=1, labels=HEADS), node("n2", cpu=3))
    world.create(gang_of("a", 3, head=template(cpu=1, nodeSelector=HEADS)))
    world.settle(seconds=60)
    lose_workers(world, 3)
    if with_node:
        world.delete("nodes", "n2")
        world.create(node("n3", cpu=3))
    world.leader.hear_all()
    world.kuberay()
    world.kuberay = lambda: None  # type: ignore[method-assign]
    for late in [pod for pod in world.pods("a") if is_gated(pod)][1:]:
        if held:
            world.api.change(late, lambda pod: pod["spec"]["schedulingGates"].append(OTHER))
        else:
            world.api.remove(key_of(late))
    world.settle(seconds=5)
    assert world.bound("a").total() == 2
    del world.kuberay
    for pod in world.pods("a"):
        world.api.change(pod, without_other_gate)
    world.settle(seconds=5)
    assert world.bound("a").total() == 4


@pytest.mark.parametrize("hosts", [1, 2])
def test_of_several_lost_replicas_as_many_start_as_fit(hosts: int) -> None:
    """Else others take what comes free bit by bit, and the gang stays short (Volcano 5805)."""
    world = World(node("n1", cpu=1, labels=HEADS), node("n2", cpu=3 * hosts))
    head = template(cpu=1, nodeSelector=HEADS)
    world.create(ray_cluster("a", group("workers", 3, hosts=hosts), head=head))
    world.settle(seconds=60)
    world.delete("nodes", "n2")
    world.create(node("n3", cpu=3 * hosts))
    world.create(foreign_pod("x", "n3", cpu=2 * hosts), foreign_pod("y", "n3", cpu=hosts))
    world.create(gang_of("filler", 0))
    world.settle(seconds=10)
    world.api.remove(Key("pods", "others", "x"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 1, "n3": 2 * hosts}
    world.api.remove(Key("pods", "others", "y"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 1, "n3": 3 * hosts}
    assert (said(world), world.bound("filler")) == (("Running", "Running"), {})


HEADS = {"pool": "heads"}
OTHER = {"name": "example.com/quota"}


def without_other_gate(pod: Json) -> None:
    gates = pod["spec"].get("schedulingGates", [])
    pod["spec"]["schedulingGates"] = [each for each in gates if each != OTHER]


def test_workers_without_their_head_wait_for_it() -> None:
    """They would hold their room and wait for its port."""
    world = World(node("n1", cpu=2, labels=HEADS), node("n2", cpu=2))
    world.create(gang_of("a", 3, head=template(cpu=1, nodeSelector=HEADS)))
    world.settle(seconds=60)
    world.delete("nodes", "n1")
    world.create(node("n3", cpu=2, labels=HEADS))
    world.collect_garbage()
    world.leader.hear_all()
    world.kuberay()
    world.kuberay = lambda: None  # type: ignore[method-assign]
    (head,) = (pod for pod in world.pods("a") if "headgroup" in name_of(pod))
    world.api.remove(key_of(head))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("a")) == ({"n2": 2}, 1)
    del world.kuberay
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 2, "n3": 2}


def test_a_gang_that_loses_two_nodes_at_once_is_whole_again_on_two_others() -> None:
    """Kueue replaces one, and stops the gang where two fail; here none of the others notices."""
    world = World(*(node(f"n{at}", cpu=2) for at in range(5)))
    world.create(gang_of("a", 5))
    world.settle(seconds=60)
    (head,) = (pod["spec"]["nodeName"] for pod in world.pods("a") if "headgroup" in name_of(pod))
    lost = world.bound("a").keys() - {head}
    stay = {name_of(pod) for pod in world.pods("a") if pod["spec"]["nodeName"] == head}
    for name in lost:
        world.delete("nodes", name)
    world.settle(seconds=1)
    assert (len(lost), world.bound("a").total()) == (2, 6)
    assert stay <= {name_of(pod) for pod in world.pods("a")}


def test_the_room_of_a_broken_gang_is_not_given_to_a_filler_meanwhile() -> None:
    """A node that comes back is its own, though others wait for just that (Volcano 5805)."""
    world = begun()
    gone = without_a_node(world)
    world.create(gang_in("team", "filler", 1))
    world.settle(seconds=30)
    assert (world.bound("a").total(), said(world)[1]) == (2, "InsufficientResources")
    world.create(node(gone, cpu=2))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("filler")) == (4, {})


@pytest.mark.parametrize(
    ("other", "away", "grows_to"),
    [("team", 30, 3), ("team", PATIENCE.slot + 60, 3), ("idle", 30, 3), ("team", 30, 9)],
)
def test_a_node_that_comes_back_goes_to_the_broken_gang_before_an_older_filler(
    other: str, away: float, grows_to: int
) -> None:
    """Of the same priority, or of a queue that uses less of its quota (Volcano 5805).

    That the broken gang grows too does not put it behind; only its growth comes after others.
    """
    world = World(queue("team", cpu=8), queue("idle", cpu=80), node("n1", cpu=2), node("n2", cpu=2))
    head = template(cpu=1, schedulingGates=[OTHER])
    world.create(gang_in(other, "filler", 1, head=head))
    world.settle(seconds=5)
    world.create(gang_in("team", "a", 3))
    world.settle(seconds=60)
    for pod in world.pods("filler"):
        world.api.change(pod, without_other_gate)
    world.scale("a", grows_to)
    gone = without_a_node(world)
    world.settle(seconds=away)
    assert world.bound("a").total() == 2
    world.create(node(gone, cpu=2))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("filler")) == (4, {})


def test_a_gang_of_which_nothing_is_left_starts_whole_or_not_at_all() -> None:
    """It ran once; half of it that KubeRay could make again is no running gang."""
    world = begun()
    with world.kuberay_refuses(failure(QUOTA)):
        for pod in world.pods("a"):
            world.api.remove(key_of(pod))
        world.settle(seconds=PATIENCE.slot + 60)
    world.kuberay()
    world.kuberay = lambda: None  # type: ignore[method-assign]
    for late in [pod for pod in world.pods("a") if "workers" in name_of(pod)][1:]:
        world.api.remove(key_of(late))
    world.settle(seconds=30)
    assert (world.bound("a"), world.gated("a")) == ({}, 2)


def test_no_worker_starts_where_there_is_no_room_for_the_head_that_was_lost_with_it() -> None:
    world = World(node("n1", cpu=2, labels=HEADS), node("n2", cpu=2))
    world.create(gang_of("a", 3, head=template(cpu=1, nodeSelector=HEADS)))
    world.settle(seconds=60)
    world.delete("nodes", "n1")
    world.create(node("n3", cpu=1))
    world.settle(seconds=30)
    assert (world.bound("a"), world.gated("a")) == ({"n2": 2}, 2)
    world.create(node("n4", cpu=1, labels=HEADS))
    world.settle(seconds=5)
    assert world.bound("a") == {"n2": 2, "n3": 1, "n4": 1}


# ---- lost for good


def test_a_gang_below_its_minimum_for_good_is_left_as_it_is_and_says_so_once() -> None:
    world = begun()
    without_a_node(world)
    world.settle(seconds=PATIENCE.slot - 10)
    assert said(world) == ("Running", "InsufficientResources")
    world.settle(seconds=60)
    assert said(world) == ("Running", "BelowMinimum")
    message = world.status("a")["message"]
    assert message.startswith("below its minimum: 1 of 3 workers run since 2026-01-01T00:01")
    assert "; the gang goes on without: its queue has no whenBroken: Requeue; " in message
    assert "0 of 2 workers fit" in message
    assert (world.bound("a").total(), world.gated("a")) == (2, 2)
    assert len(events(world, "BelowMinimum")) == 1
    world.create(node("n3", cpu=2))
    world.settle(seconds=30)
    assert said(world) == ("Running", "Running")


def test_a_gang_whose_replacements_are_on_their_way_in_time_is_not_broken() -> None:
    world = begun(**REQUEUE)
    gone = without_a_node(world)
    world.settle(seconds=PATIENCE.slot - 30)
    world.create(node(gone, cpu=2))
    world.settle(seconds=60)
    assert said(world) == ("Running", "Running")
    without_a_node(world)
    world.settle(seconds=PATIENCE.slot - 30)
    assert said(world)[0] == "Running", "the time of the first loss is over"


def test_a_gang_that_grows_beyond_its_room_has_lost_nothing() -> None:
    world = begun(**REQUEUE)
    world.scale("a", 4)
    world.settle(seconds=2 * PATIENCE.slot)
    assert (world.bound("a").total(), said(world)[0]) == (4, "Running")
    assert said(world)[1] != "BelowMinimum"
    world.create(node("n3", cpu=1))
    world.settle(seconds=5)
    assert world.bound("a").total() == 5
    world.delete("nodes", "n3")
    world.settle(seconds=PATIENCE.slot + 30)
    assert world.bound("a").total() == 4, "what came later is surplus"
    assert said(world)[1] != "BelowMinimum"


def test_a_queue_may_have_a_broken_gang_stopped_whole_and_wait_again() -> None:
    world = begun(**REQUEUE)
    without_a_node(world)
    world.settle(seconds=PATIENCE.slot + 30)
    assert said(world) == ("Queued", "NeverFits")
    assert (world.bound("a"), world.gated("a")) == ({}, 4)
    assert "below its minimum: 1 of 3 workers run since" in world.status("a")["message"]
    assert len(events(world, "BelowMinimum")) == 1
    assert "placement" not in world.status("a")
    assert world.status("a")["breaks"]["count"] == 1
    world.create(gang_in("team", "b", 1))
    world.settle(seconds=5)
    assert world.bound("b").total() == 2, "others use its room"
    world.create(node("n3", cpu=4))
    world.settle(seconds=30)
    assert (world.bound("a"), said(world)) == ({"n3": 4}, ("Running", "Running"))


def test_a_gang_that_breaks_comes_after_others_for_a_time_under_the_next_leader_too() -> None:
    world = begun(**REQUEUE)
    gone = without_a_node(world)
    world.settle(seconds=PATIENCE.slot + 30)
    world.leader.restart()
    world.elect(0)
    world.create(gang_in("team", "b", 3))
    world.settle(seconds=5)
    world.create(node(gone, cpu=2))
    world.settle(seconds=30)
    assert phases(world, "a", "b") == ["Queued", "Running"]
    assert setbacks(world) == 1
    world.settle(seconds=PATIENCE.setback)
    assert setbacks(world) == 0


def setbacks(world: World) -> int:
    asked = world.leader.state.known.views[key("a")].queueing.asked
    assert isinstance(asked, PendingGang)
    return asked.setbacks


def test_the_clock_of_a_loss_stands_still_while_a_watch_is_down() -> None:
    world = begun(**REQUEUE)
    without_a_node(world)
    world.settle(seconds=10)
    world.leader.handle([SightLost("raypods")])
    world.settle(seconds=2 * PATIENCE.slot)
    world.leader.handle([SightRegained("raypods")])
    world.settle(seconds=PATIENCE.slot - 60)
    assert world.bound("a").total() == 2
    world.settle(seconds=120)
    assert world.bound("a").total() == 0


def test_a_budget_that_refuses_the_end_of_a_broken_gang_counts_one_break() -> None:
    world = begun(**REQUEUE)
    without_a_node(world)
    refusal = TooManyRequests(429, "TooManyRequests", "a disruption budget is against it")
    world.api.budgets.update({name_of(pod): refusal for pod in world.pods("a")})
    world.settle(seconds=PATIENCE.slot + 1800)
    assert world.bound("a").total() == 2
    assert world.status("a")["breaks"]["count"] == 1
    world.api.budgets.clear()
    world.settle(seconds=700)
    assert world.bound("a").total() == 0


@pytest.mark.parametrize("seconds", [0, 30])
def test_a_slot_that_is_not_kept_leaves_kuberay_time_to_make_the_pod_again(seconds: int) -> None:
    world = begun(**REQUEUE, timeouts={"slotSeconds": seconds})
    with world.kuberay_refuses(failure(QUOTA)):
        lose_workers(world, 1)
        world.settle(seconds=PATIENCE.bind - 5)
        assert world.bound("a").total() == 3
    world.settle(seconds=60)
    assert world.bound("a").total() == 4
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]


def test_a_broken_gang_whose_pods_could_not_be_made_again_is_left_as_it_is() -> None:
    world = begun(**REQUEUE)
    with world.kuberay_refuses(failure(INVALID)):
        lose_workers(world, 1)
        world.settle(seconds=PATIENCE.slot + 60)
        assert world.bound("a").total() == 3
        assert "its pods could not be made again" in world.status("a")["message"]


# ---- what made the RayCluster


def job_world(**spec: object) -> World:
    """A RayJob in a queue that stops broken gangs; its RayCluster runs on two nodes."""
    world = World(node("n1", cpu=2), node("n2", cpu=2), queue("team", **REQUEUE))
    world.create(ray_job("job", gang_in("team", "job", 3), **spec))
    world.settle(seconds=30)
    job = world.api.get(Key("rayjobs", TEAM, "job"))
    world.api.change(job, lambda obj: obj["status"].update(jobDeploymentStatus="Running"))
    world.settle(seconds=30)
    assert world.bound("job-1").total() == 4
    world.delete("nodes", min(world.bound("job-1")))
    return world


def test_a_broken_rayjob_is_suspended_and_its_next_raycluster_waits() -> None:
    world = job_world(shutdownAfterJobFinishes=True)
    world.settle(seconds=PATIENCE.slot + 60)
    assert Key("rayclusters", TEAM, "job-1") not in world.api.objects
    assert phases(world, "job-2") == ["Queued"]
    assert not world.api.get(Key("rayjobs", TEAM, "job"))["spec"].get("suspend")


def test_a_broken_rayjob_that_would_be_lost_goes_on_and_says_why() -> None:
    world = job_world()
    world.settle(seconds=PATIENCE.slot + 60)
    assert said(world, "job-1") == ("Running", "BelowMinimum")
    assert "RayJob job would be lost" in world.status("job-1")["message"]


def test_a_broken_app_wrapper_is_left_to_its_own_retries() -> None:
    world = World(node("n1", cpu=2), node("n2", cpu=2), queue("default", **REQUEUE))
    world.create(app_wrapper("a", job("one", 4)))
    world.settle(seconds=60)
    world.delete("nodes", "n2")
    world.settle(seconds=PATIENCE.slot + 60)
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]
    assert "an AppWrapper has retries" in world.status("appwrapper.a")["message"]


# ---- the head


def lose_head(world: World, name: str) -> None:
    (head,) = (pod for pod in world.pods(name) if "headgroup" in name_of(pod))
    world.api.remove(key_of(head))


def test_a_lost_head_whose_workers_all_begin_anew_is_told_by_one_event() -> None:
    """Without GCS fault tolerance each worker fails once its head is gone."""
    world = begun()
    before = len(world.leader.emitted)
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.kuberay = lambda: None  # type: ignore[method-assign]
    lose_head(world, "a")
    world.settle(seconds=90)
    for _ in range(3):
        lose_workers(world, 1)
        world.settle(seconds=90)
    assert said(world)[1] == "HeadLost"
    assert "4 slots are kept for lost pods" in world.status("a")["message"]
    del world.kuberay, world.kubelets
    world.settle(seconds=60)
    assert world.bound("a").total() == 4
    told = [each.reason for each in world.leader.emitted[before:]]
    assert told == ["HeadLost", "Admitted"], "the second says that it is over"


def test_a_lost_head_that_kuberay_makes_no_other_for_ends_its_gang() -> None:
    """As of a RayJob in SidecarMode: no slot is kept, and the room goes to the next."""
    world = World(node("n1", cpu=4), queue("team", **REQUEUE))
    world.create(gang_in("team", "a", 3, annotations={names.RAY_NO_OTHER_HEAD: "true"}))
    world.settle(seconds=30)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    ready = {"type": "RayClusterProvisioned", "status": "True"}
    world.api.change(cluster, lambda obj: obj.update(status={"conditions": [ready]}))
    world.settle(seconds=30)
    world.create(gang_in("team", "b", 0))
    world.settle(seconds=5)
    assert (said(world), world.bound("b")) == (("Running", "Running"), {})
    world.kuberay = lambda: None  # type: ignore[method-assign]
    lose_head(world, "a")
    lose_workers(world, 1)
    world.settle(seconds=30)
    assert said(world) == ("Running", "HeadLost")
    assert "KubeRay makes no other" in world.status("a")["message"]
    assert (kept(world), slots(world)) == ({}, 2)
    assert len(events(world, "HeadLost")) == 1
    world.settle(seconds=PATIENCE.slot + 60)
    assert world.bound("a").total() == 2, "KubeRay ends what is left"
