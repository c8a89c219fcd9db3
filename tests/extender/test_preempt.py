"""Nodes are dropped where evictions would not make room, or would break a gang."""

from __future__ import annotations

from extender.ledger import Ledger
from extender.preempt import Rules, kept_nodes
from tests.extender.worlds import (
    Json,
    as_watched_pod,
    gang,
    ledger,
    member,
    node,
    pinned,
    pod,
    with_port,
)

STRICT, LAX = Rules(), Rules(protect_minimum=False)


def kept(known: Ledger, asked: Json, rules: Rules = STRICT, **victims: str) -> list[str]:
    """The nodes that stay; `victims` are node=names with blanks between."""
    uids = {node: tuple(f"uid-{name}" for name in given.split()) for node, given in victims.items()}
    return kept_nodes(as_watched_pod(asked), uids, known.snapshot(), rules)


def test_where_nothing_is_reserved_eviction_helps() -> None:
    known = ledger(node("a"), pod("small", gpu=8, on="a"))
    assert kept(known, pod("big", gpu=8), a="small") == ["a"]


def test_no_pod_is_evicted_for_room_that_is_reserved() -> None:
    running = (pod("x", gpu=4, on="a"), pod("y", gpu=8, on="b"))
    known = ledger(node("a"), node("b"), *running, gang(slots={"a": 1}, gpu=4))
    assert kept(known, pod("big", gpu=8), a="x", b="y") == ["b"]
    assert kept(known, pod("smaller", gpu=4), a="x") == ["a"]


def test_a_reserved_host_port_is_not_won_by_eviction() -> None:
    running = (with_port(pod("x", on="a"), 80), with_port(pod("y", on="b"), 80))
    reserving = with_port(gang(slots={"c": 1}, gpu=1), 80)
    known = ledger(*(node(name) for name in "abc"), *running, pod("z", on="c"), reserving)
    assert kept(known, with_port(pod("big"), 80), a="x", b="", c="z") == ["a"]


def test_a_victim_that_is_not_known_or_not_there_is_no_gain() -> None:
    known = ledger(node("a"), node("b"), pod("x", gpu=8, on="b"))
    assert kept(known, pod("big", gpu=8), a="unheard-of") == []
    assert kept(known, pod("big", gpu=8), a="x") == []
    assert kept(known, pod("big", gpu=8), unheard="x") == []
    assert kept(known, pod("big", gpu=8), a="") == []


def test_the_minimum_of_a_gang_is_not_broken_by_one_member() -> None:
    workers = [member(pod(f"w{i}", gpu=8, on=name)) for i, name in enumerate("ab")]
    known = ledger(node("a"), node("b"), gang(slots={"a": 1, "b": 1}, minimum=2), *workers)
    assert kept(known, pod("big", gpu=8, priority=9), a="w0") == []
    assert kept(known, pod("big", gpu=8, priority=9), LAX, a="w0") == []  # its slot is kept


def test_a_member_above_the_minimum_is_no_gain_while_its_slot_is_kept() -> None:
    workers = [member(pod(f"w{i}", gpu=8, on=name)) for i, name in enumerate("ab")]
    known = ledger(node("a"), node("b"), gang(slots={"a": 1, "b": 1}, minimum=1), *workers)
    assert kept(known, pod("big", gpu=8, priority=9), a="w0") == []


def test_a_member_without_a_slot_above_the_minimum_may_go() -> None:
    workers = [member(pod(f"w{i}", gpu=8, on=name)) for i, name in enumerate("ab")]
    known = ledger(node("a"), node("b"), gang(slots={"b": 1}, minimum=1), *workers)
    assert kept(known, pod("big", gpu=8, priority=9), a="w0", b="w1") == ["a"]


def test_with_a_host_its_whole_replica_is_lost() -> None:
    hosts = [member(pod(f"w{i}", gpu=4, on="a"), replica=f"r{i // 2}") for i in range(4)]
    known = ledger(node("a", gpu=16), gang(slots={"a": 4}, gpu=4, minimum=3), *hosts)
    assert kept(known, pod("big", gpu=4), LAX, a="w0") == []
    assert kept(known, pod("big", gpu=4), a="w0") == []


def test_a_released_member_evicts_on_its_own_node_only() -> None:
    thieves = [pod("thief", gpu=8, on="a"), pod("other", gpu=8, on="b")]
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}), *thieves)
    waiting = member(pinned(pod("w", gpu=8, priority=9), "a"))
    assert kept(known, waiting, a="thief", b="other") == ["a"]
    forged = member(pinned(pod("w", gpu=8, priority=9), "b"))
    assert kept(known, forged, a="thief", b="other") == []


def test_what_is_kept_for_another_preemptor_is_not_given_twice() -> None:
    known = ledger(
        node("a"), pod("x", gpu=8, on="a"), pod("first", gpu=8, nominated="a", priority=5)
    )
    assert kept(known, pod("second", gpu=8, priority=5), a="x") == []
    assert kept(known, pod("higher", gpu=8, priority=6), a="x") == ["a"]
