"""Caches keep what tenants may write in so many bytes, and no longer than it is of use."""

import gc
import sys
from functools import partial

import numpy as np
import pytest

from scheduling.model.constraints import NodeNames, NodeTerm, Requirement
from scheduling.model.placement import Assignment, Placement
from scheduling.model.pod import PodShape
from scheduling.state.bounded_cache import (
    OF_AN_ENTRY,
    SHARE,
    BoundedCache,
    Interned,
    weight,
    while_alive,
)

KIB = 1024


def test_the_oldest_make_room() -> None:
    cache: BoundedCache[int, str] = BoundedCache(10 * KIB, lambda _, text: len(text))
    for number in range(100):
        assert cache.remembered(number, partial(str.ljust, "x", KIB)) == "x".ljust(KIB)
        assert cache.taken <= cache.limit
    assert [number for number, _ in cache.items()] == list(range(92, 100))
    assert cache.taken == 8 * (KIB + OF_AN_ENTRY)


def test_what_is_kept_is_not_asked_for_again() -> None:
    cache: BoundedCache[str, list[int]] = BoundedCache(KIB * 10)
    first = cache.remembered("a", lambda: [1])
    assert cache.remembered("a", lambda: [2]) is first
    assert cache.keep("a", [3])
    assert dict(cache.items()) == {"a": [3]}
    cache.forget("a")
    cache.forget("a")
    assert (len(cache), cache.taken) == (0, 0)


def test_a_number_may_be_bound_too() -> None:
    cache: BoundedCache[int, int] = BoundedCache(2**20, most=3)
    assert [cache.keep(number, 0) for number in range(5)] == [True, True, True, False, False]
    assert [number for number, _ in cache.items()] == [2, 3, 4]


def test_what_is_large_drives_nothing_out() -> None:
    cache: BoundedCache[str, str] = BoundedCache(10 * KIB)
    assert cache.keep("small", "x")
    assert not cache.keep("large", "x" * (10 * KIB // SHARE))
    assert cache.remembered("large", lambda: "derived") == "derived"
    assert "small" in dict(cache.items())
    cache.clear()
    assert (len(cache), cache.taken) == (0, 0)


def test_equal_values_are_one() -> None:
    interned: Interned[tuple[str, ...]] = Interned(10 * KIB)
    first = interned(("a", "b"))
    assert interned(tuple("ab")) is first
    for number in range(100):
        interned((f"{number}" * 200,))
    assert interned.taken <= interned.limit
    assert interned(tuple("ab")) is not first


SHAPE = PodShape((("cpu", 1),), node_affinity=(NodeTerm((Requirement("k" * 5000, "Exists", ()),)),))


@pytest.mark.parametrize(
    "value",
    [
        "x" * 5000,
        ("x" * 2500, "y" * 2500),
        {"x" * 2500: ["y" * 2500]},
        SHAPE,
        Placement((Assignment("p" * 5000, "", "", (), ()),)),
        np.zeros(625, dtype=np.int64),
        np.zeros((2, 625), dtype=np.int64)[:1],
    ],
)
def test_all_parts_of_a_value_have_weight(value: object) -> None:
    assert 5000 <= weight(value) <= 12_000


def test_names_of_nodes_are_kept_anyway() -> None:
    assert weight(NodeNames(["n" * 200] * 10)) < 1000


def test_no_more_is_looked_at_than_is_asked_for() -> None:
    many = ["x"] * 100_000
    assert weight(many, most=KIB) == sys.getsizeof(many)
    at_most = sys.getsizeof(many)
    assert weight(many, most=at_most) > at_most


def test_what_is_worked_out_of_a_placement_goes_with_it() -> None:
    asked = []

    @while_alive
    def names(placement: Placement) -> list[str]:
        asked.append(1)
        return [each.pod_set for each in placement.assignments]

    def made() -> Placement:
        return Placement((Assignment("workers", "", "", (), ()),))

    placement = made()
    first = names(placement)
    assert names(placement) is first
    assert names(made()) is first
    assert len(asked) == 1
    del placement
    gc.collect()
    assert names(made()) is not first
    assert len(asked) == 2
