"""What gangs hold of quota: pods on nodes, ending ones as well, and reserved slots."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, cast

import pytest

from coordinator.queues.queue_usage import QuotaLedger
from kube.codec.observed_pod import ObservedPod
from reservation.slots import Reserved
from scheduling.model.gang import GangKey
from scheduling.model.queue import Queue
from scheduling.queueing.quota_tree import QuotaTree

GPU = "nvidia.com/gpu"
KEY, OTHER = GangKey("team", "g"), GangKey("team", "h")
TREE = QuotaTree([Queue("a", quota={GPU: 8}), Queue("b", quota={GPU: 8, "cpu": 1000})])


@dataclass
class Pod:
    """As much of an ObservedPod as the ledger reads."""

    holds: str
    used: tuple[tuple[str, int], ...]
    terminating: bool = False


def pods(*gpus: int, on: str = "n1", **more: Any) -> list[ObservedPod]:
    return cast(list[ObservedPod], [Pod(on, ((GPU, each),), **more) for each in gpus])


def reserving(gpus: int) -> Reserved:
    return Reserved(room=Counter({("n1", ((GPU, gpus),)): 1}))


NOTHING = Reserved()


def gpus(ledger: QuotaLedger, queue: str = "a", tree: QuotaTree = TREE) -> int:
    return int(ledger.held(tree)[tree.index[queue], tree.column[GPU]])


@pytest.fixture
def ledger() -> QuotaLedger:
    found = QuotaLedger()
    found.held(TREE)
    return found


def test_pods_on_nodes_and_reserved_slots_count(ledger: QuotaLedger) -> None:
    ledger.note(KEY, "uid", "a", pods(2, 1), reserving(4))
    assert gpus(ledger) == 7


def test_a_pod_that_is_ending_counts_and_one_without_node_does_not(ledger: QuotaLedger) -> None:
    ledger.note(KEY, "uid", "a", [*pods(2, terminating=True), *pods(5, on="")], NOTHING)
    assert gpus(ledger) == 2


def test_what_is_noted_again_replaces_what_was(ledger: QuotaLedger) -> None:
    ledger.note(KEY, "uid", "a", pods(2), NOTHING)
    ledger.note(OTHER, "uid", "a", pods(1), NOTHING)
    ledger.note(KEY, "uid", "a", pods(3), NOTHING)
    assert gpus(ledger) == 4
    ledger.note(KEY, "uid", "a", [], NOTHING)
    assert (gpus(ledger), ledger.queue_of(KEY, "uid")) == (1, None)


def test_a_gang_that_changes_its_queue_counts_in_the_new_one(ledger: QuotaLedger) -> None:
    ledger.note(KEY, "uid", "a", pods(2), NOTHING)
    ledger.note(KEY, "uid", "b", pods(2), NOTHING)
    assert (gpus(ledger, "a"), gpus(ledger, "b")) == (0, 2)


def test_an_earlier_ray_cluster_of_the_name_stays_with_its_queue(ledger: QuotaLedger) -> None:
    ledger.note(KEY, "old", "a", pods(2), NOTHING)
    ledger.note(KEY, "new", "b", pods(1), NOTHING)
    assert (gpus(ledger, "a"), gpus(ledger, "b")) == (2, 1)
    ledger.note(KEY, "old", "a", [], NOTHING)
    assert (gpus(ledger, "a"), gpus(ledger, "b")) == (0, 1)


def test_another_tree_counts_the_same_gangs(ledger: QuotaLedger) -> None:
    ledger.note(KEY, "uid", "b", pods(2), NOTHING)
    other = QuotaTree([Queue("b", quota={GPU: 1})])
    assert gpus(ledger, "b", other) == 2


def test_it_says_when_a_queue_has_more_to_give(ledger: QuotaLedger) -> None:
    assert not ledger.note(KEY, "uid", "a", pods(2), NOTHING)
    assert not ledger.note(KEY, "uid", "a", pods(3), NOTHING)
    assert ledger.note(KEY, "uid", "a", pods(1), NOTHING)
    assert ledger.note(KEY, "uid", "b", pods(1), NOTHING), "queue a has"
    assert ledger.note(KEY, "uid", "b", [], NOTHING)
