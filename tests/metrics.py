"""Lists the metrics of a program, and those without a test that sees them move."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

OURS = "muster_"


@dataclass(frozen=True, slots=True)
class Family:
    """A metric, as a scraper sees it."""

    name: str
    kind: str
    labels: tuple[str, ...]


def families(registry: CollectorRegistry) -> dict[str, Family]:
    """The metrics of ours in a registry, by name; counters end in _total, as they are exposed."""
    collectors: Any = registry._collector_to_names
    ours = [each for each in collectors if getattr(each, "_name", "").startswith(OURS)]
    found = [Family(_exposed(each), each._type, tuple(each._labelnames)) for each in ours]
    return {each.name: each for each in found}


def samples(each: Family) -> tuple[str, ...]:
    """The names that queries have for a metric."""
    parts = ("_bucket", "_sum", "_count") if each.kind == "histogram" else ("",)
    return tuple(each.name + part for part in parts)


def _exposed(collector: Any) -> str:
    name: str = collector._name
    return f"{name}_total" if collector._type == "counter" else name


def untested(registry: CollectorRegistry, tests: Mapping[str, object]) -> list[str]:
    """The metrics without a function `test_NAME_moves` among these."""
    return [name for name in families(registry) if not callable(tests.get(f"test_{name}_moves"))]


def total(registry: CollectorRegistry, name: str, **labels: str) -> float:
    """The value of a metric, its samples with these labels added up; 0 where it has none.

    Of a histogram the number of what was observed.
    """
    samples = [each for family in registry.collect() for each in family.samples]
    wanted = (name, f"{name}_count")
    return sum(
        each.value
        for each in samples
        if each.name in wanted and labels.items() <= each.labels.items()
    )
