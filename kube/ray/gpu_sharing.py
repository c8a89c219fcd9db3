"""Finds annotations of pods by which other schedulers share or choose GPUs; they mean nothing here.

kube-scheduler and Muster count what pods request. A pod that names its share of a GPU by such an
annotation alone gets none, and one that requests a GPU beside it gets the whole.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kube.objects.base import ObjectMeta, Part
from kube.objects.ray import RayClusterSpec

READ_BY: Mapping[str, str] = {
    "gpu-fraction": "KAI and run:ai",
    "gpu-fraction-num-devices": "KAI and run:ai",
    "gpu-memory": "KAI and run:ai",
    "gpu-sm-cores": "KAI",
    "gpu-sm-percentage": "KAI",
    "hami.io/gpu-scheduler-policy": "HAMi",
    "hami.io/node-scheduler-policy": "HAMi",
    "nvidia.com/nouse-gputype": "HAMi and Volcano",
    "nvidia.com/nouse-gpuuuid": "HAMi",
    "nvidia.com/numa-bind": "HAMi",
    "nvidia.com/use-gputype": "HAMi and Volcano",
    "nvidia.com/use-gpuuuid": "HAMi",
    "nvidia.com/vgpu-mode": "HAMi",
    "volcano.sh/vgpu-mode": "Volcano",
}
"""Annotations that users write, and the systems whose schedulers read them."""

_ANY = re.compile(rb'"(?:' + b"|".join(re.escape(each).encode() for each in READ_BY) + rb')"')


class _Template(Part, frozen=True):
    metadata: ObjectMeta | None = None


class _Group(Part, frozen=True):
    template: _Template | None = None


def sharing_annotations(spec: RayClusterSpec) -> tuple[str, ...]:
    """Name those that the pod templates of a RayCluster have; none of what cannot be read."""
    return tuple(sorted({*_of(spec.head_group_spec, _Group), *_of_workers(spec)}))


def _of_workers(spec: RayClusterSpec) -> Iterator[str]:
    for group in spec.worker_group_specs:
        yield from _of(group.template, _Template)


def _of(raw: msgspec.Raw, kind: type[_Group | _Template]) -> Iterable[str]:
    text = bytes(raw)
    if not _ANY.search(text):
        return ()
    try:
        found = msgspec.json.decode(text, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError):
        return ()
    template = found.template if isinstance(found, _Group) else found
    meta = template.metadata if template else None
    return READ_BY.keys() & meta.annotations.keys() if meta else ()


def sharing_in_words(found: Iterable[str]) -> str:
    """Say that such annotations have no effect; empty where there are none."""
    named = ", ".join(f"{each} ({READ_BY[each]})" for each in found)
    if not named:
        return ""
    return (
        f"pod annotations of other schedulers are not read: {named}; a pod gets the devices that "
        "it requests, each whole: request them, such as nvidia.com/gpu"
    )
