"""Gates of others, opt-in and opt-out of gangs that wait."""

import pytest

from coordinator.reconcile.winding_down import OPT_OUT_DELAY
from kube.objects import names
from tests.coordinator.api import Key
from tests.coordinator.builders import (
    TEAM,
    gang_of,
    node,
    template,
)
from tests.coordinator.world import World, is_gated, name_of


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
