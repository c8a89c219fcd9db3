"""Reports devices of no single node: shared ones, and those that several nodes reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from cli.report.room.sums import Room
from scheduling.diagnosis.device_totals.totals import (
    DeviceTotals,
    FarPool,
    SharedPool,
    device_totals,
)
from scheduling.diagnosis.holes import pool_name
from scheduling.model.node import Node


class CapacityReport(msgspec.Struct, frozen=True, rename="camel"):
    """One capacity of shared devices, in quantities of Kubernetes; `free` is neither."""

    used: str
    reserved: str
    free: str
    of: str


class SharedReport(msgspec.Struct, frozen=True, rename="camel"):
    """Devices of a class that claims share, in one pool of nodes; by name how much is left."""

    name: str
    resource: str
    nodes: int
    devices: int
    with_room: int
    capacity: Mapping[str, CapacityReport]


class FarReport(msgspec.Struct, frozen=True, rename="camel"):
    """Devices of a class in one pool of a driver that `nodes` nodes reach, each counted once."""

    name: str
    resource: str
    nodes: int
    devices: int
    used: int
    reserved: int
    free: int


def totals_of(room: Room, resources: Sequence[str], labels: Sequence[str]) -> DeviceTotals:
    """Count such devices; of some resources alone where any are named."""
    if room.claimed is None:
        return DeviceTotals()

    def pool_of(node: Node) -> str:
        return pool_name(node.labels, labels)

    found = device_totals(room.nodes.nodes, *room.claimed, pool_of)
    return DeviceTotals(
        tuple(each for each in found.shared if not resources or each.resource in resources),
        tuple(each for each in found.far if not resources or each.resource in resources),
    )


def shared_report(each: SharedPool) -> SharedReport:
    """Report on shared devices."""
    capacity = {
        of.name: CapacityReport(*map(quantity, (of.used, of.reserved, of.free, of.whole)))
        for of in each.capacity
    }
    counts = (each.nodes, each.devices, each.with_room)
    return SharedReport(each.name, each.resource, *counts, capacity)


def far_report(each: FarPool) -> FarReport:
    """Report on devices that several nodes reach."""
    counts = (each.nodes, each.devices, each.used, each.reserved, each.free)
    return FarReport(each.name, each.resource, *counts)


def quantity(thousandths: int) -> str:
    """Write thousandths as a quantity of Kubernetes."""
    whole, part = divmod(thousandths, 1000)
    if part:
        return f"{thousandths}m"
    for unit, size in (("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return str(whole)
