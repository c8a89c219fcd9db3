"""Gangs whose pods ask for devices by claim: the real kube-scheduler allocates what was foreseen.

The slices are written by the tests, for nodes without kubelets; kube-controller-manager makes the
claims from templates.
"""

import json
import re
from pathlib import Path

import pytest
import yaml

from cli.endings import FINE, NO
from kube.objects import names
from testbed.muster import Muster
from testbed.nodes import NodeSpec
from tests.controlplane.claimed_devices import (
    add_class,
    add_partitions,
    add_shared,
    add_slice,
    add_template,
    asking,
    drop_slice,
    given,
    of_engines,
    of_memory,
    request,
)
from tests.controlplane.forbidden_releases import forbidden_releases
from tests.controlplane.plot import Plot, is_held
from tests.controlplane.rayclusters import Json, gang, group, head
from tests.controlplane.test_cli import account, bind, run
from tests.controlplane.test_fit_and_doctor import asked, create_role
from tests.controlplane.test_held_starts import WHEN_ADMITTED
from tests.packaging.tree import ROOT

YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FOUR = ("gpu-0", "gpu-1", "gpu-2", "gpu-3")


def add_gpus(plot: Plot, devices: tuple[str, ...] = FOUR) -> str:
    """One node with these devices, and a template `one` of a claim of one; returns the class."""
    plot.add_node(16)
    add_slice(plot, "node", devices)
    of_class = add_class(plot)
    add_template(plot, "one", request(of_class))
    return of_class


def workers(count: int, *templates: str) -> Json:
    return group(replicas=count, **asking(*templates or ("one",)))


def test_one_of_two_gangs_runs_and_the_other_starts_once_the_devices_are_free(plot: Plot) -> None:
    """It says in numbers why it waits, and none of its pods is released."""
    of_class = add_gpus(plot)
    plot.create(gang("first", workers(3)))
    plot.wait_running("first", 4)
    assert given(plot) == ["gpu-0", "gpu-1", "gpu-2"]
    plot.create(gang("second", workers(3)))
    status = plot.wait_phase("second", "Queued", "InsufficientResources")
    assert of_class in status["message"]
    assert all(is_held(pod) for pod in plot.pods("second"))
    plot.delete_whole("first")
    plot.wait_running("second", 4)
    assert len(given(plot)) == 3


def test_a_held_gang_is_decided_by_its_template_and_has_no_pods_before(plot: Plot) -> None:
    """Its claims are made once it is resumed, and it gets the devices that were foreseen."""
    of_class = add_gpus(plot)
    plot.create(gang("first", workers(3)))
    plot.wait_running("first", 4)
    held = gang("held", workers(3), annotations=WHEN_ADMITTED)
    plot.create(held)
    status = plot.wait_phase("held", "Queued", "InsufficientResources")
    assert of_class in status["message"]
    assert not plot.pods("held")
    plot.delete_whole("first")
    plot.wait_running("held", 4)
    assert len(given(plot)) == 3


@pytest.mark.variant
def test_a_gang_is_stopped_for_one_that_claims_its_devices(plot: Plot) -> None:
    """They are given to that one once the claims of the other are gone."""
    add_gpus(plot)
    plot.add_queue("line", preemption={"withinQueue": "LowerPriority"})
    labels = {names.QUEUE: plot.queue("line")}
    plot.create(gang("low", workers(3), labels=labels))
    plot.wait_running("low", 4)
    urgent: Json = {"priorityClassName": plot.add_priority_class("urgent", 10)}
    asked: Json = {**asking("one"), **urgent}
    groups = group(replicas=2, **asked)
    plot.create(gang("high", groups, head_group=head(**urgent), labels=labels))
    plot.wait_running("high", 3)
    assert len(given(plot)) == 2
    plot.wait_phase("low", "Queued")


@pytest.mark.variant
def test_a_gang_over_two_classes_starts_where_both_are_enough(plot: Plot) -> None:
    """A worker asks for a GPU and a NIC; the tighter node has GPUs alone."""
    plot.add_nodes(NodeSpec("bare", cpus=8), NodeSpec("whole", cpus=16))
    add_slice(plot, "bare", FOUR)
    add_slice(plot, "whole", FOUR)
    add_slice(plot, "whole", ("nic-0", "nic-1", "nic-2"), "nic")
    add_template(plot, "gpu", request(add_class(plot)))
    add_template(plot, "nic", request(add_class(plot, "nic")))
    plot.create(gang("both", workers(3, "gpu", "nic")))
    plot.wait_running("both", 4)
    assert set(plot.bound("both", "worker").values()) == {"whole"}
    assert given(plot, "nic") == ["nic-0", "nic-1", "nic-2"]


@pytest.mark.long
def test_what_is_promised_stays_so_while_the_coordinator_restarts(
    plot: Plot, muster: Muster
) -> None:
    """Between the verdict and the bind nothing is allocated; no other gang gets these devices."""
    add_gpus(plot)
    with forbidden_releases(plot, "first"):
        plot.create(gang("first", workers(3)))
        plot.wait(lambda: plot.status("first").get("placement"), "a placement of first")
        muster.coordinators[0].restart()
        muster.wait_ready()
        muster.wait_led()
        plot.create(gang("second", workers(2)))
        plot.wait_phase("second", "Queued", "InsufficientResources")
        assert given(plot) == []
    plot.wait_running("first", 4)
    assert plot.status("second")["phase"] == "Queued"


@pytest.mark.variant
def test_a_pool_of_another_generation_is_counted_by_its_newest_slices(plot: Plot) -> None:
    """A driver that finds fewer devices publishes the pool anew, and takes the old slice away."""
    add_gpus(plot)
    add_slice(plot, "node", ("gpu-0", "gpu-1"), generation=2)
    plot.create(gang("late", workers(3)))
    plot.wait_phase("late", "Queued")
    drop_slice(plot, "node")
    add_slice(plot, "node", FOUR, generation=3)
    plot.wait_running("late", 4)


@pytest.mark.long
def test_a_driver_goes_and_comes_back(plot: Plot) -> None:
    """What runs goes on, and keeps its device; a gang waits until there are devices again."""
    of_class = add_gpus(plot)
    plot.create(gang("first", workers(1)))
    plot.wait_running("first", 2)
    drop_slice(plot, "node")
    plot.create(gang("second", workers(2)))
    status = plot.wait_phase("second", "Queued", "InsufficientResources")
    assert of_class in status["message"]
    assert all(is_held(pod) for pod in plot.pods("second"))
    add_slice(plot, "node", FOUR, generation=2)
    plot.wait_running("second", 3)
    assert given(plot) == list(FOUR[:3])
    assert plot.status("first")["phase"] == "Running"


@pytest.mark.variant
def test_pods_that_would_take_the_devices_of_others_come_in_a_later_wave(plot: Plot) -> None:
    """A worker takes a GPU or else a NIC; released first, it would take the one GPU."""
    plot.add_node(8)
    add_slice(plot, "node", ("gpu-0",))
    add_slice(plot, "node", ("nic-0",), "nic")
    gpu, nic = add_class(plot), add_class(plot, "nic")
    either = [{"name": name[-3:], "deviceClassName": name} for name in (gpu, nic)]
    add_template(plot, "one", request(gpu))
    add_template(plot, "either", {"name": "devices", "firstAvailable": either})
    groups = [group(name, 1, **asking(name)) for name in ("either", "one")]
    plot.create(gang("waves", *groups))
    plot.wait_running("waves", 3)
    assert (given(plot), given(plot, "nic")) == (["gpu-0"], ["nic-0"])
    placed = plot.status("waves")["placement"]["podSets"]
    waves = {each["name"]: each["assignments"][0].get("wave", 0) for each in placed}
    assert waves["either"] > waves["one"]


def test_a_gang_takes_partitions_of_several_sizes_of_one_gpu(plot: Plot) -> None:
    """They need not exist before. A gang that wants the whole GPU waits until it is free again."""
    plot.add_node(16)
    add_partitions(plot, "node", whole=4, half_0=2, half_1=2, part_0=1, part_1=1)
    of_class = add_class(plot)
    for name, engines in (("whole", 4), ("half", 2), ("part", 1)):
        add_template(plot, name, of_engines(plot, of_class, engines))
    groups = [group("half", 1, **asking("half")), group("part", 2, **asking("part"))]
    plot.create(gang("parts", *groups))
    plot.wait_running("parts", 4)
    assert given(plot) == ["half-0", "part-0", "part-1"]
    plot.create(gang("large", workers(1, "whole")))
    plot.wait_phase("large", "Queued", "InsufficientResources")
    plot.delete_whole("parts")
    plot.wait_running("large", 2)
    assert given(plot) == ["whole"]


@pytest.mark.long
def test_two_gangs_on_shares_for_one_and_deletion_frees_them(plot: Plot) -> None:
    """Of 40Gi and 15Gi three shares of 15Gi leave 10Gi: one share of that, not two."""
    plot.add_node(16)
    add_shared(plot, "node", gpu_0="40Gi", gpu_1="15Gi")
    of_class = add_class(plot)
    for name, memory in (("large", "15Gi"), ("small", "10Gi")):
        add_template(plot, name, of_memory(of_class, memory))
    plot.create(gang("first", workers(3, "large")))
    plot.wait_running("first", 4)
    assert given(plot) == ["gpu-0", "gpu-0", "gpu-1"]
    plot.create(gang("second", workers(2, "small")))
    plot.create(gang("tiny", workers(1, "small")))
    plot.wait_running("tiny", 2)
    status = plot.wait_phase("second", "Queued", "InsufficientResources")
    assert of_class in status["message"]
    assert all(is_held(pod) for pod in plot.pods("second"))
    assert given(plot) == ["gpu-0", "gpu-0", "gpu-0", "gpu-1"]
    plot.delete_whole("first")
    plot.wait_running("second", 3)
    assert given(plot) == ["gpu-0", "gpu-0", "gpu-0"]


def test_a_claim_that_all_workers_share_is_allocated_once(plot: Plot) -> None:
    """They go to one node, and another gang gets what is left there and elsewhere."""
    of_class = add_gpus(plot, FOUR[:2])
    plot.add_nodes(NodeSpec("other", cpus=16, memory="64Gi"))
    add_slice(plot, "other", FOUR[:1])
    spec = {"devices": {"requests": [request(of_class)]}}
    plot.create({"kind": "ResourceClaim", "metadata": {"name": "ours"}, "spec": spec})
    asked: Json = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "ours"}]}
    plot.create(gang("sharing", group(replicas=4, **asked)))
    plot.wait_running("sharing", 5)
    on = {
        pod["spec"]["nodeName"] for pod in plot.pods("sharing") if "resourceClaims" in pod["spec"]
    }
    assert len(on) == 1
    assert len(given(plot)) == 1
    plot.create(gang("first", workers(2)))
    plot.wait_running("first", 3)
    assert len(given(plot)) == 3


@pytest.mark.variant
def test_a_gang_waits_for_its_claims_and_says_for_which(plot: Plot) -> None:
    """First the template is missing, then its class is; the rest is as usual."""
    plot.add_node(16)
    add_slice(plot, "node", FOUR)
    plot.create(gang("early", workers(2)))
    status = plot.wait_message("early", "ResourceClaimTemplate one does not exist")
    assert (status["phase"], status["reason"]) == ("Gathering", "GangIncomplete")
    add_template(plot, "one", request(f"{plot.name}-gpu"))
    plot.wait_message("early", f"{plot.name}-gpu")
    assert all(is_held(pod) for pod in plot.pods("early"))
    add_class(plot)
    plot.wait_running("early", 3)


def test_the_ray_cluster_of_the_documents_gets_its_devices(plot: Plot) -> None:
    """Two GPUs by claim; in docs/gpus.md the class is one of a cluster."""
    text = (ROOT / "docs/gpus.md").read_text(encoding="utf-8")
    block = next(each for each in YAML.findall(text) if "ResourceClaimTemplate" in each)
    plot.add_node(8)
    add_slice(plot, "node", FOUR)
    block = block.replace("gpu.example.com", add_class(plot))
    for each in yaml.safe_load_all(block):
        plot.create(each)
    plot.wait_running("claims", 3)
    assert given(plot) == ["gpu-0", "gpu-1"]


def test_devices_by_claim_are_judged_and_shown_with_the_rights_of_the_roles(
    plot: Plot, tmp_path: Path
) -> None:
    """Three of four devices are in use: fit says what the gang then says, and nodes counts them."""
    of_class = add_gpus(plot)
    plot.create(gang("first", workers(3)))
    plot.wait_running("first", 4)
    reader, viewer = with_role(plot, "fit", "reader"), with_role(plot, "viewer", "viewer")
    plot.wait(lambda: run(reader, "status").exit_code == FINE, "the role to take effect")
    plot.wait(lambda: not run(viewer, "nodes").stderr, "the role to take effect")

    second = gang("second", workers(2))
    code, (refused,) = asked(plot, reader, tmp_path, second)
    assert (code, refused["reason"]) == (NO, "InsufficientResources")
    assert [each["fit"] for each in refused["largestThatFit"]] == [1]
    code, (admitted,) = asked(plot, reader, tmp_path, gang("small", workers(1)))
    assert (code, admitted["fits"]) == (FINE, "Yes")
    plot.create(second)
    plot.wait_phase("second", "Queued", refused["reason"])
    assert refused["message"] == plot.status("second")["message"]

    nodes = json.loads(run(viewer, "nodes", "-o", "json").stdout)["nodes"]
    [found] = [each for each in nodes if each["resource"].endswith(f"/{of_class}")]
    assert (found["used"], found["reserved"], found["free"], found["allocatable"]) == (3, 0, 1, 4)


def with_role(plot: Plot, folder: str, name: str) -> Path:
    """The kubeconfig of an account that has the role of a folder of manifests, everywhere."""
    create_role(plot, f"{folder}/rbac.yaml")
    found = account(plot, name)
    bind(plot, name, f"muster-{folder}", everywhere=True)
    return found


@pytest.mark.long
def test_of_twenty_gangs_that_race_as_many_run_as_there_are_devices_for(plot: Plot) -> None:
    """None is started in part; as gangs end, the others follow."""
    devices = tuple(f"gpu-{n}" for n in range(8))
    plot.add_node(64)
    add_slice(plot, "node", devices)
    add_template(plot, "one", request(add_class(plot)))
    left = {f"racer-{n}" for n in range(20)}
    for name in left:
        plot.create(gang(name, workers(2)))
    while left:
        runs = plot.wait(lambda: running(plot), "one to run")
        assert len(given(plot)) <= len(devices)
        for name in runs:
            plot.wait_ready(name, 3)
            plot.delete_whole(name)
            plot.wait_no_gang(name)
        left -= runs


def running(plot: Plot) -> set[str]:
    """The gangs that run."""
    gangs = plot.gangs().items()
    return {name for name, gang in gangs if gang.get("status", {}).get("phase") == "Running"}
