"""Reads fields that several objects of device allocation share: nodes, taints, selectors."""

from typing import Any, Final

import msgspec

from kube.codec.selectors import node_terms
from kube.devices.json_fields import Fields
from kube.objects.core import NodeSelector
from scheduling.model.constraints import NodeTerm, Toleration
from scheduling.model.node import Taint

TAINT_EFFECTS: Final = ("None", "NoSchedule", "NoExecute")
LONGEST_SELECTORS: Final = 64 * 1024
"""Characters of all selectors of one object: real ones have some hundred."""


def nodes(fields: Fields, key: str) -> tuple[NodeTerm, ...] | None:
    """Read a node selector; None where there is none, and no node where it cannot be read."""
    value = fields.plain(key)
    if value is None:
        return None
    try:
        return node_terms(msgspec.convert(value, NodeSelector))
    except msgspec.ValidationError as error:
        fields.problems.note(f"{fields.path}.{key}: {error}")
        return ()


def taint(fields: Fields) -> Taint:
    """Read a taint of a device."""
    fields.unknown("key", "value", "effect", "timeAdded")
    effect = fields.text("effect")
    if effect not in TAINT_EFFECTS:
        fields.problems.note(f"{fields.path}.effect {effect} is not known")
    return Taint(fields.text("key"), fields.text("value"), effect)


def tolerations(fields: Fields) -> tuple[Toleration, ...]:
    """Read the tolerations of a request."""
    return tuple(map(_toleration, fields.parts("tolerations")))


def _toleration(fields: Fields) -> Toleration:
    fields.unknown("key", "operator", "value", "effect", "tolerationSeconds")
    operator = fields.text("operator") or "Equal"
    if operator not in ("Equal", "Exists"):
        fields.problems.note(f"{fields.path}.operator {operator} is not known")
    return Toleration(fields.text("key"), operator, fields.text("value"), fields.text("effect"))


def selectors(fields: Fields) -> tuple[str, ...]:
    """Read the CEL texts of the selectors; another kind of selector is noted."""
    found = []
    for each in fields.parts("selectors"):
        each.unknown("cel")
        if "cel" in each:
            found.append(each.part("cel").text("expression"))
        else:
            each.problems.note(f"{each.path} is not in CEL")
    if sum(map(len, found)) > LONGEST_SELECTORS:
        fields.problems.note(f"{fields.path}.selectors have more than {LONGEST_SELECTORS} bytes")
        return ()
    return tuple(found)


def controller(owners: Any) -> str:
    """Return the uid of the controller; "" where there is none."""
    return next((each.uid for each in owners if each.controller), "")
