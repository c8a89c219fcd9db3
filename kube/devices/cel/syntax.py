"""The tree of a CEL expression."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: bool | int | str


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field of something."""

    of: "Node"
    field: str


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of expressions."""

    items: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function or an operator; with `target` a member function."""

    name: str
    arguments: tuple["Node", ...]
    target: "Node | None" = None


Node: TypeAlias = Literal | Name | Select | ListOf | Call
