"""Reads devices by claim for reports, where the cluster has DeviceClasses and the caller may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from cli.endings import CannotRead, NotAllowed, NotServed
from cli.read.coordinator_settings import read_settings
from cli.read.reader import Reader
from cli.report.snapshot import DEVICES, NODES, PODS, Snapshot, Unread
from kube.api import resources
from kube.devices.device_facts import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    DEVICE_WATCHES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    DeviceFact,
    DeviceWatch,
)
from kube.devices.device_index import DeviceIndex
from kube.objects.core import DeviceObject, Pod

_OF_CLASSES = (RESOURCE_SLICES, RESOURCE_CLAIMS, DEVICE_TAINT_RULES)
_WATCHES = {each.resource: each for each in DEVICE_WATCHES}

NOT_BOUND = "spec.nodeName=,status.phase!=Succeeded,status.phase!=Failed"
"""Pods that may still be on their way to a node."""


async def with_devices(reader: Reader, found: Snapshot) -> Snapshot:
    """Return the snapshot with devices, if there is a class of some and nodes and pods are known.

    Where one kind may not be read, that is noted, and no devices are counted.
    """
    if found.lacks(NODES) or found.lacks(PODS):
        return found
    try:
        classes = await device_facts(reader, _WATCHES[DEVICE_CLASSES])
        if not classes:
            return found
        others = (device_facts(reader, _WATCHES[each]) for each in _OF_CLASSES)
        facts = [*classes, *(each for of in await asyncio.gather(*others) for each in of)]
        index = await _index(reader, facts)
    except NotAllowed as refusal:
        said = f"{refusal}; devices of DeviceClasses are not counted"
        return found.with_unread(Unread(DEVICES, said))
    return replace(found, devices=index, unbound=await _unbound(reader, found, index))


async def device_facts(reader: Reader, watch: DeviceWatch) -> Sequence[DeviceFact]:
    """Read all facts of a kind; none where it is not served. Raises CannotRead."""
    try:
        return [watch.read(each) for each in await reader.list(watch.resource, DeviceObject)]
    except NotServed:
        return ()


async def _index(reader: Reader, facts: Sequence[DeviceFact]) -> DeviceIndex:
    """Index facts as the coordinator does: by the version, and without gates that are off."""
    settings, _ = await read_settings(reader)
    index = DeviceIndex(settings.feature_gates_off)
    index.follow(await _version(reader))
    for each in facts:
        index.put(each)
    return index


async def _version(reader: Reader) -> str:
    """Return the version of Kubernetes; NotAllowed where it is not told: the rest may be shown."""
    try:
        return await reader.version()
    except CannotRead as fault:
        raise NotAllowed(str(fault)) from fault


async def _unbound(reader: Reader, found: Snapshot, index: DeviceIndex) -> tuple[Pod, ...]:
    """Read the pods that are to be given devices, if a placement may promise some."""
    placed = any(each.status.placement is not None for each in found.gangs)
    named = any(each.extended_resource_name for each in index.classes.values())
    unallocated = any(each.allocation is None for each in index.claims.values())
    if not placed or not (named or unallocated):
        return ()
    return await reader.list(resources.PODS, Pod, field_selector=NOT_BOUND)
