"""Compares the pod sizes that an item declares with the sizes read from its templates.

MCAD went by custompodresources alone. Here they serve where nothing can be read, and where both are
known the larger amount of each resource counts.
"""

from collections.abc import Iterator, Mapping
from itertools import accumulate

from msgspec.structs import replace

from appwrapper.spec.wrapped import Item, WrappedPodSet
from kube.codec.fields import ByResource, InvalidObject, quantity, read_amounts
from kube.foreseen.amounts import Side, container_amounts, pod_total
from kube.objects.app_wrapper import CustomPodResources
from kube.objects.base import Quantities
from kube.objects.pod_templates import TemplateContainer, TemplateResources, TemplateSpec

_FIELD = "custompodresources[{}].{}"


def declared_sizes(item: Item) -> list[ByResource]:
    """Return for each pod set what is declared of its pods, nothing where that cannot be told.

    Entries are taken for the pods in their order, so their numbers must be those of the pods; the
    larger entry counts where several fall on a pod set. Raises InvalidObject for an amount.
    """
    sizes = [_size(each, index) for index, each in enumerate(item.custom)]
    if _declared(item) != _read(item):
        return [{} for _each in item.pod_sets]
    return [_largest(sizes, item, begin, each) for begin, each in _begins(item)]


def count_notice(item: Item) -> str:
    """Say that the numbers of pods differ; empty where they do not, or none are declared."""
    declared, read = _declared(item), _read(item)
    if not item.custom or declared == read:
        return ""
    said = f"custompodresources declare {declared} pods; it has {read}, which count"
    return f"{item.where}: {said}, in the sizes of their templates"


def at_least(spec: TemplateSpec, sizes: Mapping[str, int]) -> TemplateSpec:
    """Have a pod ask for so much at least; what is missing the first container asks for."""
    has = _asked(spec)
    for resource, size in sizes.items():
        if size > has.get(resource, 0):
            spec = _raised(spec, resource, size)
    return spec


def size_notice(item: Item, name: str, spec: TemplateSpec, sizes: Mapping[str, int]) -> str:
    """Say which amount differs first; empty where none does."""
    has = _asked(spec)
    for resource, size in sorted(sizes.items()):
        read = has.get(resource, 0)
        if size != read:
            declared, asked = quantity(resource, size), quantity(resource, read)
            said = f"custompodresources declare {declared} of {resource} for each pod of {name}"
            return f"{item.where}: {said}, its template asks for {asked}; the larger counts"
    return ""


def of_sizes_alone(sizes: Mapping[str, int]) -> TemplateSpec:
    """Make up a pod of which only its size is known."""
    asked = {resource: quantity(resource, size) for resource, size in sizes.items() if size}
    resources = TemplateResources(requests=asked)
    return TemplateSpec(containers=(TemplateContainer(name="declared", resources=resources),))


def _size(declared: CustomPodResources, index: int) -> ByResource:
    """Read an entry; as MCAD does, a limit counts where nothing is requested."""
    requests = read_amounts(declared.requests, _FIELD.format(index, "requests"))
    limits = read_amounts(declared.limits, _FIELD.format(index, "limits"))
    return {name: requests.get(name) or limits.get(name, 0) for name in {**limits, **requests}}


def _begins(item: Item) -> Iterator[tuple[int, WrappedPodSet]]:
    """Yield each pod set with the number of pods before it."""
    counts = [each.count for each in item.pod_sets]
    return zip(accumulate(counts, initial=0), item.pod_sets, strict=False)


def _largest(sizes: list[ByResource], item: Item, begin: int, pod_set: WrappedPodSet) -> ByResource:
    found: ByResource = {}
    before = 0
    for size, entry in zip(sizes, item.custom, strict=True):
        if before < begin + pod_set.count and begin < before + entry.replicas:
            found = {name: max(found.get(name, 0), size.get(name, 0)) for name in {**found, **size}}
        before += entry.replicas
    return found


def _declared(item: Item) -> int:
    return sum(each.replicas for each in item.custom)


def _read(item: Item) -> int:
    return sum(each.count for each in item.pod_sets)


def _asked(spec: TemplateSpec) -> ByResource:
    """Add up a pod, with limits for requests that are absent; nothing where it cannot be read."""
    filled = replace(
        spec,
        containers=tuple(_filled(each) for each in spec.containers),
        init_containers=tuple(_filled(each) for each in spec.init_containers),
    )
    try:
        return pod_total(filled, Side.REQUESTS)
    except InvalidObject:
        return {}


def _filled(found: TemplateContainer) -> TemplateContainer:
    own = found.resources
    return replace(found, resources=replace(own, requests={**own.limits, **own.requests}))


def _raised(spec: TemplateSpec, resource: str, size: int) -> TemplateSpec:
    """Raise the request of the first container, and its limit where that is below."""
    first, *others = spec.containers
    try:
        own = container_amounts(_filled(first), Side.REQUESTS, "").get(resource, 0)
        among = sum(
            container_amounts(_filled(c), Side.REQUESTS, "").get(resource, 0) for c in others
        )
        limit = container_amounts(first, Side.LIMITS, "").get(resource)
    except InvalidObject:
        return spec
    wanted = max(size - among, own)
    resources = _with(first.resources, resource, wanted, limit)
    whole = spec.resources
    if whole is not None and resource in whole.requests:
        whole = replace(whole, requests={**whole.requests, resource: quantity(resource, size)})
    return replace(spec, containers=(replace(first, resources=resources), *others), resources=whole)


def _with(
    found: TemplateResources, resource: str, amount: int, limit: int | None
) -> TemplateResources:
    text = quantity(resource, amount)
    limits: Quantities = found.limits
    if limit is not None and limit < amount:
        limits = {**limits, resource: text}
    return replace(found, requests={**found.requests, resource: text}, limits=limits)
