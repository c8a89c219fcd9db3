"""Sums the requests and limits of a pod that does not exist yet."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from kube.codec.fields import ByResource, InvalidObject, read_amounts
from kube.objects.base import Quantities
from kube.objects.pod_templates import TemplateContainer, TemplateResources, TemplateSpec
from scheduling.model.quantity import BadQuantity
from scheduling.model.shape.pod_requests import ContainerRequests, pod_requests


class Side(StrEnum):
    """What is asked for, or the most that may be used."""

    REQUESTS = "requests"
    LIMITS = "limits"

    def of(self, found: TemplateResources) -> Quantities:
        """Return one of the two."""
        return found.requests if self is Side.REQUESTS else found.limits


def container_total(spec: TemplateSpec, side: Side) -> ByResource:
    """Add up containers and init containers alone, as kube-scheduler adds up requests."""
    return _total(spec, side, {})


def pod_total(spec: TemplateSpec, side: Side) -> ByResource:
    """Add up a pod without its overhead: what is said for the pod as a whole counts instead."""
    whole = (
        read_amounts(side.of(spec.resources), f"spec.resources.{side}") if spec.resources else {}
    )
    return _total(spec, side, whole)


def _total(spec: TemplateSpec, side: Side, whole: ByResource) -> ByResource:
    containers = _read(spec.containers, side, "spec.containers")
    init_containers = _read(spec.init_containers, side, "spec.initContainers")
    try:
        return pod_requests(containers, init_containers, {}, whole)
    except BadQuantity as error:
        raise InvalidObject("spec.containers", error, "a sum that fits 64 bits") from None


def _read(found: Iterable[TemplateContainer], side: Side, field: str) -> list[ContainerRequests]:
    return [
        ContainerRequests(
            container_amounts(each, side, field),
            restartable=each.restart_policy == "Always",
        )
        for each in found
    ]


def container_amounts(found: TemplateContainer, side: Side, field: str) -> ByResource:
    """Read what one container says; `field` is the list that it stands in."""
    return read_amounts(side.of(found.resources), f"{field}[{found.name}].resources.{side}")


def all_containers(spec: TemplateSpec) -> Iterator[tuple[TemplateContainer, str]]:
    """List containers and init containers, each with the list that it stands in."""
    yield from ((each, "spec.containers") for each in spec.containers)
    yield from ((each, "spec.initContainers") for each in spec.init_containers)
