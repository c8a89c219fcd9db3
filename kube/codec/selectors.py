"""Reads node selectors, affinity terms, spread constraints and label selectors."""

from collections.abc import Iterable

from kube.codec.profiles.scheduler_profiles import MOST_SPREADS
from kube.objects import base as base_objects
from kube.objects import core as core_objects
from kube.objects.core import Pod, PodSpec
from scheduling.model.constraints import NodeTerm, PodTerm, Requirement, SpreadConstraint

_NOTHING = Requirement("", "In", ())


def required_terms(spec: PodSpec) -> tuple[NodeTerm, ...] | None:
    """Read the required node affinity; None where there is none."""
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    if node_affinity is None or node_affinity.required is None:
        return None
    return node_terms(node_affinity.required)


def node_terms(found: core_objects.NodeSelector) -> tuple[NodeTerm, ...]:
    """Read ORed terms for nodes."""
    return tuple(
        NodeTerm(_requirements(term.match_expressions), _requirements(term.match_fields))
        for term in found.node_selector_terms
    )


def selection_terms(spec: PodSpec) -> int:
    """Count the terms about nodes; fields are left out, so that our pin changes nothing."""
    node_affinity = spec.affinity.node_affinity if spec.affinity else None
    required = node_affinity.required if node_affinity else None
    terms = required.node_selector_terms if required else ()
    expressions = sum(len(term.match_expressions) for term in terms)
    return len(spec.node_selector) + expressions + len(spec.tolerations)


def _requirements(found: Iterable[base_objects.SelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(each.key, each.operator, each.values) for each in found)


def anti_affinity_terms(pod: Pod) -> tuple[PodTerm, ...]:
    """List the required anti-affinity terms of a pod."""
    affinity = pod.spec.affinity
    found = affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()
    return tuple(_pod_term(term, pod.metadata.namespace) for term in found)


def pod_terms(spec: PodSpec) -> int:
    """Count the required terms about other pods, with the expressions in their selectors."""
    affinity = spec.affinity
    sides = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ()
    return sum(_expressions(term) for side in sides if side for term in side.required)


def _expressions(term: core_objects.PodAffinityTerm) -> int:
    selectors = (term.label_selector, term.namespace_selector)
    return 1 + sum(len(s.match_labels) + len(s.match_expressions) for s in selectors if s)


def affinity_terms(pod: Pod) -> tuple[PodTerm, ...]:
    """Read the required affinity terms of a pod."""
    affinity = pod.spec.affinity
    found = affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()
    return tuple(_pod_term(term, pod.metadata.namespace) for term in found)


def _pod_term(found: core_objects.PodAffinityTerm, namespace: str) -> PodTerm:
    """Read a term; one that names no namespace at all means the pod's own."""
    elsewhere = found.namespace_selector
    own = (namespace,) if elsewhere is None else ()
    return PodTerm(
        key=found.topology_key,
        selector=selector(found.label_selector),
        namespaces=found.namespaces or own,
        namespace_selector=None if elsewhere is None else selector(elsewhere),
    )


def spread_constraints(
    found: tuple[core_objects.TopologySpreadConstraint, ...], pod: base_objects.ObjectMeta
) -> tuple[SpreadConstraint, ...]:
    """Read the constraints of a pod that bind; of too many none, for it is not supported then."""
    if len(found) > MOST_SPREADS:
        return ()
    binding = (each for each in found if each.when_unsatisfiable != "ScheduleAnyway")
    return tuple(_spread_constraint(each, pod) for each in binding)


def _spread_constraint(
    found: core_objects.TopologySpreadConstraint, pod: base_objects.ObjectMeta
) -> SpreadConstraint:
    picked = _counted(found, pod.labels)
    return SpreadConstraint(
        counted=PodTerm(found.topology_key, picked, (pod.namespace,)),
        max_skew=found.max_skew,
        min_domains=found.min_domains or 1,
        honors_affinity=found.node_affinity_policy in (None, "Honor"),
        honors_taints=found.node_taints_policy == "Honor",
    )


def _counted(
    found: core_objects.TopologySpreadConstraint, labels: base_objects.Labels
) -> tuple[Requirement, ...]:
    """Read the selector of the pods that a constraint counts.

    The values of the keys to match are in the selector since Kubernetes 1.34; before that the
    scheduler looked them up. An empty selector counts no pod: no domain is ever above the least.
    """
    counted = selector(found.label_selector)
    keys = (Requirement(k, "In", (labels[k],)) for k in found.match_label_keys if k in labels)
    if found.label_selector is None:
        return counted
    return tuple(dict.fromkeys((*counted, *keys))) or (_NOTHING,)


def selector(found: base_objects.LabelSelector | None) -> tuple[Requirement, ...]:
    """Read a selector; none at all picks nothing, an empty one everything."""
    if found is None:
        return (_NOTHING,)
    labels = (Requirement(key, "In", (value,)) for key, value in found.match_labels.items())
    return (*labels, *_requirements(found.match_expressions))
