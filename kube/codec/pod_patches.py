"""Builds the JSON patches that gate, release and fence a pod.

Pure functions from a pod to a list of operations; an empty list means that there is nothing to
do. Every patch of an existing pod begins with tests, so that it fails rather than act on a pod
that is not the one the verdict was about: on the uid (names are used again), on our gate at its
index (another client may have taken a gate off), and for the release on the resourceVersion. The
latter is what makes a fence work: a new leader annotates the still gated pods of a gang it takes
over, which changes their resourceVersion, and a patch of the older leader that is still in
flight fails. It fails on any other change too; the coordinator then reads the pod again.
"""

from collections.abc import Sequence
from typing import Any

from kube.codec.release_note import ReleaseNote
from kube.objects import names
from kube.objects.base import Labels, ObjectMeta
from kube.objects.core import Affinity, NodeAffinity, NodeSelectorTerm, Pod, PodSpec

Operation = dict[str, Any]
JsonPatch = list[Operation]

_GATES = "/spec/schedulingGates"
_AFFINITY = "/spec/affinity"
_NODE_AFFINITY = f"{_AFFINITY}/nodeAffinity"
_REQUIRED_KEY = "requiredDuringSchedulingIgnoredDuringExecution"
_REQUIRED = f"{_NODE_AFFINITY}/{_REQUIRED_KEY}"
_TERMS = f"{_REQUIRED}/nodeSelectorTerms"
_ANNOTATIONS = "/metadata/annotations"
_NODE_FIELD = "metadata.name"

_SOME: Labels = {"": ""}
"""Stands for annotations whose content does not matter."""


def for_patches(pod: Pod) -> Pod:
    """Reduce a pod to what patches read, and its creation; of annotations only whether any are."""
    meta, affinity = pod.metadata, pod.spec.affinity
    return Pod(
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
            annotations=_SOME if meta.annotations else {},
        ),
        spec=PodSpec(
            scheduling_gates=pod.spec.scheduling_gates,
            affinity=None if affinity is None else Affinity(affinity.node_affinity),
        ),
    )


def gate_patch(gates: Sequence[str]) -> JsonPatch:
    """Append our gate to those of a pod that is being created; `gates` are their names.

    For pods without a node name: the API server refuses gates on the others.
    """
    gate = {"name": names.GATE}
    if names.GATE in gates:
        return []
    if not gates:
        return [_add(_GATES, [gate])]
    return [_add(f"{_GATES}/-", gate)]


def release_patch(pod: Pod, node_name: str, queue: str = "") -> JsonPatch:
    """Take our gate off, pin the pod to its node and say that Muster did, in one patch."""
    ungate = unpinned_release_patch(pod)
    if not ungate:
        return []
    note = ReleaseNote(pod.metadata.uid, queue)
    written = _annotate(pod, names.RELEASED, str(note))[-1]  # the version is tested already
    return [*ungate, *_pin(pod, node_name), written]


def unpinned_release_patch(pod: Pod) -> JsonPatch:
    """Take our gate off and leave the node to kube-scheduler: the gang was opted out."""
    index = _gate_index(pod)
    if index is None:
        return []
    return [
        _test_uid(pod),
        _test_version(pod),
        _test_gate(index),
        {"op": "remove", "path": f"{_GATES}/{index}"},
    ]


def gate_removal_patch(pod: Pod) -> JsonPatch:
    """Take our gate off, whatever else of the pod has changed: nothing is promised to it."""
    index = _gate_index(pod)
    if index is None:
        return []
    return [_test_uid(pod), _test_gate(index), {"op": "remove", "path": f"{_GATES}/{index}"}]


def fence_patch(pod: Pod, mark: str | int) -> JsonPatch:
    """Change the resourceVersion of a gated pod, and say for which epoch.

    A mark that the pod has already would change nothing, hence fence nothing.
    """
    index = _gate_index(pod)
    if index is None:
        return []
    return [_test_uid(pod), _test_gate(index), *_annotate(pod, names.FENCE, str(mark))]


def nomination_patch(pod: Pod, node_name: str, scheduler: str) -> JsonPatch:
    """Nominate a gated pod, and say who is told of it; an empty name takes that back.

    For the status of the pod. The annotation makes a change also where the field stays as it is.
    """
    index = _gate_index(pod)
    if index is None:
        return []
    told = _annotate(pod, names.TOLD, scheduler) if node_name and scheduler else []
    field = _add("/status/nominatedNodeName", node_name)
    return [_test_uid(pod), _test_gate(index), field, *told]


def pinned_node(pod: Pod) -> str | None:
    """Name the node a pod is pinned to: the one that all terms which can match agree on."""
    terms = [term for term in _terms(pod) if not _is_empty(term)]
    if not terms:
        return None
    common = set.intersection(*(_nodes_named(term) for term in terms))
    return common.pop() if len(common) == 1 else None


def _pin(pod: Pod, node_name: str) -> JsonPatch:
    """Narrow the required node affinity to one node, creating what of it is missing."""
    pin = {"key": _NODE_FIELD, "operator": "In", "values": [node_name]}
    if _terms(pod):
        return [_narrow(i, t, pin) for i, t in enumerate(_terms(pod)) if not _is_empty(t)]
    required = {"nodeSelectorTerms": [{"matchFields": [pin]}]}
    if pod.spec.affinity is None:
        return [_add(_AFFINITY, {"nodeAffinity": {_REQUIRED_KEY: required}})]
    if pod.spec.affinity.node_affinity is None:
        return [_add(_NODE_AFFINITY, {_REQUIRED_KEY: required})]
    return [_add(_REQUIRED, required)]


def _narrow(index: int, term: NodeSelectorTerm, pin: Operation) -> Operation:
    """Terms are ORed, so each must be narrowed; what it says already must stay a prefix."""
    path = f"{_TERMS}/{index}/matchFields"
    return _add(f"{path}/-", pin) if term.match_fields else _add(path, [pin])


def _is_empty(term: NodeSelectorTerm) -> bool:
    """An empty term matches no node, and the API server refuses to have it filled."""
    return not term.match_expressions and not term.match_fields


def _nodes_named(term: NodeSelectorTerm) -> set[str]:
    return {
        field.values[0]
        for field in term.match_fields
        if field.key == _NODE_FIELD and field.operator == "In" and len(field.values) == 1
    }


def _terms(pod: Pod) -> tuple[NodeSelectorTerm, ...]:
    affinity = pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity else None
    required = (node_affinity or NodeAffinity()).required
    return required.node_selector_terms if required else ()


def _annotate(pod: Pod, key: str, value: str) -> JsonPatch:
    if pod.metadata.annotations:
        return [_add(f"{_ANNOTATIONS}/{_escaped(key)}", value)]
    # Adding the whole map would remove keys that another client has added meanwhile.
    return [_test_version(pod), _add(_ANNOTATIONS, {key: value})]


def _gate_index(pod: Pod) -> int | None:
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    return gates.index(names.GATE) if names.GATE in gates else None


def _test_uid(pod: Pod) -> Operation:
    return {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid}


def _test_version(pod: Pod) -> Operation:
    path = "/metadata/resourceVersion"
    return {"op": "test", "path": path, "value": pod.metadata.resource_version}


def _test_gate(index: int) -> Operation:
    return {"op": "test", "path": f"{_GATES}/{index}", "value": {"name": names.GATE}}


def _add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}


def _escaped(key: str) -> str:
    """A key as a JSON pointer spells it."""
    return key.replace("~", "~0").replace("/", "~1")
