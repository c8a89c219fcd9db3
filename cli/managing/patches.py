"""Writes a change as a merge patch that applies only to the version that was read."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from cli.managing.values import part

Json = dict[str, Any]


def patch_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """Return the merge patch from one state of an object to another; empty where they are equal."""
    parts = {"metadata": _marks(old, new), "spec": _difference(old["spec"], new["spec"])}
    return {key: value for key, value in parts.items() if value}


def as_read(patch: Mapping[str, Any], old: Mapping[str, Any]) -> Json:
    """Return a patch that is refused as a conflict once the object is another than was read."""
    meta = old["metadata"]
    only = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
    return {**patch, "metadata": {**(patch.get("metadata") or {}), **only}}


def _marks(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    found = {
        key: _difference(old["metadata"].get(key) or {}, new["metadata"].get(key) or {})
        for key in ("labels", "annotations")
    }
    return {key: value for key, value in found.items() if value}


def _difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> Json:
    """Return what differs; null takes a field away, and lists are written whole."""
    found: Json = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := _difference(before, value):
                found[key] = inner
        elif value != before or key not in old:
            found[key] = value
    return found


def is_in(patch: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Say whether an object has all that a merge patch says already."""
    return all(_has(found.get(key), value) for key, value in patch.items())


def _has(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and is_in(wanted, found)
    return bool(found == wanted)


def same_as_read(read: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Say whether an object was only told its state since: neither spec nor labels changed."""
    return _told(read) == _told(now)


def _told(found: Mapping[str, Any]) -> tuple[object, ...]:
    meta = found["metadata"]
    marks = (meta.get("labels") or {}, meta.get("annotations") or {})
    return (meta.get("uid"), marks, found.get("spec"), meta.get("deletionTimestamp"))


def state_of(found: Mapping[str, Any]) -> str:
    """Return a mark that is another once a person changed an object since it was shown.

    What Ray's autoscaler writes changes it as little as a status does.
    """
    spec = part(found, "spec")
    if spec.get("enableInTreeAutoscaling"):
        groups = spec.get("workerGroupSpecs") or ()
        bare = [{**each, "replicas": None, "scaleStrategy": None} for each in groups]
        found = {**found, "spec": {**spec, "workerGroupSpecs": bare}}
    told = json.dumps(_told(found), sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:32]
