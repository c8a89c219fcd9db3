"""Pods are read into shapes, and constraints that are not modelled are named with a remedy."""

from typing import Any

import pytest

from kube.codec.pod import holds_room, nominated_priority, pod_shape, room_on
from kube.codec.profiles.scheduler_profiles import DEFAULT_SCHEDULER, RELAXED, STOCK, Profile
from kube.codec.selectors import anti_affinity_terms
from scheduling.model import constraints as constraint_model
from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.pod import PodShape
from tests.kube.codec.pods import REQUIRED, Json, container, pod, unsupported


def test_constraints_the_core_models_become_part_of_the_shape() -> None:
    term = {
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
    }
    shape = pod_shape(
        pod(
            {
                "nodeSelector": {"b": "2", "a": "1"},
                "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term, {}]}}},
                "tolerations": [
                    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                    {
                        "key": "node.kubernetes.io/not-ready",
                        "operator": "Exists",
                        "effect": "NoExecute",
                        "tolerationSeconds": 300,
                    },
                ],
            }
        )
    )
    assert shape == PodShape(
        own_requests=(("pods", 1),),
        node_selector=(("a", "1"), ("b", "2")),
        node_affinity=(
            NodeTerm(
                labels=(Requirement("zone", "In", ("a", "b")),),
                fields=(Requirement("metadata.name", "In", ("n1",)),),
            ),
            NodeTerm(),
        ),
        tolerations=(
            constraint_model.Toleration("gpu", "Equal", "yes", "NoSchedule"),
            constraint_model.Toleration("node.kubernetes.io/not-ready", "Exists", "", "NoExecute"),
        ),
    )


@pytest.mark.parametrize(
    ("affinity", "expected"),
    [
        (None, None),
        ({}, None),
        ({"nodeAffinity": {}}, None),
        ({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}, None),
        ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": None}}}, ()),
        ({"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}, (NodeTerm(),)),
    ],
)
def test_no_required_affinity_differs_from_one_that_matches_nothing(
    affinity: Json | None, expected: Any
) -> None:
    assert pod_shape(pod({"affinity": affinity})).node_affinity == expected


def test_equal_pods_have_one_shape() -> None:
    spec = {"containers": [container(cpu="1")], "nodeSelector": {"a": "1", "b": "2"}}
    same = {"containers": [container(cpu="1000m")], "nodeSelector": {"b": "2", "a": "1"}}
    one, other = pod_shape(pod(spec, name="a")), pod_shape(pod(same, name="b"))
    assert one == other
    assert one.key == other.key


PORT = [{"containerPort": 8265}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}] * 17},
            "more than 16 topologySpreadConstraints",
        ),
        ({"schedulingGroup": {"podGroupName": "g"}}, "schedulingGroup"),
        ({"schedulerName": "volcano"}, "schedulerName volcano"),
        ({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}, "toleration operator Gt"),
        ({"tolerations": [{"key": "a", "operator": "Lt", "value": "1"}]}, "toleration operator Lt"),
    ],
)
def test_what_the_core_does_not_model_is_named(spec: Json, expected: str) -> None:
    [said] = unsupported(**spec)
    assert said.startswith(f"{expected} (")


RESTART_ALL = [{"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}]


RESTART_FEATURE = "RestartAllContainersOnContainerExits"


USERS_FEATURE = "UserNamespacesHostNetworkSupport"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": RESTART_ALL}, (RESTART_FEATURE,)),
        ({"initContainers": RESTART_ALL}, (RESTART_FEATURE,)),
        ({"hostNetwork": True, "hostUsers": False}, (USERS_FEATURE,)),
        (
            {"hostNetwork": True, "hostUsers": False, "containers": RESTART_ALL},
            (RESTART_FEATURE, USERS_FEATURE),
        ),
        ({"hostNetwork": True}, ()),
        ({"hostUsers": False}, ()),
        ({"hostNetwork": True, "hostUsers": True}, ()),
        ({"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]}, ()),
    ],
)
def test_what_a_node_must_declare(spec: Json, expected: tuple[str, ...]) -> None:
    assert pod_shape(pod(spec)).features == expected


@pytest.mark.parametrize(
    "spec",
    [
        {"affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}}},
        {"affinity": {"podAntiAffinity": {REQUIRED: []}}},
        {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]},
        {"containers": [{"ports": PORT}]},
        {"hostNetwork": True},
        {"hostUsers": False},
        {"schedulerName": "default-scheduler"},
        {"containers": [{"restartPolicyRules": [{"action": "Restart"}]}]},
        {"tolerations": [{"operator": "Exists"}, {"key": "a", "operator": "Equal"}]},
    ],
)
def test_harmless_things_are_supported(spec: Json) -> None:
    assert unsupported(**spec) == ()


def choosy(selector: int, expressions: int, tolerations: int) -> Json:
    found = [{"key": f"e{at}", "operator": "Exists"} for at in range(expressions)]
    half = expressions // 2
    terms = [{"matchExpressions": found[:half]}, {"matchExpressions": found[half:]}]
    return {
        "nodeSelector": {f"s{at}": "x" for at in range(selector)},
        "affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}},
        "tolerations": [{"key": f"t{at}", "operator": "Gt"} for at in range(tolerations)],
    }


@pytest.mark.parametrize("counts", [(200, 0, 0), (0, 200, 0), (100, 100, 0)])
def test_two_hundred_node_selection_terms_are_supported(counts: tuple[int, int, int]) -> None:
    found = pod_shape(pod(choosy(*counts)))
    assert found.unsupported == ()
    terms = sum(len(term.labels) for term in found.node_affinity or ())
    assert len(found.node_selector) + terms == 200


@pytest.mark.parametrize("counts", [(201, 0, 0), (0, 201, 0), (0, 0, 201), (67, 67, 67)])
def test_more_node_selection_terms_are_named_and_match_no_node(
    counts: tuple[int, int, int],
) -> None:
    """Each is a look at all nodes: thousands of them would hold up the loop for a minute."""
    found = pod_shape(pod(choosy(*counts)))
    [said] = found.unsupported
    assert said.startswith("more than 200 node selection terms (")
    assert (found.node_selector, found.node_affinity, found.tolerations) == ((), (), ())


def sociable(near: int, apart: int) -> Json:
    """Each term counts as two: itself and its one label."""
    terms = [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": f"a{at}"}}}
        for at in range(near + apart)
    ]
    return {
        "affinity": {
            "podAffinity": {REQUIRED: terms[:near]},
            "podAntiAffinity": {REQUIRED: terms[near:]},
        }
    }


@pytest.mark.parametrize("counts", [(100, 0), (0, 100), (50, 50)])
def test_two_hundred_terms_between_pods_are_supported(counts: tuple[int, int]) -> None:
    found = pod_shape(pod(sociable(*counts)))
    assert (found.unsupported, len(found.affinity), len(found.anti_affinity)) == ((), *counts)


@pytest.mark.parametrize("counts", [(101, 0), (0, 101), (51, 50)])
def test_more_terms_between_pods_are_named_and_read_of_pods_that_stand_only(
    counts: tuple[int, int],
) -> None:
    """What keeps away from a pod on its node must count, however much it is."""
    found = pod(sociable(*counts))
    shape = pod_shape(found)
    [said] = shape.unsupported
    assert said.startswith("more than 200 terms of affinity between pods (")
    assert (shape.affinity, shape.anti_affinity) == ((), ())
    assert len(anti_affinity_terms(found)) == counts[1]


def test_only_pods_of_schedulers_with_a_profile_are_supported() -> None:
    profiles = {"gpu-scheduler": Profile("gpu-scheduler")}
    assert pod_shape(pod({"schedulerName": "gpu-scheduler"}), profiles).unsupported == ()
    for name in ("", DEFAULT_SCHEDULER):
        found = pod_shape(pod({"schedulerName": name}), profiles)
        [said] = found.unsupported
        assert said.startswith(f"schedulerName {DEFAULT_SCHEDULER} (")


def test_a_profile_adds_its_affinity_to_that_of_its_pods() -> None:
    added = (NodeTerm((Requirement("pool", "In", ("ray",)),)),)
    profiles = {**STOCK, "gpu": Profile("gpu", added=added)}
    assert pod_shape(pod({"schedulerName": "gpu"}), profiles).added_affinity == added
    assert pod_shape(pod({}), profiles).added_affinity is None


def test_default_constraints_bind_pods_that_have_none_of_their_own() -> None:
    """One that only scores is one of its own."""
    spreads = Profile(spreads_by_default=True)
    profiles = {DEFAULT_SCHEDULER: spreads, "gpu": Profile("gpu")}
    [said] = pod_shape(pod({}), profiles).unsupported
    assert said.startswith("default topology spread constraints of scheduler default-scheduler")
    for action in ("ScheduleAnyway", "DoNotSchedule"):
        own = {"topologySpreadConstraints": [{"whenUnsatisfiable": action, "topologyKey": "a"}]}
        assert pod_shape(pod(own), profiles).unsupported == ()
    assert pod_shape(pod({"schedulerName": "gpu"}), profiles).unsupported == ()


def test_what_a_pod_says_to_a_plugin_that_is_off_means_nothing() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}}
    spec = {
        "topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}],
        "affinity": {"podAffinity": {REQUIRED: [term]}, "podAntiAffinity": {REQUIRED: [term]}},
        "containers": [{"ports": [{"hostPort": 80}]}],
    }
    bare = pod_shape(pod({}))
    assert pod_shape(pod(spec), {DEFAULT_SCHEDULER: Profile(off=RELAXED)}) == bare
    asked = pod_shape(pod(spec))
    assert asked.affinity
    assert asked.anti_affinity
    assert asked.spread
    assert asked.requests != bare.requests


def test_several_limits_are_sorted_and_named_once() -> None:
    found = unsupported(volumes=[{"new": {}}, {"new": {}}], schedulingGroup={}, schedulerName="a")
    named = tuple(each.partition(" (")[0] for each in found)
    assert named == ("schedulerName a", "schedulingGroup", "volume of kind new")


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({}, {}, ""),
        ({}, {"phase": "Pending"}, ""),
        ({"nodeName": "n1"}, {"phase": "Pending"}, "n1"),
        ({"nodeName": "n1"}, {"phase": "Running"}, "n1"),
        ({"nodeName": "n1"}, {"phase": "Unknown"}, "n1"),
        ({"nodeName": "n1"}, {"phase": "Succeeded"}, ""),
        ({"nodeName": "n1"}, {"phase": "Failed"}, ""),
        ({}, {"nominatedNodeName": "n2"}, "n2"),
        ({"nodeName": "n1"}, {"nominatedNodeName": "n2"}, "n1"),
        ({}, {"nominatedNodeName": "n2", "phase": "Failed"}, ""),
    ],
)
def test_where_a_pod_holds_room(spec: Json, status: Json, expected: str) -> None:
    found = pod(spec, status)
    assert room_on(found) == expected
    assert holds_room(found) == bool(expected)


WAITS = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]


NOMINATED: Json = {"nominatedNodeName": "n2", "conditions": WAITS}


def test_a_nomination_is_passed_over_by_pods_of_higher_priority() -> None:
    assert nominated_priority(pod({"priority": 7}, NOMINATED)) == 7
    assert nominated_priority(pod({}, NOMINATED)) == 0


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({}, {"conditions": WAITS}),
        ({"nodeName": "n1"}, NOMINATED),
        ({}, {**NOMINATED, "phase": "Failed"}),
        ({}, {"nominatedNodeName": "n2"}),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {}}]}, NOMINATED),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, NOMINATED),
        ({"resourceClaims": [{"name": "gpu"}]}, NOMINATED),
        ({"schedulerName": "waits-on-permit"}, NOMINATED),
    ],
)
def test_a_pod_that_is_bound_or_may_be_being_bound_holds_its_room(spec: Json, status: Json) -> None:
    """kube-scheduler writes the same field for a pod that it has placed and is still binding."""
    assert nominated_priority(pod(spec, status)) is None


def test_a_terminating_pod_still_holds_its_room() -> None:
    assert holds_room(pod({"nodeName": "n1"}, deletionTimestamp="2026-01-01T00:00:00Z"))
