"""Judges labels by requirements: the one matcher of label selectors and of node selector terms.

Answers to labels.Selector of k8s.io/apimachinery and, for Gt and Lt, to nodeaffinity of
k8s.io/component-helpers.
"""

import re
from collections.abc import Iterable, Mapping

from scheduling.model.constraints import Requirement

_INTEGER = re.compile(r"[+-]?[0-9]+")


def selects(selector: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    """Say whether labels satisfy a selector; one without requirements picks everything."""
    return all(holds(requirement, labels.get(requirement.key)) for requirement in selector)


def holds(requirement: Requirement, value: str | None) -> bool:
    """Judge one requirement; `value` is None where the label is absent."""
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def integer(text: str | None) -> int | None:
    """Parse as Go's strconv.ParseInt(text, 10, 64) does; None where it would fail."""
    if text is None or len(text) > 63 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _compares(requirement: Requirement, value: str | None) -> bool:
    """Compare as Gt or Lt; a value that is no integer does not match."""
    bound, found = integer(next(iter(requirement.values), None)), integer(value)
    if bound is None or found is None:
        return False
    return found > bound if requirement.operator == "Gt" else found < bound
