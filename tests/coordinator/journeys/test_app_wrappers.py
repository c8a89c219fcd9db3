"""AppWrappers: their objects are created once the whole has its place, and none exists before."""

from typing import Any

import pytest

from coordinator.cluster import foreseen_gangs
from coordinator.messages.actions import DeletePod, EvictPod, ResumeRayCluster, SuspendRayCluster
from coordinator.reconcile.held_start.resuspension import UNFIT_PATIENCE
from kube.objects import names
from tests.coordinator import app_wrappers as controllers
from tests.coordinator.api import Key
from tests.coordinator.app_wrappers import (
    app_wrapper,
    bare_pod,
    become,
    config_map,
    gated,
    had_objects,
    job,
    nodes_of,
    phase,
    pods_of,
    succeed,
    wrapper_of,
)
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
from tests.coordinator.journeys.test_held import quota
from tests.coordinator.journeys.test_queues import change, queue
from tests.coordinator.stopping import condition, go_until
from tests.coordinator.world import World, is_gated, key
from tests.examples import every_other

HIGH = {"kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
LOWER = {"withinQueue": "LowerPriority"}
IN_QUEUE = {names.QUEUE: "team"}


def gang_status(world: World, name: str = "a") -> dict[str, Any]:
    return world.status(f"appwrapper.{name}")


def held_phase(world: World, name: str = "a") -> str:
    said: dict[str, Any] = gang_status(world, name).get("held", {})
    return str(said.get("phase", ""))


def crowded(*wrappers: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A world whose one node is full of gang b."""
    world = World(node("n1", cpu=cpu), replicas=replicas)
    world.create(gang_of("b", cpu - 1))
    world.settle(seconds=30)
    world.create(*wrappers)
    world.settle(seconds=30)
    return world


def running(*wrappers: Json, cpu: int = 4, replicas: int = 1) -> World:
    """A world in which one AppWrapper has all of the room."""
    world = World(node("n1", cpu=cpu), queue("team", preemption=LOWER), HIGH, replicas=replicas)
    world.create(*wrappers)
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * cpu
    return world


def labelled(wrapper: Json, **labels: str) -> Json:
    wrapper["metadata"]["labels"] |= labels
    return wrapper


def in_queue(wrapper: Json) -> Json:
    return labelled(wrapper, **IN_QUEUE)


def suspend(world: World, value: bool, name: str = "a") -> None:
    """Have a person set spec.suspend."""
    wrapper = wrapper_of(world.api, name)
    world.api.change(wrapper, lambda obj: obj["spec"].update(suspend=value))


# ---- waiting, and starting


def test_nothing_exists_before_the_whole_fits_and_all_of_it_runs_then() -> None:
    world = crowded(app_wrapper("a", config_map("settings"), job("work", 3)))
    assert not had_objects(world.api, "a")
    status = gang_status(world)
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert held_phase(world) == "Waiting"
    owner = world.gang("appwrapper.a")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("AppWrapper", "a")
    assert "the AppWrapper is suspended" in condition(world, "appwrapper.a", "Gathered")["message"]

    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 3
    assert phase(world.api, "a") == "Running"
    assert (gang_status(world)["phase"], held_phase(world)) == ("Running", "Resumed")


def test_objects_are_created_only_after_the_placement_is_written_and_never_by_the_coordinator() -> (
    None
):
    world = World(node("n1"))
    world.create(app_wrapper("a", job("work", 3)))
    leader = world.leader
    leader.hear_all()
    leader.act()  # the Gang
    leader.cycle()
    world.wrap()
    assert not had_objects(world.api, "a")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 3
    writes = (ResumeRayCluster, SuspendRayCluster)
    assert not [each for each in leader.log if isinstance(each, writes)]


@pytest.mark.parametrize(("cpu", "pods"), [(4, 3), (4, 1), (3, 3), (2, 1)])
def test_a_placement_is_of_the_spec_that_the_record_names(cpu: int, pods: int) -> None:
    """It may be edited between its placement and its start."""
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 2)))
    world.settle(seconds=30)
    before = gang_status(world)
    assert (before["held"]["generation"], "placement" in before) == (1, True)

    template = app_wrapper("a", job("work", pods, cpu=cpu))["spec"]
    wrapper = wrapper_of(world.api, "a")
    world.api.change(wrapper, lambda obj: obj.update(spec=template))
    world.settle(seconds=30)
    after = gang_status(world)
    assert after["held"]["generation"] == 2
    fits = cpu * pods <= 4
    assert ("placement" in after) is fits
    gangs = (each.new for each in world.api.history if (each.new or {}).get("kind") == "Gang")
    said = [gang.get("status") or {} for gang in gangs if gang]
    of_now = [each for each in said if each.get("held", {}).get("generation") == 2]
    assert of_now
    assert any("placement" in each for each in of_now) is fits
    world.wrapper = True
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == (["n1"] * pods if fits else [])
    assert had_objects(world.api, "a") is fits


def test_a_part_that_would_fit_is_not_created() -> None:
    world = World(*(node(f"n{number}", gpu=8) for number in range(10)))
    world.create(app_wrapper("a", job("work", 100, cpu="100m", gpu=1)))
    world.settle(seconds=60)
    assert not had_objects(world.api, "a")
    assert "needs 100 nvidia.com/gpu in all; the nodes" in gang_status(world)["message"]


def test_of_two_items_neither_is_created_before_both_fit() -> None:
    world = World(node("n1", cpu=4))
    world.create(app_wrapper("a", job("one", 3), bare_pod("two", cpu=2)))
    world.settle(seconds=30)
    assert not had_objects(world.api, "a")
    world.create(node("n2", cpu=2))
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1", "n1", "n1", "n2"]


def test_a_wrapped_pod_that_is_refused_on_its_node_is_not_deleted_but_all_starts_anew() -> None:
    """Nothing would create it again, and its AppWrapper would have failed."""
    world = World(node("n1", cpu=4), node("n2", cpu=4))
    world.grudges = {"n1"}
    world.create(app_wrapper("a", bare_pod("one", cpu=1), bare_pod("two", cpu=1)))
    world.settle(seconds=300)
    assert not [each for each in world.leader.log if isinstance(each, DeletePod)]
    assert (phase(world.api, "a"), nodes_of(world.api, "a")) == ("Running", ["n2", "n2"])


def test_a_wrapped_ray_cluster_is_no_gang_of_its_own() -> None:
    world = World(node("n1", cpu=4))
    team = world.api.get(Key("namespaces", "", TEAM))
    world.api.change(team, lambda obj: obj["metadata"].update(labels={names.OPT_IN: "true"}))
    cluster = ray_cluster("train", group("workers", 3), labels={})
    world.create(app_wrapper("a", cluster))
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    gangs = [each["metadata"]["name"] for each in world.api.all("gangs")]
    assert gangs == ["appwrapper.a"]
    sets = [each["name"] for each in gang_status(world)["podSets"]]
    assert len(sets) == 2


def test_workers_that_rays_autoscaler_adds_are_placed_as_they_fit() -> None:
    world = World(node("n1", cpu=4))
    elastic = {"minReplicas": 1, "maxReplicas": 9}
    cluster = ray_cluster(
        "train", group("workers", 1, **elastic), labels={}, enableInTreeAutoscaling=True
    )
    world.create(app_wrapper("a", cluster))
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 2

    world.scale("train", 4)
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert sum(is_gated(each) for each in pods_of(world.api, "a")) == 1
    assert condition(world, "appwrapper.a", "SurplusPlaced")["reason"] == "InsufficientResources"
    world.create(node("n2", cpu=1))
    world.settle(seconds=60)
    assert sorted(nodes_of(world.api, "a")) == ["n1"] * 4 + ["n2"]


def test_one_of_mcads_group_is_a_gang() -> None:
    world = crowded({**app_wrapper("a", job("work", 3)), "apiVersion": names.MCAD_V1BETA1})
    world.delete("rayclusters", "b")
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 3
    (gang,) = (each for each in world.api.all("gangs") if each["metadata"]["name"] != "b")
    assert gang["metadata"]["name"] == "appwrapper-mcad.a"
    assert gang["metadata"]["ownerReferences"][0]["apiVersion"] == names.MCAD_V1BETA1


def test_an_app_wrapper_without_pods_is_created_at_once() -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", config_map("settings")))
    world.settle(seconds=30)
    assert gang_status(world)["reason"] == "NotRequired"
    assert phase(world.api, "a") == "Running"
    assert world.api.get(Key("configmaps", TEAM, "settings"))


def test_one_that_another_controller_manages_is_left_alone() -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", job("work", 1), managedBy="kueue.x-k8s.io/multikueue"))
    world.settle(seconds=30)
    assert not list(world.api.all("gangs"))
    assert not had_objects(world.api, "a")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (job("work", -1), "components[1] (Job work): template.spec.parallelism"),
        (job("work", 1, cpu="much"), "pod set[work].template: spec.containers[ray]"),
        ({"kind": "Job"}, "components[1] (Job): template.apiVersion"),
    ],
)
def test_what_cannot_be_created_is_said_with_its_item_and_field(broken: Json, said: str) -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", config_map("settings"), broken))
    world.settle(seconds=30)
    assert not had_objects(world.api, "a")
    status = gang_status(world)
    assert status["reason"] == "PodsRefused"
    assert said in status["message"]


def test_one_that_no_webhook_reviewed_reserves_nothing() -> None:
    world = World(node("n1"))
    wrapper = app_wrapper("a", job("work", 1))
    wrapper["metadata"]["annotations"].clear()
    world.create(wrapper)
    world.settle(seconds=30)
    status = gang_status(world)
    assert (status["reason"], "placement" in status) == ("PodsRefused", False)
    assert names.CREATED_BY in status["message"]


def test_a_quota_of_the_namespace_is_judged_for_all_pods_together() -> None:
    world = World(node("n1"), quota(3))
    world.create(app_wrapper("a", job("one", 2), job("two", 2)))
    world.settle(seconds=30)
    assert not had_objects(world.api, "a")
    assert "needs 4 of pods; 3 of 3 are left" in gang_status(world)["message"]


def test_a_gang_queue_holds_it_back() -> None:
    world = World(node("n1"), queue("team", cpu=2))
    world.create(in_queue(app_wrapper("a", job("work", 3))))
    world.settle(seconds=30)
    assert gang_status(world)["reason"] == "QuotaExceeded"
    assert not had_objects(world.api, "a")


def test_all_objects_go_when_its_queue_is_drained_and_come_back_when_that_goes_on() -> None:
    world = running(in_queue(app_wrapper("a", job("work", 4))))
    change(world, "team", stop="HoldAndDrain")
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == []
    assert gang_status(world)["reason"] == "QueueStopped"
    change(world, "team", stop="None")
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4


def test_the_second_of_the_walk_through_waits_until_the_first_is_deleted() -> None:
    """One node of 8 CPU, of which others have 2050m; a RayCluster of 4000m, and another."""
    world = World(node("n1", cpu=8))
    world.create(foreign_pod("system", "n1", cpu="2050m"))
    for number, name in enumerate(("raycluster-complete", "raycluster-complete-1")):
        head, workers = template(cpu="2"), group("small-group", 2, cpu="1")
        cluster = ray_cluster(name, workers, labels={}, head=head)
        world.create(app_wrapper(name, config_map(f"settings-{number}"), cluster))
        world.settle(seconds=30)
    used = world.used()["n1"]
    assert used["cpu"] == 6050
    assert phase(world.api, "raycluster-complete") == "Running"
    status = gang_status(world, "raycluster-complete-1")
    assert (status["phase"], status["reason"]) == ("Queued", "InsufficientResources")
    assert not had_objects(world.api, "raycluster-complete-1")

    world.delete("appwrappers", "raycluster-complete")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "raycluster-complete-1")) == 3
    assert Key("configmaps", TEAM, "settings-0") not in world.api.objects
    assert Key("gangs", TEAM, "appwrapper.raycluster-complete") not in world.api.objects


# ---- pods that come otherwise, late, or end


def with_injected(world: World, extra: int) -> None:
    """Have a foreign webhook add a container to every pod of a Job."""
    reviewed = world._reviewed

    def review(cluster: Json, pod: Json) -> Json:
        side_car = {"name": "proxy", "resources": {"requests": {"cpu": str(extra)}}}
        containers = [*pod["spec"]["containers"], side_car]
        return reviewed(cluster, {**pod, "spec": {**pod["spec"], "containers": containers}})

    world._reviewed = review  # type: ignore[method-assign]


def test_pods_that_come_larger_and_fit_are_decided_again() -> None:
    world = World(node("n1", cpu=8))
    with_injected(world, 1)
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4


def test_pods_that_come_larger_and_do_not_fit_are_deleted_with_all_else_and_it_learns() -> None:
    world = World(node("n1", cpu=6))
    with_injected(world, 1)
    world.create(app_wrapper("a", config_map("settings"), job("work", 4)))
    world.settle(seconds=60)
    assert phase(world.api, "a") == "Suspended"
    assert not pods_of(world.api, "a")
    assert Key("configmaps", TEAM, "settings") not in world.api.objects
    status = gang_status(world)
    assert (status["reason"], held_phase(world)) == ("NeverFits", "Waiting")
    assert "came with 2 cpu instead of 1" in status["message"]
    count = wrapper_of(world.api, "a")["status"]["transitionCount"]
    world.settle(seconds=600)
    assert wrapper_of(world.api, "a")["status"]["transitionCount"] == count

    world.create(node("n2", cpu=6))
    world.settle(seconds=60)
    assert len(nodes_of(world.api, "a")) == 4


def test_what_is_to_be_deleted_stays_so_while_the_program_is_down() -> None:
    world = World(node("n1", cpu=6))
    with_injected(world, 1)
    world.create(app_wrapper("a", job("work", 4)))
    until(world, "Running")
    world.wrapper = False
    world.settle(seconds=60)
    assert (held_phase(world), phase(world.api, "a")) == ("Suspending", "Running")
    assert "placement" not in gang_status(world)
    assert gang_status(world)["message"].startswith("the AppWrapper is being suspended")


def test_room_is_given_back_where_the_program_creates_nothing() -> None:
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=30)
    assert gang_status(world)["placement"]
    world.settle(seconds=280)
    assert "placement" not in gang_status(world)
    world.create(gang_of("b", 3))
    world.settle(seconds=15)
    assert world.bound("b") == {"n1": 4}


def test_a_creation_that_fails_is_told_and_tried_again_later() -> None:
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=5)
    for now in ("Resuming", "Resetting"):
        said = "components[0] (Job work): forbidden" if now == "Resetting" else ""
        become(world.api, wrapper_of(world.api, "a"), now, message=said)
        world.settle(seconds=1)
    assert held_phase(world) == "Suspending"
    assert "placement" not in gang_status(world)
    become(world.api, wrapper_of(world.api, "a"), "Suspended")
    world.settle(seconds=5)
    status = gang_status(world)
    assert status["reason"] == "PodsRefused"
    assert "Job work" in status["message"]
    world.wrapper = True
    world.settle(seconds=20)
    assert not had_objects(world.api, "a")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "a")) == 4


def test_a_creation_that_failed_unseen_waits_as_well() -> None:
    world = World(node("n1", cpu=4))
    world.wrapper = False
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=5)
    become(world.api, wrapper_of(world.api, "a"), "Resuming")
    world.settle(seconds=1)
    assert held_phase(world) == "Resumed"
    for now in ("Resetting", "Suspended"):
        become(world.api, wrapper_of(world.api, "a"), now)
    world.leader.watch.queues["appwrappers"].popleft()
    world.settle(seconds=1)
    status = gang_status(world)
    assert (status["reason"], "placement" in status) == ("PodsRefused", False)


def test_pods_that_succeeded_hold_nothing_and_ask_for_nothing() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    world.create(gang_of("b", 1))
    world.settle(seconds=30)
    assert world.status("b")["reason"] == "InsufficientResources"
    succeed(world.api, "a", 2)
    world.settle(seconds=10)
    assert world.bound("b") == {"n1": 2}
    assert "kept" not in str(gang_status(world)["podSets"])
    succeed(world.api, "a", 2)
    world.settle(seconds=10)
    world.create(gang_of("c", 1))
    world.settle(seconds=10)
    assert world.bound("c") == {"n1": 2}


def test_pods_of_a_kind_that_is_not_known_have_room_until_they_may_exist() -> None:
    world = World(node("n1", cpu=4))
    wrapper = app_wrapper("a")
    kind = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    sizes = [{"replicas": 3, "requests": {"cpu": "1"}}]
    item = {"generictemplate": {**kind}, "custompodresources": sizes}
    wrapper["spec"] = {"resources": {"GenericItems": [item]}}
    world.wrapper = False
    world.create(wrapper)
    world.settle(seconds=30)
    assert gang_status(world)["placement"]
    world.wrapper = True
    world.settle(seconds=400)
    assert phase(world.api, "a") == "Running"
    assert "placement" not in gang_status(world)


def test_the_next_pods_of_a_job_take_the_slots_of_those_that_succeeded() -> None:
    world = running(app_wrapper("a", job("work", 4, completions=6)))
    world.create(gang_of("b", 1))
    succeed(world.api, "a", 2)
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "a")) == 6
    assert world.status("b")["reason"] == "InsufficientResources"


@pytest.mark.parametrize("end", ["Succeeded", "Failed"])
def test_one_that_is_over_asks_for_nothing(end: str) -> None:
    world = running(app_wrapper("a", job("work", 4)))
    succeed(world.api, "a")
    become(world.api, wrapper_of(world.api, "a"), end)
    world.settle(seconds=10)
    status = gang_status(world)
    assert (status["phase"], status["reason"]) == ("Finished", "AppWrapperEnded")
    assert "placement" not in status
    assert f"the AppWrapper is {end}" in status["message"]
    assert held_phase(world) == ""


def test_one_that_is_over_counts_nowhere_and_a_new_leader_mends_what_an_older_release_wrote() -> (
    None
):
    world = running(app_wrapper("a", job("work", 4)))
    succeed(world.api, "a")
    become(world.api, wrapper_of(world.api, "a"), "Succeeded")
    world.settle(seconds=10)
    old = {"phase": "Gathering", "reason": "Suspended"}
    world.api.change(world.gang("appwrapper.a"), lambda obj: obj["status"].update(old))
    world.leader.restart()
    world.elect(0)
    world.settle(seconds=10)
    assert gang_status(world)["phase"] == "Finished"
    counts = world.leader.state.known.term.counts
    assert (dict(counts.gangs), dict(counts.without_room)) == ({}, {})


def test_one_that_is_over_is_not_misconfigured() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    succeed(world.api, "a")
    become(world.api, wrapper_of(world.api, "a"), "Succeeded")
    labels = {"muster.dev/queue": "none-such"}
    world.api.change(wrapper_of(world.api, "a"), lambda obj: obj["metadata"].update(labels=labels))
    world.settle(seconds=10)
    assert gang_status(world)["reason"] == "AppWrapperEnded"


# ---- priority


def of_mcad(name: str, **spec: object) -> Json:
    """An AppWrapper of MCAD's generation with a Job that needs all of the room."""
    wrapper = app_wrapper(name)
    items = [{"generictemplate": job(f"work-{name}", 4)}]
    return {**wrapper, "spec": {"resources": {"GenericItems": items}, **spec}}


@pytest.mark.parametrize(("adding", "first"), [((), "a"), ([TEAM], "c"), (["*"], "c")])
def test_a_priority_counts_where_the_operator_allows_it(adding: list[str], first: str) -> None:
    world = World(node("n1", cpu=4), adding=adding)
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(of_mcad("a", priority=1))
    world.settle(seconds=5)
    world.create(of_mcad("c", priority=2))
    world.settle(seconds=5)
    world.delete("rayclusters", "b")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, first)) == 4


def test_a_priority_that_grows_overtakes() -> None:
    world = World(node("n1", cpu=4), adding=[TEAM])
    world.create(gang_of("b", 3))
    world.settle(seconds=30)
    world.create(of_mcad("a", priority=5), of_mcad("c", priorityslope=0.1))
    world.settle(seconds=10)
    assert (gang_status(world)["position"], gang_status(world, "c")["position"]) == (1, 2)
    world.settle(seconds=60)
    assert (gang_status(world)["position"], gang_status(world, "c")["position"]) == (2, 1)
    assert world.gang("appwrapper.c")["spec"]["priority"] == 6


# ---- stopping


def test_one_of_higher_priority_stops_it_whole_and_it_comes_back() -> None:
    world = running(in_queue(app_wrapper("a", config_map("settings"), job("work", 4))))
    world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    world.settle(seconds=UNFIT_PATIENCE * 4)
    assert len(nodes_of(world.api, "p")) == 3
    assert (pods_of(world.api, "a"), phase(world.api, "a")) == ([], "Suspended")
    assert Key("configmaps", TEAM, "settings") not in world.api.objects
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]
    evicted = condition(world, "appwrapper.a", "Evicted")
    assert evicted["message"].startswith("stopped for AppWrapper team/p")

    world.delete("appwrappers", "p")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert held_phase(world) == "Resumed"


def test_its_room_is_its_own_until_its_pods_are_gone() -> None:
    world = running(in_queue(app_wrapper("a", job("work", 4))))
    kubelets = world.kubelets
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    world.settle(seconds=60)
    assert phase(world.api, "a") == "Suspending"
    assert not had_objects(world.api, "p")
    world.kubelets = kubelets  # type: ignore[method-assign]
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "p")) == 3


def test_a_released_pod_keeps_its_room_until_it_is_gone_also_where_a_person_stops_it() -> None:
    world = World(node("n1", cpu=4))
    schedule, kubelets = world.schedule, world.kubelets
    world.schedule = lambda: None  # type: ignore[method-assign]
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=10)
    assert len(world.leader.releases()) == 4
    world.wrapper = False
    become(world.api, wrapper_of(world.api, "a"), "Suspending")
    world.create(gang_of("b", 1))
    world.settle(seconds=10)
    assert world.status("b")["reason"] == "InsufficientResources"
    world.wrapper, world.schedule, world.kubelets = True, schedule, kubelets  # type: ignore[method-assign]
    suspend(world, True)
    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 2}


def test_what_was_begun_is_finished_also_where_the_other_is_gone() -> None:
    world = running(in_queue(app_wrapper("a", job("work", 4))))
    world.wrapper = False
    world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    world.settle(seconds=10)
    assert (held_phase(world), phase(world.api, "a")) == ("Suspending", "Running")
    world.delete("appwrappers", "p")
    world.settle(seconds=10)
    assert held_phase(world) == "Suspending"
    world.wrapper = True
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert wrapper_of(world.api, "a")["status"]["transitionCount"] == 6
    assert condition(world, "appwrapper.a", "Evicted")["status"] == "False"


def test_a_person_suspends_and_resumes_it() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    suspend(world, True)
    world.settle(seconds=30)
    assert (phase(world.api, "a"), held_phase(world)) == ("Suspended", "Waiting")
    status = gang_status(world)
    assert (status["reason"], "placement" in status) == ("Suspended", False)
    assert "spec.suspend is true" in status["message"]
    world.create(gang_of("b", 1))
    world.settle(seconds=30)
    assert world.bound("b") == {"n1": 2}
    world.delete("rayclusters", "b")
    suspend(world, False)
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4


def test_one_that_is_created_suspended_waits_for_its_user() -> None:
    world = World(node("n1"))
    world.create(app_wrapper("a", job("work", 1), suspend=True))
    world.settle(seconds=30)
    assert gang_status(world)["reason"] == "Suspended"
    assert not had_objects(world.api, "a")


def test_one_of_which_a_pod_is_lost_before_it_ran_is_stopped_whole() -> None:
    """A bare pod is not made again by anything but the start of all of it."""
    world = World(node("n1", cpu=4))
    kubelets = world.kubelets
    world.kubelets = lambda: None  # type: ignore[method-assign]
    world.create(app_wrapper("a", bare_pod("one"), bare_pod("two")))
    world.settle(seconds=10)
    assert len(nodes_of(world.api, "a")) == 2
    world.api.remove(Key("pods", TEAM, "two"))
    world.settle(seconds=290)
    assert phase(world.api, "a") == "Running"
    world.settle(seconds=15)
    assert phase(world.api, "a") == "Suspending"
    assert condition(world, "appwrapper.a", "Evicted")["reason"] == "ReadyTimeout"
    world.kubelets = kubelets  # type: ignore[method-assign]
    world.settle(seconds=60)
    assert len(nodes_of(world.api, "a")) == 2
    assert gang_status(world)["phase"] == "Running"


class Unready(World):
    """No pod gets ready."""

    def _condition(self, pod: Json, kind: str, status: str, reason: str, message: str) -> None:
        super()._condition(pod, kind, "False" if kind == "Ready" else status, reason, message)


def test_one_that_is_late_is_stopped_counted_and_given_up() -> None:
    rules = {"readySeconds": 100, "retries": 1, "backoffSeconds": 60}
    world = Unready(node("n1", cpu=4), queue("team", timeouts=rules))
    world.create(in_queue(app_wrapper("a", job("work", 4))))
    world.settle(seconds=150)
    world.settle(seconds=300)
    status = gang_status(world)
    assert (status["phase"], status["reason"]) == ("Failed", "RetriesExhausted")
    assert not pods_of(world.api, "a")
    assert not [each for each in world.leader.log if isinstance(each, EvictPod)]


# ---- in every phase


def until(world: World, name: str) -> None:
    """Have everybody go on, action by action, until the AppWrapper is in a phase."""

    def there() -> bool:
        (world.controllers if name == "Suspended" else world.wrap)()
        return phase(world.api, "a") == name

    go_until(world, there)


PHASES = ("", "Resuming", "Running", "Suspending", "Suspended")


def brought_to(name: str, replicas: int = 1) -> World:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), HIGH, replicas=replicas)
    world.create(in_queue(app_wrapper("a", job("work", 4))))
    if name in ("Suspending", "Suspended"):
        world.settle(seconds=30)
        world.create(in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"))))
    until(world, name)
    return world


@pytest.mark.parametrize("name", PHASES)
def test_deleted_in_any_phase_nothing_is_left_of_it(name: str) -> None:
    world = brought_to(name)
    world.delete("appwrappers", "a")
    world.settle(seconds=60)
    assert not pods_of(world.api, "a")
    assert Key("gangs", TEAM, "appwrapper.a") not in world.api.objects
    world.create(gang_of("b", 0))
    world.settle(seconds=10)
    assert world.bound("b") == {"n1": 1}


@pytest.mark.parametrize("change_leader", [False, True])
@pytest.mark.parametrize("name", PHASES)
def test_suspended_by_hand_in_any_phase_it_is_gone_and_comes_back(
    name: str, change_leader: bool
) -> None:
    world = brought_to(name, replicas=2)
    suspend(world, True)
    if change_leader:
        world.leader.restart()
        world.elect(1)
    world.settle(seconds=60)
    assert (pods_of(world.api, "a"), phase(world.api, "a")) in (([], "Suspended"), ([], ""))
    assert "placement" not in gang_status(world)
    if Key("appwrappers", TEAM, "p") in world.api.objects:
        world.delete("appwrappers", "p")
    suspend(world, False)
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 4


@pytest.mark.parametrize(("now", "runs"), [(2, 2), (5, 0)])
@pytest.mark.parametrize("name", PHASES)
def test_edited_in_any_phase_it_runs_as_it_says_then_or_not_at_all(
    name: str, now: int, runs: int
) -> None:
    """The webhook lets no such edit pass while the items exist: this one it did not see."""
    world = brought_to(name)
    spec = app_wrapper("a", job("work", now))["spec"]
    world.api.change(wrapper_of(world.api, "a"), lambda obj: obj.update(spec=spec))
    world.settle(seconds=60)
    if Key("appwrappers", TEAM, "p") in world.api.objects:
        world.delete("appwrappers", "p")
    world.settle(seconds=600)
    assert nodes_of(world.api, "a") == ["n1"] * runs
    world.create(gang_of("b", 3 - runs))
    world.settle(seconds=10)
    assert world.bound("b") == {"n1": 4 - runs}


@pytest.mark.parametrize("name", ["Resuming", "Running"])
def test_a_node_that_is_lost_before_its_pods_run_has_it_placed_elsewhere(name: str) -> None:
    world = brought_to(name)
    world.delete("nodes", "n1")
    world.create(node("n2", cpu=4))
    world.settle(seconds=1200)
    assert nodes_of(world.api, "a") == ["n2"] * 4


def test_a_released_pod_that_loses_its_node_is_taken_from_its_job() -> None:
    """A Job counts each pod that is deleted as failed, and pauses: for 40 s after three at once."""
    world = World(node("n1", cpu=4))
    world.schedule = lambda: None  # type: ignore[method-assign]
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=5)
    world.delete("nodes", "n1")
    world.settle(seconds=5)
    deleted = [each for each in world.leader.log if isinstance(each, DeletePod)]
    assert [each.of_job for each in deleted] == [True] * 4


def test_where_the_pods_of_an_item_are_refused_all_of_it_is_deleted_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a rule of admission that Muster does not know: the Job exists, and none of its pods."""
    monkeypatch.setattr(controllers, "make_pods", lambda *_: None)
    world = World(node("n1", cpu=4))
    world.create(app_wrapper("a", config_map("settings"), job("work", 4)))
    world.settle(seconds=30)
    world.create(gang_of("b", 3))
    world.settle(seconds=20)
    assert (phase(world.api, "a"), world.bound("b")) == ("Running", {})
    world.settle(seconds=20)
    assert world.bound("b") == {"n1": 4}
    assert phase(world.api, "a") == "Suspended"
    left = {Key("configmaps", TEAM, "settings"), Key("jobs", TEAM, "work")}
    assert not left & world.api.objects.keys()


@pytest.mark.parametrize("name", PHASES)
def test_another_of_its_name_starts_anew(name: str) -> None:
    world = brought_to(name)
    world.delete("appwrappers", "a")
    if "p" in {each["metadata"]["name"] for each in world.api.all("appwrappers")}:
        world.delete("appwrappers", "p")
    world.create(app_wrapper("a", job("again", 2)))
    world.settle(seconds=60)
    assert nodes_of(world.api, "a") == ["n1"] * 2
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    labels = [pod["metadata"]["labels"] for pod in pods_of(world.api, "a")]
    assert {each[names.APP_WRAPPER_UID] for each in labels} == {uid}


@pytest.mark.parametrize("step", every_other(range(40)))
def test_a_leader_that_dies_at_any_step_is_followed_by_one_that_goes_on(step: int) -> None:
    world = World(node("n1", cpu=4), queue("team", preemption=LOWER), HIGH, replicas=2)
    world.create(in_queue(app_wrapper("a", job("work", 4))))
    world.create(
        in_queue(app_wrapper("p", job("urgent", 3, priorityClassName="high"), suspend=True))
    )
    taken = 0

    def steps_taken() -> bool:
        nonlocal taken
        world.wrap()
        world.schedule()
        world.kubelets()
        taken += 1
        if nodes_of(world.api, "a") and wrapper_of(world.api, "p")["spec"]["suspend"]:
            suspend(world, False, "p")
        return taken > step

    go_until(world, steps_taken)
    world.leader.resign()
    world.elect(1)
    world.settle(seconds=60)
    suspend(world, False, "p")
    world.settle(seconds=60)
    assert len(nodes_of(world.api, "p")) == 3
    assert (pods_of(world.api, "a"), phase(world.api, "a")) == ([], "Suspended")


# ---- labels that others write


def forged(world: World, name: str, uid: str) -> Json:
    pod = bare_pod(name, cpu=1)
    labels = {names.APP_WRAPPER: "a", names.APP_WRAPPER_UID: uid, names.POD_SET: "x"}
    owner = {"kind": "ReplicaSet", "name": "r", "uid": "r", "controller": True}
    pod["metadata"] |= {"namespace": TEAM, "labels": labels, "annotations": {}}
    pod["metadata"]["ownerReferences"] = [owner] if not uid else []
    return gated(world.api, {**pod, "status": {"phase": "Pending"}})


def test_a_pod_with_forged_labels_is_surplus_and_never_released() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    world.create(node("n2", cpu=4))
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    world.create(forged(world, "forged", uid))
    world.settle(seconds=60)
    assert is_gated(world.api.get(Key("pods", TEAM, "forged")))
    released = {each for each, _ in world.leader.releases()}
    assert "forged" not in released
    assert gang_status(world)["phase"] == "Running"


def test_a_pod_beyond_its_pod_set_is_told_so() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    pods = pods_of(world.api, "a")
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    pod = forged(world, "more", uid)
    pod["metadata"]["labels"][names.POD_SET] = pods[0]["metadata"]["labels"][names.POD_SET]
    world.create(pod, node("n2"))
    world.settle(seconds=60)
    assert is_gated(world.api.get(Key("pods", TEAM, "more")))
    told = condition(world, "appwrapper.a", "SurplusPlaced")
    assert told["reason"] == "ExcessPods"
    assert "the AppWrapper asks for 4 pods of the pod set; Muster" in told["message"]


def test_a_pod_of_an_earlier_app_wrapper_is_no_member() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    pod = forged(world, "old", "uid-0")
    assert not is_gated(pod)
    world.create(pod)
    world.settle(seconds=10)
    uid = wrapper_of(world.api, "a")["metadata"]["uid"]
    members = world.leader.state.known.cache.members(key("appwrapper.a"), uid)
    assert len(members) == 4


def test_a_ray_cluster_in_the_form_of_such_a_name_does_not_take_its_place() -> None:
    world = running(app_wrapper("a", job("work", 4)))
    world.create(gang_of("appwrapper.a", 1))
    world.leader.hear_all()
    world.delete("rayclusters", "appwrapper.a")
    world.settle(seconds=30)
    assert nodes_of(world.api, "a") == ["n1"] * 4
    assert gang_status(world)["phase"] == "Running"


def test_those_that_a_person_suspended_take_no_part_of_what_may_be_foreseen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(foreseen_gangs, "MOST_PODS", 4)
    world = World(node("n1", cpu=4))
    world.create(app_wrapper("stopped", job("idle", 4), suspend=True))
    world.settle(seconds=10)
    assert gang_status(world, "stopped")["reason"] == "Suspended"
    world.create(app_wrapper("a", job("work", 4)))
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "a")) == 4
    world.delete("appwrappers", "a")
    world.settle(seconds=30)
    suspend(world, False, "stopped")
    world.settle(seconds=30)
    assert len(nodes_of(world.api, "stopped")) == 4
