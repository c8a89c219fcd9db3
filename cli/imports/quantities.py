"""Computes with Kubernetes quantities without rounding: an amount keeps its own notation.

The core has a parser of its own, which rounds as kube-scheduler does. Here nothing may be rounded,
and differences are written in the unit of what they were taken from.
"""

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction

from cli.imports.outcome import Fault
from kube.objects.base import Quantities, Quantity

Exact = dict[str, Fraction]

LONGEST = 32
"""Characters of an amount, and most resources of a list, as the definition of GangQueue has it."""

MOST_RESOURCES = 64
MOST = 2**63 - 1
CPU = "cpu"
ALLOWED = (
    "a quantity that is not negative and fits 64 bits, in at most 32 characters and not finer than "
    "1n, such as 500m, 2 or 1.5Gi"
)

_GRAMMAR = re.compile(
    r"\+?(?P<digits>[0-9]+\.?[0-9]*|\.[0-9]+)"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,2}))?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_UNITS = {
    "": Fraction(1),
    **{f"{unit}i": Fraction(1024**power) for power, unit in enumerate("KMGTPE", start=1)},
    **{unit: Fraction(10) ** power for unit, power in _DECIMAL.items()},
}
_FINER = ("", "m", "u", "n")


def exact(amount: Quantity, field: str, resource: str = "") -> Fraction:
    """Return the amount; raises Fault where a GangQueue could not hold it."""
    text = str(amount)
    match = _GRAMMAR.fullmatch(text) if len(text) <= LONGEST else None
    found = _read(match) if match else None
    if found is None or not _fits(found, resource):
        raise Fault(f"{field}: {text[:120]!r} is not valid; allowed: {ALLOWED}")
    return found


def _read(match: re.Match[str]) -> Fraction:
    scale = _UNITS[match["suffix"] or ""] * Fraction(10) ** int(match["exponent"] or 0)
    return Fraction(match["digits"].rstrip(".")) * scale


def _fits(amount: Fraction, resource: str) -> bool:
    """Say whether the amount is at most what the coordinator counts, and in whole billionths."""
    counted = amount * 1000 if resource == CPU else amount
    return counted <= MOST and (amount / _UNITS["n"]).denominator == 1


def checked(amounts: Quantities, field: str) -> dict[str, Quantity]:
    """Return amounts by resource, in order, as they were written; raises Fault for a bad one."""
    if len(amounts) > MOST_RESOURCES:
        raise Fault(f"{field}: {len(amounts)} resources; allowed: at most {MOST_RESOURCES}")
    for resource, amount in amounts.items():
        exact(amount, f"{field}[{resource}]", resource)
    return {name: written(amounts[name]) for name in sorted(amounts)}


def written(amount: Quantity) -> Quantity:
    """Return an amount as the API server takes it: a whole number, else a text."""
    return str(amount) if isinstance(amount, float) else amount


def value(amounts: Quantities, resource: str) -> Fraction:
    """Return the amount of one resource, nothing where it is not named; the text is valid."""
    return exact(amounts.get(resource, 0), resource)


def spelled(amount: Fraction, like: Quantity) -> Quantity:
    """Spell whole billionths in the unit of another amount where that is exact, else finer."""
    if not amount:
        return 0
    match = _GRAMMAR.fullmatch(str(like))
    suffix = (match["suffix"] or "") if match else ""
    units = (suffix, *_FINER)
    unit = next(each for each in units if (amount / _UNITS[each]).denominator == 1)
    count = (amount / _UNITS[unit]).numerator
    return f"{count}{unit}" if unit else count


def resources_of(parts: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the resources that any of several lists names, in order."""
    return sorted({resource for each in parts for resource in each})
