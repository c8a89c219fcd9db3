"""The status of a GangQueue says what the queue holds, and why it is not active."""

from typing import Any

import msgspec
import pytest

from coordinator.queues.census import Census, Counted
from coordinator.queues.queue_usage import Held
from coordinator.queues.registry import QueueRegistry
from coordinator.queues.status import Status, reason_of, recorded, status_of, summary, usage_of
from kube.objects.queues.queue import GangQueue
from scheduling.model.gang import GangKey

GPU = "nvidia.com/gpu"
STAMP = "2026-01-01T00:00:00Z"
KEY, OTHER = GangKey("team", "a"), GangKey("team", "b")


def queue(name: str, parent: str = "", **spec: Any) -> GangQueue:
    rules = {"parent": parent, **spec} if parent else spec
    found = {"metadata": {"name": name, "generation": 3}, "spec": rules}
    return msgspec.convert(found, GangQueue)


def ending(name: str) -> GangQueue:
    meta = {"name": name, "deletionTimestamp": STAMP}
    return msgspec.convert({"metadata": meta}, GangQueue)


def registry_of(*queues: GangQueue) -> QueueRegistry:
    registry = QueueRegistry()
    for each in queues:
        registry.put(each)
    return registry


def told(registry: QueueRegistry, census: Census, name: str) -> Status:
    """The status of a queue whose gangs are those of the census."""
    tree = registry.tree
    held = tree.subtree * 0
    for each, amounts in census.held.items():
        if each in tree.index:
            held[tree.index[each]] += tree.requests(amounts)
    usage = usage_of(tree, held)
    return status_of(registry.objects[name], registry, census, usage, {*registry.objects}, STAMP)


@pytest.mark.parametrize(
    ("queues", "reason"),
    [
        ([queue("a", quota={"cpu": "4"})], "Active"),
        ([queue("a", "none")], "MissingParent"),
        ([queue("a", "b"), queue("b", "c"), queue("c", "a")], "ParentCycle"),
        ([queue("a", "b"), queue("b", "c"), queue("c", "b")], "ParentNotActive"),
        ([queue("a", "b"), queue("b", "none")], "ParentNotActive"),
        ([queue("a", "b"), queue("b", quota={"cpu": "many"})], "ParentNotActive"),
        ([queue("a", "b"), ending("b")], "Active"),
        ([queue("a", quota={"cpu": "-1"})], "InvalidSpec"),
        ([queue("a", "b", quota={GPU: 1}, lendingLimit={GPU: 2}), queue("b")], "InvalidSpec"),
        ([ending("a")], "Terminating"),
    ],
)
def test_the_reason_names_the_fault(queues: list[GangQueue], reason: str) -> None:
    registry = registry_of(*queues)
    assert reason_of("a", registry) == reason
    (condition,) = told(registry, Census(), "a")["conditions"]
    assert (condition["status"] == "True") == (reason == "Active")
    assert condition["reason"] == reason
    assert bool(condition.get("message")) == (reason != "Active")


def test_what_exceeds_the_quota_of_the_subtree_is_borrowed() -> None:
    registry = registry_of(
        queue("all", quota={GPU: 8}), queue("a", "all", quota={GPU: 4, "cpu": 64})
    )
    census = Census()
    census.note(KEY, Counted(held=(Held("a", {GPU: 6, "cpu": 500, "memory": 7}, {GPU: 2}),)))
    census.note(OTHER, Counted(waits_in="a"))
    status = told(registry, census, "a")
    assert (status["pending"], status["admitted"]) == (1, 1)
    assert status["usage"] == {"cpu": "500m", GPU: "6"}, "no queue names memory"
    assert status["reserved"] == {"cpu": "0m", GPU: "2"}
    assert status["borrowed"] == {"cpu": "0m", GPU: "2"}
    assert status["summary"] == f"{GPU} 6/4, cpu 500m/64"
    above = told(registry, census, "all")
    assert above["summary"] == f"{GPU} 6/12, cpu 500m/64"
    assert (above["pending"], above["admitted"]) == (0, 0)


def test_a_parent_says_what_the_queues_below_it_keep() -> None:
    """112 of 112 are used, and the queues below use 16, 64 and 48."""
    quotas = {"a": 16, "b": 64, "c": 48}
    below = [queue(name, "all", quota={GPU: most}) for name, most in quotas.items()]
    below[0] = queue("a", "all", quota={GPU: 16}, lendingLimit={GPU: 0})
    census = Census()
    for name, most in quotas.items():
        census.note(GangKey("team", name), Counted(held=(Held(name, {GPU: most}, {}),)))
    registry = registry_of(queue("all"), *below)
    assert told(registry, census, "all")["summary"] == f"{GPU} 112/112 (and 16 kept below)"
    assert told(registry, census, "a")["summary"] == f"{GPU} 16/16"


def test_a_queue_that_is_not_active_says_what_its_own_gangs_hold() -> None:
    registry = registry_of(queue("a", "none", quota={GPU: 4}))
    census = Census()
    census.note(KEY, Counted(held=(Held("a", {GPU: 6, "cpu": 500}, {}),)))
    status = told(registry, census, "a")
    assert status["usage"] == {GPU: "6"}
    assert status["summary"] == f"{GPU} 6"
    assert "borrowed" not in status


def test_gangs_that_go_are_counted_no_more() -> None:
    census = Census()
    census.note(KEY, Counted("a", (Held("a", {GPU: 6}, {GPU: 6}),)))
    census.changed.clear()
    census.note(KEY, Counted("a", (Held("a", {GPU: 6}, {GPU: 6}),)))
    assert not census.changed
    census.note(KEY, Counted("", (Held("b", {GPU: 1}, {}),)))
    assert census.changed == {"a", "b"}
    census.note(KEY, Counted())
    assert not any(census.pending.values())
    assert not any(census.admitted.values())
    assert not any(amount for held in census.held.values() for amount in held.values())


def test_the_summary_has_devices_first_and_few_resources() -> None:
    used = {"cpu": 4000, "memory": 2**33, "ephemeral-storage": 0, GPU: 3}
    assert (
        summary(used, {GPU: 4, "cpu": 8000}, {})
        == f"{GPU} 3/4, cpu 4/8, ephemeral-storage 0, and 1 more"
    )
    assert summary({"cpu": 1500}, {"cpu": 2**60}, {}) == "cpu 1500m/unlimited"
    assert summary({}, {}, {}) == ""


def test_a_status_that_was_written_reads_back_the_same() -> None:
    registry = registry_of(queue("a", quota={GPU: 4}))
    status = told(registry, Census(), "a")
    written = msgspec.convert(
        {"metadata": {"name": "a", "generation": 3}, "spec": {"quota": {GPU: 4}}, "status": status},
        GangQueue,
    )
    assert recorded(written) == status
    registry.put(written)
    tree = registry.tree
    usage = usage_of(tree, tree.subtree * 0)
    later = status_of(written, registry, Census(), usage, {"a"}, "2027-01-01T00:00:00Z")
    assert later == status
