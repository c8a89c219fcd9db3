"""A gang grows, shrinks, loses and regains pods after its minimum runs."""

import pytest

from kube.objects import names
from testbed.nodes import NodeSpec
from tests.controlplane.plot import Plot, is_held, label
from tests.controlplane.rayclusters import Json, gang, group, requests

pytestmark = pytest.mark.versions


def at_least(minimum: str) -> dict[str, str]:
    return {names.MIN_REPLICAS: minimum}


def placed(plot: Plot, name: str) -> int:
    """How many pods the placement of a gang holds room for."""
    sets = plot.status(name).get("placement", {}).get("podSets", ())
    shapes = (shape for each in sets for shape in each["assignments"])
    return sum(sum(shape["nodes"].values()) for shape in shapes)


def held(plot: Plot, name: str) -> int:
    return sum(is_held(pod) for pod in plot.pods(name))


def minimums(plot: Plot, name: str) -> dict[str, tuple[int, int]]:
    """Minimum and count of each pod set, as understood."""
    sets = plot.gangs()[name]["spec"]["podSets"]
    return {each["name"]: (each.get("minimum", 0), each.get("count", 0)) for each in sets}


def test_the_minimum_starts_and_the_surplus_follows_as_room_comes(plot: Plot) -> None:
    """Surplus workers come one after another, without any change by a user."""
    plot.add_node(2)
    plot.create(gang("grows", group(replicas=3), annotations=at_least("workers=1")))
    plot.wait_phase("grows", "Running")
    plot.wait_pods("grows", 4)
    assert minimums(plot, "grows") == {"headgroup": (1, 1), "workers": (1, 3)}
    assert (len(plot.bound("grows")), held(plot, "grows")) == (2, 2)
    plot.add_equal_nodes(1, cpus=1)
    plot.wait(lambda: len(plot.bound("grows")) == 3, "the first of the surplus to be bound")
    assert held(plot, "grows") == 1
    plot.add_nodes(NodeSpec("last", cpus=1))
    plot.wait_running("grows", 4)


@pytest.mark.variant
def test_a_lost_worker_that_comes_back_in_another_shape_is_placed(plot: Plot) -> None:
    """The template was changed meanwhile: the slot does not fit it, nor count as its own."""
    plot.add_node(3)
    plot.create(gang("changes", group(replicas=2)))
    plot.wait_running("changes", 3)
    smaller = group(replicas=2, resources=requests(cpu="500m"))
    plot.scale("changes", template=smaller["template"], maxReplicas=11)
    plot.wait(lambda: most_workers(plot, "changes") == 11, "KubeRay to have read the template")
    plot.delete("Pod", plot.pods("changes", "worker")[0]["metadata"]["name"])
    plot.wait(lambda: "500m" in sizes(plot, "changes"), "the replacement to be bound")
    plot.wait_phase("changes", "Running", "Running")
    plot.wait(lambda: placed(plot, "changes") == 3, "the old slot to be given up")


def most_workers(plot: Plot, name: str) -> int:
    """The most workers by what KubeRay has read, of which it makes pods, and not of the latest."""
    found: int = plot.get("RayCluster", name).get("status", {}).get("maxWorkerReplicas", 0)
    return found


def sizes(plot: Plot, name: str) -> list[str]:
    """The CPUs of the workers that are bound."""
    bound = [pod for pod in plot.pods(name, "worker") if "nodeName" in pod["spec"]]
    return [pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] for pod in bound]


def test_a_lost_worker_keeps_its_slot_for_its_replacement(plot: Plot) -> None:
    """The room of a lost member stays reserved, though another gang waits for just that."""
    plot.add_equal_nodes(2, cpus=2)
    plot.create(gang("loses", group(replicas=2)))
    plot.wait_running("loses", 3)
    plot.create(gang("greedy", group(replicas=1, resources=requests(cpu="900m"))))
    plot.wait_phase("greedy", "Queued", "InsufficientResources")
    lost, node = next(iter(plot.bound("loses", "worker").items()))
    nodes = sorted(plot.bound("loses").values())
    plot.delete("Pod", lost)
    plot.wait(lambda: lost not in plot.bound("loses"), "the worker to be gone")
    pods = plot.wait_running("loses", 3)
    assert lost not in {pod["metadata"]["name"] for pod in pods}
    assert sorted(plot.bound("loses").values()) == nodes
    assert node in plot.bound("loses", "worker").values()
    assert plot.bound("greedy") == {}


@pytest.mark.variant
def test_a_head_that_fails_comes_back_to_its_slot(plot: Plot) -> None:
    """The same for the head, without which no worker is of use; KubeRay deletes it itself."""
    plot.add_node(3)
    plot.create(gang("loses", group(replicas=2)))
    plot.wait_running("loses", 3)
    (lost,) = plot.bound("loses", "head")
    plot.patch_status("Pod", lost, {"phase": "Failed"})
    plot.wait(lambda: {*plot.bound("loses", "head")} - {lost}, "another head to be bound")
    plot.wait_running("loses", 3)


def restarting(pod: Json, *, up: bool) -> Json:
    """The status of a pod whose containers have restarted once, and are up again or not yet."""
    since = pod["status"]["startTime"]
    state = {"running": {"startedAt": since}} if up else {"waiting": {"reason": "CrashLoopBackOff"}}
    containers = [
        {**each, "restartCount": 1, "ready": up, "state": state}
        for each in pod["status"]["containerStatuses"]
    ]
    said = [
        {**each, "status": str(up)} if each["type"] in ("Ready", "ContainersReady") else each
        for each in pod["status"]["conditions"]
    ]
    return {"containerStatuses": containers, "conditions": said}


@pytest.mark.variant
def test_containers_that_restart_cost_a_gang_nothing(plot: Plot) -> None:
    """The pods stay; the gang is below its minimum meanwhile, and whole again by itself."""
    plot.add_node(3)
    plot.create(gang("crashes", group(replicas=2)))
    before = plot.wait_running("crashes", 3)
    plot.create(gang("next", group(replicas=1)))
    for pod in before:
        plot.patch_status("Pod", pod["metadata"]["name"], restarting(pod, up=False))
    plot.wait(
        lambda: plot.status("crashes")["ready"] == "0/3", "the gang to say that none is ready"
    )
    assert plot.status("crashes")["phase"] == "Running"
    for pod in before:
        plot.patch_status("Pod", pod["metadata"]["name"], restarting(pod, up=True))
    after = plot.wait_running("crashes", 3)
    assert {pod["metadata"]["uid"] for pod in after} == {pod["metadata"]["uid"] for pod in before}
    assert plot.bound("next") == {}


def hang(plot: Plot, pod: str, node: str) -> None:
    """Have a pod end that cannot, as on a node whose kubelet does not answer.

    The taint has another key than the controllers': those take theirs back while a node is ready.
    """
    plot.patch("Pod", pod, {"metadata": {"finalizers": ["test.muster.dev/no-kubelet"]}})
    effects = ("NoSchedule", "NoExecute")
    taints = [{"key": "test.muster.dev/out-of-reach", "effect": each} for each in effects]
    plot.patch_node(node, {"spec": {"taints": taints}})
    plot.wait(
        lambda: "deletionTimestamp" in plot.get("Pod", pod)["metadata"], f"{pod} to be evicted"
    )


def let_end(plot: Plot, pod: str) -> None:
    """Have such a pod gone, as by force."""
    plot.patch("Pod", pod, {"metadata": {"finalizers": None}})


@pytest.mark.variant
def test_a_worker_that_hangs_on_a_node_out_of_reach_is_replaced_elsewhere(plot: Plot) -> None:
    """KubeRay makes the next one when the first is gone; then its slot is of no use to it."""
    plot.add_nodes(NodeSpec("first", cpus=1), NodeSpec("second", cpus=1))
    plot.create(gang("loses", group(replicas=1)))
    plot.wait_running("loses", 2)
    ((lost, node),) = plot.bound("loses", "worker").items()
    hang(plot, lost, node)
    plot.wait_message("loses", "group workers: 0 of 1 pods exist")
    plot.add_nodes(NodeSpec("spare", cpus=1))
    let_end(plot, lost)
    plot.wait(lambda: "spare" in plot.bound("loses", "worker").values(), "the next one to be bound")
    plot.wait_running("loses", 2)


@pytest.mark.variant
def test_a_replica_of_which_one_pod_hangs_is_replaced_beside_it(plot: Plot) -> None:
    """KubeRay makes all of it again at once where one of its pods failed."""
    plot.add_nodes(*(NodeSpec(name, cpus=1) for name in ("first", "second", "third")))
    plot.create(hosts(1))
    plot.wait_running("slices", 3)
    workers = plot.bound("slices", "worker")
    (stuck, node), (failed, other) = workers.items()
    hang(plot, stuck, node)
    plot.add_nodes(NodeSpec("spare", cpus=1))
    plot.patch_status("Pod", failed, {"phase": "Failed"})

    def replaced() -> bool:
        now = plot.bound("slices", "worker").items()
        return {at for name, at in now if name not in workers} == {other, "spare"}

    plot.wait(replaced, "the next replica to be bound beside the pod that hangs")
    assert stuck in {pod["metadata"]["name"] for pod in plot.all("Pod")}
    let_end(plot, stuck)
    plot.wait_running("slices", 3)


def test_with_in_tree_autoscaling_the_minimum_is_min_replicas(plot: Plot) -> None:
    """What the autoscaler asked for beyond that is surplus; the head has its side-car's room."""
    plot.add_node("2500m")
    workers = group(replicas=3, least=1)
    plot.create(gang("scales", workers, enableInTreeAutoscaling=True))
    plot.wait_phase("scales", "Running")
    assert minimums(plot, "scales") == {"headgroup": (1, 1), "workers": (1, 3)}
    plot.wait_pods("scales", 4)
    plot.wait_message("scales", "the minimum is ready; 2 of 4 pods wait: 0 of 2 workers fit")
    plot.wait_event("scales", "InsufficientResources", " wait")
    assert (len(plot.bound("scales")), held(plot, "scales")) == (2, 2)


def test_a_suspended_gang_gives_its_room_away_and_waits_again_when_resumed(plot: Plot) -> None:
    """KubeRay deletes the pods of a suspended RayCluster; nothing is kept for them."""
    plot.add_node(3)
    plot.create(gang("rests", group(replicas=2)))
    plot.wait_running("rests", 3)
    plot.create(gang("next", group(replicas=2)))
    plot.wait_phase("next", "Queued", "InsufficientResources")
    plot.patch("RayCluster", "rests", {"spec": {"suspend": True}})
    plot.wait_running("next", 3)
    plot.wait_message("rests", "suspended")
    plot.wait(lambda: "placement" not in plot.status("rests"), "the placement to be given up")
    plot.patch("RayCluster", "rests", {"spec": {"suspend": False}})
    plot.wait_phase("rests", "Queued", "InsufficientResources")
    plot.delete("RayCluster", "next")
    plot.wait_running("rests", 3)


def hosts(replicas: int, **more: str) -> Json:
    """A gang with replicas of two pods each."""
    workers = group("slices", replicas, hosts=2)
    return gang("slices", workers, annotations=more and {names.MIN_REPLICAS: more["minimum"]})


def by_replica(pods: list[Json]) -> dict[str, list[bool]]:
    """For each replica whether its pods are held."""
    found: dict[str, list[bool]] = {}
    for pod in pods:
        found.setdefault(label(pod, names.RAY_REPLICA_NAME), []).append(is_held(pod))
    return found


def test_replicas_of_several_hosts_start_whole(plot: Plot) -> None:
    """Room for one more pod is no room for one more replica."""
    plot.add_node(4)
    plot.create(hosts(2, minimum="slices=1"))
    plot.wait_phase("slices", "Running")
    plot.wait_pods("slices", 5)
    assert minimums(plot, "slices") == {"headgroup": (1, 1), "slices": (2, 4)}
    replicas = by_replica(plot.pods("slices", "worker"))
    assert sorted(replicas.values()) == [[False, False], [True, True]]
    plot.add_equal_nodes(1, cpus=1)
    plot.wait_running("slices", 5)
