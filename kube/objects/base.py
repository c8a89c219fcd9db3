"""The base of the slim structs for decoding, and the fields that all kinds of objects share.

Slim structs for decoding: only fields in use, everything else in the JSON is skipped. A list
or a map that is null or absent reads as empty, so that no reader has to ask which of the two it
was. All are frozen; decoded JSON has no cycles, hence `gc=False`: with tens of thousands of
pods the collector would otherwise walk all of them again and again.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

T = TypeVar("T")

if TYPE_CHECKING:
    # Once decoded it is never None: `_Part.__post_init__` sees to that.
    OrNull = Annotated[T, "null in JSON reads as empty"]
else:
    OrNull = T | None

Labels = Mapping[str, str]
Quantity = str | int | float
Quantities = Mapping[str, Quantity]


class Present(msgspec.Struct, frozen=True, gc=False):
    """Some object of which only the existence matters."""


class Slim(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """Base of all structs here; the others inherit `gc=False` and the spelling."""


class Part(Slim, frozen=True):
    """A struct with lists or maps in it: null becomes the empty value of the field."""

    def __post_init__(self) -> None:
        for name, empty in _empties(type(self)):
            if getattr(self, name) is None:
                msgspec.structs.force_setattr(self, name, empty())


_EMPTIES: dict[type, tuple[tuple[str, Callable[[], Any]], ...]] = {}


def _empties(kind: type[msgspec.Struct]) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """List the fields of a struct that are empty by default, worked out once per struct."""
    known = _EMPTIES.get(kind)
    if known is None:
        fields = msgspec.structs.fields(kind)
        lists = tuple((f.name, tuple) for f in fields if f.default == ())
        maps = tuple((f.name, dict) for f in fields if f.default_factory is dict)
        known = _EMPTIES[kind] = (*lists, *maps)
    return known


class OwnerReference(Slim, frozen=True):
    """The object that made an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Part, frozen=True):
    """What every object says about itself."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: OrNull[Labels] = {}
    annotations: OrNull[Labels] = {}
    owner_references: OrNull[tuple[OwnerReference, ...]] = ()


class Condition(Slim, frozen=True):
    """One condition of a status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class SelectorRequirement(Part, frozen=True):
    """One expression of a node selector term or of a label selector."""

    key: str = ""
    operator: str = ""
    values: OrNull[tuple[str, ...]] = ()


class LabelSelector(Part, frozen=True):
    """Labels and expressions that must all hold; without any it matches everything."""

    match_labels: OrNull[Labels] = {}
    match_expressions: OrNull[tuple[SelectorRequirement, ...]] = ()
