"""Ways in which a Ray cluster becomes a gang, and stops being one."""

from collections.abc import Callable

import pytest

from kube.objects import names
from testbed.errors import TestbedError
from tests.controlplane.plot import Plot, condition, gates, is_held, pin
from tests.controlplane.rayclusters import (
    GANG,
    Json,
    gang,
    group,
    ray_cluster,
    ray_job,
    ray_service,
)
from tests.packaging.tree import ROOT

NOT_A_GANG = {names.OPT_IN: "false"}


def opt_in_namespace(plot: Plot, value: str) -> None:
    plot.cluster.kubectl("label", "namespace", plot.name, f"{names.OPT_IN}={value}", "--overwrite")


def wait_namespace_known(plot: Plot) -> None:
    """The webhook hears of a namespace's label by a watch: probe until it has."""

    def gated() -> bool:
        plot.create(ray_cluster("probe"))
        (first, *_) = plot.wait(lambda: plot.pods("probe"), "the first pod of the probe")
        plot.delete("RayCluster", "probe")
        plot.wait_gone("RayCluster", "probe")
        return is_held(first)

    plot.wait(gated, "the webhook to know the namespace's label")
    plot.wait_no_pods()


def test_a_label_makes_a_gang_that_is_released_whole_and_pinned(plot: Plot) -> None:
    """Every pod keeps our gate until there is room for all, then goes to the node it is given."""
    plot.add_node(3)
    plot.create(ray_cluster("gang", group(replicas=2), labels=GANG))
    pods = plot.wait_running("gang", 3)
    assert [gates(pod) for pod in pods] == [[]] * 3
    assert [pin(pod) for pod in pods] == [[plot.node("node")]] * 3


def test_every_ray_cluster_of_an_opted_in_namespace_is_a_gang_but_those_that_say_false(
    plot: Plot,
) -> None:
    """A namespace speaks for its Ray clusters, and each of them may speak for itself."""
    plot.add_node(1)
    opt_in_namespace(plot, "true")
    wait_namespace_known(plot)
    plot.create(ray_cluster("silent", group(replicas=1)))
    plot.create(ray_cluster("out", group(replicas=1), labels=NOT_A_GANG))
    plot.create(ray_cluster("out-too", group(replicas=1), annotations=NOT_A_GANG))
    plot.wait_phase("silent", "Queued")
    outside = [*plot.wait_pods("out", 2), *plot.wait_pods("out-too", 2)]
    assert [gates(pod) for pod in outside] == [[]] * 4
    assert all(is_held(pod) for pod in plot.wait_pods("silent", 2))
    plot.wait(lambda: set(plot.gangs()) == {"silent"}, "the one Gang, that of the probe being gone")


def test_a_waiting_gang_that_opts_out_gets_its_pods_back_unpinned(plot: Plot) -> None:
    """Nothing of ours stays: no gate, no pin, no Gang; kube-scheduler does what it does."""
    plot.add_node(2)
    plot.create(gang("leaves", group(replicas=2)))
    plot.wait_phase("leaves", "Queued", "NeverFits")
    plot.patch("RayCluster", "leaves", {"metadata": {"labels": NOT_A_GANG}})
    plot.wait_no_gang("leaves")
    plot.wait_unschedulable("leaves")
    plot.wait(lambda: len(plot.bound("leaves")) == 2, "the two pods that fit to be bound")
    pods = plot.pods("leaves")
    assert [gates(pod) for pod in pods] == [[]] * 3
    assert [pin(pod) for pod in pods] == [[]] * 3


@pytest.mark.variant
def test_a_running_gang_that_opts_out_keeps_its_pods_and_loses_its_gang(plot: Plot) -> None:
    """Nothing that runs is disturbed; a worker that comes later is left alone."""
    plot.add_node(3)
    plot.create(gang("leaves", group(replicas=1)))
    before = {pod["metadata"]["uid"] for pod in plot.wait_running("leaves", 2)}
    plot.patch("RayCluster", "leaves", {"metadata": {"labels": NOT_A_GANG}})
    plot.wait_no_gang("leaves")
    plot.scale("leaves", replicas=2)
    pods = plot.wait_ready("leaves", 3)
    assert before < {pod["metadata"]["uid"] for pod in pods}
    assert sorted(pin(pod) for pod in pods) == [[], [plot.node("node")], [plot.node("node")]]


@pytest.mark.variant
def test_a_namespace_that_opts_out_lets_its_silent_gangs_go(plot: Plot) -> None:
    """The same for a gang that is one only because its namespace said so."""
    plot.add_node(2)
    opt_in_namespace(plot, "true")
    wait_namespace_known(plot)
    plot.create(ray_cluster("silent", group(replicas=2)))
    plot.wait_phase("silent", "Queued")
    opt_in_namespace(plot, "false")
    plot.wait_no_gang("silent")
    plot.wait_unschedulable("silent")
    plot.wait(lambda: len(plot.bound("silent")) == 2, "the two pods that fit to be bound")
    assert [gates(pod) for pod in plot.pods("silent")] == [[]] * 3


@pytest.mark.variant
def test_opting_in_later_touches_only_new_pods(plot: Plot) -> None:
    """A pod that runs is not disturbed; one that comes later is gated and placed."""
    plot.add_node(4)
    plot.create(ray_cluster("joins", group(replicas=2)))
    before = {pod["metadata"]["uid"] for pod in plot.wait_ready("joins", 3)}
    plot.patch("RayCluster", "joins", {"metadata": {"labels": GANG}})
    plot.wait_running("joins", 3)
    plot.scale("joins", replicas=3)
    pods = plot.wait_running("joins", 4)
    new = [pod for pod in pods if pod["metadata"]["uid"] not in before]
    assert len(new) == 1
    assert pin(new[0]) == [plot.node("node")]
    assert [pin(pod) for pod in pods if pod not in new] == [[]] * 3


def cluster_made_for(plot: Plot, name: str) -> str:
    """The RayCluster that KubeRay made for a RayJob or RayService."""

    def made() -> str:
        owned = [c["metadata"] for c in plot.all("RayCluster") if name in owners(c)]
        return str(owned[0]["name"]) if owned else ""

    return plot.wait(made, f"the RayCluster of {name}")


def owners(found: Json) -> list[str]:
    return [owner["name"] for owner in found["metadata"].get("ownerReferences", ())]


@pytest.mark.parametrize("make", [ray_job, ray_service])
def test_the_ray_cluster_of_a_labelled_job_or_service_is_the_gang(
    plot: Plot, make: Callable[..., Json]
) -> None:
    """KubeRay copies the label onto the RayCluster that it makes; that one waits and runs whole."""
    plot.add_node(2)
    plot.create(make("owner", group(replicas=2), labels=GANG))
    name = cluster_made_for(plot, "owner")
    status = plot.wait_phase(name, "Queued", "NeverFits")
    assert condition(status, "Admitted")["status"] == "False"
    assert all(is_held(pod) for pod in plot.wait_pods(name, 3))
    plot.add_equal_nodes(1, cpus=2)
    plot.wait_running(name, 3)


def test_a_policy_keeps_what_is_opted_in_by_its_namespace_from_opting_out(plot: Plot) -> None:
    """What is opted out already may be changed in all else."""
    api, policy = plot.cluster.api, str(ROOT / "manifests/no-opting-out/policy.yaml")
    kinds = (ray_cluster, ray_job, ray_service)

    def would_create(manifest: Json) -> bool:
        return api.would_create(plot.path(manifest["kind"]), manifest)

    opt_in_namespace(plot, "true")
    plot.create(ray_cluster("before", labels=NOT_A_GANG))
    assert would_create(ray_cluster("after", labels=NOT_A_GANG))
    plot.cluster.kubectl("apply", "-f", policy)
    try:
        out = ray_cluster("after", labels=NOT_A_GANG)
        plot.wait(lambda: not would_create(out), "the policy to take effect")
        assert not any(would_create(kind("after", labels=NOT_A_GANG)) for kind in kinds)
        assert not would_create(ray_cluster("after", annotations=NOT_A_GANG))
        assert all(would_create(kind("after")) for kind in kinds)
        change = ("annotate", "raycluster", "-n", plot.name, "--overwrite")
        plot.cluster.kubectl(*change, "before", "note=1")
        plot.create(ray_cluster("gang"))
        with pytest.raises(TestbedError, match=r'muster\.dev/gang is "false"; allowed'):
            plot.cluster.kubectl(*change, "gang", f"{names.OPT_IN}=false")
    finally:
        plot.cluster.kubectl("delete", "-f", policy)
