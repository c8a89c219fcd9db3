"""Domains of nodes, whole rows at once and pod by pod."""

import numpy as np

from scheduling.filters.domain_counts import (
    DomainCounts,
    DomainLimit,
    GangCounts,
    has_label,
    shares_domain,
)
from scheduling.model.amounts import MOST
from tests.builders import columns, node

TRAITS = columns(
    node("a1", labels={"zone": "a"}),
    node("a2", labels={"zone": "a"}),
    node("b1", labels={"zone": "b"}),
    node("none"),
).traits


def test_a_node_without_the_label_is_in_no_domain() -> None:
    assert has_label("zone", TRAITS).tolist() == [True, True, True, False]
    assert shares_domain(np.array([1, 0, 0, 1]), "zone", TRAITS).tolist() == [
        *(True, True, False, False)
    ]


def test_a_limit_is_cut_in_the_order_in_which_nodes_are_served() -> None:
    limit = DomainLimit(np.array([0, 0, 1]), np.array([3, 1]))
    assert limit.on_nodes().tolist() == [3, 3, 1]
    assert limit.is_shared(np.array([2, 2, 1]))
    assert not limit.is_shared(np.array([2, 1, 1]))
    assert limit.cut(np.array([1, 2, 0]), np.array([2, 2, 2])).tolist() == [2, 1, 1]


def by_zone(counts: GangCounts, *groups: int) -> DomainCounts:
    return counts.by_domain(np.array([0, 0, 1, 2]), np.zeros(2, dtype=np.int64), groups)


def test_counts_follow_every_pod_that_is_placed_and_taken_back() -> None:
    earlier = np.array([[1, 0, 0, 0], [0, 0, 0, 5]])
    counts = GangCounts(earlier, TRAITS)
    both, first = by_zone(counts, 0, 1), by_zone(counts, 0)
    assert by_zone(counts, 1, 0) is both
    assert (both.least(), both.least_of_others(0)) == (0, 0)
    counts.put(1, 2, 2)
    assert (both.held, first.held) == ([1, 2, 0], [1, 0, 0])
    assert (both.least(), both.least_of_others(0), both.least_of_others(1)) == (1, 2, 1)
    assert (both.holds_any(2), first.holds_any(2), both.holds_any(3)) == (True, False, False)
    counts.put(1, 2, -2)
    assert (both.held, both.holds_any_anywhere()) == ([1, 0, 0], True)
    alone = counts.by_domain(np.array([0, 0, 1, 1]), np.array([3]), (0,))
    assert (alone.held, alone.least_of_others(0)) == ([4, 0], MOST)


def test_counts_by_label_say_where_any_pod_is() -> None:
    counts = GangCounts(np.array([[1, 0, 0, 0], [0, 0, 0, 5]]), TRAITS)
    first, second = counts.by_label("zone", (0,)), counts.by_label("zone", (1,))
    assert [first.holds_any(at) for at in range(4)] == [True, True, False, False]
    assert (first.holds_any_anywhere(), second.holds_any_anywhere()) == (True, False)
