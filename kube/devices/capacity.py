"""Reads capacities of devices and what requests ask of them, in thousandths."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from kube.devices.cel.faults import CelError, NotReadable
from kube.devices.cel.values import quantity
from kube.devices.json_fields import Fields, Problems
from scheduling.model.devices.capacity import (
    LARGEST,
    Capacities,
    Capacity,
    RequestPolicy,
    Thousandths,
)

NOT_COUNTED: Final = "is not counted in thousandths up to 2^62"
WHOLE: Final = 1000


@lru_cache(maxsize=4096)
def thousandths(text: str) -> int | None:
    """Read a quantity; None where it is none, is negative, too large, or has finer parts."""
    try:
        amount = quantity(text).amount * WHOLE
    except (CelError, NotReadable):
        return None
    return amount.numerator if amount.denominator == 1 and 0 <= amount <= LARGEST else None


def amounts(read: Mapping[str, Any]) -> Thousandths | None:
    """Read amounts by name; None where one of them is not counted."""
    found = [(name, _amount(read[name])) for name in sorted(read)]
    known = tuple((name, amount) for name, amount in found if amount is not None)
    return known if len(known) == len(found) else None


def asked_capacity(fields: Fields) -> Thousandths | None:
    """Read `capacity` of a request; None where it is absent."""
    if "capacity" not in fields:
        return None
    part = fields.part("capacity")
    part.unknown("requests")
    found = amounts(dict(part.named("requests")))
    if found is None:
        part.problems.note(f"{part.path} {NOT_COUNTED}")
    return found or ()


@lru_cache(maxsize=4096)
def plain_capacities(texts: tuple[tuple[str, str], ...]) -> Capacities | None:
    """Return the capacities of a device that is not shared, from its texts by name."""
    found = amounts(dict(texts))
    return None if found is None else tuple(Capacity(name, amount) for name, amount in found)


def shared_capacities(fields: Fields) -> Capacities | None:
    """Read the capacities of a device that may be shared, with their policies.

    None where one is not read: it is not known then which requests the device suits.
    """
    own = Fields(fields.whole, fields.path, Problems())
    found = tuple(_capacities(own))
    for each in own.problems.all:
        fields.problems.note(each)
    return None if own.problems else found


def _capacities(fields: Fields) -> Iterator[Capacity]:
    for name, value in fields.named("capacity"):
        part = Fields(value, f"capacity[{name}]", fields.problems)
        if "value" not in part:
            part.problems.note(f"{part.path} has no value")
        amount = _noted(part, "value")
        policy = _policy(part.part("requestPolicy")) if "requestPolicy" in part else None
        yield Capacity(name, amount or 0, policy)


def _policy(fields: Fields) -> RequestPolicy:
    fields.unknown("default", "validValues", "validRange")
    span = fields.part("validRange")
    span.unknown("min", "max", "step")
    found = RequestPolicy(
        _noted(fields, "default"),
        tuple(amount or 0 for amount in map(_amount, fields.plain("validValues") or ())),
        *(_noted(span, each) for each in ("min", "max", "step")),
    )
    _check(found, fields)
    return found


def _check(policy: RequestPolicy, fields: Fields) -> None:
    """Note what kube-scheduler takes otherwise, or otherwise in one of its versions."""
    if None in map(_amount, fields.plain("validValues") or ()):
        fields.problems.note(f"{fields.path}.validValues {NOT_COUNTED}")
    if "validRange" in fields and policy.least is None:
        fields.problems.note(f"{fields.path}.validRange has no min")
    if policy.step is not None and (policy.step % WHOLE or (policy.least or 0) % WHOLE):
        fields.problems.note(f"{fields.path}.validRange has steps that are no whole numbers")
    if policy.step == 0 or list(policy.values) != sorted(policy.values):
        fields.problems.note(f"{fields.path} is not valid")


def _noted(fields: Fields, key: str) -> int | None:
    found = _amount(fields.plain(key)) if key in fields else None
    if key in fields and found is None:
        fields.problems.note(f"{fields.path}.{key} {NOT_COUNTED}")
    return found


def _amount(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return thousandths(str(value))
