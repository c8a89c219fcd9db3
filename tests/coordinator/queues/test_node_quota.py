"""Who may ask an autoscaler for nodes within quota, and who waits to, in which order."""

from types import SimpleNamespace
from typing import cast

import pytest

from coordinator.queues.node_quota import NEXT_TURN, PER_PLACE, NodeQuota
from coordinator.queues.queue_usage import QuotaLedger
from coordinator.queues.registry import QueueRegistry
from scheduling.model.gang import GangKey, Group, PendingGang
from scheduling.model.queue import Queue
from scheduling.queueing.quota_tree import QuotaTree

GPU = "nvidia.com/gpu"


@pytest.fixture
def registry() -> QueueRegistry:
    tree = QuotaTree([Queue("a", quota={GPU: 4}), Queue("b", quota={GPU: 4})])
    return cast(QueueRegistry, SimpleNamespace(tree=tree))


@pytest.fixture
def quota(registry: QueueRegistry) -> NodeQuota:
    return NodeQuota(QuotaLedger(), registry)


def gang(name: str, gpus: int, created: float = 0.0, *, is_repair: bool = False) -> PendingGang:
    shape = SimpleNamespace(requests=((GPU, gpus),))
    groups = (cast(Group, SimpleNamespace(pod_set="workers", shape=shape, count=1)),)
    key = GangKey("team", name)
    return PendingGang(key, 0, created, groups, queue="a", is_repair=is_repair)


def test_those_in_line_ask_as_they_came_once_what_was_asked_before_is_over(
    quota: NodeQuota,
) -> None:
    first, second, third = gang("x", 4), gang("y", 4, 2.0), gang("z", 4, 1.0)
    assert [quota.ask(each) for each in (first, second, third)] == [True, False, False]
    quota.drop(first.key)
    assert [quota.ask(each) for each in (second, third)] == [False, True]


def test_no_gang_in_line_keeps_another_from_what_it_has_lost(quota: NodeQuota) -> None:
    first, second, repair = gang("x", 4), gang("y", 4, 1.0), gang("z", 1, 2.0, is_repair=True)
    assert [quota.ask(each) for each in (first, second, repair)] == [True, False, False]
    quota.drop(first.key)
    assert [quota.ask(each) for each in (repair, second)] == [True, False]


def test_the_line_is_counted_anew_where_queues_change(
    quota: NodeQuota, registry: QueueRegistry
) -> None:
    gangs = [gang("x", 4), gang("y", 2, 1.0), gang("z", 2, 2.0), gang("w", 1, 3.0)]
    assert [quota.ask(each) for each in gangs] == [True, False, False, False]
    registry.tree = QuotaTree([Queue("a", quota={GPU: 8, "cpu": 1})])  # type: ignore[misc]
    assert [quota.ask(each) for each in reversed(gangs[1:])] == [False, True, True]


def test_a_gang_far_back_in_line_is_looked_at_less_often(quota: NodeQuota) -> None:
    gangs = [gang(f"g{at}", 4, at) for at in range(502)]
    for each in gangs:
        quota.ask(each)
    turns = [quota.turn(each) for each in gangs[1:]]
    assert (turns[0], turns[-1]) == (NEXT_TURN, 500 * PER_PLACE)
    assert sum(1 / each for each in turns) < 50
