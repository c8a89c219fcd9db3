"""The patches do to a pod what the API server allows, and nothing else.

`jsonpatch` applies them, as an implementation of JSON patch that is not ours.
"""

import copy
from typing import Any

import jsonpatch
import jsonpointer
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube.codec.pod_patches import (
    Operation,
    fence_patch,
    for_patches,
    gate_patch,
    nomination_patch,
    pinned_node,
    release_patch,
    unpinned_release_patch,
)
from kube.objects import names
from kube.objects.core import Pod

Json = dict[str, Any]
OURS = {"name": names.GATE}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def recorded_worker() -> Json:
    """A worker as KubeRay 1.6.2 makes it, cut to what patches could touch."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "raycluster-kuberay-workergroup-worker-x2x7p",
            "namespace": "default",
            "uid": "0d0b6f8e-6b2a-4f86-8e0e-3f7f4ce8a1d4",
            "resourceVersion": "731",
            "labels": {"ray.io/cluster": "raycluster-kuberay", "ray.io/group": "workergroup"},
            "annotations": {"ray.io/ft-enabled": "false"},
        },
        "spec": {
            "containers": [{"name": "ray-worker", "resources": {"requests": {"cpu": "1"}}}],
            "schedulingGates": [OURS],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}],
        },
        "status": {"phase": "Pending"},
    }


def slim(pod: Json) -> Pod:
    return msgspec.convert(pod, Pod)


def applied(pod: Json, operations: list[Operation]) -> Json:
    result: Json = jsonpatch.apply_patch(copy.deepcopy(pod), operations)
    return result


def terms_of(pod: Json) -> list[Json]:
    affinity = pod["spec"].get("affinity") or {}
    required = (affinity.get("nodeAffinity") or {}).get(REQUIRED) or {}
    return required.get("nodeSelectorTerms") or []


def gates_of(pod: Json) -> list[str]:
    return [gate["name"] for gate in pod["spec"].get("schedulingGates") or ()]


def pin_to(node: str) -> Json:
    return {"key": "metadata.name", "operator": "In", "values": [node]}


# ---- pods of all shapes

words = st.sampled_from(["a", "b", "gpu", "zone"])
requirements = st.builds(
    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
    words,
    st.sampled_from(["In", "NotIn"]),
    st.lists(words, min_size=1, max_size=2),
)
fields = st.builds(pin_to, words)


def optional(name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """The key absent, null, or with a value."""
    return st.one_of(st.just({}), st.just({name: None}), values.map(lambda value: {name: value}))


def merged(*parts: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.tuples(*parts).map(lambda found: {k: v for part in found for k, v in part.items()})


terms = merged(
    optional("matchExpressions", st.lists(requirements, max_size=2)),
    optional("matchFields", st.lists(fields, max_size=2)),
)
node_affinities = merged(
    optional(REQUIRED, st.builds(lambda t: {"nodeSelectorTerms": t}, st.lists(terms, max_size=3))),
    optional("preferredDuringSchedulingIgnoredDuringExecution", st.just([{"weight": 1}])),
)
affinities = merged(
    optional("nodeAffinity", node_affinities),
    optional("podAffinity", st.just({"preferredDuringSchedulingIgnoredDuringExecution": []})),
)
others = st.sampled_from(["example.com/quota", "a~b/c", names.GATE + "-not"])
gate_lists = st.lists(others, unique=True, max_size=3)


@st.composite
def pods(draw: st.DrawFn, gated: bool = True) -> Json:
    pod = recorded_worker()
    gates = [{"name": name} for name in draw(gate_lists)]
    if gated:
        gates.insert(draw(st.integers(0, len(gates))), OURS)
    del pod["spec"]["schedulingGates"], pod["metadata"]["annotations"]
    pod["spec"] |= draw(optional("schedulingGates", st.just(gates)))
    if gated:
        pod["spec"]["schedulingGates"] = gates
    pod["spec"] |= draw(optional("affinity", affinities))
    pod["metadata"] |= draw(optional("annotations", st.just({"x": "y"})))
    return pod


# ---- the gate


@given(pods(gated=False))
def test_gate_is_appended_and_other_gates_keep_their_places(pod: Json) -> None:
    before = pod["spec"].get("schedulingGates") or []
    gated = applied(pod, gate_patch(gates_of(pod)))
    assert gated["spec"]["schedulingGates"] == [*before, OURS]
    gated["spec"]["schedulingGates"] = pod["spec"].get("schedulingGates")
    assert msgspec.convert(gated, Pod) == slim(pod)


@given(st.one_of(pods(gated=False), pods(gated=True)))
def test_gating_twice_is_gating_once(pod: Json) -> None:
    gated = applied(pod, gate_patch(gates_of(pod)))
    assert gate_patch(gates_of(gated)) == []


@pytest.mark.parametrize("gates", [{}, {"schedulingGates": None}, {"schedulingGates": []}])
def test_gate_list_is_built_where_there_is_none(gates: Json) -> None:
    pod = {"spec": {"containers": [], **gates}}
    assert applied(pod, gate_patch(gates_of(pod)))["spec"]["schedulingGates"] == [OURS]


# ---- the release


@given(pods())
def test_release_takes_only_our_gate(pod: Json) -> None:
    released = applied(pod, release_patch(slim(pod), "n1"))
    kept = [gate for gate in pod["spec"]["schedulingGates"] if gate != OURS]
    assert released["spec"]["schedulingGates"] == kept


@given(pods())
def test_every_term_that_can_match_is_pinned_and_keeps_what_it_said(pod: Json) -> None:
    before = terms_of(pod)
    after = terms_of(applied(pod, release_patch(slim(pod), "n1")))
    if not before:
        assert after == [{"matchFields": [pin_to("n1")]}]
        return
    assert len(after) == len(before)
    for old, new in zip(before, after, strict=True):
        assert_narrowed(old, new)


def assert_narrowed(old: Json, new: Json) -> None:
    old_fields = old.get("matchFields") or []
    if not old_fields and not old.get("matchExpressions"):
        assert new == old  # the API server refuses to have an empty term filled
        return
    assert new["matchFields"] == [*old_fields, pin_to("n1")]
    assert new.get("matchExpressions") == old.get("matchExpressions")


@given(pods())
def test_release_changes_nothing_but_gate_and_required_node_affinity(pod: Json) -> None:
    released = applied(pod, release_patch(slim(pod), "n1"))
    assert released["metadata"].pop("annotations")[names.RELEASED] == pod["metadata"]["uid"]
    pod["metadata"].pop("annotations", None)
    for each in (pod, released):
        del each["spec"]["schedulingGates"]
        affinity = each["spec"].pop("affinity", None) or {}
        node_affinity = affinity.pop("nodeAffinity", None) or {}
        node_affinity.pop(REQUIRED, None)
        each["kept"] = [affinity, node_affinity]
    assert released == pod


@given(pods())
def test_unpinned_release_leaves_affinity_alone(pod: Json) -> None:
    released = applied(pod, unpinned_release_patch(slim(pod)))
    assert OURS not in released["spec"]["schedulingGates"]
    assert released["spec"].get("affinity") == pod["spec"].get("affinity")


@given(pods(), st.sampled_from(["uid", "resourceVersion"]))
def test_release_of_a_pod_that_changed_fails(pod: Json, key: str) -> None:
    for patch in (release_patch(slim(pod), "n1"), unpinned_release_patch(slim(pod))):
        changed = copy.deepcopy(pod)
        changed["metadata"][key] = "another"
        with pytest.raises(jsonpatch.JsonPatchTestFailed):
            applied(changed, patch)


@given(pods())
def test_release_after_a_gate_moved_fails(pod: Json) -> None:
    patch = release_patch(slim(pod), "n1")
    moved = copy.deepcopy(pod)
    moved["spec"]["schedulingGates"].insert(0, {"name": "example.com/new"})
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        applied(moved, patch)


@given(pods())
def test_second_release_has_nothing_to_do(pod: Json) -> None:
    released = slim(applied(pod, release_patch(slim(pod), "n1")))
    assert release_patch(released, "n2") == []
    assert unpinned_release_patch(released) == []
    assert fence_patch(released, "3") == []


def test_release_of_the_ordinary_pod_in_full() -> None:
    pod = recorded_worker()
    assert release_patch(slim(pod), "n1") == [
        {"op": "test", "path": "/metadata/uid", "value": pod["metadata"]["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "731"},
        {"op": "test", "path": "/spec/schedulingGates/0", "value": OURS},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
        {
            "op": "add",
            "path": "/spec/affinity",
            "value": {
                "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [pin_to("n1")]}]}}
            },
        },
        {
            "op": "add",
            "path": "/metadata/annotations/muster.dev~1released",
            "value": pod["metadata"]["uid"],
        },
    ]


# ---- what is kept for them


@given(pods(), st.sampled_from([{}, {"annotations": {names.FENCE: "1.0", "x": "y"}}]))
def test_patches_are_the_same_with_what_is_kept_for_them(pod: Json, more: Json) -> None:
    pod["metadata"] |= more
    whole, kept = slim(pod), for_patches(slim(pod))
    assert release_patch(kept, "n1") == release_patch(whole, "n1")
    assert unpinned_release_patch(kept) == unpinned_release_patch(whole)
    for mark in ("1.0", "2.0"):
        assert fence_patch(kept, mark) == fence_patch(whole, mark)
    assert for_patches(kept) == kept


def test_of_what_patches_do_not_look_at_nothing_is_kept() -> None:
    pod = recorded_worker()
    pod["metadata"]["annotations"] = {"k" * 300: "x" * 100_000}
    kept = for_patches(slim(pod))
    assert kept.metadata.annotations == {"": ""}
    assert (kept.metadata.labels, kept.spec.containers, kept.status.phase) == ({}, (), "")


# ---- the nomination


@given(pods(), st.sampled_from(["", "scheduler-1"]))
def test_nomination_sets_the_field_and_says_who_is_told(pod: Json, scheduler: str) -> None:
    done = applied(pod, nomination_patch(slim(pod), "n1", scheduler))
    told = {names.TOLD: scheduler} if scheduler else {}
    before = pod["metadata"].get("annotations") or {}
    assert done["status"] == {**pod["status"], "nominatedNodeName": "n1"}
    assert (done["metadata"].get("annotations") or {}) == {**before, **told}
    assert done["spec"] == pod["spec"]
    back = applied(done, nomination_patch(slim(done), "", scheduler))
    assert back["status"]["nominatedNodeName"] == ""
    assert back["metadata"] == done["metadata"]


@given(pods())
def test_no_released_pod_and_no_other_of_its_name_is_nominated(pod: Json) -> None:
    patch = nomination_patch(slim(pod), "n1", "")
    released = applied(pod, release_patch(slim(pod), "n1"))
    assert nomination_patch(slim(released), "n1", "") == []
    another = {**pod, "metadata": {**pod["metadata"], "uid": "another"}}
    for changed in (released, another):
        with pytest.raises((jsonpatch.JsonPatchConflict, jsonpatch.JsonPatchTestFailed)):
            applied(changed, patch)


# ---- the fence


@given(pods(), st.integers(0, 10**6))
def test_fence_sets_the_epoch_and_nothing_else(pod: Json, epoch: int) -> None:
    fenced = applied(pod, fence_patch(slim(pod), str(epoch)))
    before = pod["metadata"].get("annotations") or {}
    assert fenced["metadata"]["annotations"] == {**before, names.FENCE: str(epoch)}
    assert fenced["spec"] == pod["spec"]


@given(pods())
def test_fence_does_not_touch_another_pod_of_the_name(pod: Json) -> None:
    patch = fence_patch(slim(pod), "2")
    pod["metadata"]["uid"] = "another"
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        applied(pod, patch)


def test_fence_does_not_wipe_out_annotations_it_has_not_seen() -> None:
    pod = recorded_worker()
    del pod["metadata"]["annotations"]
    patch = fence_patch(slim(pod), "2")
    pod["metadata"] |= {"annotations": {"new": "one"}, "resourceVersion": "732"}
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        applied(pod, patch)


def test_fence_of_an_annotated_pod_holds_through_other_changes() -> None:
    pod = recorded_worker()
    patch = fence_patch(slim(pod), "2")
    pod["metadata"]["resourceVersion"] = "732"
    assert applied(pod, patch)["metadata"]["annotations"][names.FENCE] == "2"


@given(pods())
def test_patches_only_point_into_what_exists(pod: Json) -> None:
    for operation in (*release_patch(slim(pod), "n1"), *fence_patch(slim(pod), 1)):
        parent = operation["path"].rpartition("/")[0]
        assert isinstance(jsonpointer.resolve_pointer(pod, parent), dict | list)


# ---- reading the pin back


@given(pods())
def test_pin_is_read_back(pod: Json) -> None:
    released = applied(pod, release_patch(slim(pod), "n1"))
    before = terms_of(pod)
    can_match = [t for t in before if t.get("matchFields") or t.get("matchExpressions")]
    named = [{f["values"][0] for f in t.get("matchFields") or ()} for t in can_match]
    if before and not can_match:
        assert pinned_node(slim(released)) is None
    elif named and set.intersection(*named):
        assert pinned_node(slim(released)) is None  # it named a node of its own, now it names two
    else:
        assert pinned_node(slim(released)) == "n1"


def affine(*found: Json) -> Pod:
    required = {"nodeSelectorTerms": list(found)}
    return msgspec.convert({"spec": {"affinity": {"nodeAffinity": {REQUIRED: required}}}}, Pod)


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        (Pod(), None),
        (affine(), None),
        (affine({}), None),
        (affine({"matchFields": [pin_to("n1")]}), "n1"),
        (affine({}, {"matchFields": [pin_to("n1")]}), "n1"),
        (affine({"matchFields": [pin_to("n1")]}, {"matchFields": [pin_to("n2")]}), None),
        (affine({"matchFields": [pin_to("n1")]}, {"matchExpressions": [{"key": "a"}]}), None),
        (affine({"matchFields": [{**pin_to("n1"), "operator": "NotIn"}]}), None),
        (affine({"matchFields": [{**pin_to("n1"), "values": ["n1", "n2"]}]}), None),
        (affine({"matchFields": [{**pin_to("n1"), "key": "metadata.namespace"}]}), None),
        (affine({"matchExpressions": [pin_to("n1")]}), None),
    ],
)
def test_pinned_node(pod: Pod, node: str | None) -> None:
    assert pinned_node(pod) == node
