"""Queues that cannot work as they are written are named with the reason."""

from scheduling.model.queue import Queue
from scheduling.queueing.faults import faults, rooted

GPU = "nvidia.com/gpu"


def found(*queues: Queue) -> dict[str, str]:
    return faults({each.name: each for each in queues})


def test_a_sound_tree_has_no_faults() -> None:
    assert found(Queue("all"), Queue("a", "all", {GPU: 8}, {GPU: 2}, {GPU: 8})) == {}


def test_a_missing_parent_is_named_and_what_is_below_is_not_active() -> None:
    assert found(Queue("a", "all"), Queue("b", "a"), Queue("c")) == {
        "a": "spec.parent: there is no GangQueue 'all'",
        "b": "spec.parent: queue 'a' above it is not active",
    }


def test_a_circle_is_told_as_a_way_and_what_hangs_on_it_is_not_active() -> None:
    assert found(Queue("a", "b"), Queue("b", "c"), Queue("c", "b")) == {
        "a": "spec.parent: queue 'b' above it is not active",
        "b": "spec.parent: the parents form a circle: b -> c -> b",
        "c": "spec.parent: the parents form a circle: c -> b -> c",
    }


def test_a_queue_lends_no_more_than_its_quota() -> None:
    fault = found(Queue("all"), Queue("a", "all", {GPU: 4}, lending_limit={GPU: 5}))["a"]
    assert "lendingLimit[nvidia.com/gpu]: 5 is more than the quota of 4" in fault


def test_what_the_members_of_a_queue_lend_beyond_it_is_no_matter_of_its_own_quota() -> None:
    inner = Queue("a", "all", {GPU: 4}, lending_limit={GPU: 5, "cpu": 1})
    assert found(Queue("all"), inner, Queue("b", "a", {GPU: 4})) == {}


def test_limits_need_a_parent() -> None:
    assert "borrowingLimit" in found(Queue("a", "", {GPU: 4}, {GPU: 5}))["a"]


def test_queues_whose_parents_lead_nowhere_are_told_apart() -> None:
    queues = ("root", ""), ("leaf", "root"), ("lost", "nowhere"), ("below", "lost"), ("a", "b")
    made = {name: Queue(name, parent) for name, parent in (*queues, ("b", "a"), ("c", "a"))}
    assert rooted(made) == {"root", "leaf"}
