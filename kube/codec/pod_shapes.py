"""Reads the shape of a pod as it came, once for all pods with the same fields."""

from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from kube.codec.fields import InvalidObject
from kube.codec.pod import pod_shape
from kube.codec.profiles.scheduler_profiles import DEFAULT_SCHEDULER, Profile, Profiles
from kube.codec.volumes.pod_volumes import telling_volumes
from kube.objects.base import SelectorRequirement
from kube.objects.core import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, Pod
from scheduling.model.pod import PodShape
from scheduling.state.bounded_cache import MIB, BoundedCache, Interned

SHAPES: Interned[PodShape] = Interned(4 * MIB)  # of one copy the key is worked out once

Shape: TypeAlias = tuple[PodShape | None, str]
"""A shape, or why there is none."""

# A starting pod comes some five times, and hundreds of pods of a worker group have the same fields:
# the result for one is looked up for the others by the bytes of all fields that it was read from.
READ_SHAPES: BoundedCache[tuple[Profile | None, bytes], Shape] = BoundedCache(4 * MIB)

_bytes_of = msgspec.json.Encoder().encode


def shape_of(pod: Pod, profiles: Profiles) -> Shape:
    """Return the shape of a pod for its scheduler, or why there is none."""
    profile = profiles.get(pod.spec.scheduler_name or DEFAULT_SCHEDULER)
    return READ_SHAPES.remembered(
        (profile, _bytes_of(_shaping(pod))), lambda: _read_shape(pod, profiles)
    )


def _shaping(pod: Pod) -> tuple[Any, ...]:
    """Return all fields of a pod that its shape is read from.

    Labels and namespace only where the pod has inter-pod constraints; without them equal pods of
    all namespaces share one entry.
    """
    spec, meta = pod.spec, pod.metadata
    asked = replace(
        spec, node_name="", scheduling_gates=(), priority=None, volumes=telling_volumes(spec)
    )
    affinity = spec.affinity
    terms = affinity is not None and (affinity.pod_affinity or affinity.pod_anti_affinity)
    constrained = terms or spec.topology_spread_constraints
    return asked, (meta.namespace, sorted(meta.labels.items())) if constrained else ()


def _read_shape(pod: Pod, profiles: Profiles) -> Shape:
    try:
        return SHAPES(pod_shape(pod, profiles)), ""
    except InvalidObject as error:
        return None, str(error)


def without_pin(pod: Pod, node: str) -> Pod:
    """The pod as it was before the release added the pin to its terms.

    A term that held nothing but the pin was made by the release, so the pod had none before.
    """
    affinity = pod.spec.affinity or Affinity()
    required = (affinity.node_affinity or NodeAffinity()).required or NodeSelector()
    pin = SelectorRequirement("metadata.name", "In", (node,))
    terms = tuple(_without(pin, each) for each in required.node_selector_terms)
    some = any(each.match_expressions or each.match_fields for each in terms)
    before = NodeAffinity(NodeSelector(terms)) if some else None
    return replace(pod, spec=replace(pod.spec, affinity=replace(affinity, node_affinity=before)))


def _without(pin: SelectorRequirement, term: NodeSelectorTerm) -> NodeSelectorTerm:
    fields = term.match_fields
    return replace(term, match_fields=fields[:-1]) if fields[-1:] == (pin,) else term
