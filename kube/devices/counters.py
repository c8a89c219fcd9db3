"""Reads counters of ResourceSlices: what a pool shares, and what a device consumes of it."""

from collections.abc import Iterator

from kube.devices.cel.faults import CelError, NotReadable
from kube.devices.cel.values import quantity
from kube.devices.json_fields import Fields
from scheduling.model.devices.resource_slice import CounterSet


def shared_counters(fields: Fields) -> tuple[CounterSet, ...]:
    """Read `sharedCounters` of a slice."""
    return tuple(_counter_set(each, "name") for each in fields.parts("sharedCounters"))


def consumed_counters(fields: Fields) -> tuple[CounterSet, ...]:
    """Read `consumesCounters` of a device."""
    return tuple(_counter_set(each, "counterSet") for each in fields.parts("consumesCounters"))


def _counter_set(fields: Fields, name: str) -> CounterSet:
    fields.unknown(name, "counters", "compatibilityGroups")
    return CounterSet(fields.text(name), tuple(_counters(fields)))


def _counters(fields: Fields) -> Iterator[tuple[str, int]]:
    """Yield the counters by name; Kubernetes 1.36 miscounts those beyond 64 bits."""
    for name, value in fields.named("counters"):
        counter = Fields(value, f"{fields.path}.counters[{name}]", fields.problems)
        counter.unknown("value")
        amount = _amount(counter.plain("value"))
        if amount is None:
            fields.problems.note(f"{counter.path} is no whole number of 64 bits")
        yield name, amount or 0


def _amount(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    try:
        return quantity(str(value)).integer
    except (CelError, NotReadable):
        return None
