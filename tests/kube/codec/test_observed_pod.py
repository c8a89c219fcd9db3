"""A pod is reduced to what decisions need, and equal parts are kept once."""

from typing import Any

import msgspec
import orjson
import pytest
from msgspec.structs import fields, replace

from kube.codec.fields import InvalidObject
from kube.codec.observed_pod import KINDS, UNREADABLE, observe
from kube.codec.pod import pod_shape
from kube.codec.pod_patches import for_patches
from kube.codec.pod_requests import pod_used
from kube.codec.pod_shapes import _shaping
from kube.codec.profiles.scheduler_profiles import Profiles
from kube.objects.core import Affinity, BarePod, NodeAffinity, Pod, PodSpec, SchedulingGate
from kube.objects.names import GATE
from scheduling.model.amounts import Requests
from scheduling.model.gang import GangKey
from scheduling.model.holder import Holder, gang_holder
from scheduling.model.pod import PodShape
from scheduling.state.pod_index import PodKind, Presence

Json = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
BORDER = {f"k{at:02}": "v" * 61 for at in range(64)}  # 64 labels of 64 characters each


def kind(labels: dict[str, str]) -> PodKind:
    raw = {"metadata": {"namespace": "ns", "labels": labels}, "spec": {}, "status": {}}
    return observe(msgspec.json.decode(orjson.dumps(raw), type=Pod)).kind


@pytest.mark.parametrize("labels", [{}, {"app": "web"}, BORDER])
def test_equal_labels_are_kept_once(labels: dict[str, str]) -> None:
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is kind(dict(labels))


@pytest.mark.parametrize("size", [1, 10, 500])
def test_labels_of_any_size_take_no_more_than_so_much(size: int) -> None:
    """What is kept once outlives the pod: thousands of large sets would fill the memory."""
    for number in range(20_000 // size):
        labels = {f"{at}-{number}": "v" * 63 for at in range(size)}
        assert kind(labels) == ("ns", tuple(sorted(labels.items())))
        assert KINDS.taken <= KINDS.limit
    found = sum(len(k) + len(v) for (_, labels), _ in KINDS.items() for k, v in labels)
    assert found < KINDS.taken


def test_labels_that_are_large_go_with_their_pod() -> None:
    labels = {"k" * 2_000_000: "v"}
    assert kind(labels) == ("ns", tuple(sorted(labels.items())))
    assert kind(labels) is not kind(dict(labels))


ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
NOMINATED = {"nominatedNodeName": "a"}
_TERM = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
_REQUIRED = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [_TERM]}}
WORKER = {"ray.io/node-type": "worker"}
OWNER = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "controller": True}
PIN = {"nodeAffinity": _REQUIRED}
PREEMPTING = {
    **NOMINATED,
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
}


@pytest.mark.parametrize(
    ("meta", "spec", "status", "expected"),
    [
        ({}, {"nodeName": "a"}, {}, Presence.BOUND),
        (ENDING, {"nodeName": "a"}, {}, Presence.LEAVING),
        ({}, {}, NOMINATED, Presence.NOMINATED),
        (ENDING, {}, NOMINATED, Presence.NOMINATED),
        ({}, {}, PREEMPTING, Presence.NOMINATED_AT_PRIORITY),
    ],
)
def test_how_a_pod_is_on_its_node(meta: Json, spec: Json, status: Json, expected: Presence) -> None:
    """Spread constraints leave out pods that are being deleted."""
    pod = msgspec.convert({"metadata": meta, "spec": spec, "status": status}, Pod)
    assert observe(pod).stay is expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"schedulingGates": [{"name": GATE}]}, ("", "a")),
        ({"affinity": PIN}, ("", "a")),
        ({}, ("a", "")),
        ({"affinity": PIN, "nodeName": "b"}, ("b", "")),
    ],
)
def test_the_nomination_of_a_pod_with_a_placement_takes_no_room_by_itself(
    spec: Json, expected: tuple[str, str]
) -> None:
    """A pod of a Ray cluster without gate and pin is one of kube-scheduler's alone."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "controller": True}
    note = {"muster.dev/released": "u"}
    metadata = {"uid": "u", "labels": WORKER, "annotations": note, "ownerReferences": [owner]}
    raw = {"metadata": metadata, "spec": spec, "status": NOMINATED}
    seen = observe(msgspec.convert(raw, Pod))
    assert (seen.holds, seen.nominated_to) == expected
    assert seen.expected_on == "".join(expected)


def test_of_a_gated_pod_only_what_patches_need_is_kept() -> None:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "controller": True}
    raw = {
        "metadata": {
            "name": "p",
            "labels": WORKER,
            "annotations": {"a": "x" * 9},
            "ownerReferences": [owner],
        },
        "spec": {"schedulingGates": [{"name": GATE}], "containers": [{"name": "c"}]},
    }
    pod = msgspec.convert(raw, Pod)
    assert observe(pod).raw == for_patches(pod) != pod


def test_a_pod_of_which_hardly_anything_can_be_read_fills_its_node() -> None:
    raw = {
        "metadata": {"name": "p", "uid": "u"},
        "spec": {"nodeName": "a", "containers": "none"},
        "status": {"phase": "Running", "conditions": 7},
    }
    seen = observe(msgspec.convert(raw, BarePod))
    assert (seen.name, seen.uid, seen.holds, seen.used) == ("p", "u", "a", UNREADABLE)
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "r", "controller": True}
    gated = {
        "metadata": {"labels": WORKER, "ownerReferences": [owner]},
        "spec": {"schedulingGates": [{"name": GATE}]},
    }
    waits = observe(msgspec.convert(gated, BarePod))
    assert waits.gated
    assert waits.member is not None
    assert "not read" in waits.member.invalid
    ended = msgspec.convert({**raw, "status": {"phase": "Failed"}}, BarePod)
    assert observe(ended).holds == ""
    nominated = msgspec.convert({"spec": {}, "status": {"nominatedNodeName": "b"}}, BarePod)
    assert (observe(nominated).holds, observe(nominated).nominated) == ("b", None)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [({}, False), ({"ray.io/node-type": "redis-cleanup"}, False), (WORKER, True)],
)
def test_only_what_the_webhook_sees_is_a_pod_of_a_gang(
    labels: dict[str, str], *, expected: bool
) -> None:
    """Else a tenant's pod without the label would count as released: no gate, and a pin."""
    metadata = {"labels": labels, "ownerReferences": [OWNER]}
    raw = {"metadata": metadata, "spec": {"affinity": PIN}}
    assert (observe(msgspec.convert(raw, Pod)).member is not None) is expected


@pytest.mark.parametrize(
    ("note", "spec", "pinned"),
    [
        ({"muster.dev/released": "u"}, {}, "a"),
        ({}, {}, ""),
        ({"muster.dev/released": "of another"}, {}, ""),  # from a template: no uid is known before
        ({}, {"nodeName": "a"}, "a"),  # released before there were notes, or it holds its room
        ({}, {"schedulingGates": [{"name": GATE}]}, "a"),
    ],
)
def test_only_a_note_with_the_uid_tells_that_a_pod_on_its_way_was_pinned_by_muster(
    note: dict[str, str], spec: Json, pinned: str
) -> None:
    """Its template may have the same pin, and its room would be kept without a placement."""
    metadata = {"uid": "u", "labels": WORKER, "annotations": note, "ownerReferences": [OWNER]}
    seen = observe(msgspec.convert({"metadata": metadata, "spec": {"affinity": PIN, **spec}}, Pod))
    assert seen.member is not None
    assert seen.member.pinned == pinned


@pytest.mark.parametrize(
    ("owner", "labels", "expected"),
    [
        ({}, {}, Holder("Namespace", "", "team")),
        ({"kind": "Job", "name": "j"}, {}, Holder("Namespace", "", "team")),
        ({"kind": "Job", "name": "j", "controller": True}, {}, Holder("Job", "team", "j")),
        ({"kind": "Node", "name": "n", "controller": True}, {}, Holder("Namespace", "", "team")),
        (
            {"kind": "ReplicaSet", "name": "web-5d4f", "controller": True},
            {"pod-template-hash": "5d4f"},
            Holder("Deployment", "team", "web"),
        ),
        (
            {"kind": "ReplicaSet", "name": "web-5d4f", "controller": True},
            {},
            Holder("ReplicaSet", "team", "web-5d4f"),
        ),
        (
            {"kind": "RayCluster", "name": "train", "controller": True},
            {},
            gang_holder(GangKey("team", "train")),
        ),
        (
            {"kind": "K" * 300, "name": "n" * 300, "controller": True},
            {},
            Holder("K" * 253, "team", "n" * 253),
        ),
    ],
)
def test_the_holder_of_the_room_of_a_pod(
    owner: dict[str, Any], labels: dict[str, str], expected: Holder
) -> None:
    owners = [owner] if owner else []
    metadata = {"namespace": "team", "labels": labels, "ownerReferences": owners}
    assert observe(msgspec.convert({"metadata": metadata}, Pod)).holder == expected


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        ([], False),
        ([{"kind": "DaemonSet", "name": "agent", "controller": True}], True),
        ([{"kind": "DaemonSet", "name": "agent"}], False),
        ([{"kind": "Node", "name": "n", "controller": True}], True),
        ([{"kind": "ReplicaSet", "name": "web-5d4f", "controller": True}], False),
    ],
)
def test_pods_of_daemonsets_and_mirror_pods_come_with_their_node(
    owners: list[dict[str, Any]], *, expected: bool
) -> None:
    metadata = {"namespace": "team", "ownerReferences": owners}
    assert observe(msgspec.convert({"metadata": metadata}, Pod)).is_daemon is expected


ASKED = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
SPREAD = {
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
    "matchLabelKeys": ["version"],
}
APART = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
OTHERS: list[Json] = [
    {"spec": {"schedulerName": "another"}},
    {"spec": {"nodeSelector": {"pool": "a"}}},
    {"spec": {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}}},
    {"spec": {"affinity": {"podAntiAffinity": {REQUIRED: [APART]}}}},
    {"spec": {"affinity": {"podAffinity": {REQUIRED: [APART]}}}},
    {"spec": {"affinity": {"podAffinity": {REQUIRED: [APART]}}}, "metadata": {"namespace": "b"}},
    {"spec": {"tolerations": [{"key": "gpu", "operator": "Exists"}]}},
    {"spec": {"topologySpreadConstraints": [SPREAD]}},
    {
        "spec": {"topologySpreadConstraints": [SPREAD]},
        "metadata": {"labels": {**WORKER, "version": "2"}},
    },
    {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}},
    {"spec": {"containers": [{**ASKED, "ports": [{"hostPort": 80}]}]}},
    {"spec": {"containers": [{**ASKED, "restartPolicyRules": [{"action": "Restart"}]}]}},
    {"spec": {"initContainers": [ASKED]}},
    {"spec": {"initContainers": [{**ASKED, "restartPolicy": "Always"}]}},
    {"spec": {"overhead": {"cpu": "1"}}},
    {"spec": {"resources": {"requests": {"cpu": "9"}}}},
    {"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "a"}}]}},
    {"spec": {"volumes": [{"name": "v", "ephemeral": {}}]}},
    {"spec": {"volumes": [{"name": "w", "ephemeral": {}}]}},
    {"spec": {"volumes": [{"name": "v", "iscsi": {}}]}},
    {"spec": {"resourceClaims": [{}]}},
    {"spec": {"schedulingGroup": {}}},
    {"spec": {"hostNetwork": True, "hostUsers": False}},
    {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "none"}}}]}},
    {"status": {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}},
    {
        "status": {
            "containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
            "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}],
        }
    },
]
"""What the pods of one worker group may differ in from those of another, each of them alone."""


def of_ray(change: Json) -> Pod:
    """A pod of a RayCluster, with one change."""
    labels = {**WORKER, "version": "1"}
    meta = {"namespace": "a", "labels": labels, "ownerReferences": [OWNER]}
    raw = {
        "metadata": {**meta, **change.get("metadata", {})},
        "spec": {"containers": [ASKED], **change.get("spec", {})},
        "status": change.get("status", {}),
    }
    return msgspec.convert(raw, Pod)


def read_anew(pod: Pod) -> tuple[PodShape | None, str, Requests]:
    try:
        return pod_shape(pod), "", tuple(sorted(pod_used(pod).items()))
    except InvalidObject as error:
        return None, str(error), UNREADABLE


@pytest.mark.parametrize("change", OTHERS, ids=str)
def test_nothing_that_counts_is_taken_from_a_pod_that_differs(change: Json) -> None:
    """What was read once is looked up for equals, and each of these was read after others."""
    for each in ({}, change, {}, change):
        pod = of_ray(each)
        seen = observe(pod)
        assert seen.member is not None
        assert (seen.member.shape, seen.member.invalid, seen.used) == read_anew(pod)


def test_no_field_of_a_spec_is_left_out_unless_a_shape_cannot_depend_on_it() -> None:
    """A field that comes later must tell pods apart, or be named here."""
    alike = {"node_name", "scheduling_gates", "priority"}
    kept = msgspec.json.decode(msgspec.json.encode(_shaping(of_ray({}))[0]))
    assert {f.name for f in fields(PodSpec) if f.encode_name not in kept} == set()
    assert {f.name for f in fields(PodSpec) if _is_blanked(f.name)} == alike


def _is_blanked(name: str) -> bool:
    some: Json = {
        "node_name": "n",
        "scheduling_gates": (SchedulingGate("g"),),
        "priority": 7,
        "affinity": Affinity(NodeAffinity()),
    }
    pod = of_ray({})
    other = replace(pod, spec=replace(pod.spec, **{name: some.get(name, "other")}))
    return name != "volumes" and _shaping(other) == _shaping(pod)


def test_the_pods_of_a_worker_group_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reading(pod: Pod, profiles: Profiles) -> PodShape:
        read.append(pod.metadata.name)
        return pod_shape(pod, profiles)

    monkeypatch.setattr("kube.codec.pod_shapes.pod_shape", reading)
    gated = {"schedulingGates": [{"name": GATE}], "nodeSelector": {"pool": "read-once"}}
    for name in ("p1", "p2"):
        volumes = [{"name": f"kube-api-access-{name}", "projected": {}}]
        named = {"name": name, "ownerReferences": [OWNER]}
        assert observe(of_ray({"metadata": named, "spec": {**gated, "volumes": volumes}})).gated
    assert read == ["p1"]


def test_a_released_pod_has_the_shape_of_a_gated_one() -> None:
    pin = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    for terms in ([{"matchFields": [pin]}], [{"matchExpressions": [zone], "matchFields": [pin]}]):
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
        plain = [{"matchExpressions": t["matchExpressions"]} for t in terms if len(t) > 1]
        before = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": plain}}} if plain else None
        released = observe(of_ray({"spec": {"affinity": affinity, "nodeName": "n1"}})).member
        gate = {"schedulingGates": [{"name": GATE}]}
        gated = observe(of_ray({"spec": {**gate, "affinity": before}})).member
        assert released is not None
        assert gated is not None
        assert (released.shape, released.pinned) == (gated.shape, "n1")
