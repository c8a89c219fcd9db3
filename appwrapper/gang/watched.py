"""Reduces a watched AppWrapper to the fields that its gang needs."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from appwrapper.gang.stand_in import StandIn, metadata_of, stand_in
from appwrapper.phases import ACTIVE, OVER, Phase
from appwrapper.remembered import Remembered
from appwrapper.spec.items import read
from appwrapper.spec.quota_names import counted
from appwrapper.spec.wrapped import Wrapped
from kube.gang.ray_cluster import is_offer
from kube.gang.sent import is_noted
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import Labels, ObjectMeta
from kube.objects.ray import RayCluster, RayClusterSpec
from kube.ray.held_start import HELD
from kube.ray.known_keys import WRITTEN
from kube.ray.pod_templates import without_templates
from kube.ray.ray_cluster import essential
from kube.ray.wrapped_by import gang_name, group_of

LONGEST_TEXT = 600
"""Characters of what is kept of a message."""

NOT_REVIEWED = (
    f"metadata.annotations[{names.CREATED_BY}]: absent, so that its user's rights are not known; "
    "create the AppWrapper anew"
)

SENT_AWAY = (
    f"metadata.annotations[{names.DISPATCHED}]: another cluster is to run it, and this one sends "
    "nothing to others; create the AppWrapper anew, without"
)

OURS = (None, "", names.MANAGED_BY)
"""Values of managedBy with which an AppWrapper is Muster's to take care of."""


class AppWrapperReading:
    """Reduces what a watch tells, and reads a spec once: whoever may edit makes events at will."""

    def __init__(self) -> None:
        self._specs: Remembered[StandIn] = Remembered()

    def __call__(self, wrapper: AppWrapper) -> StandIn:
        """Return what is kept of an AppWrapper, under its own name: a watch finds it by that."""
        uid, state = wrapper.metadata.uid, _spec_of(wrapper)
        return _as_it_is_now(self._specs.of(uid, state, lambda: _of_spec(wrapper)), wrapper)


def _spec_of(wrapper: AppWrapper) -> tuple[Any, ...]:
    """Return all that decides what is read of a spec."""
    meta, version = wrapper.metadata, wrapper.api_version
    forbidden = WRITTEN & {*meta.labels, *meta.annotations}
    stage = _stage(wrapper.status.phase)
    return meta.generation, meta.namespace, meta.name, version, _of_use(meta), forbidden, stage


def _of_use(meta: ObjectMeta) -> tuple[Labels, Labels]:
    """Return the labels and annotations that mean something to Muster."""
    kept = essential(RayCluster(metadata=meta)).metadata
    return kept.labels, kept.annotations


def _stage(phase: str) -> tuple[bool, bool, bool]:
    return phase in ACTIVE, phase == Phase.RUNNING, phase in OVER


def _of_spec(wrapper: AppWrapper) -> StandIn:
    """Read the spec."""
    wrapped = read(wrapper)
    found, asked = stand_in(wrapper, wrapped), wrapped.spec
    reduced = essential(found)
    if wrapper.status.phase in OVER:
        reduced = replace(reduced, spec=without_templates(reduced.spec))
    others = None if asked.managed_by in OURS else asked.managed_by
    spec = replace(reduced.spec, managed_by=others)
    return replace(
        reduced,
        spec=_with_known_pods(spec, wrapped, wrapper.status.phase),
        notices=(),  # the program `wrapper` tells them
        api_version=wrapper.api_version or names.CODEFLARE_V1BETA2,
        stopped_by_user=asked.suspend is True,
        priority=asked.priority or 0,
        priority_slope=asked.priority_slope or 0.0,
        completions=dict(_completions(wrapped)),
        bare=frozenset(_bare(wrapped)),
        objects=counted(wrapped),
    )


def _as_it_is_now(found: StandIn, wrapper: AppWrapper) -> StandIn:
    """Return what was read of the spec with the metadata and the status of now."""
    status = wrapper.status
    meta = essential(RayCluster(metadata=metadata_of(wrapper))).metadata
    refused = _why_left_alone(wrapper.metadata.annotations) or found.refused
    return replace(
        found,
        metadata=replace(_metadata(meta), name=wrapper.metadata.name),
        refused=refused,
        phase=status.phase,
        said=status.message[:LONGEST_TEXT],
        edited=wrapper.metadata.generation,
    )


def _why_left_alone(annotations: Labels) -> str:
    """Say why the program `wrapper` creates nothing of an AppWrapper; empty where it does."""
    if names.CREATED_BY not in annotations:
        return NOT_REVIEWED
    return SENT_AWAY if is_noted(annotations) else ""


def as_gang(kept: StandIn) -> StandIn:
    """Return what stands in for the RayCluster of its gang, under the name of the gang."""
    meta = kept.metadata
    name = gang_name(group_of(kept.api_version), meta.name)
    return replace(kept, metadata=replace(meta, name=name))


def _metadata(meta: ObjectMeta) -> ObjectMeta:
    """Have it opted in and held whatever it says: an AppWrapper that is Muster's is a gang.

    Nothing that owns it is its RayJob; a GangOffer owns what was created for it.
    """
    held = {names.CREATE_PODS: names.CREATE_WHEN_ADMITTED, names.HELD: HELD}
    labels: Labels = {**meta.labels, names.OPT_IN: "true"}
    offers = tuple(each for each in meta.owner_references if is_offer(each))
    annotations = {**meta.annotations, **held}
    return replace(meta, labels=labels, annotations=annotations, owner_references=offers)


def _completions(wrapped: Wrapped) -> Iterator[tuple[str, int]]:
    """Say of pod sets how many pods are made in all, where those that succeed are not replaced."""
    for item in wrapped.items:
        for pod_set in item.pod_sets:
            if pod_set.completions is not None:
                yield pod_set.name, pod_set.completions


def _bare(wrapped: Wrapped) -> Iterator[str]:
    """List the pod sets that are wrapped as Pods."""
    for item in wrapped.items:
        if item.key[:2] == ("", "Pod"):
            yield from (pod_set.name for pod_set in item.pod_sets)


def _with_known_pods(spec: RayClusterSpec, wrapped: Wrapped, phase: str) -> RayClusterSpec:
    """Expect no pods that cannot be labelled once they may exist: none of them is seen as such.

    Until their objects are created room is kept for them as for others.
    """
    unseen = {set_.name for item in wrapped.items for set_ in item.pod_sets if set_.path is None}
    if not unseen or phase != Phase.RUNNING:
        return spec
    groups = (
        replace(each, replicas=0, min_replicas=0) if each.group_name in unseen else each
        for each in spec.worker_group_specs
    )
    return replace(spec, worker_group_specs=tuple(groups))
