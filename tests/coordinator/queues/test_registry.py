"""The GangQueues that were seen: what gangs can name, which are active, and the tree of those."""

from typing import Any

import msgspec
import numpy as np

from coordinator.queues.registry import ENDING, QueueRegistry
from kube.objects.queues.queue import GangQueue
from scheduling.model.queue import DEFAULT_QUEUE

GPU = "nvidia.com/gpu"


def seen(name: str, *, ending: bool = False, **spec: Any) -> GangQueue:
    meta = {"name": name, "deletionTimestamp": "2026-01-01T00:00:00Z" if ending else None}
    return msgspec.convert({"metadata": meta, "spec": spec}, GangQueue)


def registry(*queues: GangQueue) -> QueueRegistry:
    found = QueueRegistry()
    for each in queues:
        found.put(each)
    return found


def test_without_any_gangqueue_there_is_the_default_one() -> None:
    assert registry().tree.names == (DEFAULT_QUEUE,)
    assert registry().rules == {}


def test_a_gangqueue_named_default_replaces_the_built_in_one() -> None:
    found = registry(seen(DEFAULT_QUEUE, quota={GPU: 8}))
    assert found.tree.names == (DEFAULT_QUEUE,)
    assert found.queue(DEFAULT_QUEUE).quota == {GPU: 8}


def test_a_queue_that_does_not_work_is_no_part_of_the_tree_and_says_why() -> None:
    found = registry(seen("a", parent="nowhere"), seen("b", parent="a"), seen("c"))
    assert set(found.tree.names) == {DEFAULT_QUEUE, "c"}
    assert found.faults["a"] == "spec.parent: there is no GangQueue 'nowhere'"
    assert "a" in found.rules, "gangs may name it, and wait"


def test_a_quantity_that_cannot_be_read_stops_its_queue_and_those_below() -> None:
    found = registry(seen("a", quota={GPU: "many"}), seen("b", parent="a"), seen("c"))
    assert found.faults["a"].startswith('spec.quota[nvidia.com/gpu]: "many" is not valid')
    assert found.faults["b"] == "spec.parent: queue 'a' above it is not active"
    assert "c" in found.tree.names


def test_a_queue_that_is_being_deleted_admits_nothing_and_still_counts_for_its_parent() -> None:
    found = registry(seen("all", quota={GPU: 8}), seen("a", ending=True, parent="all"))
    assert found.faults == {"a": ENDING}
    assert "a" in found.tree.names


def test_a_queue_that_is_being_deleted_lends_nothing() -> None:
    """Of its 8 it uses 2 and lends none, and those 2 are borrowed from nobody."""
    ending = seen("a", ending=True, parent="all", quota={GPU: 8})
    tree = registry(seen("all", quota={GPU: 1}), ending, seen("b", parent="all")).tree
    held = np.zeros((len(tree.names), 1), dtype=np.int64)
    held[tree.index["a"]] = 2
    available = tree.available(tree.used(held))
    assert available[tree.index["b"]] == [1]


def test_only_a_change_of_rules_is_news() -> None:
    found = registry(seen("a", quota={GPU: 8}))
    tree = found.tree
    assert not found.put(seen("a", quota={GPU: 8}))
    assert found.tree is tree
    assert found.put(seen("a", quota={GPU: 9}))
    assert found.tree is not tree
    assert found.put(seen("a", quota={GPU: 9}, ending=True))


def test_gangs_look_for_their_queue_again_only_where_a_name_or_selector_changes() -> None:
    found = registry(seen("a", quota={GPU: 8}, namespaceSelector={}))
    before = found.selections
    found.put(seen("a", quota={GPU: 9}, namespaceSelector={}))
    assert found.rules["a"].quota == {GPU: 9}
    assert found.selections is before
    found.put(seen("a", quota={GPU: 9}, namespaceSelector={"matchLabels": {"team": "a"}}))
    assert found.selections is not before
    assert found.selections.queues["a"] == found.rules["a"]
    found.drop("a")
    assert found.selections.queues == {}


def test_a_queue_that_is_gone_is_forgotten() -> None:
    found = registry(seen("a"))
    assert found.drop("a")
    assert not found.drop("a")
    assert found.rules == {}
