"""Decodes the fields that objects of other systems have in common."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from cli.imports.outcome import Fault, Source
from kube.objects.base import Labels, OrNull, OwnerReference, Part, Slim

T = TypeVar("T", bound="Foreign")


class Meta(Part, frozen=True):
    """The fields of metadata that imports read."""

    name: str = ""
    namespace: str = ""
    labels: OrNull[Labels] = {}
    owner_references: OrNull[tuple[OwnerReference, ...]] = ()


class Foreign(Slim, frozen=True):
    """Base of objects that are read."""

    metadata: Meta = Meta()


def called(kind: str, metadata: Meta) -> str:
    """Name an object in a remark."""
    place = f"{metadata.namespace}/" if metadata.namespace else ""
    return f"{kind} {place}{metadata.name}"


def placed(fault: Fault, sources: Iterable[Source]) -> Fault:
    """Put before a fault of an object where that was found."""
    for each in sources:
        metadata = each.body.get("metadata")
        read = msgspec.convert(metadata, Meta) if isinstance(metadata, dict) else Meta()
        if str(fault).startswith(f"{called(each.kind, read)}: "):
            return Fault(f"{each.place}: {fault}")
    return fault


def decoded(sources: Iterable[Source], group: str, kind: str, as_: type[T]) -> list[T]:
    """Decode the objects of one kind, by namespace and name; raises Fault for a bad one."""
    chosen = [each for each in sources if (each.group, each.kind) == (group, kind)]
    found = [(_decode(each, as_), each) for each in chosen]
    seen: dict[tuple[str, str], Source] = {}
    for one, source in found:
        key = one.metadata.namespace, one.metadata.name
        if key in seen:
            what = called(kind, one.metadata)
            raise Fault(f"{source.place}: {what} is there twice, first in {seen[key].place}")
        seen[key] = source
    return sorted((one for one, _ in found), key=_order)


def _order(one: Foreign) -> tuple[str, str]:
    return one.metadata.namespace, one.metadata.name


def _decode(source: Source, as_: type[T]) -> T:
    try:
        one = msgspec.convert(source.body, as_)
    except msgspec.ValidationError as error:
        said, _, path = str(error).partition(" - at `$")
        field = path.strip("`").lstrip(".") or "the object"
        raise Fault(f"{source.place}: {source.kind}: {field}: {said}") from None
    if not one.metadata.name:
        raise Fault(f"{source.place}: {source.kind}: metadata.name: empty or missing")
    return one
