"""Reads the wrapped objects of a reviewed AppWrapper, as far as rights depend on them."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from appwrapper.spec.faults import message_of
from appwrapper.spec.items import read
from kube.api.kinds import Kind
from kube.objects.app_wrapper import AppWrapper


@dataclass(frozen=True, slots=True)
class WrappedObject:
    """A wrapped object; `content` is its JSON in one spelling, so that equal ones are equal."""

    where: str
    kind: Kind
    content: bytes


@dataclass(frozen=True, slots=True)
class Faulty:
    """What is wrong in an AppWrapper, of all its items."""

    message: str


def wrapped_objects(wrapper: AppWrapper) -> tuple[WrappedObject, ...] | Faulty:
    """Read the wrapped objects of either generation, unless anything is wrong with them."""
    wrapped = read(wrapper)
    if wrapped.faults:
        return Faulty(message_of(wrapped.faults))
    return tuple(
        WrappedObject(
            each.where,
            Kind(each.api_version, each.kind),
            msgspec.json.encode(each.found, order="sorted"),
        )
        for each in wrapped.items
    )
