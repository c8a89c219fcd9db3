"""Reads the wrapped objects of an AppWrapper that is reviewed, as far as rights depend on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from kube.api.kinds import Kind
from kube.objects.app_wrapper import AppWrapper, AppWrapperSpec
from kube.objects.base import Slim


@dataclass(frozen=True, slots=True)
class WrappedObject:
    """A wrapped object; `content` is its JSON in one spelling, so that equal ones are equal."""

    field: str
    kind: Kind
    content: bytes


class _Head(Slim, frozen=True):
    api_version: str = ""
    kind: str = ""


def wrapped_objects(wrapper: AppWrapper) -> tuple[WrappedObject, ...] | str:
    """Read the wrapped objects of either generation; a text says what is wrong with them."""
    try:
        return tuple(
            _object(*each)
            for each in _templates(msgspec.json.decode(wrapper.spec, type=AppWrapperSpec))
        )
    except msgspec.ValidationError as error:
        return f"spec: {error}"


def _templates(spec: AppWrapperSpec) -> list[tuple[str, msgspec.Raw]]:
    components = [
        (f"spec.components[{index}].template", each.template)
        for index, each in enumerate(spec.components)
    ]
    items = spec.resources.generic_items if spec.resources else ()
    generic = [
        (f"spec.resources.GenericItems[{index}].generictemplate", each.generic_template)
        for index, each in enumerate(items)
    ]
    return components + generic


def _object(field: str, template: msgspec.Raw) -> WrappedObject:
    head = msgspec.json.decode(template, type=_Head)
    content: Any = msgspec.json.decode(template)
    return WrappedObject(
        field, Kind(head.api_version, head.kind), msgspec.json.encode(content, order="sorted")
    )
