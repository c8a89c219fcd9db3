"""Matches labels against selectors."""

from collections.abc import Mapping

from tests.oracle.model import Json


def selected(selector: Json, labels: Mapping[str, str]) -> bool:
    """Say whether labels satisfy a label selector; an empty one is satisfied by all."""
    equal = all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())
    return equal and all(holds(each, labels) for each in selector.get("matchExpressions", []))


def holds(expression: Json, labels: Mapping[str, str]) -> bool:
    """Say whether labels satisfy one expression of a selector."""
    value, values = labels.get(expression["key"]), expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and int(value) > int(values[0])
        case "Lt":
            return value is not None and int(value) < int(values[0])
    raise ValueError(expression)
