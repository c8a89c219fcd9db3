"""Applies the LimitRanges of a namespace to a pod: what they add, and why they refuse it."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kube.codec.fields import ByResource, quantity
from kube.foreseen.amounts import Side, all_containers, container_amounts, pod_total
from kube.objects.admission import LimitRange, LimitRangeItem
from kube.objects.base import Quantities, Quantity
from kube.objects.pod_templates import TemplateContainer, TemplateResources, TemplateSpec
from scheduling.model.amounts import CPU
from scheduling.model.quantity import MAX_AMOUNT, BadQuantity, request_amount


def with_defaults(spec: TemplateSpec, found: Iterable[LimitRange]) -> TemplateSpec:
    """Fill in the limits and requests that containers lack; the first LimitRange by name wins."""
    for each in sorted(found, key=lambda limit_range: limit_range.metadata.name):
        usual = _defaults(each)
        spec = replace(
            spec,
            containers=tuple(_filled(container, usual) for container in spec.containers),
            init_containers=tuple(_filled(container, usual) for container in spec.init_containers),
        )
    return spec


def refusal(spec: TemplateSpec, found: Iterable[LimitRange]) -> str:
    """Say why a LimitRange refuses a pod; empty where none does."""
    for each in sorted(found, key=lambda limit_range: limit_range.metadata.name):
        for fault in _faults(spec, each):
            return f"LimitRange {each.metadata.name}: {fault}"
    return ""


def _defaults(found: LimitRange) -> TemplateResources:
    """Collect the defaults for containers; a later entry overrides an earlier one."""
    items = [each for each in found.spec.limits if each.type == "Container"]
    asked = {name: amount for each in items for name, amount in each.default_request.items()}
    most = {name: amount for each in items for name, amount in each.default.items()}
    return TemplateResources(requests=asked, limits=most)


def _filled(container: TemplateContainer, usual: TemplateResources) -> TemplateContainer:
    own = container.resources
    both = TemplateResources(
        requests={**usual.requests, **own.requests}, limits={**usual.limits, **own.limits}
    )
    return replace(container, resources=both)


def _faults(spec: TemplateSpec, found: LimitRange) -> Iterator[str]:
    for item in found.spec.limits:
        if item.type == "Container":
            for each, where in all_containers(spec):
                asked = container_amounts(each, Side.REQUESTS, where)
                most = container_amounts(each, Side.LIMITS, where)
                yield from _breaches(item, asked, most, f"container {each.name}")
        elif item.type == "Pod":
            asked, most = pod_total(spec, Side.REQUESTS), pod_total(spec, Side.LIMITS)
            yield from _breaches(item, asked, most, "the pod")


def _breaches(item: LimitRangeItem, asked: ByResource, most: ByResource, of: str) -> Iterator[str]:
    """Name the bounds of one entry that requests or limits break."""
    for name, least in _bounds(item.min).items():
        for what, found in (("request", asked.get(name)), ("limit", most.get(name, least))):
            if found is None or found < least:
                yield _said(f"{what} of {of}", name, found, f"at least {quantity(name, least)}")
    for name, largest in _bounds(item.max).items():
        for what, found in (("limit", most.get(name)), ("request", asked.get(name, largest))):
            if found is None or found > largest:
                yield _said(f"{what} of {of}", name, found, f"at most {quantity(name, largest)}")
    yield from _ratios(item.max_limit_request_ratio, asked, most, of)


def _bounds(found: Quantities) -> ByResource:
    return {name: _bound(name, text) for name, text in found.items()}


def _bound(name: str, text: Quantity) -> int:
    """Read a bound; one beyond 64 bits is as large as any amount can be."""
    try:
        return request_amount(name, str(text))
    except BadQuantity:
        return MAX_AMOUNT


def _ratios(ratios: Quantities, asked: ByResource, most: ByResource, of: str) -> Iterator[str]:
    for name, text in ratios.items():
        request, limit = asked.get(name, 0), most.get(name, 0)
        allowed = f"at most {text} times the request"
        if not request or not limit or limit * 1000 > request * _bound(CPU, text):
            yield _said(f"limit of {of}", name, limit or None, allowed)


def _said(what: str, name: str, found: int | None, allowed: str) -> str:
    """Say which value is not allowed, and what is."""
    value = "absent" if found is None else quantity(name, found)
    return f"the {name} {what} is {value}; allowed: {allowed}"
