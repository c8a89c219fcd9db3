"""A gang that cannot start waits, and its status says why."""

from typing import Any

import pytest

from coordinator.messages.actions import DeletePod, FencePod, WriteGangStatus
from coordinator.reconcile.winding_down import OPT_OUT_DELAY
from coordinator.record.urgency import QUIET_DELAY
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    GPU,
    TEAM,
    Json,
    foreign_pod,
    gang_of,
    group,
    node,
    ray_cluster,
    template,
)
from tests.coordinator.world import World, is_gated, name_of


def test_a_gang_that_does_not_fit_holds_nothing_says_why_and_starts_whole_when_room_is_freed() -> (
    None
):
    """The first scene of the demo: two Ray clusters of 5 CPUs on a node with 8."""
    world = World(node("n1"))
    world.create(gang_of("a", 4))
    world.settle(seconds=1)
    world.create(gang_of("b", 4))
    world.settle(seconds=60)

    assert (world.bound("a"), world.bound("b")) == ({"n1": 5}, {})
    assert world.gated("b") == 5
    status = world.status("b")
    assert (status["phase"], status["position"]) == ("Queued", 1)
    assert status["reason"] == "InsufficientResources"
    assert status["message"] == (
        "2 of 4 workers fit beside headgroup: each needs 1 cpu on one node, the gang 5 in all; "
        "3 are free, and those that fit leave 0. 5 of 8 cpu are held by RayCluster team/a"
    )
    [workers] = [each for each in status["podSets"] if each["name"] == "workers"]
    assert workers["message"] == "2 of 4 fit"
    amounts = {key: workers["shortage"].get(key) for key in ("each", "needed", "free", "left")}
    assert amounts == {"each": "1000m", "needed": "5000m", "free": "3000m", "left": "0m"}
    assert "placement" not in status

    world.delete("rayclusters", "a")
    world.settle(seconds=1)
    assert world.bound("b") == {"n1": 5}
    assert "position" not in world.status("b")


def test_free_but_scattered_gpus_start_nobody() -> None:
    """The second scene of the demo: 4 + 4 GPUs are free, a worker wants 8 on one node."""
    world = World(node("n1", gpu=8), node("n2", gpu=8))
    world.create(foreign_pod("x", "n1", gpu=4), foreign_pod("y", "n2", gpu=4))
    world.create(ray_cluster("a", group("gpu-workers", 1, gpu=8)))
    world.settle(seconds=1)

    assert world.bound("a") == {}
    assert world.status("a")["message"] == (
        "0 of 1 gpu-workers fits: it needs 8 nvidia.com/gpu on one node; "
        "8 are free, at most 4 on one node. 8 of 16 nvidia.com/gpu are held by Namespace others"
    )
    [workers] = [each for each in world.status("a")["podSets"] if each["name"] == "gpu-workers"]
    assert workers["shortage"] == {
        "resource": GPU,
        "each": "8",
        "needed": "8",
        "free": "8",
        "left": "8",
        "largest": "4",
        "total": "16",
        "holders": [{"kind": "Namespace", "name": "others", "amount": "8"}],
    }


def test_head_and_cpu_workers_do_not_start_without_the_least_of_gpu_workers() -> None:
    """Nine pods of eleven would fit, as many as all the minimums together ask for."""
    world = World(node("n1", cpu=32, gpu=4), node("n2", cpu=32, gpu=4))
    groups = group("cpus", 8, least=2, most=8), group("gpus", 2, least=1, most=2, gpu=8)
    world.create(ray_cluster("a", *groups, enableInTreeAutoscaling=True))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("a")) == ({}, 11)
    world.create(node("n3", cpu=1, gpu=8))
    world.settle(seconds=5)
    assert (world.bound("a").total(), world.bound("a")["n3"]) == (10, 1)


def test_what_kuberay_adds_to_the_head_counts_too() -> None:
    """The autoscaler's container is in no template; beside it the workers do not fit."""
    world = World(node("n1", cpu=3))
    workers = group("workers", 2, least=2, most=9)
    world.create(ray_cluster("a", workers, enableInTreeAutoscaling=True))
    world.kuberay()
    (head,) = (pod for pod in world.pods("a") if "headgroup" in name_of(pod))
    added = template(cpu="500m")["spec"]["containers"][0] | {"name": "autoscaler"}
    world.api.change(head, lambda pod: pod["spec"]["containers"].append(added))
    world.settle(seconds=5)
    assert (world.bound("a"), world.gated("a")) == ({}, 3)
    world.create(node("n2", cpu=2))
    world.settle(seconds=5)
    assert world.bound("a").total() == 3


def test_nine_of_ten_pods_that_would_fit_take_nothing_from_others() -> None:
    world = World(node("n1", cpu=10), foreign_pod("x", "n1", cpu=1))
    world.create(gang_of("a", 9))
    world.settle(seconds=5)
    assert "8 of 9 workers fit beside headgroup" in world.status("a")["message"]
    world.create(gang_of("b", 8))
    world.settle(seconds=1)
    assert (world.bound("a"), world.bound("b")) == ({}, {"n1": 9})


def test_a_gang_that_waits_for_a_week_has_the_same_pods_and_says_why() -> None:
    """Nothing fails or recreates them, and what is said of them is there to be read."""
    world = World(node("n1", cpu=4), foreign_pod("x", "n1", cpu=2))
    world.create(gang_of("a", 3))
    world.settle(seconds=5)
    before = {pod["metadata"]["uid"] for pod in world.pods("a")}
    world.settle(seconds=7 * 86400)
    assert {pod["metadata"]["uid"] for pod in world.pods("a")} == before
    assert world.status("a")["reason"] == "InsufficientResources"
    assert {each.reason for each in world.leader.emitted} == {"InsufficientResources"}
    world.delete("pods", "x", namespace="others")
    world.api.remove(Key("pods", "others", "x"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 4}


def test_a_gang_that_waits_for_another_names_it_and_is_not_written_again_for_nothing() -> None:
    world = World(node("n1", cpu=4))
    world.create(gang_of("runs", 3))
    world.settle(seconds=1)
    world.create(gang_of("waits", 3))
    world.settle(seconds=60)
    status = world.status("waits")
    assert status["message"].endswith(". 4 of 4 cpu are held by RayCluster team/runs")
    [held] = status["podSets"][0]["shortage"]["holders"]
    assert held == {"kind": "RayCluster", "namespace": TEAM, "name": "runs", "amount": "4000m"}
    written = [each for each in world.leader.log if isinstance(each, WriteGangStatus)]
    world.settle(seconds=300)
    assert [each for each in world.leader.log if isinstance(each, WriteGangStatus)] == written


def test_gangs_start_by_priority_then_first_come_and_a_small_one_may_pass() -> None:
    world = World(node("n1", cpu=4), allowed={TEAM: ["high"]})
    world.create({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    world.create(gang_of("running", 3))
    world.settle(seconds=2)
    urgent = {names.PRIORITY_CLASS: "high"}
    for name, annotations in (("first", {}), ("second", {}), ("urgent", urgent)):
        world.create(gang_of(name, 2, annotations=annotations))
        world.settle(seconds=2)
    world.settle(seconds=2 * QUIET_DELAY)
    positions = {name: world.status(name)["position"] for name in ("urgent", "first", "second")}
    assert positions == {"urgent": 1, "first": 2, "second": 3}
    assert world.gang("urgent")["spec"]["priority"] == 1000

    order = []
    for gone in ("running", "urgent", "first"):
        world.delete("rayclusters", gone)
        world.settle(seconds=2)
        order.append({name_of(pod).split("-")[0] for pod in world.pods() if not is_gated(pod)})
    assert order == [{"urgent"}, {"first"}, {"second"}]


def test_pods_with_gates_of_others_are_waited_for_and_only_our_gate_is_taken_off() -> None:
    foreign = {"name": "example.com/quota"}
    head = template(cpu=1, schedulingGates=[foreign])
    world = World(node("n1"))
    world.create(gang_of("a", 2, head=head))
    world.settle(seconds=5)

    assert world.gated("a") == 3
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Queued", "ForeignGates")
    assert status["message"] == (
        f"{name_of(world.pods('a')[0])} still held by other gates: example.com/quota"
    )

    head_pod = world.pods("a")[0]
    world.api.change(head_pod, lambda pod: pod["spec"]["schedulingGates"].remove(foreign))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}


def test_a_spare_pod_that_others_hold_back_takes_no_slot_from_one_that_may_go() -> None:
    world = World(node("n1", cpu=3))
    world.create(gang_of("a", 2))
    world.kuberay()
    held = world.pods("a")[1]
    world.api.change(
        held, lambda pod: pod["spec"]["schedulingGates"].insert(0, {"name": "example.com/x"})
    )
    world.scale("a", 3)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(
        cluster,
        lambda obj: obj["metadata"]["annotations"].update({names.MIN_REPLICAS: "workers=2"}),
    )
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}
    assert [name_of(pod) for pod in world.pods("a") if is_gated(pod)] == [name_of(held)]


def test_opting_a_waiting_gang_out_releases_its_pods_unpinned_and_deletes_the_gang() -> None:
    world = World(node("n1", cpu=2))
    world.create(gang_of("a", 2))
    world.settle(seconds=1)
    assert world.gated("a") == 3
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"]["labels"].clear())
    world.settle(seconds=OPT_OUT_DELAY / 2)
    assert world.gated("a") == 3  # the news might be old
    world.settle(seconds=OPT_OUT_DELAY)

    assert world.gated("a") == 0
    assert {node for _, node in world.leader.releases()} == {""}
    assert world.bound("a") == {"n1": 2}
    assert list(world.api.all("gangs")) == []


def test_an_opted_in_namespace_makes_gangs_and_a_cluster_in_it_may_opt_out() -> None:
    world = World(node("n1"))
    namespace = world.api.get(Key("namespaces", "", TEAM))
    world.api.change(namespace, lambda obj: obj["metadata"].update(labels={names.OPT_IN: "true"}))
    world.create(
        gang_of("a", 1, labels={}), gang_of("b", 1, annotations={names.OPT_IN: "false"}, labels={})
    )
    world.settle(seconds=5)
    assert [name_of(gang) for gang in world.api.all("gangs")] == ["a"]
    assert world.status("a")["phase"] == "Running"


@pytest.mark.parametrize(
    ("namespace", "home"),
    [(names.KUBE_SYSTEM, names.DEFAULT_NAMESPACE), (names.DEFAULT_NAMESPACE,) * 2, ("own", "own")],
)
def test_no_label_makes_a_gang_of_what_muster_itself_needs(namespace: str, home: str) -> None:
    """Nothing there is gated, so a pod that is not bound would be deleted again and again."""
    world = World(node("n1", cpu=2), home=home)
    labels = {names.OPT_IN: "true"}
    world.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}
    )
    world.webhook = False  # it is not asked about that namespace
    cluster = gang_of("a", 2)
    world.create({**cluster, "metadata": {**cluster["metadata"], "namespace": namespace}})
    world.settle(seconds=120)
    assert len(list(world.api.all("pods"))) == 3
    assert list(world.api.all("gangs")) == []
    assert world.leader.log == []


def test_pods_of_no_gang_that_a_policy_gated_are_let_go_at_once() -> None:
    """Without a webhook the API server gates the pods of every RayCluster."""
    world = World(node("n1"))
    world.policy = True
    world.create(gang_of("plain", 2, labels={}), gang_of("gang", 1))
    world.settle(seconds=OPT_OUT_DELAY)
    assert (world.bound("plain"), world.bound("gang")) == ({"n1": 3}, {"n1": 2})
    assert [name_of(each) for each in world.api.all("gangs")] == ["gang"]
    world.scale("plain", 3)
    world.settle(seconds=0.5)  # what was let go once waits no more
    assert world.bound("plain") == {"n1": 4}


def test_a_gang_that_is_opted_in_when_it_runs_already_is_told_as_running() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 1, labels={}))
    world.settle(seconds=5)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(cluster, lambda obj: obj["metadata"].update(labels={names.OPT_IN: "true"}))
    world.settle(seconds=60)
    assert world.status("a")["phase"] == "Running"
    assert world.leader.releases() == []


BAD = [
    ({"labels": {names.OPT_IN: "yes"}}, 'label muster.dev/gang: "yes" is not valid'),
    (
        {"annotations": {names.MIN_REPLICAS: "gpus=2"}},
        'muster.dev/min-replicas: "gpus=2" is not valid',
    ),
    (
        {"annotations": {names.MIN_REPLICAS: "workers=9"}},
        "allowed: 0 to 2 (minimum above replicas)",
    ),
    ({"annotations": {names.QUEUE: "nowhere"}}, 'muster.dev/queue: "nowhere" is not valid'),
    (
        {"annotations": {names.PRIORITY_CLASS: "urgent"}},
        'muster.dev/priority-class: "urgent" is not valid',
    ),
    (
        {"annotations": {names.EXPECTED_DURATION: "long"}},
        'muster.dev/expected-duration: "long" is not valid',
    ),
    ({"labels": {names.OPT_IN: "x" * 63 * 4_000}}, "x... is not valid"),
]


@pytest.mark.parametrize(("meta", "said"), BAD, ids=[text[:40] for _, text in BAD])
def test_what_cannot_be_understood_waits_for_ever_says_so_and_holds_no_other_up(
    meta: dict[str, Any], said: str
) -> None:
    world = World(node("n1"))
    world.create(gang_of("bad", 2, **meta), gang_of("good", 2))
    world.settle(seconds=300)

    assert world.gated("bad") == 3
    status = world.status("bad")
    assert status["reason"] == "Misconfigured"
    assert said.replace("x...", 'x..."') in status["message"]
    assert len(status["message"]) <= 1024
    admitted = next(c for c in status["conditions"] if c["type"] == "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", "Misconfigured")
    assert [event.reason for event in world.leader.emitted if event.key.name == "bad"] == [
        "Misconfigured"
    ]
    assert world.status("good")["phase"] == "Running"


def test_a_mended_annotation_lets_the_gang_start() -> None:
    world = World(node("n1"), allowed={"*": ["high"]})
    world.create(gang_of("a", 2, annotations={names.PRIORITY_CLASS: "high"}))
    world.settle(seconds=30)
    world.create({"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000})
    world.settle(seconds=30)
    assert world.status("a")["phase"] == "Running"
    assert world.gang("a")["spec"]["priority"] == 1000


def test_an_annotation_that_breaks_after_the_start_changes_nothing_that_runs() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2))
    world.settle(seconds=30)
    cluster = world.api.get(Key("rayclusters", TEAM, "a"))
    world.api.change(
        cluster, lambda obj: obj["metadata"]["annotations"].update({names.MIN_REPLICAS: "?"})
    )
    world.settle(seconds=30)
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=600)
    assert world.bound("a") == {"n1": 3}
    assert world.status("a")["phase"] == "Running"


def test_a_suspended_ray_cluster_asks_for_nothing_and_starts_whole_when_resumed() -> None:
    world = World(node("n1"))
    world.create(gang_of("a", 2, suspend=True))
    world.settle(seconds=30)
    status = world.status("a")
    assert (status["phase"], status["reason"]) == ("Gathering", "Suspended")
    assert status["message"] == "the RayCluster is suspended: it asks for no pods"
    world.edit("a", suspend=False)
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 3}

    world.edit("a", suspend=True)
    world.settle(seconds=30)
    assert world.bound("a") == {}
    assert "placement" not in world.status("a")
    world.create(gang_of("b", 7))
    world.settle(seconds=5)
    assert world.bound("b") == {"n1": 8}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def host(name: str, cpu: int = 8) -> Json:
    return node(name, cpu=cpu, labels={"host": name})


def terms(**selected: str) -> Json:
    """A required term about pods of the team with this label."""
    selector = {"matchLabels": selected}
    return {REQUIRED: [{"labelSelector": selector, "namespaces": [TEAM], "topologyKey": "host"}]}


def test_a_pod_that_keeps_ours_away_closes_its_node() -> None:
    keep_away = {"podAntiAffinity": terms(**{names.RAY_CLUSTER: "a"})}
    world = World(host("n1"))
    world.create(foreign_pod("loner", "n1", affinity=keep_away))
    world.create(gang_of("a", 1))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode"
    assert (
        "1 is ruled out by affinity or anti-affinity between pods" in world.status("a")["message"]
    )
    world.api.remove(Key("pods", "others", "loner"))
    world.settle(seconds=5)
    assert world.bound("a") == {"n1": 2}


def test_a_pod_that_comes_to_keep_ours_away_is_heeded_before_the_next_decision() -> None:
    keep_away = {"podAntiAffinity": terms(**{names.RAY_CLUSTER: "a"})}
    world = World(host("n1", cpu=2))
    world.create(gang_of("a", 2))
    world.settle(seconds=5)
    world.create(foreign_pod("loner", "n1", cpu=0, affinity=keep_away))
    world.create(host("n2", cpu=2))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode" or not world.bound("a")
    world.api.change(
        world.api.get(Key("pods", "others", "loner")),
        lambda pod: pod["status"].update(phase="Succeeded"),
    )
    world.settle(seconds=5)
    assert world.bound("a").total() == 3


def test_workers_that_keep_apart_wait_for_a_node_each() -> None:
    apart = {"podAntiAffinity": terms(**{names.RAY_GROUP: "workers"})}
    world = World(host("n1"), host("n2"))
    world.create(ray_cluster("a", group("workers", 3, affinity=apart)))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode"
    assert "2 of 3 workers fit" in world.status("a")["message"]
    world.create(host("n3"))
    world.settle(seconds=5)
    assert world.bound("a").total() == 4
    assert set(world.bound("a")) == {"n1", "n2", "n3"}


def test_a_gang_waits_for_the_pod_that_it_wants_to_be_near() -> None:
    near = {"podAffinity": {REQUIRED: [{**terms(x="y")[REQUIRED][0], "namespaces": ["others"]}]}}
    world = World(host("n1"), host("n2"))
    world.create(ray_cluster("a", group("workers", 2, affinity=near)))
    world.settle(seconds=5)
    assert world.status("a")["reason"] == "NoFeasibleNode"
    friend = foreign_pod("friend", "n2")
    friend["metadata"]["labels"] = {"x": "y"}
    world.create(friend)
    world.settle(seconds=5)
    assert world.bound("a")["n2"] >= 2


def test_a_gang_heeds_pods_that_have_room_and_are_not_bound_yet() -> None:
    apart = {"podAntiAffinity": terms(**{names.RAY_GROUP: "workers"})}
    world = World(host("n1"))
    for name in "ab":
        world.create(ray_cluster(name, group("workers", 1, affinity=apart)))
    world.settle(seconds=5)
    assert sorted(world.status(name)["reason"] for name in "ab") == ["NoFeasibleNode", "Running"]


def test_twenty_gangs_of_more_than_half_the_room_run_one_after_another() -> None:
    """The third scene of the demo: never two at once, never a part of one."""
    world = World(node("n1", cpu=10))
    world.create(*(gang_of(f"g{number:02}", 5) for number in range(20)))
    seen = []
    for _ in range(20):
        world.settle(seconds=1)
        [running] = {name_of(pod)[:3] for pod in world.pods() if not is_gated(pod)}
        assert world.bound(running) == {"n1": 6}
        seen.append(running)
        world.delete("rayclusters", running)
    assert seen == sorted(seen)
    released = [pod for pod, _ in world.leader.releases()]
    assert len(released) == len(set(released)) == 120


@pytest.mark.parametrize(("priority", "starts"), [(10, False), (11, True)])
def test_a_nomination_of_lower_priority_is_in_nobodys_way(priority: int, starts: bool) -> None:
    """As for kube-scheduler; and what is placed there is not taken for too much afterwards."""
    waits = foreign_pod("waits", "", cpu=3, priority=10)
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    waits["status"] = {"nominatedNodeName": "n1", "conditions": [unschedulable]}
    world = World(node("n1", cpu=4))
    world.create(waits)
    pods = template(cpu=1, priority=priority)
    world.create(ray_cluster("a", group("workers", 2, priority=priority), head=pods))
    world.settle(seconds=60)
    assert world.bound("a") == ({"n1": 3} if starts else {})
    assert not [each for each in world.leader.log if isinstance(each, FencePod | DeletePod)]


def test_devices_of_a_class_are_not_judged_and_those_of_a_plugin_are() -> None:
    """kube-scheduler gives either under the same name; nodes with a plugin are used as ever."""
    world = World(node("n1"))
    world.create(ray_cluster("a", group("workers", 1, gpu=1)))
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "NeverFits"
    named = {"extendedResourceName": GPU}
    world.create({"kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}, "spec": named})
    world.settle(seconds=60)
    status = world.status("a")
    assert status["reason"] == "Unsupported"
    assert "workers: nvidia.com/gpu through a DeviceClass" in status["message"]
    world.delete("deviceclasses", "gpu.example.com", namespace="")
    world.settle(seconds=60)
    assert world.status("a")["reason"] == "NeverFits"
    world.create({"kind": "DeviceClass", "metadata": {"name": "gpu.example.com"}, "spec": named})
    world.create(node("n2", gpu=1))
    world.settle(seconds=60)
    assert world.bound("a") == {"n1": 1, "n2": 1} or world.bound("a") == {"n2": 2}


def head_on_ports(*ports: int, cpu: int = 1) -> Json:
    made = template(cpu=cpu)
    made["spec"]["containers"][0]["ports"] = [{"hostPort": port} for port in ports]
    return made


def test_a_host_port_is_kept_for_a_pod_that_is_on_its_way_and_costs_no_other_gang_its_own() -> None:
    """Four gangs wait with 42 ports each, and a fifth starts with a port of its own."""
    world = World(node("n1"))
    world.schedule = lambda: None  # type: ignore[method-assign]
    for at in range(4):
        many = range(1000 * (at + 1), 1000 * (at + 1) + 42)
        world.create(ray_cluster(f"crowd{at}", head=head_on_ports(*many, cpu=99)))
    for name, port in (("first", 80), ("second", 80), ("third", 81)):
        world.create(ray_cluster(name, head=head_on_ports(port)))
        world.settle(seconds=1)
    assert [name.split("-")[0] for name, _ in world.leader.releases()] == ["first", "third"]
    assert "it needs host port 80/TCP on one node" in world.status("second")["message"]


def test_a_wrong_priority_class_is_told_with_the_wrong_annotations() -> None:
    world = World(node("n1"))
    wrong = {names.EXPECTED_DURATION: "soon", names.PRIORITY_CLASS: "nobody"}
    world.create(ray_cluster("a", annotations=wrong))
    world.settle(seconds=10)
    status = world.status("a")
    assert status["reason"] == "Misconfigured"
    assert "soon" in status["message"]
    assert "there is no PriorityClass of that name" in status["message"]
