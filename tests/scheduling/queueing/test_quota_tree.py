"""Quota of a tree of queues: worked examples, and a recursion over single numbers as the oracle."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.queue import Queue
from scheduling.queueing.quota_tree import MOST, QuotaTree

GPU = "nvidia.com/gpu"


def available(queues: list[Queue], held: Mapping[str, int], resource: str = GPU) -> dict[str, int]:
    """How much of a resource each queue may still take, by name."""
    tree = QuotaTree(queues)
    rows = np.array([tree.requests({resource: held.get(name, 0)}) for name in tree.names])
    found = tree.available(tree.used(rows))
    return {name: int(found[at, tree.column[resource]]) for name, at in tree.index.items()}


def team(name: str, quota: int, *, borrows: int | None = None, lends: int | None = None) -> Queue:
    return Queue(name, "all", {GPU: quota}, limit(borrows), limit(lends))


def limit(amount: int | None) -> dict[str, int]:
    return {} if amount is None else {GPU: amount}


ALL = Queue("all")


def test_a_queue_alone_has_its_quota() -> None:
    assert available([Queue("a", quota={GPU: 8})], {"a": 3}) == {"a": 5}


def test_what_a_sibling_does_not_use_may_be_borrowed() -> None:
    found = available([ALL, team("a", 8), team("b", 8)], {"a": 10})
    assert found == {"all": 6, "a": 6, "b": 6}


def test_what_is_not_lent_stays_with_its_queue() -> None:
    queues = [ALL, team("a", 8), team("b", 8, lends=3)]
    assert available(queues, {}) == {"all": 11, "a": 11, "b": 16}
    assert available(queues, {"a": 11}) == {"all": 0, "a": 0, "b": 5}


def test_a_queue_without_quota_bounds_what_its_members_lend_outside() -> None:
    inner = team("inner", 0, lends=3)
    queues = [ALL, team("a", 8), inner, Queue("member", "inner", {GPU: 8}), Queue("x", "inner")]
    assert available(queues, {}) == {"all": 11, "a": 11, "inner": 16, "member": 16, "x": 16}
    assert available(queues, {"a": 11})["member"] == 5


def test_a_borrower_takes_no_more_than_its_limit() -> None:
    queues = [ALL, team("a", 8, borrows=2), team("b", 8)]
    assert available(queues, {"a": 9})["a"] == 1


def test_a_queue_without_quota_of_its_own_lives_on_what_others_lend() -> None:
    assert available([ALL, team("a", 8), team("guest", 0)], {"a": 6})["guest"] == 2


def test_a_parent_has_a_quota_beside_those_below_it() -> None:
    queues = [Queue("all", quota={GPU: 4}), team("a", 8)]
    assert available(queues, {"all": 3}) == {"all": 9, "a": 9}


def test_a_resource_that_no_queue_on_the_way_up_names_is_unlimited_and_counts_nowhere() -> None:
    queues = [ALL, Queue("free", "all", {"cpu": 1000}), team("a", 8)]
    found = available(queues, {"free": 100})
    assert found["free"] == MOST
    assert found["a"] == 8


def test_what_a_queue_keeps_is_there_though_those_above_are_overdrawn() -> None:
    queues = [ALL, team("a", 2), team("b", 8, lends=3)]
    assert available(queues, {"a": 20, "b": 1}) == {"all": -15, "a": -15, "b": 4}


def test_the_dominant_share_is_that_of_the_scarcest_resource() -> None:
    tree = QuotaTree([Queue("a", quota={GPU: 8, "cpu": 1000})])
    assert tree.shares(np.array([tree.requests({GPU: 2, "cpu": 500})])).tolist() == [500_000]


def test_use_without_quota_is_the_largest_share_of_all() -> None:
    tree = QuotaTree([ALL, team("a", 8), team("guest", 0)])
    used = tree.used(np.array([tree.requests({GPU: 1}) for _ in tree.names]))
    assert tree.shares(used)[tree.index["guest"]] == np.inf


def test_no_queues_are_no_tree_to_stumble_over() -> None:
    tree = QuotaTree([])
    assert tree.available(tree.used(np.zeros((0, 0), dtype=np.int64))).size == 0


@pytest.mark.parametrize("queues", [1, 1000])
def test_absurd_quota_is_cut_off_and_not_wrapped(queues: int) -> None:
    many = [team(f"q{at}", 2**63 - 1) for at in range(queues)]
    assert set(available([ALL, *many], {"q0": 2**63 - 1}).values()) <= {MOST, 0}


def test_a_chain_of_two_thousand_queues_is_followed() -> None:
    chain = [Queue(f"q{at}", f"q{at - 1}" if at else "", {GPU: 1}) for at in range(2000)]
    assert available(chain, {})["q1999"] == 2000


# ---- the oracle: one number, one queue, one rule at a time


@dataclass
class Plain:
    """One resource in one queue."""

    quota: int
    held: int
    borrowing: int | None
    lending: int | None
    parent: "Plain | None" = None
    below: list["Plain"] = field(default_factory=list)

    def subtree(self) -> int:
        return self.quota + sum(each.subtree() - each.kept() for each in self.below)

    def kept(self) -> int:
        if self.parent is None or self.lending is None:
            return 0
        return max(0, self.subtree() - self.lending)

    def used(self) -> int:
        return self.held + sum(max(0, each.used() - each.kept()) for each in self.below)

    def may_take(self) -> int:
        """By trying: the largest amount that breaks no rule that is not broken without it."""
        for amount in range(200):
            if self.overdraws(amount + 1):
                return amount
        raise AssertionError(amount)

    def overdraws(self, amount: int) -> bool:
        """Whether taking so much passes a limit on the way up."""
        beyond = self.used() + amount - self.kept()
        if self.parent is None:
            return self.used() + amount > self.subtree()
        if beyond <= 0:
            return False
        lent = self.subtree() - self.kept()
        if self.borrowing is not None and beyond > lent + self.borrowing:
            return True
        return self.parent.overdraws(beyond - max(0, self.used() - self.kept()))


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[Queue], dict[str, Plain]]:
    queues: list[Queue] = []
    plain: dict[str, Plain] = {}
    for at in range(draw(st.integers(1, 6))):
        name, parent = f"q{at}", draw(st.sampled_from(["", *plain])) if plain else ""
        quota, held = draw(st.integers(0, 8)), draw(st.integers(0, 10))
        limits = st.none() | st.integers(0, 8)
        borrowing = draw(limits) if parent else None
        lending = draw(limits) if parent else None
        plain[name] = Plain(quota, held, borrowing, lending, plain.get(parent))
        if parent:
            plain[parent].below.append(plain[name])
        queues.append(Queue(name, parent, {GPU: quota}, limit(borrowing), limit(lending)))
    return queues, plain


@given(trees())
def test_the_arrays_say_what_the_rules_say_one_by_one(
    world: tuple[list[Queue], dict[str, Plain]],
) -> None:
    queues, plain = world
    found = available(queues, {name: each.held for name, each in plain.items()})
    assert {name: max(0, each) for name, each in found.items()} == {
        name: each.may_take() for name, each in plain.items()
    }


@given(trees(), st.integers(0, 9))
def test_how_far_up_quota_covers_a_gang_is_the_same_for_one_queue_and_for_all(
    world: tuple[list[Queue], dict[str, Plain]], gpus: int
) -> None:
    queues, plain = world
    tree = QuotaTree(queues)
    held = np.array([tree.requests({GPU: plain[name].held}) for name in tree.names])
    used, demand = tree.used(held), tree.requests({GPU: gpus})
    rows = np.arange(len(tree.names))
    levels = tree.borrowing_levels(rows, np.tile(demand, (len(rows), 1)), held, used)
    assert levels.tolist() == [tree.borrowing_level(at, demand, held, used) for at in rows.tolist()]


def test_shares_of_large_amounts_do_not_overflow() -> None:
    tree = QuotaTree(
        [Queue("big", quota={"memory": 20 * 2**40}), Queue("small", quota={"memory": 1})]
    )
    used = np.array([tree.requests({"memory": 10 * 2**40}), tree.requests({})])
    assert tree.shares(used).tolist() == [500_000, 0]


@given(trees(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6))
def test_what_is_taken_along_the_way_up_adds_up_to_what_is_used(
    world: tuple[list[Queue], dict[str, Plain]], takes: list[tuple[int, int]]
) -> None:
    queues, plain = world
    tree = QuotaTree(queues)
    held = np.array([tree.requests({GPU: plain[name].held}) for name in tree.names])
    used = tree.used(held)
    for at, amount in takes:
        before = used.copy()
        row, demand = at % len(tree.names), tree.requests({GPU: amount})
        held[row] += demand
        changed = set(tree.take(row, demand, used))
        assert used.tolist() == tree.used(held).tolist()
        assert changed >= set(np.flatnonzero((before != used).any(axis=1)).tolist())
        some = sorted(changed)
        assert tree.shares(used, some).tolist() == tree.shares(used)[some].tolist()
