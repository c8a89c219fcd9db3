"""Reads what a pod requests, and what it uses on its node once it is there."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from kube.codec.fields import ByResource, InvalidObject, read_amounts
from kube.codec.profiles.scheduler_profiles import NODE_PORTS
from kube.objects.core import Container, ContainerStatus, Pod, PodSpec
from scheduling.model import amounts as resources
from scheduling.model.quantity import BadQuantity
from scheduling.model.shape.host_ports import HostPort, port_amounts
from scheduling.model.shape.pod_requests import ContainerRequests, pod_requests

MOST_PORTS = 50  # host ports of a pod; each costs a look at the nodes where it is taken
_Choice = Callable[[ByResource, ByResource, ByResource], ByResource]


def pod_used(pod: Pod) -> ByResource:
    """Count what an existing pod takes on its node, its slot included.

    While a resize is under way that is the most of what it asks for, was given, and runs with.
    """
    choose = _larger_of_given if _resize_is_infeasible(pod) else _larger_of_all
    spec, status = pod.spec, pod.status
    main = _in_use(spec.containers, status.container_statuses, "containers", choose)
    init = _in_use(spec.init_containers, status.init_container_statuses, "initContainers", choose)
    total = pod_total(spec, main, init, _pod_level_in_use(pod, choose))
    return {**total, **port_amounts(_host_ports(spec)), resources.PODS: 1}


def pod_total(
    spec: PodSpec,
    containers: list[ContainerRequests],
    init_containers: list[ContainerRequests],
    pod_level: ByResource,
) -> ByResource:
    """Sum up containers, init containers, pod level and overhead as kube-scheduler does."""
    overhead = read_amounts(spec.overhead, "spec.overhead")
    try:
        return pod_requests(containers, init_containers, overhead, pod_level)
    except BadQuantity as error:
        raise InvalidObject("spec.containers", error, "a sum that fits 64 bits") from None


def container_requests(containers: Iterable[Container], field: str) -> list[ContainerRequests]:
    """Read what containers ask for, each with whether it keeps running."""
    return [
        _container(each, read_amounts(each.resources.requests, f"{field}[{i}].resources.requests"))
        for i, each in enumerate(containers)
    ]


def _container(container: Container, amounts: ByResource) -> ContainerRequests:
    return ContainerRequests(amounts, restartable=_keeps_running(container))


def _keeps_running(container: Container) -> bool:
    return container.restart_policy == "Always"


def pod_level_requests(spec: PodSpec) -> ByResource:
    """Read the requests of the pod as a whole; none where it has none."""
    return (
        read_amounts(spec.resources.requests, "spec.resources.requests") if spec.resources else {}
    )


def host_port_requests(spec: PodSpec, off: frozenset[str]) -> ByResource:
    """Count host ports, of too many none: such a pod is not supported."""
    return {} if NODE_PORTS in off or has_many_ports(spec) else port_amounts(_host_ports(spec))


def has_many_ports(spec: PodSpec) -> bool:
    """Say whether a pod asks for more host ports than Muster models."""
    return len({*_host_ports(spec)}) > MOST_PORTS


def _host_ports(spec: PodSpec) -> Iterator[HostPort]:
    """List the ports of the host that a pod holds for as long as it runs."""
    side_cars = (each for each in spec.init_containers if _keeps_running(each))
    for container in (*spec.containers, *side_cars):
        for port in container.ports:
            if port.host_port > 0:
                yield port.host_ip, port.protocol, port.host_port


def _larger_of_all(asked: ByResource, allocated: ByResource, actuated: ByResource) -> ByResource:
    return _larger(asked, _larger(allocated, actuated))


def _larger_of_given(_asked: ByResource, allocated: ByResource, actuated: ByResource) -> ByResource:
    """The node can never meet the request, so that does not count."""
    return _larger(allocated, actuated)


def _larger(one: ByResource, other: ByResource) -> ByResource:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def _resize_is_infeasible(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _in_use(
    containers: Iterable[Container],
    statuses: Iterable[ContainerStatus],
    field: str,
    choose: _Choice,
) -> list[ContainerRequests]:
    asked = container_requests(containers, f"spec.{field}")
    reported = {status.name: status for status in statuses}
    return [
        _container(container, _resized(each.requests, reported.get(container.name), field, choose))
        if field == "containers" or each.restartable
        else each
        for container, each in zip(containers, asked, strict=True)
    ]


def _resized(
    asked: Mapping[str, int], status: ContainerStatus | None, field: str, choose: _Choice
) -> ByResource:
    if status is None or status.resources is None:
        return dict(asked)
    where = f"status of {field} {status.name}"
    allocated = read_amounts(status.allocated_resources, f"{where} allocatedResources")
    actuated = read_amounts(status.resources.requests, f"{where} resources.requests")
    return choose(dict(asked), allocated, actuated)


def _pod_level_in_use(pod: Pod, choose: _Choice) -> ByResource:
    asked, status = pod_level_requests(pod.spec), pod.status
    if not asked or status.resources is None:
        return asked
    allocated = read_amounts(status.allocated_resources, "status.allocatedResources")
    actuated = read_amounts(status.resources.requests, "status.resources.requests")
    chosen = choose(asked, allocated, actuated)
    return {name: chosen.get(name, 0) for name in asked}
