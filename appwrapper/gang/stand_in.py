"""Turns an AppWrapper into the RayCluster that stands in for it wherever gangs are decided.

A held RayCluster is one whose pods do not exist until the gang has its place; so is an AppWrapper
whose objects do not. Its pods are worked out from what is created for its items.
"""

from collections.abc import Collection, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from appwrapper.creation import created_object, labels_of
from appwrapper.gang.sizes import (
    at_least,
    count_notice,
    declared_sizes,
    of_sizes_alone,
    size_notice,
)
from appwrapper.phases import ACTIVE
from appwrapper.spec.faults import message_of
from appwrapper.spec.paths import Json, Path, at
from appwrapper.spec.wrapped import Item, Wrapped, WrappedPodSet
from kube.codec.fields import ByResource, InvalidObject
from kube.foreseen.kuberay import head_pod, worker_pod
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import Labels, LabelSelector, ObjectMeta, OwnerReference
from kube.objects.core import VolumeSource
from kube.objects.pod_templates import PodTemplate, TemplateMeta, TemplateSpec
from kube.objects.ray import RayCluster, RayClusterSpec, WorkerGroup
from kube.ray.held_start import HELD
from kube.ray.pod_templates import (
    UnreadableTemplate,
    autoscaler_options,
    head_template,
    with_templates,
    worker_template,
)
from kube.ray.wrapped_by import gang_name, group_of

NOTICES_KEPT = 10


class StandIn(RayCluster, frozen=True):
    """An AppWrapper in the form of a RayCluster without a head: a worker group is a pod set of it.

    No JSON is read as one, so none can pretend to be one. The template of a group is the pod as its
    controller creates it, and `min_replicas` how many replicas must start at once. `refused` says
    why nothing of it can be created, `unforeseeable` why its pods are known only once they exist,
    and `notices` what its user should know besides; they are not kept.

    `phase` and `said` are phase and message of its status, `edited` is the generation of the
    AppWrapper itself: that of the stand-in counts changes of its phase too. `completions` says of
    pod sets how many pods are made in all, where one that succeeds is not replaced. `bare` are
    those that are wrapped as Pods: none of them is created again. `objects` counts what is wrapped
    and is no Pod, by the names that quotas use. `unseen` names objects whose pods have no label.
    """

    refused: str = ""
    unforeseeable: str = ""
    notices: tuple[str, ...] = ()
    api_version: str = ""
    phase: str = ""
    said: str = ""
    stopped_by_user: bool = False
    edited: int = 0
    priority: int = 0
    priority_slope: float = 0.0
    completions: dict[str, int] = msgspec.field(default_factory=dict)
    bare: frozenset[str] = frozenset()
    objects: dict[str, int] = msgspec.field(default_factory=dict)
    unseen: tuple[str, ...] = ()


def stand_in(wrapper: AppWrapper, wrapped: Wrapped) -> StandIn:
    """Return the RayCluster that stands for an AppWrapper; what is wrong in it is `refused`."""
    suspend = wrapper.status.phase not in ACTIVE
    meta = metadata_of(wrapper)
    notices = list(wrapped.notices)
    groups: list[WorkerGroup] = []
    refused = message_of(wrapped.faults)
    unforeseeable = ""
    claims = {(each.kind, each.name) for each in wrapped.items if each.kind in _CLAIMED}
    for item in () if refused else wrapped.items:
        try:
            groups += _groups(item, wrapper, wrapped, notices)
        except (InvalidObject, UnreadableTemplate) as why:
            refused = refused or f"{item.where}: {why}"
        unforeseeable = unforeseeable or next(_known_only_then(item, claims), "")
    spec = with_templates(RayClusterSpec(worker_group_specs=tuple(groups), suspend=suspend))
    return StandIn(
        metadata=meta,
        spec=spec,
        refused=refused,
        unforeseeable=unforeseeable,
        notices=tuple(notices[:NOTICES_KEPT]),
        unseen=tuple(_unseen(wrapped)),
    )


def _unseen(wrapped: Wrapped) -> Iterator[str]:
    for item in wrapped.items:
        if any(each.path is None for each in item.pod_sets):
            yield item.where


def notices(wrapper: AppWrapper, wrapped: Wrapped) -> tuple[str, ...]:
    """Return what a user should know of an AppWrapper that hinders nothing."""
    if not any(item.custom for item in wrapped.items):
        return wrapped.notices[:NOTICES_KEPT]  # only declared sizes are held against templates
    return stand_in(wrapper, wrapped).notices


def metadata_of(wrapper: AppWrapper) -> ObjectMeta:
    """Have the stand-in opted in and held: an AppWrapper is a gang, unless it says it is none."""
    meta = wrapper.metadata
    said = {names.OPT_IN} & {*meta.labels, *meta.annotations}
    labels = meta.labels if said else {**meta.labels, names.OPT_IN: "true"}
    held = {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED, names.HELD: HELD}
    return replace(
        meta,
        name=gang_name(group_of(wrapper.api_version), meta.name),
        generation=meta.generation + wrapper.status.transition_count,
        labels=labels,
        annotations={**held, **meta.annotations, names.HELD: HELD},
    )


def _groups(
    item: Item, wrapper: AppWrapper, wrapped: Wrapped, notices: list[str]
) -> Iterator[WorkerGroup]:
    """Make a worker group of each pod set of an item, with the pod that its controller makes."""
    created = created_object(item, wrapper.metadata, wrapper.api_version, wrapped.generation)
    labels = labels_of(wrapper.metadata, wrapper.api_version, wrapped.generation)
    pods = _pods(item, created)
    sizes = declared_sizes(item)
    notices += filter(None, (count_notice(item),))
    for pod_set, found, declared in zip(item.pod_sets, pods, sizes, strict=True):
        template = found or _of_size({**labels, names.POD_SET: pod_set.name}, declared)
        notices += filter(None, (size_notice(item, pod_set.name, template.spec, declared),))
        yield _group(pod_set, replace(template, spec=at_least(template.spec, declared)))


def _group(pod_set: WrappedPodSet, template: PodTemplate) -> WorkerGroup:
    hosts = max(pod_set.hosts, 1)
    return WorkerGroup(
        group_name=pod_set.name,
        replicas=pod_set.count // hosts,
        min_replicas=pod_set.minimum // hosts,
        num_of_hosts=hosts,
        template=msgspec.Raw(msgspec.json.encode(template)),
    )


def _of_size(labels: Labels, declared: ByResource) -> PodTemplate:
    return PodTemplate(TemplateMeta(labels), of_sizes_alone(declared))


def _pods(item: Item, created: Json) -> Iterator[PodTemplate | None]:
    """Yield for each pod set what its pods are as they are created; None where nothing is known."""
    clusters: dict[Path, RayCluster] = {}
    for pod_set in item.pod_sets:
        if pod_set.path is None:
            yield None
        elif pod_set.ray is None:
            yield msgspec.convert(at(created, pod_set.path), PodTemplate)
        else:
            if pod_set.ray not in clusters:
                clusters[pod_set.ray] = _ray_cluster(item, at(created, pod_set.ray))
            yield _ray_pod(clusters[pod_set.ray], pod_set.path[-2])


def _ray_cluster(item: Item, spec: Json) -> RayCluster:
    read = msgspec.json.decode(msgspec.json.encode(spec), type=RayClusterSpec)
    return RayCluster(metadata=_of_cluster(item), spec=read)


def _ray_pod(cluster: RayCluster, place: str | int) -> PodTemplate:
    """Make a pod as KubeRay does: a worker of the group at an index, else the head."""
    if isinstance(place, int):
        group = cluster.spec.worker_group_specs[place]
        worker = worker_template(group)
        assert worker is not None
        pod = worker_pod(cluster, group.group_name, worker)
    else:
        head = head_template(cluster.spec)
        assert head is not None
        pod = head_pod(cluster, head, autoscaler_options(cluster.spec))
    return PodTemplate(TemplateMeta(pod.metadata.labels), pod.spec)


def _of_cluster(item: Item) -> ObjectMeta:
    """Name the RayCluster as its item; RayJob and RayService draw another name."""
    owner = OwnerReference(names.RAY_API_VERSION, item.kind, item.name, controller=True)
    made = item.kind in ("RayJob", "RayService")
    return ObjectMeta(name=item.name, owner_references=(owner,) if made else ())


# --- what is known only of pods that exist ----------------------------------------------------


def _known_only_then(item: Item, claims: Collection[tuple[str, str]]) -> Iterator[str]:
    """Say what of an item makes it impossible to decide for its pods before they exist.

    `claims` are kinds and names of those that are items themselves, and are made with the pods.
    """
    if item.kind == "StatefulSet" and at(item.found, ("spec", "volumeClaimTemplates")):
        yield f"{item.where}: template.spec.volumeClaimTemplates: claims are made with the pods"
    if item.kind == "RayJob" and at(item.found, ("spec", "submissionMode")) == "SidecarMode":
        said = "template.spec.submissionMode: SidecarMode puts the submitter into the head pod"
        yield f"{item.where}: {said}"
    if item.kind == "JobSet" and _is_exclusive(item.found):
        said = "exclusive placement is put into the pods as they are created"
        yield f"{item.where}: {_EXCLUSIVE}: {said}"
    for pod_set in item.pod_sets:
        if pod_set.path is not None:
            spec = msgspec.convert(at(item.found, pod_set.path), PodTemplate).spec
            own = next((c for c in _claims(spec) if c in claims), ())
            if own:
                said = f"{' '.join(own)} is an item of the AppWrapper, and created with the pods"
                yield f"{item.where}: pod set {pod_set.name}: {said} (create it before)"
            drawn = sorted({*_keys_matched(spec)} & {*pod_set.later})
            if drawn:
                said = f"the label {drawn[0]} is set on pods as they are created"
                yield f"{item.where}: pod set {pod_set.name}: {said}"


_OF_VOLUMES, _OF_DEVICES, _TEMPLATE = (
    "PersistentVolumeClaim",
    "ResourceClaim",
    "ResourceClaimTemplate",
)
_CLAIMED = _OF_VOLUMES, _OF_DEVICES, _TEMPLATE


def _claims(spec: TemplateSpec) -> Iterator[tuple[str, str]]:
    """List what pods claim by, as kind and name."""
    for volume in spec.volumes:
        source = volume.get("persistentVolumeClaim")
        if isinstance(source, VolumeSource):
            yield _OF_VOLUMES, source.claim_name
    for claim in spec.resource_claims:
        yield _OF_DEVICES, claim.resource_claim_name or ""
        yield _TEMPLATE, claim.resource_claim_template_name or ""


_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def _is_exclusive(found: Json) -> bool:
    """Say whether a JobSet has its jobs placed apart, as a whole or one of them."""
    jobs = at(found, ("spec", "replicatedJobs"))
    places: list[Any] = [found, *(jobs if isinstance(jobs, list) else ())]
    paths = (("metadata", "annotations"), ("template", "metadata", "annotations"))
    return any(_EXCLUSIVE in (at(each, path) or ()) for each in places for path in paths)


def _keys_matched(spec: TemplateSpec) -> Iterator[str]:
    """List the labels of pods that the terms of a pod match."""
    for constraint in spec.topology_spread_constraints:
        yield from constraint.match_label_keys
        yield from _keys_of(constraint.label_selector)
    affinity = spec.affinity
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        for term in side.required if side else ():
            yield from (*term.match_label_keys, *term.mismatch_label_keys)
            yield from _keys_of(term.label_selector)


def _keys_of(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        yield from selector.match_labels
        yield from (each.key for each in selector.match_expressions)
