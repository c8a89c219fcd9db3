"""Nodes and DeviceClasses are read, also where a part of them cannot be."""

import msgspec
import pytest

from kube.codec.node import node, resources_of_class, whole_node
from kube.objects import core as core_objects
from scheduling.model import node as node_model
from scheduling.model.node import Node
from tests.kube.codec.pods import Json


def test_under_which_names_pods_may_ask_for_the_devices_of_a_class() -> None:
    plain: Json = {"metadata": {"name": "gpu.example.com"}}
    implicit = "deviceclass.resource.kubernetes.io/gpu.example.com"
    named = {**plain, "spec": {"extendedResourceName": "example.com/gpu"}}
    found = [
        resources_of_class(msgspec.convert(c, core_objects.DeviceClass)) for c in (plain, named)
    ]
    assert found == [(implicit,), (implicit, "example.com/gpu")]


def test_node() -> None:
    found = msgspec.convert(
        {
            "metadata": {"name": "n1", "labels": {"zone": "a"}},
            "spec": {
                "unschedulable": True,
                "taints": [{"key": "gpu", "effect": "NoSchedule", "timeAdded": None}],
            },
            "status": {"allocatable": {"cpu": "3920m", "memory": "2500m", "pods": "110"}},
        },
        core_objects.Node,
    )
    assert node(found) == node_model.Node(
        name="n1",
        labels={"zone": "a"},
        taints=(node_model.Taint("gpu", "", "NoSchedule"),),
        unschedulable=True,
        allocatable={"cpu": 3920, "memory": 2, "pods": 110},
    )


def test_what_a_node_declares() -> None:
    found = msgspec.convert({"status": {"declaredFeatures": ["b", "a"]}}, core_objects.Node)
    assert node(found).features == {"a", "b"}
    assert node(core_objects.Node()).features == set()


def test_a_node_that_has_not_reported_offers_nothing() -> None:
    assert node(core_objects.Node()).allocatable == {}


@pytest.mark.parametrize("text", ["many", "-1", "10E", "9223372036854775808"])
def test_what_a_node_does_not_say_in_words_that_can_be_read_it_does_not_offer(text: str) -> None:
    """Beyond 64 bits kube-scheduler reads nothing, or less."""
    found = core_objects.Node(
        status=core_objects.NodeStatus(allocatable={"memory": text, "pods": "110"})
    )
    assert node(found).allocatable == {"memory": 0, "pods": 110}


def test_a_node_of_which_hardly_anything_can_be_read_is_full_and_in_its_zone() -> None:
    raw = {"metadata": {"name": "a", "labels": {"zone": "z"}}, "spec": 7, "status": []}
    seen = whole_node(msgspec.convert(raw, core_objects.BareNode))
    assert node(seen) == Node("a", {"zone": "z"}, (), True, {})
    assert whole_node(seen) is seen
