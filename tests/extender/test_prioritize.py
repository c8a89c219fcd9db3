"""A pod goes where whole nodes stay free for gangs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender import prioritize
from extender.ledger import Ledger
from extender.prioritize import scores
from extender.wire.node_lists import NodeList
from scheduling.filters import free_capacity
from scheduling.filters.free_capacity import FreeCapacity
from scheduling.model.amounts import Amounts, Positions
from scheduling.model.pod import PodShape
from scheduling.scoring.node_scores import points
from tests.extender.worlds import (
    GPU,
    Json,
    as_gang,
    as_node,
    as_watched_pod,
    gang,
    ledger,
    node,
    pod,
    with_port,
)


def scored(known: Ledger, found: Json, names: Sequence[str]) -> list[int]:
    return scores(as_watched_pod(found).pod.used, NodeList(names), known.snapshot())


def test_begun_nodes_come_before_whole_ones() -> None:
    known = ledger(node("a"), node("b"), node("c"), pod("old", gpu=4, on="b"))
    best, *rest = scored(known, pod("new", gpu=2), ["b", "a", "c"])
    assert best == 10
    assert max(rest) < 10
    assert min(rest) == 0


def test_reserved_room_counts_as_taken() -> None:
    known = ledger(node("a"), node("b"), gang(slots={"b": 1}, gpu=6))
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


def test_a_pod_that_asks_for_no_device_by_name_asks_for_none() -> None:
    known, none = ledger(node("gpu"), node("cpu", gpu=0)), pod("web", overhead={GPU: "0"})
    assert scored(known, none, ["gpu", "cpu"]) == [0, 10]


def test_taints_are_for_others_to_judge() -> None:
    """kube-scheduler has asked its plugins before: the pod may go to any node that is listed."""
    old = [pod(f"old-{name}", gpu=1, cpu=4, on=name) for name in ("poor", "rich")]
    known = ledger(node("poor", cpu=24), node("rich"), *old)
    hungry, names = pod("new", gpu=1, cpu=12), ["poor", "rich"]
    assert scored(known, hungry, names) == [0, 10]
    for found in (node("poor", cpu=24), node("rich")):
        taints = {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
        known.put_node(as_node({**found, "spec": taints}))
    assert scored(known, hungry, names) == [0, 10]


@pytest.mark.parametrize("gpu", [0, 2])
def test_host_ports_change_no_score_and_are_not_counted(
    gpu: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kube-scheduler has judged them; a pod may have as many as fit into an object of the API."""
    asked: list[PodShape] = []

    def noted(shape: PodShape, room: FreeCapacity, nodes: Positions) -> Amounts:
        asked.append(shape)
        return points(shape, room, nodes)

    monkeypatch.setattr(prioritize, "points", noted)
    many = [{"hostPort": port, "hostIP": f"10.0.0.{port % 250}"} for port in range(1, 1001)]
    plain = pod("new", gpu=gpu)
    [container] = plain["spec"]["containers"]
    ported = {**plain, "spec": {"containers": [{**container, "ports": many}]}}
    known, names = ledger(node("a"), node("b"), pod("old", gpu=4, on="b")), ["a", "b", "gone"]
    known.put_pod(as_watched_pod(with_port(pod("server", gpu=1, on="a"), 7)))
    assert len(as_watched_pod(ported).pod.used) > 2_000
    assert scored(known, ported, names) == scored(known, plain, names)
    assert all(shape.ports == () for shape in asked)
    assert len(asked) == (2 if gpu else 0)


NAMES = ("a", "b", "c")


@st.composite
def news(draw: st.DrawFn) -> Json:
    """A node, a pod that comes, moves on or ends, or a gang that reserves."""
    name, gpus = draw(st.sampled_from(NAMES)), draw(st.integers(0, 4))
    found = draw(st.sampled_from(("node", "pod", "pod", "pod", "gang")))
    if found == "node":
        return node(name, gpu=gpus)
    if found == "gang":
        return gang(draw(st.sampled_from(("g", "h"))), slots={name: 1}, gpu=gpus + 1)
    come = pod(f"p{draw(st.integers(0, 3))}", gpu=gpus, cpu=draw(st.integers(1, 40)), on=name)
    come["status"]["phase"] = draw(st.sampled_from(("Running", "Running", "Failed")))
    return come


def take(known: Ledger, found: Json) -> None:
    if "podSets" in found.get("spec", {}):
        known.put_gang(as_gang(found))
    elif "spec" in found:
        known.put_pod(as_watched_pod(found))
    else:
        known.put_node(as_node(found))


@given(st.lists(news(), max_size=12), st.integers(1, 3))
def test_scores_equal_those_of_a_new_ledger(come: list[Json], kept: int) -> None:
    """What is known of a node is worked out anew where it changed, and nowhere else."""
    asked = [pod("new", gpu=gpus, cpu=8) for gpus in (0, 1, 2)]
    known = ledger(*(node(name) for name in NAMES))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(free_capacity, "CHANGES_KEPT", kept)
        for at, found in enumerate(come):
            take(known, found)
            if at % 2:
                continue  # sometimes much comes between two questions
            fresh = ledger(*(node(name) for name in NAMES), *come[: at + 1])
            for each in asked:
                assert scored(known, each, NAMES) == scored(fresh, each, NAMES)
