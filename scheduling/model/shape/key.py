"""Hashes a pod shape, by field names that stay the same when Python classes are renamed.

Placements in Gang.status name shapes by this hash, so a renamed class or field must not change it.
What a shape leaves at its default is left out: a new field changes no key of pods without it.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from scheduling.model.constraints import (
    NodeTerm,
    PodTerm,
    Requirement,
    SpreadConstraint,
    Toleration,
)

if TYPE_CHECKING:
    from scheduling.model.pod import PodShape

VERSION = 1
"""Version of the form that is hashed; another one makes other keys of all shapes."""

_DIGITS = 12
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

Document = Mapping[str, Any]


def shape_key(shape: "PodShape") -> str:
    """Return a short content hash of the pod's own part, equal in every process and release."""
    return hashlib.sha256(_ENCODER.encode(_document(shape)).encode()).hexdigest()[:_DIGITS]


def _document(shape: "PodShape") -> Document:
    lists = {
        "requests": shape.own_requests,
        "nodeSelector": shape.node_selector,
        "tolerations": _each(_toleration, shape.tolerations),
        "features": shape.features,
        "unsupported": shape.own_unsupported,
        "podAffinity": _each(_pod_term, shape.affinity),
        "podAntiAffinity": _each(_pod_term, shape.anti_affinity),
        "spread": _each(_spread, shape.spread),
        "volumes": shape.volumes,
    }
    terms = {"nodeAffinity": shape.node_affinity, "addedAffinity": shape.added_affinity}
    given = {name: _each(_node_term, each) for name, each in terms.items() if each is not None}
    return {"version": VERSION} | {name: each for name, each in lists.items() if each} | given


def _each(write: Callable[[Any], object], values: Iterable[object]) -> list[object]:
    return [write(each) for each in values]


def _node_term(term: NodeTerm) -> Document:
    return {
        "labels": _each(_requirement, term.labels),
        "fields": _each(_requirement, term.fields),
    }


def _requirement(requirement: Requirement) -> Document:
    return {
        "key": requirement.key,
        "operator": requirement.operator,
        "values": requirement.values,
    }


def _toleration(toleration: Toleration) -> Document:
    return {
        "key": toleration.key,
        "operator": toleration.operator,
        "value": toleration.value,
        "effect": toleration.effect,
    }


def _pod_term(term: PodTerm) -> Document:
    written: dict[str, Any] = {
        "topologyKey": term.key,
        "selector": _each(_requirement, term.selector),
        "namespaces": term.namespaces,
    }
    if term.namespace_selector is not None:
        written["namespaceSelector"] = _each(_requirement, term.namespace_selector)
    return written


def _spread(constraint: SpreadConstraint) -> Document:
    return {
        "of": _pod_term(constraint.counted),
        "maxSkew": constraint.max_skew,
        "minDomains": constraint.min_domains,
        "honorsAffinity": constraint.honors_affinity,
        "honorsTaints": constraint.honors_taints,
    }
