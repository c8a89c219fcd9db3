"""A copy of a state machine goes on by itself, and shares what cannot change."""

from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pytest

from forecast.copied import copied
from tests.coordinator.builders import node
from tests.forecast.pictures import lasting, pictured, world_of


class Pair(NamedTuple):
    one: Any
    other: Any


@dataclass
class Changing:
    parts: list[int] = field(default_factory=list)
    back: Any = None

    def add(self, part: int) -> None:
        self.parts.append(part)


@dataclass(slots=True)
class Slotted(Changing):
    more: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Frozen:
    part: Any


@pytest.mark.parametrize(
    "value",
    [1, "a", None, (1, "b"), frozenset({1}), Frozen((1, 2)), Pair(1, Frozen("x")), len, int],
)
def test_what_cannot_change_is_shared(value: object) -> None:
    assert copied(value) is value


@pytest.mark.parametrize(
    "value",
    [
        {1: [2]},
        [{1}],
        deque([1, 2], maxlen=2),
        Counter("ab"),
        OrderedDict(a=1),
        defaultdict(list, a=[1]),
        Changing([1]),
        Slotted([1], more={"a": 1}),
        Frozen([1]),
        Pair([1], 2),
        (1, [2]),
    ],
)
def test_what_may_change_is_another_one(value: object) -> None:
    made = copied(value)
    assert type(made) is type(value)
    assert made == value
    assert made is not value


def test_one_object_is_one_object_in_the_copy() -> None:
    one = Changing([1])
    one.back = {"me": one, "list": one.parts}
    made = copied(Pair(one, one))
    assert made.one is made.other is made.one.back["me"]
    assert made.one.parts is made.one.back["list"]
    made.one.add(2)
    assert (one.parts, made.one.parts) == ([1], [1, 2])


def test_functions_go_with_what_they_enclose() -> None:
    one, numbers = Changing(), count(5)
    next(numbers)

    def adds(part: int) -> None:
        one.add(part)

    parts: list[Any] = [one, one.add, partial(one.add, 2), adds, one.parts.append, numbers]
    made = copied(parts)
    made[2]()
    for call in (made[1], *made[3:5]):
        call(2)
    assert (one.parts, made[0].parts) == ([], [2, 2, 2, 2])
    assert (next(made[5]), next(numbers)) == (6, 6)


def test_a_part_of_an_array_is_a_part_of_its_copy() -> None:
    whole = np.arange(12).reshape(3, 4)
    made, part = copied((whole, whole[1:, ::2]))
    made[1, 2] = 99
    assert part.tolist() == [[4, 99], [8, 10]]
    assert whole[1, 2] == 6


def test_what_is_not_known_is_an_error() -> None:
    with pytest.raises(TypeError, match="it is not known how to copy"):
        copied([iter("ab")])


def test_copies_of_a_beginning_go_on_alike_and_leave_it_as_it_is() -> None:
    """All that a state machine knows is copied: no forecast changes another one."""
    gangs = [lasting("runs", 3, 2), lasting("b", 3, 1), lasting("c", 2, 1), lasting("d", 1, 3)]
    picture = pictured(world_of(node("a", cpu=4), node("b", cpu=3), gangs=gangs))
    plain, begun = picture.course(), picture.begun()
    for _ in range(2):
        assert begun.with_lengths(begun.lengths, picture.budget()).go_on() == plain
    assert begun.go_on() == plain
