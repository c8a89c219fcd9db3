"""Sketches the parts of a node's ResourceSlices that matter to pods, to recognise equal nodes.

Nodes with equal sketches find the same devices, so one of them is looked at. A sketch is an
outline, and what is in use. It leaves out properties of devices that no selector sees, such as the
UUID.
"""

from collections.abc import Hashable, Sequence
from itertools import chain
from operator import attrgetter

from scheduling.devices.pools import PoolKey, SliceIndex, Taken
from scheduling.devices.selection import Rules
from scheduling.model.devices.asked import requests_of
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


def outline_of(
    node: str, texts: tuple[str, ...], selectors: Selectors, slices: SliceIndex
) -> Hashable:
    """Return what matters of a node's slices to pods with these selectors, whatever is in use.

    None where the node is to be looked at: where slices of other nodes count, and where a device
    cannot be read.
    """
    names: dict[str, int] = {}
    found: list[Hashable] = []
    for each in _own(node, slices):
        seen = selectors.seen(texts, [device.content for device in each.devices])
        if None in seen:
            return None
        at = names.setdefault(each.pool, len(names))
        found.append((at, _slice(each), tuple(map(_traits, each.devices)), tuple(seen)))
    return tuple(found) or None


def in_use_on(node: str, slices: SliceIndex, taken: Taken) -> Hashable:
    """Return what is in use of each slice of a node, equal where it is on nodes of one outline."""
    keys = (PoolKey(each.driver, each.pool) for each in _own(node, slices))
    return tuple([frozenset(given[2:] for given in taken.get(key, ())) for key in keys])


def _own(node: str, slices: SliceIndex) -> Sequence[ResourceSlice]:
    return sorted(slices.of_node_alone(node), key=attrgetter("driver", "pool", "name"))


def _slice(each: ResourceSlice) -> Hashable:
    return (each.driver, each.generation, each.slice_count, each.shared_counters, each.unsupported)
