"""Writes ProvisioningRequests with their PodTemplates, and reads their outcome.

A template has what Cluster Autoscaler's simulation of kube-scheduler reads of the pod, and nothing
else: no environment, no commands, no mounts. So no secret of a pod is copied into it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kube.codec.fields import moment_of
from kube.objects import names
from kube.objects.provisioning import API_VERSION, KIND, DatedCondition, ProvisioningRequest

Json = dict[str, Any]

_OF_SPEC = (
    "nodeSelector",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "schedulerName",
    "runtimeClassName",
    "overhead",
    "priorityClassName",
    "priority",
    "hostNetwork",
    "resources",
)
_OF_CONTAINER = ("resources", "restartPolicy")
_IMAGE = "registry.k8s.io/pause:3.10"
"""A container has to name an image; pods are never made of the template."""

SAID_LIMIT = 300
"""Characters of Cluster Autoscaler's message that are kept."""


class Answer(StrEnum):
    """What became of a request."""

    PENDING = "Pending"
    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class NodeRequest:
    """A ProvisioningRequest of a gang, as it was seen.

    `gang_uid` is that of the Gang that owns it, `asked` identifies the pods that it requests room
    for, and `attempt` (from 1) counts such requests in a row. `said` is the answer of Cluster
    Autoscaler, `answered_at` its time (seconds since 1970).
    """

    namespace: str
    name: str
    uid: str
    gang_name: str
    gang_uid: str
    asked: str
    attempt: int
    templates: tuple[str, ...]
    answer: Answer
    said: str
    answered_at: float
    ending: bool


def node_request_of(found: ProvisioningRequest) -> NodeRequest | None:
    """Read a request; None where no Gang owns it."""
    meta = found.metadata
    owner = next((each for each in meta.owner_references if each.kind == "Gang"), None)
    if owner is None:
        return None
    answer, condition = _answer(found.status.conditions)
    return NodeRequest(
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        gang_name=owner.name,
        gang_uid=owner.uid,
        asked=meta.annotations.get(names.NODES_ASKED, ""),
        attempt=_attempt(meta.annotations.get(names.NODES_ATTEMPT, "")),
        templates=tuple(each.pod_template_ref.name for each in found.spec.pod_sets),
        answer=answer,
        said=_said(condition),
        answered_at=moment_of(condition.last_transition_time),
        ending=meta.deletion_timestamp is not None,
    )


def _attempt(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 7 else 1


def _answer(conditions: tuple[DatedCondition, ...]) -> tuple[Answer, DatedCondition]:
    """Return the answer that counts: what ended a request goes before what it came to before."""
    by_type = {each.type: each for each in conditions}
    for ended in ("Failed", "CapacityRevoked", "BookingExpired"):
        if ended in by_type and by_type[ended].status == "True":
            return Answer.FAILED, by_type[ended]
    provisioned, accepted = by_type.get("Provisioned"), by_type.get("Accepted")
    if provisioned is not None:
        given = provisioned.status == "True"
        return (Answer.PROVISIONED if given else Answer.ACCEPTED), provisioned
    if accepted is not None and accepted.status == "True":
        return Answer.ACCEPTED, accepted
    return Answer.PENDING, DatedCondition()


def _said(condition: DatedCondition) -> str:
    if not condition.type:
        return ""
    value = "" if condition.status == "True" else f"={condition.status}"
    told = ": ".join(each for each in (condition.reason, condition.message) if each)
    return f"{condition.type}{value} ({told})"[:SAID_LIMIT] if told else condition.type + value


def pod_template(
    name: str, owner: Json, namespace: str, pod: Mapping[str, Any], selector: Mapping[str, str]
) -> Json:
    """Return the PodTemplate of pods like `pod` (labels, spec), on nodes with these labels too."""
    spec = pod["spec"]
    kept = {key: spec[key] for key in _OF_SPEC if spec.get(key)}
    wanted = {**(spec.get("nodeSelector") or {}), **selector}
    body = {
        **kept,
        **({"nodeSelector": wanted} if wanted else {}),
        "containers": list(_containers(spec.get("containers"))),
        **_filled("initContainers", list(_containers(spec.get("initContainers")))),
        **_filled("volumes", list(_claims(spec.get("volumes")))),
    }
    labels = (pod.get("metadata") or {}).get("labels") or {}
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": _metadata(name, namespace, owner),
        "template": {"metadata": {"labels": dict(labels)}, "spec": body},
    }


def _filled(key: str, found: list[Json]) -> Json:
    return {key: found} if found else {}


def _containers(found: list[Mapping[str, Any]] | None) -> Iterator[Json]:
    for at, each in enumerate(found or ()):
        ports = [port for port in each.get("ports") or () if port.get("hostPort")]
        yield {
            "name": each.get("name") or f"c{at}",
            "image": _IMAGE,
            **{key: each[key] for key in _OF_CONTAINER if each.get(key)},
            **_filled("ports", ports),
        }


def _claims(found: list[Mapping[str, Any]] | None) -> Iterator[Json]:
    """Yield the volumes that are claims: the others do not say where a pod can be."""
    for each in found or ():
        if each.get("persistentVolumeClaim"):
            yield {"name": each["name"], "persistentVolumeClaim": each["persistentVolumeClaim"]}


def provisioning_request(
    name: str,
    owner: Json,
    namespace: str,
    class_name: str,
    parameters: Mapping[str, str],
    pod_sets: Mapping[str, int],
    notes: Mapping[str, str],
) -> Json:
    """Return the request for so many pods of each PodTemplate, with `notes` as annotations."""
    asked = [{"podTemplateRef": {"name": each}, "count": n} for each, n in pod_sets.items()]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {**_metadata(name, namespace, owner), "annotations": dict(notes)},
        "spec": {
            "provisioningClassName": class_name,
            "podSets": asked,
            **({"parameters": dict(parameters)} if parameters else {}),
        },
    }


def _metadata(name: str, namespace: str, owner: Json) -> Json:
    return {
        "name": name,
        "namespace": namespace,
        "labels": {names.NODES_FOR: "gang"},
        "ownerReferences": [owner],
    }


def owned_by_gang(name: str, uid: str) -> Json:
    """Return the reference to a Gang that has an object go with it."""
    return {
        "apiVersion": names.API_VERSION,
        "kind": "Gang",
        "name": name,
        "uid": uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
