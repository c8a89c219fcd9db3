"""Reads the AppWrappers to judge, of both generations, as a coordinator would."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from appwrapper.gang.stand_in import StandIn, notices
from appwrapper.gang.watched import AppWrapperReading, as_gang
from appwrapper.spec.items import read
from appwrapper.spec.paths import at
from appwrapper.spec.wrapped import Item, Wrapped
from cli.fitting.manifests import Manifest, pod_of
from cli.imports.outcome import Source
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper

GROUPS = (names.CODEFLARE_GROUP, names.MCAD_GROUP)

_FROM_TEMPLATES: Final = (
    "Pod",
    "Job",
    "JobSet",
    "Deployment",
    "RayCluster",
    "RayJob",
    "RayService",
)
"""Kinds whose pods are admitted as their templates are; those of a StatefulSet get volumes."""


def is_app_wrapper(source: Source) -> bool:
    """Say whether an object is an AppWrapper."""
    return source.kind == "AppWrapper" and source.group in GROUPS


def gang_of(wrapper: AppWrapper) -> StandIn:
    """Return the stand-in of an AppWrapper as if its creator were known, and it were to start.

    What is wrong in it, and what cannot be foreseen of its pods, is in there.
    """
    meta = wrapper.metadata
    reviewed = replace(meta, annotations={**meta.annotations, names.CREATED_BY: "{}"})
    found = as_gang(AppWrapperReading()(replace(wrapper, metadata=reviewed)))
    return replace(found, stopped_by_user=False)


def notes_of(wrapper: AppWrapper) -> tuple[str, ...]:
    """Say where it is judged otherwise than it stands, and what its user should know of it."""
    wrapped = read(wrapper)
    return (*_suspended(wrapped), *notices(wrapper, wrapped))


def items_of(wrapper: AppWrapper) -> tuple[Item, ...]:
    """Return what it wraps, of which nothing is created while anything in it cannot be read."""
    return read(wrapper).items


def pods_of_items(items: Sequence[Item], namespace: str) -> dict[str, Manifest]:
    """Return a pod by pod set, but for those that are admitted with what is wrapped beside them."""
    accounts = {each.name for each in items if each.kind == "ServiceAccount"}
    return {
        pod_set: pod_of(template, f"{item.name}-", namespace)
        for item in items
        if item.kind in _FROM_TEMPLATES
        for pod_set, template in _templates(item)
        if at(template, ("spec", "serviceAccountName")) not in accounts
    }


def _templates(item: Item) -> Iterator[tuple[str, Manifest]]:
    for each in item.pod_sets:
        found = None if each.path is None else at(item.found, each.path)
        if isinstance(found, Mapping):
            yield each.name, found


def _suspended(wrapped: Wrapped) -> Iterator[str]:
    if wrapped.spec.suspend:
        yield "spec.suspend is true: judged as if it were resumed"
