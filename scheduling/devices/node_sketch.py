"""Tells nodes apart by what of their slices matters to a pod, without gathering their pools.

Nodes with equal sketches find the same devices, so one of them is looked at. What of a device no
selector sees, such as its UUID, is no part of it.
"""

from collections.abc import Hashable, Sequence
from itertools import chain
from operator import attrgetter

from scheduling.devices.node_devices import requests_of
from scheduling.devices.pools import PoolKey, SliceIndex, Taken
from scheduling.devices.selection import Rules
from scheduling.model.devices.resource_slice import ResourceSlice
from scheduling.model.devices.selectors import Selectors
from scheduling.model.shape.restrictions import Claims

TRAITS = (
    "name",
    "taints",
    "access",
    "consumes_counters",
    "binding_conditions",
    "unsupported",
    "capacities",
    "content.allow_multiple_allocations",
)
"""All of a device that decides anything, beside what selectors see of it."""

_traits = attrgetter(*TRAITS)


def texts_of(kinds: Sequence[Claims], rules: Rules) -> tuple[str, ...] | None:
    """Return the selectors of some kinds of pods; None where constraints compare devices."""
    if any(claim.constraints for claims in kinds for claim in claims):
        return None
    asked = dict.fromkeys(chain.from_iterable(map(requests_of, kinds)))
    known = (rules.texts(each) for each in asked if each.device_class in rules.classes)
    return tuple(dict.fromkeys(chain.from_iterable(known)))


def sketch_of(
    node: str, texts: tuple[str, ...], selectors: Selectors, slices: SliceIndex, taken: Taken
) -> Hashable:
    """Return the sketch of a node for pods with these selectors; None where it is to be looked at.

    That is so where slices of other nodes count, and where a device cannot be read.
    """
    own = slices.of_node_alone(node)
    if not own:
        return None
    names: dict[str, int] = {}
    found: list[Hashable] = []
    for each in sorted(own, key=attrgetter("driver", "pool", "name")):
        seen = selectors.seen(texts, [device.content for device in each.devices])
        if None in seen:
            return None
        at = names.setdefault(each.pool, len(names))
        in_use = frozenset(given[2:] for given in taken.get(PoolKey(each.driver, each.pool), ()))
        found.append((at, _slice(each), tuple(map(_traits, each.devices)), tuple(seen), in_use))
    return tuple(found)


def _slice(each: ResourceSlice) -> Hashable:
    return (each.driver, each.generation, each.slice_count, each.shared_counters, each.unsupported)
