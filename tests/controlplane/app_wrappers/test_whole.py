"""AppWrappers on the real control plane, with all programs: nothing exists until all of it fits.

First comes what the documents of KubeRay and of MCAD show, on a node as large as theirs.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from appwrapper.status.conditions import NOTICES
from appwrapper.status.mcad_states import NO_ROOM
from cli.endings import FINE
from kube.objects import names
from testbed.components import CONTROLLER_MANAGER, SCHEDULER
from testbed.muster import Muster
from testbed.nodes import NodeSpec, copies
from testbed.recorder import Recorder
from tests.controlplane.app_wrappers.conftest import MCAD_DEFINITIONS, start_all
from tests.controlplane.plot import Plot, is_ready, label, pin
from tests.controlplane.rayclusters import (
    Json,
    cluster_spec,
    group,
    head,
    on_nodes,
    pod,
    ray_cluster,
    requests,
)
from tests.controlplane.test_cli import account, bind, run
from tests.controlplane.test_fit_and_doctor import asked, create_role

WRAPPER = "AppWrapper"
FIRST, SECOND = "raycluster-complete", "raycluster-complete-1"


@pytest.fixture(scope="module")
def muster(own: Muster) -> Muster:
    """All programs, where AppWrappers of MCAD's generation are not known yet."""
    own.cluster.kubectl("delete", "-f", str(MCAD_DEFINITIONS))
    shutil.rmtree(own.cluster.directory / "kubectl")  # where kubectl remembers what is served
    return start_all(own, PROVISIONING="true")


@pytest.fixture(scope="module")
def both_generations(muster: Muster) -> None:
    """Define those of MCAD's generation while all programs do without them.

    The programs look for them once a minute. A test that needs them later asks for this early.
    """
    muster.cluster.kubectl("create", "-f", str(MCAD_DEFINITIONS))
    muster.cluster.kubectl("wait", "--for=condition=Established", "-f", str(MCAD_DEFINITIONS))


# ---- AppWrappers


def create(plot: Plot, wrapper: Json) -> None:
    """Create an AppWrapper as a user does, its pods held to the plot's nodes."""
    body = json.dumps(on_nodes(wrapper, plot.selector))
    plot.cluster.kubectl("-n", plot.name, "create", "-f", "-", input=body)


def mcad_wrapper(name: str, *items: Json) -> Json:
    """One of MCAD's generation."""
    return {
        "apiVersion": names.CODEFLARE_V1BETA1,
        "kind": WRAPPER,
        "metadata": {"name": name},
        "spec": {"resources": {"GenericItems": list(items)}},
    }


def item(template: Json, *sizes: Json) -> Json:
    """An object and the sizes that its user declares, a pod each."""
    declared = [{"replicas": 1, **each} for each in sizes]
    return {"replicas": 1, "generictemplate": template, "custompodresources": declared}


def wrapper(name: str, *templates: Json) -> Json:
    """One of CodeFlare's generation."""
    return {
        "apiVersion": names.CODEFLARE_V1BETA2,
        "kind": WRAPPER,
        "metadata": {"name": name},
        "spec": {"components": [{"template": each} for each in templates]},
    }


def config_map(name: str) -> Json:
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


def secret(name: str) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {}}


def job(name: str, pods: int, completions: int) -> Json:
    container = {"name": "main", "image": "none", "resources": requests()}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "completions": completions, "template": template},
    }


def controller(kind: str, name: str, pods: int, cpu: str) -> Json:
    """An object of a kind that makes equal pods and replaces them."""
    container = {"name": "main", "image": "none", "resources": requests(cpu)}
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    selector = {"matchLabels": labels}
    spec = {"replicas": pods, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def service(name: str) -> Json:
    ports = [{"port": 80}]
    spec = {"selector": {"app": name}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def status(plot: Plot, name: str) -> Json:
    return dict(plot.get(WRAPPER, name).get("status") or {})


def wait_phase(plot: Plot, name: str, phase: str) -> Json:
    def reached() -> Json:
        found = status(plot, name)
        return found if found.get("phase") == phase else {}

    return plot.wait(reached, f"AppWrapper {name} to be {phase}")


def wait_said(plot: Plot, name: str, part: str) -> Json:
    def said() -> Json:
        found = status(plot, name)
        return found if part in found.get("message", "") else {}

    return plot.wait(said, f"AppWrapper {name} to say {part!r}")


def exist(plot: Plot, *objects: tuple[str, str]) -> list[str]:
    """Those of some objects of the plot that exist."""
    there = {kind: {each["metadata"]["name"] for each in plot.all(kind)} for kind, _ in objects}
    return [name for kind, name in objects if name in there[kind]]


# ---- what is promised


def autoscaled(name: str) -> Json:
    """The AppWrapper of both documents: a Ray cluster that scales itself, and what goes with it.

    As there, the side-car of the head is not among the sizes that are declared.
    """
    mounted = [{"name": "code", "configMap": {"name": f"{name}-code"}}]
    spec = cluster_spec(
        group("small-group", 1, least=1, most=1, resources=requests("2", "2G")),
        head_group=head(requests("1", "2G"), volumes=mounted),
        enableInTreeAutoscaling=True,
    )
    cluster = {**ray_cluster(name), "spec": spec}
    sizes = (requests("1", "2G"), requests("2", "2G"))
    parts = (config_map(f"{name}-code"), secret(f"{name}-token"))
    return mcad_wrapper(name, *map(item, parts), item(cluster, *sizes))


def parts_of(name: str) -> tuple[tuple[str, str], ...]:
    return (
        ("ConfigMap", f"{name}-code"),
        ("Secret", f"{name}-token"),
        ("RayCluster", name),
        ("Gang", f"{names.APP_WRAPPER_GANG}{name}"),
    )


def wait_condition(plot: Plot, name: str, state: str, kind: str) -> Json:
    """Wait until MCAD's state and its last condition are these; returns that condition."""

    def told() -> Json:
        found = status(plot, name)
        last = found["conditions"][-1] if found.get("conditions") else {}
        return last if (found.get("state"), last.get("type")) == (state, kind) else {}

    return plot.wait(told, f"AppWrapper {name} to be {state}, {kind}")


def test_the_second_ray_cluster_has_no_pod_until_the_first_is_deleted(
    plot: Plot, recorder: Recorder
) -> None:
    plot.add_node(8, memory="8118372Ki")
    system = pod("system")
    system["spec"]["containers"][0]["resources"] = requests("2550m", "290Mi")
    plot.create(system)
    create(plot, autoscaled(FIRST))
    plot.wait_ready(FIRST, 2)
    wait_condition(plot, FIRST, "Running", "Running")
    notice, *kinds = [each["type"] for each in status(plot, FIRST)["conditions"]]
    assert notice == NOTICES  # the side-car of the head is not declared
    assert kinds[:3] == ["Init", "Queueing", "HeadOfLine"]
    assert kinds[-2:] == ["Dispatched", "Running"]
    assert sum(cpu(each) for each in plot.all("Pod") if "nodeName" in each["spec"]) == 6050

    create(plot, autoscaled(SECOND))
    backoff = wait_condition(plot, SECOND, "Pending", "Backoff")
    assert (backoff["reason"], backoff["message"]) == ("AppWrapperNotRunnable.", NO_ROOM)
    wait_said(plot, SECOND, "on one node, the gang 4.3Gi in all")
    assert [each for each in recorder.events if SECOND in (each.cluster, each.name)] == []
    *parts, gang = parts_of(SECOND)
    assert exist(plot, *parts, gang) == [gang[1]]
    assert exist(plot, *parts_of(FIRST)) == [each for _, each in parts_of(FIRST)]

    plot.cluster.kubectl("-n", plot.name, "delete", "appwrapper", FIRST)
    plot.wait_ready(SECOND, 2)
    wait_condition(plot, SECOND, "Running", "Running")
    plot.wait(lambda: not exist(plot, *parts_of(FIRST)), "all of the first to be gone")
    assert {label(each, names.RAY_CLUSTER) for each in plot.all("Pod")} == {"", SECOND}
    gangs = {(plot.name, each): 2 for each in (FIRST, SECOND)}
    assert recorder.partial_gangs(gangs) == []
    assert recorder.overlaps(list(gangs)) == []


def cpu(found: Json) -> int:
    """Thousandths of a CPU that the containers of a pod ask for together."""
    asked = (each["resources"]["requests"]["cpu"] for each in found["spec"]["containers"])
    return sum(int(each[:-1]) if each.endswith("m") else 1000 * int(each) for each in asked)


@pytest.mark.variant
@pytest.mark.usefixtures("both_generations")
def test_of_100_gpu_pods_of_which_80_would_fit_nothing_is_created(
    plot: Plot, recorder: Recorder
) -> None:
    plot.add_nodes(*copies(NodeSpec("gpu", cpus=32, memory="512Gi", gpus=8), 10))
    gpu = requests(**{"nvidia.com/gpu": "1"})
    workers = group("workers", 100, most=100, resources=gpu)
    create(plot, wrapper("large", config_map("settings"), ray_cluster("large", workers)))
    found = wait_said(plot, "large", "needs 100 nvidia.com/gpu in all")
    assert "the nodes that could run it have 80 in all" in found["message"]
    assert found["phase"] == "Suspended"
    assert found.get("transitionCount", 0) == 0  # counted before anything is created
    assert exist(plot, ("ConfigMap", "settings"), ("RayCluster", "large")) == []
    assert [each for each in recorder.events if each.namespace == plot.name] == []


@pytest.mark.variant
def test_what_controllers_of_kubernetes_make_runs_and_a_service_completes_nothing(
    plot: Plot, recorder: Recorder
) -> None:
    """A StatefulSet makes its second pod when the first is ready, also where both are gated."""
    plot.add_node(8)
    makers = (
        controller("StatefulSet", "one-by-one", 2, "1"),
        controller("Deployment", "web", 3, "1"),
    )
    completing = {**item(service("web")), "completionstatus": "Complete"}
    wrapped = mcad_wrapper("all", *map(item, (*makers, pod("alone"))), completing)
    wrapped["spec"]["schedulingSpec"] = {"minAvailable": 6}
    create(plot, wrapped)
    plot.wait(lambda: status(plot, "all").get("running") == 6, "all six pods to be counted")
    assert status(plot, "all")["state"] == "Running"
    assert exist(plot, ("Service", "web")) == ["web"]
    made = [each for each in recorder.events if each.namespace == plot.name]
    assert {each.gates for each in made if each.type == "ADDED"} == {(names.GATE,)}
    assert len({each.uid for each in made}) == 6


@pytest.mark.variant
def test_a_pod_that_fits_only_the_sum_of_two_nodes_does_not_exist(
    plot: Plot, recorder: Recorder
) -> None:
    """MCAD creates it, and deletes it minutes later for the one behind it."""
    plot.add_equal_nodes(2, 1)
    create(plot, mcad_wrapper("first", item(controller("Deployment", "first", 2, "550m"))))
    wait_phase(plot, "first", "Running")
    create(plot, mcad_wrapper("scattered", item(controller("Deployment", "scattered", 1, "850m"))))
    wait_said(plot, "scattered", "850m cpu on one node; 900m are free, at most 450m on one node")
    create(plot, mcad_wrapper("next", item(controller("Deployment", "next", 2, "340m"))))
    plot.wait(lambda: len([p for p in plot.all("Pod") if is_ready(p)]) == 4, "all four pods to run")
    assert exist(plot, ("Deployment", "scattered")) == []
    said = [each.get("reason") for each in status(plot, "scattered")["conditions"]]
    assert "PreemptionTriggered" not in said
    pods = {each.name.partition("-")[0] for each in recorder.events if each.namespace == plot.name}
    assert pods == {"first", "next"}


def test_a_job_completes_and_its_app_wrapper_succeeds(plot: Plot, recorder: Recorder) -> None:
    plot.add_node(2)
    create(plot, wrapper("work", config_map("settings"), job("work", 2, 4)))
    found = wait_phase(plot, "work", "Succeeded")
    assert plot.get("Job", "work")["status"]["succeeded"] == 4
    kinds: dict[str, Any] = {each["type"]: each["status"] for each in found["conditions"]}
    assert kinds["ResourcesDeployed"] == "True"
    seen = [each for each in recorder.events if each.namespace == plot.name]
    assert {each.gates for each in seen if each.type == "ADDED"} == {(names.GATE,)}
    assert {each.pinned_node for each in seen if each.node} == {plot.node("node")}

    plot.delete(WRAPPER, "work")
    left = (("Job", "work"), ("ConfigMap", "settings"), ("Gang", f"{names.APP_WRAPPER_GANG}work"))
    plot.wait(lambda: not exist(plot, *left), "all of it to be gone")


@pytest.mark.variant
def test_a_ray_cluster_that_outlives_its_app_wrapper_gets_no_pod_and_ends(
    plot: Plot, recorder: Recorder
) -> None:
    """Until the garbage collector comes; Redis is cleaned up then, with the labels of the head."""
    plot.add_node(4)
    options = {"redisAddress": "redis:6379"}
    durable = ray_cluster("durable", group(replicas=1, most=3), gcsFaultToleranceOptions=options)
    create(plot, wrapper("durable", durable))
    plot.wait_ready("durable", 2)
    with plot.cluster.process(CONTROLLER_MANAGER).paused():
        plot.cluster.kubectl("-n", plot.name, "delete", "appwrapper", "durable")
        plot.scale("durable", replicas=3)
        plot.wait(
            lambda: any(
                "/durable" in e["note"] and "is gone" in e["note"] for e in plot.all("Event")
            ),
            "KubeRay to say that the pod was refused",
        )
        assert len(plot.pods("durable")) == 2
    plot.wait_gone("RayCluster", "durable")
    made = [each for each in recorder.events if each.namespace == plot.name]
    cleanup = [each for each in made if "redis-cleanup" in each.name]
    assert {(each.gates, each.phase) for each in cleanup} >= {((), "Succeeded")}


@pytest.mark.variant
def test_a_job_that_loses_a_node_between_release_and_bind_is_whole_again_at_once(
    plot: Plot, recorder: Recorder
) -> None:
    """None of its pods counts as failed: after three at once it would pause for 40 s."""
    plot.add_nodes(NodeSpec("lost", cpus=3, memory="64Gi"))
    with plot.cluster.process(SCHEDULER).paused():
        create(plot, wrapper("work", job("work", 3, 3)))
        plot.wait(
            lambda: [pin(each) for each in plot.all("Pod")] == [[plot.node("lost")]] * 3,
            "all to be released",
        )
        plot.add_nodes(NodeSpec("left", cpus=3, memory="64Gi"))
        plot.cluster.kubectl("delete", "node", plot.node("lost"))
        plot.wait(
            lambda: [pin(each) for each in plot.all("Pod")] == [[plot.node("left")]] * 3,
            "all to be released to the other node",
        )
        failed = plot.get("Job", "work")["status"].get("failed", 0)
    wait_phase(plot, "work", "Succeeded")
    assert (failed, status(plot, "work").get("resettingCount", 0)) == (0, 0)


@pytest.mark.long
def test_killed_between_the_placement_and_the_last_item_all_programs_go_on(
    plot: Plot, muster: Muster
) -> None:
    plot.add_node(2)
    maps = [config_map(f"settings-{number:03}") for number in range(200)]
    create(plot, wrapper("long", *maps, job("long", 2, 2)))
    wait_phase(plot, "long", "Resuming")
    killed = (*muster.wrappers, *muster.coordinators)
    for each in killed:
        each.kill()
    assert exist(plot, ("Job", "long")) == []
    assert status(plot, "long")["phase"] == "Resuming"
    for each in killed:
        each.restart()
    found = wait_phase(plot, "long", "Succeeded")
    assert found["transitionCount"] == 3
    made = [
        each
        for each in plot.all("ConfigMap")
        if names.APP_WRAPPER in each["metadata"].get("labels", {})
    ]
    assert len(made) == len(maps)


@pytest.mark.variant
@pytest.mark.usefixtures("both_generations")
def test_both_api_groups_may_have_one_of_a_name_and_the_second_may_come_later(
    plot: Plot, recorder: Recorder
) -> None:
    plot.add_node(2)
    mcads = mcad_wrapper("twin", item(job("of-mcad", 1, 1)))
    create(plot, {**mcads, "apiVersion": names.MCAD_V1BETA1})
    create(plot, wrapper("twin", job("of-codeflare", 1, 1)))
    wait_phase(plot, "twin", "Succeeded")

    def both_ended() -> bool:
        ends = {job["metadata"]["name"]: job["status"].get("succeeded") for job in plot.all("Job")}
        return ends == {"of-codeflare": 1, "of-mcad": 1}

    plot.wait(both_ended, "the Jobs of both to end")
    gangs = (names.APP_WRAPPER_GANG, names.MCAD_GANG)
    assert exist(plot, *(("Gang", f"{gang}twin") for gang in gangs)) == [f"{g}twin" for g in gangs]
    seen = [each for each in recorder.events if each.namespace == plot.name]
    assert {each.gates for each in seen if each.type == "ADDED"} == {(names.GATE,)}


@pytest.mark.variant
def test_fit_finds_a_wrong_field_of_a_wrapped_pod_for_those_who_may_not_create_pods(
    plot: Plot, tmp_path: Path
) -> None:
    """No schema but that of pods has it: what is wrapped is of any form."""
    plot.add_node(4)
    create_role(plot, "fit/rbac.yaml")
    reader = account(plot, "reader")
    bind(plot, "reader", "muster-fit", everywhere=True)
    plot.wait(lambda: run(reader, "status").exit_code == FINE, "the role to take effect")
    right = wrapper("asked", job("work", 1, 1))
    wrong = json.loads(json.dumps(right))
    wrong["spec"]["components"][0]["template"]["spec"]["template"]["spec"]["restartPolcy"] = "Never"
    assert asked(plot, reader, tmp_path, right)[1][0]["fits"] == "Yes"
    _, (found,) = asked(plot, reader, tmp_path, wrong)
    said = 'the API server would refuse a pod of work: unknown field "spec.restartPolcy"'
    assert (found["fits"], found["message"]) == ("No", said)
