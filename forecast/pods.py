"""Makes the pods that a forecast sees: bound where they were released, gated where made again."""

from dataclasses import replace

from msgspec import structs

from kube.codec.devices.pod_claims import PodClaim
from kube.codec.observed_pod import ObservedPod
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.core import Pod
from scheduling.model.gang import GangKey


def bound(pod: ObservedPod, node: str, version: str) -> ObservedPod:
    """Return a pod that was released, as it runs on its node."""
    assert pod.member is not None, "only pods of gangs are released"
    gates = tuple(each for each in pod.member.gates if each != names.GATE)
    return replace(
        pod,
        resource_version=version,
        node=node,
        holds=node,
        raw=None,
        ready=bool(node),
        unschedulable="",
        nominated_to="",
        member=replace(pod.member, gates=gates, pinned=node),
    )


def made_again(pod: ObservedPod, number: int, version: str) -> ObservedPod:
    """Return the pod that the controller of a deleted one makes in its place, with our gate."""
    assert pod.member is not None, "pods of others are not made again"
    name, uid = f"{pod.name}~{number}", f"{pod.uid}~{number}"
    meta = ObjectMeta(name=name, namespace=pod.namespace, uid=uid, resource_version=version)
    return replace(
        pod,
        name=name,
        uid=uid,
        resource_version=version,
        node="",
        holds="",
        terminating=False,
        ready=False,
        unschedulable="",
        nominated_to="",
        ends_by=0.0,
        claims=tuple(_remade(each) for each in pod.claims),
        extended_claim="",
        raw=Pod(metadata=meta),
        member=replace(pod.member, gates=(names.GATE,), pinned="", fence=""),
    )


def _remade(claim: PodClaim) -> PodClaim:
    return claim._replace(claim="", to_come=True) if claim.template else claim


def fenced(pod: ObservedPod, token: str, version: str) -> ObservedPod:
    """Return a gated pod with the annotation of a fence."""
    assert pod.member is not None, "only pods of gangs are fenced"
    assert pod.raw is not None, "only gated pods are fenced"
    meta = structs.replace(pod.raw.metadata, resource_version=version)
    return replace(
        pod,
        resource_version=version,
        raw=structs.replace(pod.raw, metadata=meta),
        member=replace(pod.member, fence=token),
    )


def of_gang(pod: ObservedPod, gang: GangKey, cluster_uid: str) -> ObservedPod:
    """Return the pod as one of another RayCluster, which a RayJob makes for each try."""
    assert pod.member is not None, "pods of others are in no gang"
    return replace(pod, member=replace(pod.member, gang=gang, cluster_uid=cluster_uid))
