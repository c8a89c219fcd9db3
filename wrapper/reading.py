"""Reduces watched objects to what the state machine needs."""

from collections.abc import Iterator

import msgspec

from appwrapper.gang.stand_in import notices
from appwrapper.remembered import Remembered
from appwrapper.spec.faults import message_of
from appwrapper.spec.items import read
from appwrapper.spec.retries import PREFIX as RETRIES
from appwrapper.spec.retries import patience
from appwrapper.spec.wrapped import Generation, Wrapped
from appwrapper.status.told import Totals
from kube.codec.fields import ByResource, InvalidObject, read_amounts
from kube.gang.sent import is_noted
from kube.objects import names
from kube.objects.app_wrapper import AppWrapper, PodCondition
from kube.objects.base import ObjectMeta, OrNull, Part, Quantities, Slim
from kube.objects.core import ResourceRequirements
from kube.objects.ray import ABSENT
from kube.ray.known_keys import WRITTEN
from kube.ray.wrapped_by import wrapped_by, wrapper_of_gang
from scheduling.state.bounded_cache import Interned
from wrapper.contents import Contents, Reference
from wrapper.messages import GangSignal, WrappedPod, Wrapper, WrapperKey

_TOTALED = ("cpu", "memory", "nvidia.com/gpu")
TOTALS: Interned[Totals] = Interned(1 << 20)
"""Pods of one template ask for the same."""

OURS = (None, "", names.MANAGED_BY)


class Reading:
    """Reduces the AppWrappers of one version of their API, and reads each spec once."""

    def __init__(self, api_version: str) -> None:
        self._api_version = api_version
        self._specs: Remembered[Contents | None] = Remembered()

    def __call__(self, found: AppWrapper) -> Wrapper | None:
        """Reduce one; None where others have it, or it was not reviewed by ours."""
        meta = found.metadata
        if names.CREATED_BY not in meta.annotations or is_noted(meta.annotations):
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
    # What cannot be read stays at its default.
    terms, _unread = patience(found.metadata.annotations)  # the unread are among the notices
    return Contents(
        items=tuple(Reference(each.api_version, each.kind, each.name) for each in wrapped.items),
        fault=message_of(wrapped.faults),
        notices=notices(found, wrapped),
        suspended=wrapped.spec.suspend is True,
        is_mcad=wrapped.generation is Generation.MCAD,
        pods=sum(each.count for item in wrapped.items for each in item.pod_sets),
        needed=sum(each.minimum for item in wrapped.items for each in item.pod_sets),
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


class _Terminated(Part, frozen=True):
    exit_code: int = 0


class _State(Part, frozen=True):
    terminated: _Terminated | None = None


class _ContainerStatus(Part, frozen=True):
    state: _State = _State()


class _PodStatus(Part, frozen=True):
    phase: str = ""
    conditions: OrNull[tuple[PodCondition, ...]] = ()
    container_statuses: OrNull[tuple[_ContainerStatus, ...]] = ()


class _Container(Part, frozen=True):
    resources: ResourceRequirements = ResourceRequirements()


class _PodSpec(Part, frozen=True):
    containers: OrNull[tuple[_Container, ...]] = ()


class CountedPod(Slim, frozen=True):
    """A pod, as far as it is counted."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _PodSpec = _PodSpec()
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
    return WrappedPod(
        kept,
        wrapper,
        named.uid,
        phase,
        pod_set,
        completed,
        tuple(_exits(pod.status)),
        _totals(pod.spec),
        tuple(_unschedulable(pod.status)),
    )


def _totals(spec: _PodSpec) -> Totals:
    """Add up what the containers request, as MCAD does: no init containers, no overhead."""
    asked = [_amounts(each.resources.requests) for each in spec.containers]
    cpu, memory, gpu = (sum(each.get(name, 0) for each in asked) for name in _TOTALED)
    return TOTALS(Totals(cpu, memory, gpu))


def _amounts(requests: Quantities) -> ByResource:
    """Read what is totaled; nothing of a container of which an amount cannot be read."""
    totaled = {name: requests[name] for name in _TOTALED if name in requests}
    try:
        return read_amounts(totaled, "requests")
    except InvalidObject:
        return {}


def _unschedulable(status: _PodStatus) -> Iterator[PodCondition]:
    """List what kube-scheduler says of a pod that it cannot place; gated ones it leaves out."""
    for each in status.conditions if status.phase == "Pending" else ():
        if (each.type, each.status, each.reason) == ("PodScheduled", "False", "Unschedulable"):
            yield each


def _exits(status: _PodStatus) -> Iterator[int]:
    """List the exit codes of a failed pod, but 0."""
    for each in status.container_statuses if status.phase == "Failed" else ():
        ended = each.state.terminated
        if ended is not None and ended.exit_code:
            yield ended.exit_code
