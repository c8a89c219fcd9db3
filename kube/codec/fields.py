"""Reads fields that pods, nodes and placements share; InvalidObject names a bad one."""

from datetime import UTC, datetime

from kube.objects import base as base_objects
from kube.objects.base import Quantities, Quantity
from scheduling.model import amounts as resources
from scheduling.model.quantity import BadQuantity, request_amount

AFTER_ALL = 253402300800.0
"""The first second of the year 10000."""

_QUANTITY_ALLOWED = "a quantity that is not negative and fits 64 bits, such as 500m, 2 or 1.5Gi"
_SHOWN = 120  # what tenants write may be long, a message should not
ByResource = dict[str, int]


class InvalidObject(ValueError):  # noqa: N818 - the noun of the design: an object that is invalid
    """A field of an object has a value that cannot be used."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        super().__init__(f'{field}: "{shortened(str(value))}" is not valid; allowed: {allowed}')


def created_at(metadata: base_objects.ObjectMeta) -> float:
    """Give the creation time in seconds since the epoch; 0 where there is none yet.

    An object whose time cannot be read sorts after all others.
    """
    return moment_of(metadata.creation_timestamp)


def moment_of(stamp: str | None) -> float:
    """Give an RFC 3339 time in seconds since the epoch; 0 where it is absent."""
    if not stamp:
        return 0.0
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return AFTER_ALL


def stamp_of(moment: float) -> str:
    """Return a moment, in seconds since the epoch, as RFC 3339 without what is below a second."""
    return datetime.fromtimestamp(int(moment), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_amounts(quantities: Quantities, field: str) -> ByResource:
    """Read quantities into whole numbers; a bad one is named with its field."""
    return {name: _amount(name, text, field) for name, text in quantities.items()}


def _amount(name: str, text: Quantity, field: str) -> int:
    try:
        return request_amount(name, str(text))
    except BadQuantity:
        raise InvalidObject(f"{field}[{name}]", text, _QUANTITY_ALLOWED) from None


def quantity(resource: str, amount: int) -> str:
    """Spell an amount of the core as a quantity: CPU counts in milli there."""
    return f"{amount}m" if resource == resources.CPU else str(amount)


def shortened(text: str) -> str:
    """Cut text from an object to what a message can show."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
