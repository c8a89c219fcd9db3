"""Lists the pod sets of an AppWrapper, and works out their pods before these exist."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from appwrapper.gang.stand_in import StandIn
from kube.foreseen.admission import Admission
from kube.foreseen.gang import (
    Foreseen,
    NeverAdmitted,
    Outlook,
    PodSetToCome,
    Unforeseeable,
    foreseen_pod_sets,
)
from kube.objects.base import ObjectMeta
from kube.objects.pod_templates import GroupTemplate, TemplatePod
from kube.objects.ray import RayCluster, WorkerGroup
from kube.ray.gang_terms import PodSetTerms, as_suspended, least, worker_set
from kube.ray.pod_templates import worker_template
from kube.ray.ray_cluster import resumed


def pod_sets(wrapped: RayCluster, minimums: Mapping[str, int]) -> tuple[PodSetTerms, ...]:
    """Make a pod set of each group; where its user says no minimum the group does."""
    sets = (
        worker_set(group, minimums.get(group.group_name, least(group)))
        for group in wrapped.spec.worker_group_specs
    )
    return as_suspended((*sets,), wrapped.spec)


def foreseen_pods(wrapped: StandIn, admission: Admission) -> Outlook:
    """Work out the pods of an AppWrapper, as they are once its objects are created."""
    if wrapped.refused:
        return NeverAdmitted(wrapped.refused)
    if wrapped.unforeseeable:
        return Unforeseeable(wrapped.unforeseeable)
    sets, groups = pod_sets(resumed(wrapped), {}), wrapped.spec.worker_group_specs
    to_come = [_to_come(wrapped, *each) for each in zip(sets, groups, strict=True)]
    outlook = foreseen_pod_sets(wrapped.metadata, to_come, "pod sets", admission)
    objects = tuple(wrapped.objects.items())
    return replace(outlook, objects=objects) if isinstance(outlook, Foreseen) else outlook


def _to_come(wrapped: StandIn, terms: PodSetTerms, group: WorkerGroup) -> PodSetToCome:
    where, template = f"pod set[{group.group_name}]", partial(worker_template, group)
    return PodSetToCome(terms, where, template, partial(_pod, wrapped.metadata.namespace))


def _pod(namespace: str, group: GroupTemplate) -> TemplatePod:
    """Take a pod as it stands in its group: its labels name its gang."""
    found = group.template
    labels = found.metadata.labels if found.metadata else {}
    return TemplatePod(metadata=ObjectMeta(namespace=namespace, labels=labels), spec=found.spec)
