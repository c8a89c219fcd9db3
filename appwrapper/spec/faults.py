"""Describes faults of an AppWrapper: the item, the field, its value, and what is allowed."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

MOST_BYTES = 1024 * 1024
"""Of the spec as JSON; etcd takes 1.5 MiB with metadata and status."""

MOST_ITEMS = 1000
MOST_POD_SETS = 1000
MOST_PODS = 20_000  # of an AppWrapper, as of any gang that is held
MOST_DEPTH = 200  # lists and maps in one another
MOST_PARTS = 20_000  # lists and maps in all: to read as many takes some 0.15 s

FAULTS_KEPT = 50
FAULTS_SHOWN = 5
NOTICES_KEPT = 10
_SHOWN = 120  # what tenants write may be long, a message should not


@dataclass(frozen=True, slots=True)
class Fault:
    """A value that cannot be used; `item` is where the item stands, empty for the AppWrapper."""

    item: str
    field: str
    value: str
    allowed: str

    @property
    def message(self) -> str:
        """Say what is wrong in the form that all messages about bad values have."""
        said = f'{self.field}: "{shown(self.value)}" is not valid; allowed: {self.allowed}'
        return f"{self.item}: {said}" if self.item else said


def message_of(faults: Iterable[Fault]) -> str:
    """Join the first few faults, and count the rest."""
    found = list(faults)
    said = "; ".join(each.message for each in found[:FAULTS_SHOWN])
    more = len(found) - FAULTS_SHOWN
    return f"{said}; and {more} more" if more > 0 else said


def shown(value: object) -> str:
    """Write a value of any type, cut to what a message can show."""
    text = value if isinstance(value, str) else _as_json(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _as_json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__
