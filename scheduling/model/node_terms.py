"""Node selector terms, judged on one node."""

import re

from scheduling.model.constraints import NodeTerm, Requirement
from scheduling.model.labels import holds, integer
from scheduling.model.node import Node

_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


def matches(term: NodeTerm, node: Node) -> bool:
    """Say whether a node satisfies all of a term; an empty term matches nothing."""
    return (
        bool(term.labels or term.fields)
        and all(parses(each) and holds(each, node.labels.get(each.key)) for each in term.labels)
        and all(names_node(each) and holds(each, node.name) for each in term.fields)
    )


def parses(requirement: Requirement) -> bool:
    """Say whether kube-scheduler can read the requirement; else its whole term matches nothing."""
    values = requirement.values
    match requirement.operator if requirement.key else "":
        case "In" | "NotIn":
            return bool(values) and all(_LABEL_VALUE.fullmatch(value) for value in values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and integer(values[0]) is not None
        case _:
            return False


def names_node(field: Requirement) -> bool:
    """Say whether a requirement on a field is one that the API knows: of one metadata.name."""
    return (
        field.key == "metadata.name"
        and field.operator in ("In", "NotIn")
        and len(field.values) == 1
    )
