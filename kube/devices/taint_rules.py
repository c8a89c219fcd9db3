"""Reads DeviceTaintRules, and lays their taints over the devices of slices.

kube-scheduler 1.37 allocates from slices that have the taints of the rules; 1.36 knows no rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kube.devices.common import taint
from kube.devices.json_fields import Fields, Problems
from kube.objects.core import DeviceObject
from scheduling.model.devices.resource_slice import Device, ResourceSlice
from scheduling.model.node import Taint


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """A rule: it taints devices of this driver, pool and name, where each is None for any.

    `unsupported` names what was not understood: the devices it selects are then not, either. It
    may be that the rule taints none of them, so their taints stay.
    """

    name: str
    taint: Taint
    selects: bool = True
    driver: str | None = None
    pool: str | None = None
    device: str | None = None
    unsupported: tuple[str, ...] = ()


def device_taint_rule(found: DeviceObject) -> DeviceTaintRule:
    """Read a rule; one without a selector selects nothing."""
    problems = Problems()
    fields = Fields(found.spec, "spec", problems)
    fields.unknown("deviceSelector", "taint")
    chosen = fields.part("deviceSelector")
    chosen.unknown("driver", "pool", "device")
    wanted = {k: chosen.text(k) if k in chosen else None for k in ("driver", "pool", "device")}
    name, tainted = found.metadata.name, taint(fields.part("taint"))
    said = tuple(f"DeviceTaintRule {name}: {each}" for each in problems.all)
    return DeviceTaintRule(
        name, tainted, selects="deviceSelector" in fields, unsupported=said, **wanted
    )


def tainted(found: ResourceSlice, rules: Sequence[DeviceTaintRule]) -> ResourceSlice:
    """Return a slice with the taints of all rules; itself where none selects a device of it."""
    own = [rule for rule in rules if _selects_slice(rule, found)]
    if not own:
        return found
    devices = tuple(_tainted(device, own) for device in found.devices)
    unchanged = all(new is old for new, old in zip(devices, found.devices, strict=True))
    return found if unchanged else replace(found, devices=devices)


def _selects_slice(rule: DeviceTaintRule, found: ResourceSlice) -> bool:
    return rule.selects and rule.driver in (None, found.driver) and rule.pool in (None, found.pool)


def _tainted(device: Device, rules: Sequence[DeviceTaintRule]) -> Device:
    own = [rule for rule in rules if rule.device in (None, device.name)]
    if not own:
        return device
    unsupported = {name for rule in own for name in rule.unsupported}
    return replace(
        device,
        taints=(*device.taints, *(rule.taint for rule in own if not rule.unsupported)),
        unsupported=tuple(sorted({*device.unsupported, *unsupported})),
    )
