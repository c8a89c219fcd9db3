"""Reads a pod's extended resources as the device requests that kube-scheduler makes of them.

Where a node gives a resource by devices, kube-scheduler claims them for each container by itself
(createRequestsAndMappings of plugin DynamicResources, Kubernetes 1.36 and 1.37): a request is named
after the container and the place of the resource among all that it asks for. An init container
that ends uses what later containers have, and of several such the largest counts.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kube.codec.fields import ByResource, InvalidObject, read_amounts
from kube.objects.core import Container, Pod, PodSpec
from scheduling.model.amounts import is_extended
from scheduling.state.bounded_cache import MIB, Interned


class ExtendedRequest(NamedTuple):
    """So many of a resource, and the name of the request by which devices of it are claimed."""

    resource: str
    name: str
    number: int


class _Asking(NamedTuple):
    """A container by its place among all, and whether it runs as long as the pod does."""

    at: int
    amounts: ByResource
    lasts: bool


KEPT: Interned[tuple[ExtendedRequest, ...]] = Interned(2 * MIB)


def extended_requests(pod: Pod) -> tuple[ExtendedRequest, ...]:
    """Return the requests for all extended resources of a pod, in the order of their names.

    There are none of a pod whose amounts cannot be read: it is not decided.
    """
    try:
        containers = _containers(pod.spec)
    except InvalidObject:
        return ()
    names = {name for each in containers for name, amount in each.amounts.items() if amount}
    found = (_of_resource(name, containers) for name in names if is_extended(name))
    return KEPT(tuple(sorted((each for of in found for each in of), key=lambda each: each.name)))


def _containers(spec: PodSpec) -> list[_Asking]:
    init = [(each, each.restart_policy == "Always") for each in spec.init_containers]
    every = [*init, *((each, True) for each in spec.containers)]
    return [_Asking(at, _amounts(each), lasts) for at, (each, lasts) in enumerate(every)]


def _amounts(container: Container) -> ByResource:
    return read_amounts(container.resources.requests, "spec.containers.resources.requests")


def _of_resource(resource: str, containers: Sequence[_Asking]) -> Iterable[ExtendedRequest]:
    lasting = [each for each in containers if each.lasts and each.amounts.get(resource)]
    short = [_more(resource, each, lasting) for each in containers if not each.lasts]
    first = max(short, key=lambda each: each.number, default=None)
    if first is not None and first.number > 0:
        yield first
    for each in lasting:
        yield ExtendedRequest(resource, _name(resource, each), each.amounts[resource])


def _more(resource: str, asking: _Asking, lasting: Iterable[_Asking]) -> ExtendedRequest:
    """Return what a container that ends asks for beyond what those after it have."""
    later = sum(each.amounts[resource] for each in lasting if each.at > asking.at)
    more = asking.amounts.get(resource, 0) - later
    return ExtendedRequest(resource, _name(resource, asking), more)


def _name(resource: str, asking: _Asking) -> str:
    place = sorted({*asking.amounts, resource}).index(resource)
    return f"container-{asking.at}-request-{place}"
