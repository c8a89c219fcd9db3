"""Applies `podSetInfos` to pod templates, as CodeFlare's controller does.

Whoever admits an AppWrapper writes there what the pods get beside their template. A value that the
template has otherwise is a fault: neither of the two may win silently.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from appwrapper.spec.faults import Fault, shown
from appwrapper.spec.paths import Json, Path, at, changed, written
from kube.objects.app_wrapper import PodSetInfo

_MAPS = (
    (("metadata", "annotations"), "annotations"),
    (("metadata", "labels"), "labels"),
    (("spec", "nodeSelector"), "node_selector"),
)
_LISTS = (("tolerations", "tolerations"), ("schedulingGates", "scheduling_gates"))


def with_infos(
    where: str, found: Json, paths: Iterable[Path], infos: tuple[PodSetInfo, ...]
) -> tuple[Json, list[Fault]]:
    """Return the object with what is added to each of its pod templates, in their order."""
    templates = list(paths)
    faults: list[Fault] = []
    if infos and len(infos) != len(templates):
        allowed = f"{len(templates)}, one for each pod set, or none"
        return found, [Fault(where, "podSetInfos", f"{len(infos)} entries", allowed)]
    for path, info in zip(templates, infos, strict=False):
        conflicts = list(_conflicts(where, found, path, info))
        faults += conflicts
        found = found if conflicts else changed(found, path, _merged(at(found, path), info))
    return found, faults


def _conflicts(where: str, found: Json, path: Path, info: PodSetInfo) -> Iterator[Fault]:
    for inner, name in _MAPS:
        present = at(found, (*path, *inner))
        added: Mapping[str, str] = getattr(info, name)
        for key, value in added.items():
            known = present.get(key, value) if isinstance(present, dict) else value
            if known != value:
                field = f"{written((*path, *inner))}[{key}]"
                allowed = f'"{shown(value)}", as podSetInfos has it, or none'
                yield Fault(where, field, shown(known), allowed)


def _merged(template: Json, info: PodSetInfo) -> Json:
    template = template.copy()
    for (outer, inner), name in _MAPS:
        if added := getattr(info, name):
            part = _map(template.get(outer))
            template[outer] = {**part, inner: {**_map(part.get(inner)), **added}}
    for inner, name in _LISTS:
        if added := [msgspec.to_builtins(each) for each in getattr(info, name)]:
            spec = _map(template.get("spec"))
            present = spec[inner] if isinstance(spec.get(inner), list) else []
            new = [each for each in added if each not in present]
            template["spec"] = {**spec, inner: [*present, *new]}
    return template


def _map(found: Any) -> Json:
    """Read what is no map as an empty one: the API server refuses it."""
    return found if isinstance(found, dict) else {}
