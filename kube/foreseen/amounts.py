"""Adds up what a pod that does not exist yet asks for and may use at most."""

from collections.abc import Callable, Iterable

from kube.codec.fields import ByResource, InvalidObject, read_amounts
from kube.objects.base import Quantities
from kube.objects.pod_templates import TemplateContainer, TemplateResources, TemplateSpec
from scheduling.model.pod_requests import ContainerRequests, pod_requests
from scheduling.model.quantity import BadQuantity

_Side = Callable[[TemplateResources], Quantities]


def requests(found: TemplateResources) -> Quantities:
    """Return what is asked for."""
    return found.requests


def limits(found: TemplateResources) -> Quantities:
    """Return the most that may be used."""
    return found.limits


def container_total(spec: TemplateSpec, side: _Side) -> ByResource:
    """Add up containers and init containers alone, as kube-scheduler adds up requests."""
    return _total(spec, side, {})


def pod_total(spec: TemplateSpec, side: _Side) -> ByResource:
    """Add up a pod without its overhead: what is said for the pod as a whole counts instead."""
    whole = read_amounts(side(spec.resources), "spec.resources") if spec.resources else {}
    return _total(spec, side, whole)


def _total(spec: TemplateSpec, side: _Side, whole: ByResource) -> ByResource:
    containers = _read(spec.containers, side, "spec.containers")
    init_containers = _read(spec.init_containers, side, "spec.initContainers")
    try:
        return pod_requests(containers, init_containers, {}, whole)
    except BadQuantity as error:
        raise InvalidObject("spec.containers", error, "a sum that fits 64 bits") from None


def _read(found: Iterable[TemplateContainer], side: _Side, field: str) -> list[ContainerRequests]:
    return [
        ContainerRequests(
            read_amounts(side(each.resources), f"{field}[{each.name}].resources"),
            restartable=each.restart_policy == "Always",
        )
        for each in found
    ]
