"""Does a pod go where whole nodes stay free for gangs?"""

from __future__ import annotations

from collections.abc import Sequence

from extender.lists import NodeList
from extender.prioritize import scores
from extender.snapshot import Ledger
from kube.codec import pod_shape
from tests.extender.worlds import Json, as_pod, gang, ledger, node, pod


def scored(known: Ledger, found: Json, names: Sequence[str]) -> list[int]:
    return scores(pod_shape(as_pod(found)), NodeList(names), known.snapshot())


def test_begun_nodes_come_before_whole_ones() -> None:
    known = ledger(node("a"), node("b"), node("c"), pod("old", gpu=4, on="b"))
    best, *rest = scored(known, pod("new", gpu=2), ["b", "a", "c"])
    assert best == 10
    assert max(rest) < 10
    assert min(rest) == 0


def test_reserved_room_counts_as_taken() -> None:
    known = ledger(node("a"), node("b"), gang(seats={"b": 1}, gpu=6))
    assert scored(known, pod("new", gpu=2), ["a", "b"]) == [0, 10]


def test_equal_nodes_are_told_apart_by_name_whatever_the_order() -> None:
    known = ledger(*(node(name) for name in "abc"))
    assert scored(known, pod("new", gpu=2), ["c", "a", "b"])[1] == 10


def test_pods_without_devices_keep_off_idle_ones_and_are_spread_by_the_scheduler() -> None:
    known = ledger(
        node("gpu"),
        node("busy"),
        node("cpu", gpu=0),
        node("cpu-2", gpu=0),
        pod("x", gpu=8, on="busy"),
    )
    assert scored(known, pod("web"), ["gpu", "busy", "cpu", "cpu-2"]) == [0, 10, 10, 10]


def test_nodes_that_vanished_since_the_filter_get_nothing() -> None:
    known = ledger(node("a"))
    assert scored(known, pod("new", gpu=2), ["gone", "a"]) == [0, 10]
    assert scored(known, pod("new", gpu=2), []) == []
    assert scored(ledger(), pod("new", gpu=2), ["gone"]) == [0]
