"""Says which RayClusters are gangs, and which pods belong to them."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from msgspec.structs import replace

from kube.objects import names
from kube.objects.base import Labels, ObjectMeta, OwnerReference
from kube.objects.ray import RayCluster, RayClusterSpec
from kube.ray.gpu_sharing import sharing_annotations
from kube.ray.known_keys import keys_of_use
from kube.ray.pod_templates import with_templates, without_templates

C = TypeVar("C", bound=RayCluster)

_FAILED_CREATES = ("FailedCreateHeadPod", "FailedCreateWorkerPod")

# How the API server begins its refusal of an object that breaks its schema or validation. Quotas,
# policies and webhooks say "forbidden" or "denied the request", and may say otherwise tomorrow.
_INVALID = re.compile(r'Pod "[^"]*" is invalid: ')
_FORBIDDEN = re.compile(r'pods (?:"[^"]*" )?is forbidden: ')

_KUBERAY = "ray.io/kuberay-operator"
_PROVISIONED = "RayClusterProvisioned"
_READY = "ready"  # the state, which KubeRay sets also where its conditions are switched off

MOST_GROUPS = 1000  # worker groups of a RayCluster; of one with more only their number is kept
LONGEST_VALUE = 8192  # minimums for some hundred groups; what is longer is cut


class Answer(StrEnum):
    """Whether a RayCluster is a gang. BAD: the key is there, with neither "true" nor "false"."""

    YES = "Yes"
    NO = "No"
    BAD = "Bad"


@dataclass(frozen=True, slots=True)
class OptIn:
    """The opt-in of a RayCluster, and the key that decided it."""

    answer: Answer
    value: str = ""
    where: str = ""

    @property
    def gated(self) -> bool:
        """A bad value is gated too: releasing by mistake cannot be undone."""
        return self.answer is not Answer.NO


def essential(cluster: C) -> C:
    """Return a RayCluster without the labels and annotations that are of no use to us.

    A value that is too long for any use is cut, to one that cannot be used either. Too many worker
    groups are reduced to their number. The templates stay until all pods were ready once: until
    then some may not be there to read.
    """
    meta = cluster.metadata
    kept = {"labels": _ours(meta.labels), "annotations": _ours(meta.annotations)}
    spec = _bounded(cluster.spec)
    spec = replace(spec, gpu_sharing=sharing_annotations(spec))
    lacks_pods = spec.suspend or not was_provisioned(cluster)
    spec = with_templates(spec) if lacks_pods else without_templates(spec)
    return replace(cluster, metadata=replace(meta, **kept), spec=spec)


def _ours(written: Labels) -> Labels:
    found = ((key, written[key]) for key in keys_of_use(written))
    return {key: v if len(v) <= LONGEST_VALUE else f"{v[:LONGEST_VALUE]}..." for key, v in found}


def _bounded(spec: RayClusterSpec) -> RayClusterSpec:
    count = len(spec.worker_group_specs)
    if count <= MOST_GROUPS:
        return replace(spec, groups_left_out=0)
    return replace(spec, worker_group_specs=(), groups_left_out=count)


def may_be_gang(namespace: str, home: str) -> bool:
    """Say whether labels are heard in a namespace, where Muster is in the namespace `home`."""
    return namespace not in (names.KUBE_SYSTEM, home)


def opt_in(labels: Labels, annotations: Labels, namespace_labels: Labels) -> OptIn:
    """Decide whether a RayCluster is a gang: its label, else its annotation, else its namespace."""
    places = (("label", labels), ("annotation", annotations), ("namespace label", namespace_labels))
    for where, said in places:
        value = said.get(names.OPT_IN)
        if value is not None:
            return OptIn(_answer(value), value, where)
    return OptIn(Answer.NO)


def owner_cluster(metadata: ObjectMeta) -> OwnerReference | None:
    """Find the RayCluster that controls a pod; labels say it too, but tenants write those."""
    for owner in metadata.owner_references:
        if owner.controller and owner.kind == "RayCluster" and _of_ray(owner.api_version):
            return owner
    return None


def pod_set_of(labels: Labels) -> str:
    """Name the pod set of a pod; KubeRay lets no template override this label."""
    return labels.get(names.RAY_GROUP, "")


def replica_of(labels: Labels) -> str:
    """Name the replica of a pod of a multi-host group; empty for all others."""
    return labels.get(names.RAY_REPLICA_NAME, "")


def is_of_kuberay(cluster: RayCluster) -> bool:
    """Say whether KubeRay makes the pods of a RayCluster; another controller may manage it."""
    return (cluster.spec.managed_by or _KUBERAY) == _KUBERAY


def refused_pods(cluster: RayCluster) -> str:
    """Say why KubeRay could not create a pod when it last tried; empty where it could.

    KubeRay puts its own word for the failure on a line before what the API server said.
    """
    for condition in cluster.status.conditions:
        failed = condition.type == "ReplicaFailure" and condition.status == "True"
        if failed and condition.reason in _FAILED_CREATES:
            said = condition.message.removeprefix(condition.reason)
            return " ".join(said.split()) or condition.reason
    return ""


def is_answered(cluster: RayCluster) -> bool:
    """Say whether the API server itself refuses the pods of the RayCluster as it is now.

    Whatever else keeps KubeRay from creating them may be over when it tries again.
    """
    stale = cluster.metadata.generation > cluster.status.observed_generation
    said = refused_pods(cluster)
    return not stale and bool(_INVALID.match(said) or _FORBIDDEN.match(said))


def makes_invalid_pods(cluster: RayCluster) -> bool:
    """Say whether the API server calls a pod of the RayCluster invalid, as KubeRay makes it.

    It will do so until the RayCluster is changed; a spec newer than KubeRay's status is not known
    to be invalid.
    """
    stale = cluster.metadata.generation > cluster.status.observed_generation
    return not stale and bool(_INVALID.match(refused_pods(cluster)))


def makes_no_other_head(cluster: RayCluster) -> bool:
    """Say whether KubeRay would leave the RayCluster without a head, were that lost.

    It has RayClusters of RayJobs in SidecarMode so: the submitter is lost with the head.
    """
    said = {each.type: each.status for each in cluster.status.conditions}
    marked = cluster.metadata.annotations.get(names.RAY_NO_OTHER_HEAD) == "true"
    return marked and said.get(_PROVISIONED) == "True"


def was_provisioned(cluster: RayCluster) -> bool:
    """Say whether all pods were ready once since the RayCluster was created, or resumed.

    KubeRay never takes either word back, but when the RayCluster is suspended.
    """
    said = {each.type: each.status for each in cluster.status.conditions}
    return said.get(_PROVISIONED) == "True" or cluster.status.state == _READY


def provisioned_since(cluster: RayCluster) -> str:
    """Give the time (RFC 3339) since which KubeRay calls it provisioned; empty where unknown."""
    times = {each.type: each.last_transition_time for each in cluster.status.conditions}
    return times.get(_PROVISIONED) or ""


def resumed(cluster: C) -> C:
    """Return a RayCluster as it is when it is suspended no longer."""
    return replace(cluster, spec=replace(cluster.spec, suspend=False))


def is_terminating(meta: ObjectMeta) -> bool:
    """Say whether a RayCluster is being deleted: KubeRay makes no more pods for it."""
    return meta.deletion_timestamp is not None


def content(cluster: RayCluster) -> tuple[object, ...]:
    """Return all that is read of a RayCluster here: equal for versions that say the same."""
    meta = replace(cluster.metadata, resource_version="")
    created = refused_pods(cluster), makes_invalid_pods(cluster), is_answered(cluster)
    return meta, cluster.spec, created, was_provisioned(cluster)


def _answer(value: str) -> Answer:
    return {"true": Answer.YES, "false": Answer.NO}.get(value, Answer.BAD)


def _of_ray(api_version: str) -> bool:
    return api_version.partition("/")[0] == "ray.io"
