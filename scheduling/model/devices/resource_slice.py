"""ResourceSlices: the devices that drivers publish, in pools, and who reaches them."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from scheduling.model.constraints import NodeTerm
from scheduling.model.devices.capacity import Capacities
from scheduling.model.node import Taint


class AttributeKind(StrEnum):
    """The type of an attribute's value; kube-scheduler compares values of one type alone."""

    STRING = "string"
    INTEGER = "int"
    BOOLEAN = "bool"
    VERSION = "version"


class Attribute(NamedTuple):
    """The value of an attribute; true and false are 1 and 0."""

    kind: AttributeKind
    value: str | int


class DeviceID(NamedTuple):
    """What names a device in the whole cluster; sorted as kube-scheduler sorts pools."""

    driver: str
    pool: str
    device: str


@dataclass(frozen=True)
class DeviceContent:
    """All of a device that a selector can see. Devices may share one such object; it is a key.

    `attributes` and `capacity` are sorted by name, names as written (with or without a domain).
    Of a capacity the value is kept as written, for quantities are compared by the selectors alone.
    `unread` names attributes that are there, and whose values are not known.
    """

    driver: str
    attributes: tuple[tuple[str, Attribute], ...] = ()
    capacity: tuple[tuple[str, str], ...] = ()
    allow_multiple_allocations: bool = False
    unread: tuple[str, ...] = ()

    def is_unread(self, name: str) -> bool:
        """Say whether the value of an attribute, by its fully qualified name, may be unread."""
        if not self.unread:
            return False
        domain, _, short = name.partition("/")
        return name in self.unread or (domain == self.driver and short in self.unread)

    def attribute(self, name: str) -> Attribute | None:
        """Return an attribute by its fully qualified name, also where the driver left it out."""
        domain, _, short = name.partition("/")
        own = short if domain == self.driver else name
        found = None
        for key, value in self.attributes:  # few: as fast as to look them up, and nothing is kept
            if key == name:
                return value
            if key == own:
                found = value
        return found

    def __hash__(self) -> int:
        """Hash once per object: a selector is looked up for every device."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        rest = self.capacity, self.allow_multiple_allocations, self.unread
        return hash((self.driver, self.attributes, *rest))


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """Which nodes reach a slice, or a device of one: a named node, all nodes, or a selector.

    kube-scheduler asks in this order. None of the three: no node does.
    """

    node_name: str = ""
    all_nodes: bool = False
    node_selector: tuple[NodeTerm, ...] | None = None


class CounterSet(NamedTuple):
    """Counters of one set by name, sorted: what there is of each, or what a device takes of it."""

    name: str
    counters: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a slice.

    `taints` are its own and those that DeviceTaintRules add. `access` counts where the slice says
    PerDeviceNodeSelection. `unsupported` names what of the device is not modelled, sorted; such a
    device may be passed over, never allocated. `capacities` is None where they cannot be counted.
    """

    name: str
    content: DeviceContent
    taints: tuple[Taint, ...] = ()
    access: NodeAccess = NodeAccess()
    consumes_counters: tuple[CounterSet, ...] = ()
    binding_conditions: bool = False
    unsupported: tuple[str, ...] = ()
    capacities: Capacities | None = ()


@dataclass(frozen=True, slots=True)
class ResourceSlice:
    """A ResourceSlice: a part of one generation of a pool, which has `slice_count` slices.

    `access` is None where each device says by itself which nodes reach it. `shared_counters` are
    those that devices of the pool consume. `devices` are in the order written. `unsupported` names
    what is not modelled and decides whether the pool is whole.
    """

    name: str
    driver: str
    pool: str
    devices: tuple[Device, ...]
    generation: int = 1
    slice_count: int = 1
    access: NodeAccess | None = NodeAccess()
    shared_counters: tuple[CounterSet, ...] = ()
    unsupported: tuple[str, ...] = ()
