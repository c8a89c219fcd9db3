"""Scales worker groups: replicas, or the bounds of Ray's autoscaler where that decides."""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from cli.endings import Unusable
from cli.managing.cluster import autoscales, check_numbers, widen
from cli.managing.forms import GroupForm, Target

Json = dict[str, Any]


def scaled(cluster: Mapping[str, Any], targets: Iterable[Target]) -> Json:
    """Return a RayCluster with so many replicas; raises Unusable for groups that are not there."""
    found: Json = copy.deepcopy(dict(cluster))
    groups = {each["groupName"]: each for each in found["spec"].get("workerGroupSpecs") or ()}
    autoscaler = autoscales(found["spec"])
    for each in targets:
        if each.group not in groups:
            there = ", ".join(groups) or "none"
            raise Unusable(f"{each.group}: no worker group; there are: {there}")
        _set(groups[each.group], each, autoscaler=autoscaler)
    return found


def _set(group: Json, target: Target, *, autoscaler: bool) -> None:
    if autoscaler:
        # The autoscaler sets replicas within these; KubeRay keeps to them meanwhile.
        group |= {"minReplicas": target.least, "maxReplicas": target.most}
        return
    if target.least != target.most:
        raise Unusable(
            f"{target.group}: {target.least}..{target.most}; allowed: one number, for Ray's "
            "autoscaler is off"
        )
    group["replicas"] = target.most
    widen(group, GroupForm())
    check_numbers(group)


def pods_that_go(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    """Count the worker pods that KubeRay deletes: any of a group, where no autoscaler decides."""
    if autoscales(dict(after["spec"])):
        return 0
    old = _pods(before)
    return sum(max(old.get(name, 0) - count, 0) for name, count in _pods(after).items())


def _pods(cluster: Mapping[str, Any]) -> dict[str, int]:
    groups = cluster["spec"].get("workerGroupSpecs") or ()
    return {
        each["groupName"]: (each.get("replicas") or 0) * (each.get("numOfHosts") or 1)
        for each in groups
    }
