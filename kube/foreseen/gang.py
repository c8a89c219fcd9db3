"""Works out the pods of a gang before they exist; those of a RayCluster as KubeRay does."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from msgspec import structs

from kube.codec.devices.pod_claims import claims_to_come
from kube.codec.fields import InvalidObject
from kube.codec.observed_pod import ObservedPod, observe
from kube.codec.profiles.scheduler_profiles import STOCK, Profiles
from kube.codec.volumes.pod_volumes import EPHEMERAL
from kube.foreseen.admission import Admission, NotAdmitted, admitted
from kube.foreseen.kuberay import head_pod, worker_pod
from kube.objects import names
from kube.objects.base import ObjectMeta
from kube.objects.pod_templates import GroupTemplate, TemplatePod, TemplateSpec
from kube.objects.ray import RayCluster, WorkerGroup
from kube.ray.gang_terms import PodSetTerms, pod_sets_wanted
from kube.ray.pod_templates import (
    MOST_BYTES,
    UnreadableTemplate,
    autoscaler_options,
    head_template,
    worker_template,
)
from kube.ray.ray_cluster import resumed
from kube.ray.wrapped_by import unwrapped, wrapped_by, wrapper_of_gang

MOST_PODS = 20_000
"""Pods of one held gang: each is in memory by itself, as pods that exist are."""

_NUMBERED = (
    names.RAY_REPLICA_NAME,
    "ray.io/worker-group-replica-index",
    "ray.io/replica-host-index",
)
_MARK = "~"  # in no name of an object: a foreseen pod is never taken for one that exists


@dataclass(frozen=True, slots=True)
class ForeseenPodSet:
    """The pods of a pod set: how many, how many to a replica, and the one that they all are."""

    name: str
    count: int
    hosts: int
    pod: TemplatePod


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The pods that KubeRay makes for a RayCluster; pod sets without pods are left out.

    `objects` are those that are no pods, claims of devices and what an AppWrapper wraps: how many,
    by the names that quotas use.
    """

    cluster: str
    uid: str
    pod_sets: tuple[ForeseenPodSet, ...]
    objects: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class NeverAdmitted:
    """Why KubeRay or the API server makes no pods of a template; nothing is to be created."""

    message: str


@dataclass(frozen=True, slots=True)
class Unforeseeable:
    """Why the pods can only be known once they exist; such a gang cannot be held."""

    message: str


Outlook: TypeAlias = Foreseen | NeverAdmitted | Unforeseeable


class _KnownOnlyThen(ValueError):  # noqa: N818 - what it says of a template
    """What of a template shows only in the pods that are made of it."""


@dataclass(frozen=True, slots=True)
class PodSetToCome:
    """A pod set before it has pods: what it is called, its template, and what pod that makes."""

    terms: PodSetTerms
    where: str
    template: Callable[[], GroupTemplate | None]
    pod: Callable[[GroupTemplate], TemplatePod]


def foreseen_gang(cluster: RayCluster, admission: Admission) -> Outlook:
    """Work out the pods of a RayCluster that is suspended, as they are once it is not."""
    head, *workers = pod_sets_wanted(resumed(cluster))
    groups = zip(workers, cluster.spec.worker_group_specs, strict=True)
    to_come = [_head_to_come(cluster, head), *(_to_come(cluster, *each) for each in groups)]
    return foreseen_pod_sets(cluster.metadata, to_come, "workerGroupSpecs", admission)


def foreseen_pod_sets(
    meta: ObjectMeta, to_come: Sequence[PodSetToCome], where: str, admission: Admission
) -> Outlook:
    """Work out the pods of a gang from its pod sets; `where` is what those are called together."""
    count = sum(each.terms.count for each in to_come)
    if count > MOST_PODS:
        return NeverAdmitted(f"{where}: {count} pods are too many; allowed: {MOST_PODS}")
    found = []
    for each in to_come:
        outlook = _pod_set(each, admission)
        if not isinstance(outlook, ForeseenPodSet):
            return outlook
        found.append(outlook)
    return Foreseen(meta.name, meta.uid, tuple(each for each in found if each.count))


def observed_pods(found: Foreseen, profiles: Profiles = STOCK) -> Iterator[ObservedPod]:
    """List the pods one by one, as if they had come, gated, from a watch.

    KubeRay draws the names of replicas; those here stand for as many others.
    """
    wrapper_of = wrapped_by if wrapper_of_gang(found.cluster) else unwrapped
    for pod_set in found.pod_sets:
        like = _without_claims(observe(pod_set.pod, profiles, wrapper_of))
        for first in range(0, pod_set.count, pod_set.hosts):
            if pod_set.hosts > 1:
                of_replica = _of_replica(pod_set, first // pod_set.hosts)
                like = _without_claims(observe(of_replica, profiles, wrapper_of))
            for index in range(first, first + pod_set.hosts):
                yield _named(like, found, f"{pod_set.name}{_MARK}{index:05}")


def _without_claims(pod: ObservedPod) -> ObservedPod:
    return replace(pod, claims=claims_to_come(pod.claims)) if pod.claims else pod


def is_foreseen(pod: ObservedPod) -> bool:
    """Say whether a pod is only worked out, so that nothing can be written to it."""
    return _MARK in pod.name


def _head_to_come(cluster: RayCluster, terms: PodSetTerms) -> PodSetToCome:
    def pod(template: GroupTemplate) -> TemplatePod:
        return head_pod(cluster, template, autoscaler_options(cluster.spec))

    return PodSetToCome(terms, "headGroupSpec", partial(head_template, cluster.spec), pod)


def _to_come(cluster: RayCluster, terms: PodSetTerms, group: WorkerGroup) -> PodSetToCome:
    name = group.group_name
    where, template = f"workerGroupSpecs[{name}]", partial(worker_template, group)
    return PodSetToCome(terms, where, template, partial(worker_pod, cluster, name))


def _pod_set(
    to_come: PodSetToCome, admission: Admission
) -> ForeseenPodSet | NeverAdmitted | Unforeseeable:
    """Work out one pod set."""
    terms, where = to_come.terms, to_come.where
    try:
        pod = admitted(_made(to_come), admission)
    except _KnownOnlyThen as why:
        return Unforeseeable(f"{where}.template: {why}")
    except (NotAdmitted, InvalidObject, UnreadableTemplate) as why:
        return NeverAdmitted(f"{where}.template: {why}")
    return ForeseenPodSet(terms.name, terms.count, terms.hosts, pod)


def _made(to_come: PodSetToCome) -> TemplatePod:
    """Make a pod as its controller does."""
    read = to_come.template()
    if read is None:
        raise _KnownOnlyThen(f"absent, or all templates together have more than {MOST_BYTES} bytes")
    if not read.template.spec.containers:
        raise NotAdmitted("spec.containers: there is none; allowed: one or more")
    for fault in _known_only_then(read.template.spec):
        raise _KnownOnlyThen(fault)
    return to_come.pod(read)


def _known_only_then(spec: TemplateSpec) -> Iterator[str]:
    """Name what makes it impossible to decide for a pod before it exists."""
    if spec.node_name:
        yield "spec.nodeName binds the pod as it is created"
    for gate in spec.scheduling_gates:
        if gate.name != names.GATE:
            yield f"spec.schedulingGates: {gate.name} is taken off a pod that exists, by others"
    for volume in spec.volumes:
        if EPHEMERAL in volume:
            yield f"spec.volumes: the claim of {volume.get('name')} is made for a pod that exists"
    for claim in spec.resource_claims:
        if not claim.resource_claim_template_name:
            said = "is allocated for a pod that exists (use a ResourceClaimTemplate)"
            yield f"spec.resourceClaims: {claim.name} {said}"
    if any(key in _NUMBERED for key in _keys(spec)):
        yield f"matchLabelKeys: {' and '.join(_NUMBERED)} are set on pods as they are created"


def _keys(spec: TemplateSpec) -> Iterator[str]:
    """List the labels of which a pod matches its own value in others."""
    for constraint in spec.topology_spread_constraints:
        yield from constraint.match_label_keys
    affinity = spec.affinity
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        for term in side.required if side else ():
            yield from (*term.match_label_keys, *term.mismatch_label_keys)


def _of_replica(pod_set: ForeseenPodSet, replica: int) -> TemplatePod:
    """Label a pod with its replica, which has more than one."""
    meta = pod_set.pod.metadata
    labels = {**meta.labels, names.RAY_REPLICA_NAME: f"{pod_set.name}{_MARK}{replica:05}"}
    return structs.replace(pod_set.pod, metadata=structs.replace(meta, labels=labels))


def _named(like: ObservedPod, found: Foreseen, suffix: str) -> ObservedPod:
    """Give a pod a name and uid of its own; all else it shares with the others of its replica."""
    name, uid = f"{found.cluster}{_MARK}{suffix}", f"{found.uid}{_MARK}{suffix}"
    assert like.raw is not None
    meta = structs.replace(like.raw.metadata, name=name, uid=uid)
    return replace(like, name=name, uid=uid, raw=structs.replace(like.raw, metadata=meta))
