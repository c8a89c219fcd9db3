"""Do pods and nodes mean to the core what they mean to kube-scheduler?"""

from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.codec.fields import AFTER_ALL, InvalidObject, created_at
from kube.codec.node import node, resources_of_class, whole_node
from kube.codec.placement import placement_from_status, placement_to_status
from kube.codec.pod import holds_room, nominated_priority, pod_shape, room_on
from kube.codec.pod_requests import pod_used
from kube.codec.scheduler_profiles import DEFAULT_SCHEDULER, RELAXED, STOCK, Profile
from kube.codec.selectors import anti_affinity_terms
from kube.objects import base as base_objects
from kube.objects import core as core_objects
from kube.objects.core import Pod
from kube.objects.gang import GangPlacement
from scheduling.model import constraints as constraint_model
from scheduling.model import node as node_model
from scheduling.model.constraints import NodeTerm, PodTerm, Requirement, SpreadConstraint
from scheduling.model.host_ports import WHOLE
from scheduling.model.node import Node
from scheduling.model.placement import Assignment, Placement
from scheduling.model.pod import PodShape

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod(spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Pod:
    raw = {"metadata": metadata, "spec": spec or {}, "status": status or {}}
    return msgspec.json.decode(orjson.dumps(raw), type=Pod)


def container(name: str = "c", restart: str | None = None, **requests: Any) -> Json:
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests}}


def unsupported(**spec: Any) -> tuple[str, ...]:
    return pod_shape(pod(spec)).unsupported


# ---- the shape


def test_head_with_autoscaler_side_car() -> None:
    head = pod(
        {
            "containers": [
                container("ray-head", cpu="1", memory="2Gi"),
                container("autoscaler", cpu="500m", memory="512Mi"),
            ]
        }
    )
    assert pod_shape(head).requests == (("cpu", 1500), ("memory", 2560 * 2**20), ("pods", 1))


def test_worker_whose_init_container_asks_for_more_than_it_does() -> None:
    worker = pod(
        {
            "initContainers": [container("wait-gcs-ready", cpu="200m", memory="256Mi")],
            "containers": [container("ray-worker", cpu="100m", **{"nvidia.com/gpu": "8"})],
        }
    )
    assert dict(pod_shape(worker).requests) == {
        "cpu": 200, "memory": 256 * 2**20, "nvidia.com/gpu": 8, "pods": 1,
    }  # fmt: skip


def test_restartable_init_containers_add_to_what_runs() -> None:
    spec = {
        "initContainers": [container("proxy", "Always", cpu="1"), container("setup", cpu="3")],
        "containers": [container("main", cpu="2")],
        "overhead": {"cpu": "250m"},
    }
    assert dict(pod_shape(pod(spec)).requests) == {"cpu": 4250, "pods": 1}


def test_pod_level_requests_replace_the_sum() -> None:
    spec = {"containers": [container(cpu="2")], "resources": {"requests": {"cpu": "1"}}}
    assert dict(pod_shape(pod(spec)).requests) == {"cpu": 1000, "pods": 1}


def test_numbers_are_quantities_too() -> None:
    spec = {"containers": [container(cpu=2, memory=1.5e3)]}
    assert dict(pod_shape(pod(spec)).requests) == {"cpu": 2000, "memory": 1500, "pods": 1}


def test_a_pod_that_asks_for_nothing_takes_a_slot() -> None:
    assert pod_shape(pod({"containers": [container(cpu="0")]})) == PodShape((("pods", 1),))


@pytest.mark.parametrize("kind", ["containers", "initContainers"])
@pytest.mark.parametrize("text", ["one", "", "-1", "1Ki1", "9.3E", "1e400", 1e300])
def test_bad_quantity_names_field_value_and_what_is_allowed(kind: str, text: Any) -> None:
    spec = {kind: [container(), container(cpu="1", memory=text)]}
    with pytest.raises(InvalidObject) as caught:
        pod_shape(pod(spec))
    assert caught.value.field == f"spec.{kind}[1].resources.requests[memory]"
    assert caught.value.value == text
    assert "500m" in caught.value.allowed
    assert str(caught.value).startswith(f'{caught.value.field}: "{text}" is not valid; allowed: ')


def test_bad_overhead_and_pod_level_requests_are_named() -> None:
    for field, spec in (
        ("spec.overhead[cpu]", {"overhead": {"cpu": "x"}}),
        ("spec.resources.requests[cpu]", {"resources": {"requests": {"cpu": "x"}}}),
    ):
        with pytest.raises(InvalidObject) as caught:
            pod_shape(pod(spec))
        assert caught.value.field == field


def test_a_sum_beyond_64_bits_is_invalid() -> None:
    spec = {"containers": [container(memory="8E"), container(memory="7E")]}
    with pytest.raises(InvalidObject):
        pod_shape(pod(spec))


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InvalidObject) as caught:
        pod_shape(pod({"containers": [container(cpu="x" * 10_000)]}))
    assert len(str(caught.value)) < 500


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


HOST_PORT = {"hostPort": 80, "containerPort": 80, "protocol": "TCP"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": [{"ports": [HOST_PORT]}]}, {"hostPort:TCP:80": WHOLE}),
        (
            {"containers": [{"ports": [{**HOST_PORT, "hostIP": "10.0.0.1"}]}]},
            {"hostPort:TCP:80": 1, "hostPort:TCP:80:10.0.0.1": 1},
        ),
        (
            {"initContainers": [{"ports": [HOST_PORT], "restartPolicy": "Always"}]},
            {"hostPort:TCP:80": WHOLE},
        ),
        ({"initContainers": [{"ports": [HOST_PORT]}]}, {}),  # gone before the pod runs
        ({"containers": [{"ports": [{"containerPort": 80}]}]}, {}),
    ],
)
def test_host_ports_are_asked_for_and_held(spec: Json, expected: Json) -> None:
    found = pod(spec)
    assert dict(pod_shape(found).requests) == pod_used(found) == {**expected, "pods": 1}
    assert not pod_shape(found).unsupported


def test_equal_pods_have_one_shape() -> None:
    spec = {"containers": [container(cpu="1")], "nodeSelector": {"a": "1", "b": "2"}}
    same = {"containers": [container(cpu="1000m")], "nodeSelector": {"b": "2", "a": "1"}}
    one, other = pod_shape(pod(spec, name="a")), pod_shape(pod(same, name="b"))
    assert one == other
    assert one.key == other.key


# ---- what is not modelled

PORT = [{"containerPort": 8265}]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}] * 17},
            "more than 16 topologySpreadConstraints",
        ),
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims"),
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


def test_volumes_of_kinds_that_are_not_known_are_named() -> None:
    kind = "somethingOfALaterRelease"
    assert unsupported(volumes=[{"name": "v", kind: {}}]) == (
        f"volume of kind {kind} (use a PersistentVolumeClaim instead)",
    )


@pytest.mark.parametrize(
    "kind",
    ["emptyDir", "configMap", "secret", "projected", "downwardAPI", "hostPath", "csi", "nfs",
     "image", "persistentVolumeClaim", "ephemeral"],
)  # fmt: skip
def test_volumes_that_go_anywhere_or_that_a_claim_stands_for_are_not_named(kind: str) -> None:
    assert unsupported(volumes=[{"name": "v", kind: {}, "rbd": None}]) == ()


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


def crowded(ports: int) -> Json:
    return {"containers": [{"ports": [{"hostPort": at + 1} for at in range(ports)]}]}


def test_fifty_host_ports_are_supported() -> None:
    found = pod_shape(pod(crowded(50)))
    assert (found.unsupported, len(found.requests)) == ((), 51)


def test_more_host_ports_are_named_and_read_of_pods_that_stand_only() -> None:
    """Each costs a look at the nodes where it is taken, and a pod may name thousands."""
    found = pod(crowded(51))
    shape = pod_shape(found)
    assert shape.unsupported == ("more than 50 host ports (use fewer)",)
    assert shape.requests == (("pods", 1),)
    assert len(pod_used(found)) == 52


@pytest.mark.parametrize("kind", ["awsElasticBlockStore", "gcePersistentDisk", "iscsi", "rbd"])
def test_disks_that_pods_keep_from_each_other_are_named_with_a_remedy(kind: str) -> None:
    """Plugin VolumeRestrictions looks at those that pods name themselves, and at no claim's."""
    named = f"volume of kind {kind} (use a PersistentVolumeClaim instead)"
    assert unsupported(volumes=[{"name": "v", kind: {}}]) == (named,)
    assert unsupported(volumes=[{"name": "v", kind: None, "emptyDir": {}}]) == ()


@pytest.mark.parametrize("count", [100, 101])
def test_of_more_than_a_hundred_volumes_none_is_asked_about(count: int) -> None:
    claims = [{"persistentVolumeClaim": {"claimName": f"c{at}"}} for at in range(count - 1)]
    volumes = [*claims, {"cinder": {"volumeID": "d"}}, {"emptyDir": {}}, {"secret": {}}]
    shape = pod_shape(pod({"volumes": volumes}))
    too_many = ("more than 100 volumes of claims and disks (use fewer)",) if count > 100 else ()
    assert (shape.unsupported, len(shape.volumes)) == (too_many, 0 if too_many else count)


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
    found = unsupported(volumes=[{"new": {}}, {"new": {}}], resourceClaims=[{}], schedulerName="a")
    named = tuple(each.partition(" (")[0] for each in found)
    assert named == ("resourceClaims", "schedulerName a", "volume of kind new")


def test_under_which_names_pods_may_ask_for_the_devices_of_a_class() -> None:
    plain: Json = {"metadata": {"name": "gpu.example.com"}}
    implicit = "deviceclass.resource.kubernetes.io/gpu.example.com"
    named = {**plain, "spec": {"extendedResourceName": "example.com/gpu"}}
    found = [
        resources_of_class(msgspec.convert(c, core_objects.DeviceClass)) for c in (plain, named)
    ]
    assert found == [(implicit,), (implicit, "example.com/gpu")]


# ---- pods that exist


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


def resizing(asked: str, allocated: str, actuated: str, reason: str = "") -> Pod:
    status: Json = {
        "name": "c",
        "allocatedResources": {"cpu": allocated},
        "resources": {"requests": {"cpu": actuated}},
    }
    conditions = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    return pod(
        {"containers": [container(cpu=asked)]},
        {"containerStatuses": [status], "conditions": conditions if reason else []},
    )


@pytest.mark.parametrize(
    ("found", "cpu"),
    [
        (pod({"containers": [container(cpu="1")]}), 1000),
        (resizing("1", "2", "3"), 3000),
        (resizing("1", "3", "2"), 3000),
        (resizing("3", "1", "2"), 3000),
        (resizing("3", "1", "2", "Deferred"), 3000),
        (resizing("3", "1", "2", "Infeasible"), 2000),
        (resizing("3", "2", "1", "Infeasible"), 2000),
    ],
)
def test_a_pod_being_resized_takes_the_most_of_its_sizes(found: Pod, cpu: int) -> None:
    assert pod_used(found) == {"cpu": cpu, "pods": 1}


def test_without_reported_resources_the_spec_counts() -> None:
    status = {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "9"}}]}
    assert pod_used(pod({"containers": [container(cpu="1")]}, status))["cpu"] == 1000


def test_status_of_init_containers_counts_only_for_side_cars() -> None:
    reported = {"resources": {"requests": {"cpu": "8"}}}
    for restart, cpu in (("Always", 8000), (None, 2000)):
        found = pod(
            {"initContainers": [container("i", restart, cpu="2")]},
            {"initContainerStatuses": [{"name": "i", **reported}]},
        )
        assert pod_used(found)["cpu"] == cpu


def test_pod_level_resize() -> None:
    found = pod(
        {"containers": [container(cpu="1")], "resources": {"requests": {"cpu": "2"}}},
        {"allocatedResources": {"cpu": "4"}, "resources": {"requests": {"cpu": "3"}}},
    )
    assert pod_used(found)["cpu"] == 4000


quantities = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu"]), st.integers(0, 99).map(str), max_size=3
)


@given(st.lists(quantities, max_size=3), st.lists(st.tuples(quantities, st.booleans()), max_size=3))
def test_a_pod_uses_what_it_asked_for(mains: list[Json], inits: list[tuple[Json, bool]]) -> None:
    found = pod(
        {
            "containers": [container(**each) for each in mains],
            "initContainers": [container("i", "Always" if on else None, **r) for r, on in inits],
        }
    )
    used = {name: amount for name, amount in pod_used(found).items() if amount}
    assert tuple(sorted(used.items())) == pod_shape(found).requests


# ---- affinity between pods


def near(**term: Any) -> PodTerm:
    """Read one required affinity term of a pod in namespace red."""
    affinity = {"podAffinity": {REQUIRED: [{"topologyKey": "zone", **term}]}}
    [found] = pod_shape(pod({"affinity": affinity}, namespace="red")).affinity
    return found


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (None, (Requirement("", "In", ()),)),  # none at all picks nothing
        ({}, ()),
        ({"matchLabels": {"a": "b"}}, (Requirement("a", "In", ("b",)),)),
        (
            {
                "matchLabels": {"a": "b"},
                "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}],
            },
            (Requirement("a", "In", ("b",)), Requirement("c", "NotIn", ("d",))),
        ),
    ],
)
def test_which_pods_a_term_picks(selector: Json | None, expected: tuple[Requirement, ...]) -> None:
    assert near(labelSelector=selector) == PodTerm("zone", expected, ("red",))


@pytest.mark.parametrize(
    ("term", "namespaces", "elsewhere"),
    [
        ({}, ("red",), None),
        ({"namespaces": ["blue"]}, ("blue",), None),
        ({"namespaceSelector": {}}, (), ()),
        ({"namespaces": ["blue"], "namespaceSelector": {}}, ("blue",), ()),
        (
            {"namespaceSelector": {"matchLabels": {"a": "b"}}},
            (),
            (Requirement("a", "In", ("b",)),),
        ),
    ],
)
def test_which_namespaces_a_term_reaches(
    term: Json, namespaces: tuple[str, ...], elsewhere: tuple[Requirement, ...] | None
) -> None:
    assert near(labelSelector={}, **term) == PodTerm("zone", (), namespaces, elsewhere)


def test_anti_affinity_is_read_of_every_pod() -> None:
    affinity = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}}
    found = pod({"affinity": affinity}, namespace="red")
    expected = (PodTerm("zone", (), ("red",)),)
    assert anti_affinity_terms(found) == pod_shape(found).anti_affinity == expected
    assert not pod_shape(found).unsupported


def test_most_pods_have_no_inter_pod_constraints() -> None:
    specs: list[Json] = [{}, {"affinity": {}}, {"affinity": {"podAntiAffinity": {}}}]
    for spec in specs:
        assert anti_affinity_terms(pod(spec)) == pod_shape(pod(spec)).affinity == ()


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


# ---- creation time


def test_creation_time() -> None:
    assert created_at(base_objects.ObjectMeta()) == 0.0
    found = base_objects.ObjectMeta(creation_timestamp="2026-01-01T00:00:01Z")
    assert created_at(found) == 1767225601.0
    assert created_at(base_objects.ObjectMeta(creation_timestamp="yesterday")) == AFTER_ALL


# ---- the placement in the status

resource_names = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "pods", "ephemeral-storage"])
node_names = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?", fullmatch=True)
amounts = st.dictionaries(resource_names, st.integers(0, (2**63 - 1) // 10_000)).map(
    lambda found: tuple(sorted(found.items()))
)
counts = st.dictionaries(node_names, st.integers(1, 10_000), max_size=4).map(
    lambda found: tuple(sorted(found.items()))
)
assignments = st.builds(
    Assignment,
    pod_set=st.sampled_from(["headgroup", "gpu", "cpu"]),
    replica=st.sampled_from(["", "gpu-abcde"]),
    shape=st.from_regex(r"[0-9a-f]{12}", fullmatch=True),
    requests=amounts,
    nodes=counts,
    wave=st.integers(0, 3),
)


def through_json(placement: Placement, epoch: int) -> GangPlacement:
    """Write it the way it goes to the API server, which sorts the keys of maps."""
    written = placement_to_status(placement, epoch)
    return msgspec.json.decode(
        orjson.dumps(written, option=orjson.OPT_SORT_KEYS), type=GangPlacement
    )


@given(st.lists(assignments, max_size=6), st.integers(0, 2**31))
def test_a_placement_is_read_back_as_it_was(found: list[Assignment], epoch: int) -> None:
    placement = Placement(tuple(sorted(found, key=lambda each: each.pod_set)))
    written = through_json(placement, epoch)
    assert written.epoch == epoch
    assert placement_from_status(written) == placement
    assert len({each.name for each in written.pod_sets}) == len(written.pod_sets)


@given(st.lists(assignments, max_size=6))
def test_no_assignment_is_lost_in_any_order(found: list[Assignment]) -> None:
    back = placement_from_status(through_json(Placement(tuple(found)), 1))
    assert sorted(back.assignments, key=repr) == sorted(found, key=repr)


def test_amounts_and_nodes_come_sorted_whatever_order_they_were_written_in() -> None:
    shape = {"requests": {"pods": "1", "cpu": "1"}, "nodes": {"n2": 1, "n1": 3}}
    raw = {"podSets": [{"name": "gpu", "assignments": [shape]}]}
    (found,) = placement_from_status(msgspec.convert(raw, GangPlacement)).assignments
    assert found.requests == (("cpu", 1000), ("pods", 1))
    assert found.nodes == (("n1", 3), ("n2", 1))


def test_what_a_placement_looks_like() -> None:
    requests = (("cpu", 1500), ("memory", 2**30), ("pods", 1))
    placement = Placement((Assignment("gpu", "", "0123456789ab", requests, (("n1", 2),)),))
    assert placement_to_status(placement, 7) == {
        "epoch": 7,
        "podSets": [
            {
                "name": "gpu",
                "assignments": [
                    {
                        "shape": "0123456789ab",
                        "replica": "",
                        "requests": {"cpu": "1500m", "memory": "1073741824", "pods": "1"},
                        "nodes": {"n1": 2},
                    }
                ],
            }
        ],
    }


def test_a_wave_is_written_where_it_is_not_the_first() -> None:
    """So a placement without waves looks as it did before there were any."""
    waves = [Assignment("gpu", "", "0123456789ab", (), (("n1", 2),), wave) for wave in (0, 1)]
    [pod_set] = placement_to_status(Placement(tuple(waves)), 7)["podSets"]
    assert [each.get("wave") for each in pod_set["assignments"]] == [None, 1]


@pytest.mark.parametrize(
    ("edited", "field"),
    [
        ({"nodes": {"n1": 0}}, "status.placement of gpu nodes[n1]"),
        ({"nodes": {"n1": -2}}, "status.placement of gpu nodes[n1]"),
        ({"nodes": {"n1": 2**20 + 1}}, "status.placement of gpu nodes[n1]"),
        ({"nodes": {"n1": 2}, "requests": {"memory": "7E"}}, "status.placement of gpu nodes[n1]"),
        ({"requests": {"cpu": "lots"}}, "status.placement of gpu requests[cpu]"),
        ({"wave": -1}, "status.placement of gpu wave"),
        ({"wave": 2**31 + 1}, "status.placement of gpu wave"),
    ],
)
def test_a_placement_edited_into_nonsense_is_named(edited: Json, field: str) -> None:
    raw = {"podSets": [{"name": "gpu", "assignments": [edited]}]}
    with pytest.raises(InvalidObject) as caught:
        placement_from_status(msgspec.convert(raw, GangPlacement))
    assert caught.value.field == field


# ---- topology spread


def spread(**constraint: Any) -> SpreadConstraint:
    """Read one constraint of a pod in namespace red with the labels app=ray and rev=7."""
    whole = {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "ray"}},
        **constraint,
    }
    spec = {"topologySpreadConstraints": [whole]}
    [found] = pod_shape(pod(spec, namespace="red", labels={"app": "ray", "rev": "7"})).spread
    return found


IS_RAY = Requirement("app", "In", ("ray",))
IS_REV_7 = Requirement("rev", "In", ("7",))


def test_a_spread_constraint_counts_in_its_own_namespace_with_the_defaults_of_the_api() -> None:
    assert spread() == SpreadConstraint(PodTerm("zone", (IS_RAY,), ("red",)), 2, 1, True, False)


def test_what_a_spread_constraint_says_of_nodes_and_domains() -> None:
    found = spread(minDomains=3, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor")
    assert (found.min_domains, found.honors_affinity, found.honors_taints) == (3, False, True)
    assert spread(nodeAffinityPolicy="Honor", nodeTaintsPolicy="Ignore") == spread()


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [
        ({"matchLabelKeys": ["rev", "absent"]}, (IS_RAY, IS_REV_7)),
        (
            {
                "labelSelector": {
                    "matchLabels": {"app": "ray"},
                    "matchExpressions": [{"key": "rev", "operator": "In", "values": ["7"]}],
                },
                "matchLabelKeys": ["rev"],
            },
            (IS_RAY, IS_REV_7),
        ),
        ({"labelSelector": {}, "matchLabelKeys": ["rev"]}, (IS_REV_7,)),
        ({"labelSelector": {}}, (Requirement("", "In", ()),)),
        ({"labelSelector": None}, (Requirement("", "In", ()),)),
        ({"labelSelector": None, "matchLabelKeys": ["rev"]}, (Requirement("", "In", ()),)),
    ],
)
def test_the_pods_that_a_spread_constraint_counts(
    constraint: Json, expected: tuple[Requirement, ...]
) -> None:
    """Keys to match are merged once, by the API server or here; a missing one counts no pod."""
    assert spread(**constraint).counted.selector == expected


@pytest.mark.parametrize(
    ("constraint", "expected"),
    [({}, False), ({"minDomains": 1}, False), ({"minDomains": 2}, True),
     ({"nodeAffinityPolicy": "Ignore"}, True)],
)  # fmt: skip
def test_which_spread_constraints_bind_a_pinned_pod(constraint: Json, expected: bool) -> None:
    assert spread(**constraint).binds_pinned is expected


def test_spread_constraints_mean_nothing_where_they_only_score_or_the_plugin_is_off() -> None:
    scores = {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}
    binds = {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}
    off = {DEFAULT_SCHEDULER: Profile(off=RELAXED)}
    assert pod_shape(pod(scores)).spread == ()
    assert pod_shape(pod(binds), off).spread == ()
    assert len(pod_shape(pod(binds)).spread) == 1
