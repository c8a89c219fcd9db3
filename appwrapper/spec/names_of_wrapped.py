"""Names what an AppWrapper of either generation wraps, without judging it."""

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import msgspec

from kube.objects.base import OrNull, Part, Slim


class Named(NamedTuple):
    """Kind and name of an object."""

    kind: str
    name: str


class _Meta(Slim, frozen=True):
    name: str = ""


class _Object(Slim, frozen=True):
    kind: str = ""
    metadata: _Meta = _Meta()


class _Component(Slim, frozen=True):
    template: _Object = _Object()


class _Item(msgspec.Struct, frozen=True):
    generictemplate: _Object = _Object()


class _Resources(Part, frozen=True):
    items: OrNull[tuple[_Item, ...]] = msgspec.field(default=(), name="GenericItems")


class _Spec(Part, frozen=True):
    components: OrNull[tuple[_Component, ...]] = ()
    resources: OrNull[_Resources] = _Resources()


_SPEC = msgspec.json.Decoder(_Spec)


def names_of_wrapped(spec: msgspec.Raw) -> tuple[Named, ...]:
    """Return kind and name of each item; none where the spec cannot be read: it is refused."""
    try:
        return tuple(_named(_SPEC.decode(spec)))
    except msgspec.DecodeError:
        return ()


def _named(spec: _Spec) -> Iterator[Named]:
    items = (each.generictemplate for each in spec.resources.items)
    for each in chain((each.template for each in spec.components), items):
        yield Named(each.kind, each.metadata.name)
