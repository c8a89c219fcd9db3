"""Merges what an object is in many worlds into one tree that knows which part is in which.

Maps are merged key by key, lists item by item where items can be told apart. What differs otherwise
becomes alternatives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from charts.worlds import World

Worlds = frozenset[World]
Variants = Mapping[World, Any]


ALONE: World = frozenset(("",))
"""Stands for the worlds of a value that is not merged with others: its parts are all there."""


class Verbatim(str):
    """Text of a template, which is written as it stands.

    As a key of a map, with the value None, it is lines of its own. `@` stands for
    the depth, `@@` for the next one.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Map:
    """The keys of a map, each with what it may be."""

    entries: tuple[tuple[str, tuple[Alternative, ...]], ...]


@dataclass(frozen=True)
class Items:
    """The items of a list, each with what it may be."""

    items: tuple[tuple[Alternative, ...], ...]


@dataclass(frozen=True)
class Plain:
    """A value that is the same in all of its worlds and has no parts that are looked at."""

    value: Any


Node = Map | Items | Plain


@dataclass(frozen=True)
class Alternative:
    """What something is in some worlds."""

    worlds: Worlds
    node: Node


def merged(variants: Variants) -> tuple[Alternative, ...]:
    """What a value is in which of the worlds that have it."""
    values = list(variants.values())
    if all(isinstance(each, dict) and each for each in values):
        return (Alternative(frozenset(variants), _map(variants)),)
    if all(isinstance(each, list) and each for each in values):
        order = _order([[_identity(item) for item in each] for each in values])
        if order is not None:
            return (Alternative(frozenset(variants), _items(variants, order)),)
    return _alternatives(variants)


def _alternatives(variants: Variants) -> tuple[Alternative, ...]:
    """One for each value that there is, the one of the smallest world first."""
    groups: dict[str, list[World]] = {}
    for world, value in variants.items():
        groups.setdefault(json.dumps(value, sort_keys=True), []).append(world)
    return tuple(Alternative(frozenset(g), _node(variants[g[0]])) for g in groups.values())


def _node(value: Any) -> Node:
    """A value of its own, its parts in the order that they have."""
    if isinstance(value, dict) and value:
        parts = ((key, (_alone(each),)) for key, each in value.items())
        return Map(tuple(parts))
    if isinstance(value, list) and value:
        return Items(tuple((_alone(each),) for each in value))
    return Plain(value)


def _alone(value: Any) -> Alternative:
    return Alternative(frozenset((ALONE,)), _node(value))


def _map(variants: Variants) -> Map:
    order = _order([list(each) for each in variants.values()]) or sorted(
        {key for each in variants.values() for key in each}
    )
    return Map(
        tuple(
            (key, merged({world: each[key] for world, each in variants.items() if key in each}))
            for key in order
        )
    )


def _items(variants: Variants, order: Sequence[str]) -> Items:
    found = {world: {_identity(item): item for item in items} for world, items in variants.items()}
    return Items(
        tuple(
            merged({world: each[name] for world, each in found.items() if name in each})
            for name in order
        )
    )


def _identity(item: Any) -> str:
    """What an item of a list is known by: its name, or else all of it."""
    name = item.get("name") if isinstance(item, dict) else None
    return f"name {name}" if isinstance(name, str) else json.dumps(item, sort_keys=True)


def _order(sequences: Sequence[Sequence[str]]) -> list[str] | None:
    """One order in which each sequence keeps its own; none where there is none."""
    found: list[str] = []
    for sequence in sequences:
        at = 0
        for each in sequence:
            if each not in found:
                found.insert(at, each)
            at = found.index(each) + 1
    kept = all([each for each in found if each in {*one}] == list(one) for one in sequences)
    return found if kept else None
