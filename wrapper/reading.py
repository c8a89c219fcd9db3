"""Reduces what is watched to what the state machine needs."""

import msgspec

from kube.objects import names
from kube.objects.app_wrapper import AppWrapper
from kube.objects.base import ObjectMeta, Part, Slim
from kube.objects.ray import ABSENT
from kube.ray.known_keys import WRITTEN
from kube.ray.wrapped_by import wrapped_by, wrapper_of_gang
from kube.wrapped.faults import message_of
from kube.wrapped.items import Generation, Wrapped, read
from kube.wrapped.remembered import Remembered
from kube.wrapped.retries import PREFIX as RETRIES
from kube.wrapped.retries import patience
from kube.wrapped.stand_in import notices
from wrapper.contents import Contents, Reference
from wrapper.messages import GangSignal, WrappedPod, Wrapper, WrapperKey

OURS = (None, "", names.MANAGED_BY)


class Reading:
    """Reduces the AppWrappers of one version of their API, and reads each spec once."""

    def __init__(self, api_version: str) -> None:
        self._api_version = api_version
        self._specs: Remembered[Contents | None] = Remembered()

    def __call__(self, found: AppWrapper) -> Wrapper | None:
        """Reduce one; None where it is another controller's, or was not reviewed by ours."""
        meta = found.metadata
        if names.CREATED_BY not in meta.annotations:
            return None
        contents = self._specs.of(meta.uid, _spec_of(found), lambda: _contents_of(found))
        if contents is None:
            return None
        return Wrapper(meta, self._api_version, found.status, contents)


def wrapper_of(found: AppWrapper, api_version: str) -> Wrapper | None:
    """Reduce one AppWrapper that was not seen before."""
    return Reading(api_version)(found)


def _spec_of(found: AppWrapper) -> tuple[object, ...]:
    """Return all that decides what is read of a spec; whoever may edit makes other events at will.

    A finalizer, a label or an annotation of others leaves it as it is.
    """
    meta = found.metadata
    retries = {key: said for key, said in meta.annotations.items() if key.startswith(RETRIES)}
    forbidden = WRITTEN & {*meta.labels, *meta.annotations}
    return meta.generation, meta.namespace, meta.name, found.api_version, retries, forbidden


def _contents_of(found: AppWrapper) -> Contents | None:
    wrapped = read(found)
    return None if wrapped.spec.managed_by not in OURS else contents_of(found, wrapped)


def contents_of(found: AppWrapper, wrapped: Wrapped) -> Contents:
    """Keep the items by name, and the terms."""
    terms, _unread = patience(
        found.metadata.annotations
    )  # what cannot be read stays at its default
    return Contents(
        items=tuple(Reference(each.api_version, each.kind, each.name) for each in wrapped.items),
        fault=message_of(wrapped.faults),
        notices=notices(found, wrapped),
        suspended=wrapped.spec.suspend is True,
        is_mcad=wrapped.generation is Generation.MCAD,
        pods=sum(each.count for item in wrapped.items for each in item.pod_sets),
        priority=wrapped.spec.priority or 0,
        scheduling=wrapped.scheduling,
        patience=terms,
    )


# --- Gangs and pods -----------------------------------------------------------------------------


class _Held(Slim, frozen=True):
    phase: str = ""
    generation: int = 0


class _GangSpec(Slim, frozen=True):
    ray_cluster_uid: str = ""


class _GangStatus(Slim, frozen=True):
    reason: str = ""
    message: str = ""
    held: _Held | None = None
    placement: msgspec.Raw = ABSENT


class WrappedGang(Slim, frozen=True):
    """A Gang, as far as it is read here."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _GangSpec = _GangSpec()
    status: _GangStatus = _GangStatus()


def signal_of(gang: WrappedGang) -> GangSignal | None:
    """Reduce a Gang; None where it is not an AppWrapper's."""
    meta, status = gang.metadata, gang.status
    wrapper, held = wrapper_of_gang(meta.name), status.held or _Held()
    if wrapper is None:
        return None
    return GangSignal(
        metadata=meta,
        of=gang.spec.ray_cluster_uid,
        wrapper=WrapperKey(wrapper.group, meta.namespace, wrapper.name),
        placed=bytes(status.placement) not in (b"", b"null"),
        held=held.phase,
        generation=held.generation,
        reason=status.reason,
        message=status.message,
    )


class _PodStatus(Part, frozen=True):
    phase: str = ""


class CountedPod(Slim, frozen=True):
    """A pod, as far as it is counted."""

    metadata: ObjectMeta = ObjectMeta()
    status: _PodStatus = _PodStatus()


def pod_of(pod: CountedPod) -> WrappedPod | None:
    """Reduce a pod of an AppWrapper, without labels and annotations; None where it is of none."""
    meta = pod.metadata
    named = wrapped_by(meta.labels)
    if named is None:
        return None
    kept = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        deletion_timestamp=meta.deletion_timestamp,
    )
    wrapper = WrapperKey(named.group, meta.namespace, named.name)
    phase, pod_set = pod.status.phase, meta.labels.get(names.POD_SET, "")
    completed = phase == "Succeeded" and not meta.deletion_timestamp
    return WrappedPod(kept, wrapper, named.uid, phase, pod_set, completed)
