"""The cache merges what two watches and the answers to our own requests say of one pod."""

from typing import Any

import msgspec
import pytest

from coordinator.cluster.cache import ClusterCache
from coordinator.messages.events import Teller
from kube.codec.observed_pod import ObservedPod, observe
from kube.objects import core as core_objects
from tests.coordinator.builders import foreign_pod, node

PODS, RAY_PODS = Teller.POD_WATCH, Teller.RAY_POD_WATCH


def pod(version: int, **labels: str) -> ObservedPod:
    """A pod of 4 CPUs on n1."""
    made: dict[str, Any] = foreign_pod("a", "n1", cpu=4)
    made["metadata"] |= {"uid": "uid", "resourceVersion": str(version), "labels": labels}
    return observe(msgspec.convert(made, core_objects.Pod))


@pytest.fixture
def cache() -> ClusterCache:
    cache = ClusterCache()
    cache.put_node(msgspec.convert(node("n1", cpu=8), core_objects.Node))
    cache.put_pod(pod(1), PODS)
    return cache


def used(cache: ClusterCache) -> int:
    columns = cache.columns()
    return int(columns.used[columns.row["cpu"], 0])


def gone(cache: ClusterCache, teller: Teller) -> None:
    cache.remove_pod("others", "a", "uid", teller)


def test_a_relabelled_pod_counts_when_the_old_watch_lets_go_first(cache: ClusterCache) -> None:
    gone(cache, PODS)
    cache.put_pod(pod(2), RAY_PODS)
    assert used(cache) == 4000
    gone(cache, RAY_PODS)
    assert used(cache) == 0


def test_a_relabelled_pod_counts_once_when_the_new_watch_is_first(cache: ClusterCache) -> None:
    cache.put_pod(pod(2), RAY_PODS)
    assert used(cache) == 4000
    gone(cache, PODS)
    assert used(cache) == 4000
    gone(cache, RAY_PODS)
    assert used(cache) == 0


def test_an_answer_after_the_end_of_a_pod_brings_it_not_back(cache: ClusterCache) -> None:
    gone(cache, PODS)
    assert cache.put_pod(pod(3), Teller.ANSWER) is None
    assert used(cache) == 0


def test_an_answer_that_a_pod_is_gone_is_believed_at_once(cache: ClusterCache) -> None:
    gone(cache, Teller.ANSWER)
    assert used(cache) == 0
