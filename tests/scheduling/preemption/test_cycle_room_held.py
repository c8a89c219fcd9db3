"""Room is held for a gang while its victims end."""

from dataclasses import replace

import pytest

from scheduling.cycle import SOON
from scheduling.model.queue import (
    Queue,
    Reclaim,
    WhenBlocked,
)
from tests.builders import GPU
from tests.scheduling.preemption.cluster import Cluster, Spec, part
from tests.scheduling.preemption.company import LOWER, taken


@pytest.mark.parametrize("stray_first", [True, False])
def test_pods_of_an_earlier_cluster_of_the_same_name_are_another_part(stray_first: bool) -> None:
    """The earlier ones end: the gang of today runs on, or is stopped for itself."""
    parts = [part("low", {"n1": 2}, ending=True), part("low", {"n2": 8})]
    parts = parts if stray_first else parts[::-1]
    queue, nodes = Queue("a", within_queue=LOWER), {"n1": 2, "n2": 8}
    small = Cluster([queue], nodes, [Spec("high", "a", 2, priority=1)], parts)
    [found] = small.cycle()
    assert [each.is_ending for each in found.parts] == [True]
    wide = Cluster([queue], nodes, [Spec("high", "a", 10, priority=1)], parts)
    [found] = wide.cycle()
    assert [each.is_ending for each in found.parts] == [False]


def test_the_room_is_held_while_the_victims_end_and_others_are_told() -> None:
    """`other` would fit on what is free, and comes first by name: it waits with the reason."""
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [part("low", {"n1": 6})]
    )
    cluster.stop(cluster.cycle())
    for _ in range(3):
        cluster.cycle()
        assert cluster.runs("other") == 0
    assert "room is held for team/high" in cluster.says("other")
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == 8


def test_the_room_is_held_against_gangs_that_come_first_in_the_order() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("small", "b", 2, priority=9)]
    queues = [Queue("a", within_queue=LOWER), Queue("b", quota={GPU: 8})]
    cluster = Cluster(queues, {"n1": 8}, gangs[:1], [part("low", {"n1": 8})])
    cluster.stop(cluster.cycle())
    cluster.end()
    cluster.gangs = gangs
    cluster.cycle()
    assert cluster.runs("high") == 8


def test_the_room_is_free_again_when_the_preemptor_is_gone() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [part("low", {"n1": 6})]
    )
    cluster.stop(cluster.cycle())
    cluster.gangs = gangs[1:]
    cluster.cycle()
    assert cluster.runs("other") == 2


def test_a_gang_that_could_make_no_use_of_its_room_of_late_stops_nothing() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 8, priority=1, setbacks=1)],
        [part("low", {"n1": 8})],
    )
    assert taken(cluster) == {}


def test_another_leader_finds_the_same_without_memory() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8, "n2": 8},
        [Spec("high", "a", 8, priority=1)],
        [part("x", {"n1": 8}, admitted=1), part("y", {"n2": 8}, admitted=2)],
    )
    assert cluster.stop(cluster.cycle())
    assert not cluster.stop(cluster.cycle(forget=True))
    cluster.end()
    cluster.cycle(forget=True)
    assert cluster.runs("high") == 8
    assert cluster.runs("x") == 8


def test_two_preemptors_of_a_cycle_see_each_others_plans() -> None:
    gangs = [Spec("one", "a", 4, priority=1), Spec("two", "a", 4, priority=1, created=1)]
    parts = [part("x", {"n1": 4}, admitted=2), part("y", {"n1": 4}, admitted=1)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8}, gangs, parts)
    assert taken(cluster) == {"one": ["x"], "two": ["y"]}


def test_a_second_preemptor_waits_for_what_the_victims_of_the_first_leave() -> None:
    """Those end for the first alone."""
    gangs = [Spec("one", "a", 4, priority=1), Spec("two", "a", 4, priority=1, created=1)]
    parts = [part("x", {"n1": 8}, admitted=2), part("y", {"n2": 8}, admitted=1)]
    cluster = Cluster([Queue("a", within_queue=LOWER)], {"n1": 8, "n2": 8}, gangs, parts)
    assert taken(cluster) == {"one": ["x"], "two": []}
    assert cluster.says("two").startswith("Preempting: waits until 1 gang (team/x) has ended")
    cluster.stop(cluster.cycle())
    cluster.end()
    cluster.cycle()
    assert [cluster.runs(name) for name in ("one", "two", "y")] == [4, 4, 8]


def test_in_a_strict_queue_nothing_passes_a_gang_that_waits_for_its_victims() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("small", "a", 1)]
    queue = Queue("a", within_queue=LOWER, when_blocked=WhenBlocked.STRICT)
    cluster = Cluster([queue], {"n1": 8, "n2": 1}, gangs, [part("low", {"n1": 8})])
    cluster.cycle()
    assert cluster.says("small").startswith("QueueBlocked: waits behind team/high")


@pytest.mark.parametrize("free", [0, 8])
def test_what_a_cycle_gives_to_one_gang_covers_no_other(free: int) -> None:
    """`one` uses up the quota of `a`, by preemption or on free nodes: `two` reclaims nothing."""
    queues = [
        Queue("company", quota={GPU: 16}),
        Queue("a", "company", quota={GPU: 8}, reclaim=Reclaim.ANY),
        Queue("b", "company"),
    ]
    gangs = [Spec("one", "a", 8), Spec("two", "a", 4, created=1)]
    parts = [part("lent", {"n2": 8}, "b", admitted=2), part("more", {"n3": 8}, "b", admitted=1)]
    cluster = Cluster(queues, {"n1": free, "n2": 8, "n3": 8}, gangs, parts)
    assert taken(cluster) == ({} if free else {"one": ["lent"]})


def test_a_hold_ends_where_its_gang_fits_no_more_and_others_are_decided_anew() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2)]
    low = part("low", {"n1": 6})
    cluster = Cluster([Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [low])
    assert cluster.cycle()
    assert cluster.runs("other") == 0
    cluster.parts = [replace(low, kept_because="it must stay")]
    assert not cluster.cycle()
    assert cluster.runs("other") == 2
    assert cluster.memory is not None
    assert cluster.memory.asks_again_in == SOON


def test_room_that_other_pods_leave_is_news_to_a_gang_for_which_nothing_was_found() -> None:
    cluster = Cluster(
        [Queue("a", within_queue=LOWER)],
        {"n1": 8},
        [Spec("high", "a", 8, priority=1)],
        [part("low", {"n1": 4})],
        foreign={"n1": 4},
    )
    assert taken(cluster) == {}
    cluster.foreign = {}
    assert taken(cluster) == {"high": ["low"]}


def test_a_gang_that_waits_for_quota_is_told_when_the_reason_against_it_changes() -> None:
    queue = Queue("a", quota={GPU: 8}, within_queue=LOWER)
    low = part("low", {"n1": 8})
    cluster = Cluster([queue], {"n1": 16}, [Spec("high", "a", 4, priority=1)])
    for why in ("it must stay", "it is precious"):
        cluster.parts = [replace(low, kept_because=why)]
        cluster.cycle()
        assert cluster.says("high").endswith(why)


def test_the_start_that_is_kept_for_a_gang_does_not_keep_it_from_preempting() -> None:
    queue = Queue("a", quota={GPU: 8}, within_queue=LOWER, when_blocked=WhenBlocked.BACKFILL)
    gangs = [Spec("high", "a", 8, priority=1)]
    cluster = Cluster([queue], {"n1": 16}, gangs, [part("low", {"n1": 8})], ends={"low": 10.0})
    assert taken(cluster) == {"high": ["low"]}


def test_refusals_are_kept_while_room_is_held() -> None:
    gangs = [Spec("high", "a", 8, priority=1), Spec("other", "b", 2), Spec("more", "b", 3)]
    cluster = Cluster(
        [Queue("a", within_queue=LOWER), Queue("b")], {"n1": 8}, gangs, [part("low", {"n1": 7})]
    )
    cluster.stop(cluster.cycle())
    for _ in range(2):
        cluster.cycle()
        assert cluster.memory is not None
        assert cluster.memory.kept == 3


def test_a_start_that_is_kept_for_a_blocked_gang_is_not_taken_by_a_preemption() -> None:
    """`head` starts on n1 when `ends` does, in 10 s; `high` would run on there for ever."""
    queues = [
        Queue("b", quota={GPU: 99}, when_blocked=WhenBlocked.BACKFILL),
        Queue("a", within_queue=LOWER),
    ]
    gangs = [Spec("head", "b", 8), Spec("high", "a", 8, priority=1)]
    parts = [part("ends", {"n1": 4}, "b"), part("low", {"n1": 4}), part("stays", {"n2": 8}, "b")]
    ends = {"ends": 10.0, "low": 10.0}
    cluster = Cluster(queues, {"n1": 8, "n2": 8}, gangs, parts, ends=ends)
    cluster.parts[0] = replace(cluster.parts[0], is_ending=True)
    assert taken(cluster) == {}
    alone = Cluster(queues, {"n1": 8, "n2": 8}, gangs[1:], list(cluster.parts), ends=ends)
    assert taken(alone) == {"high": ["ends", "low"]} or taken(alone) == {"high": ["low"]}


def test_a_gang_that_has_waited_too_long_does_not_take_what_was_promised() -> None:
    """Otherwise `low` would have been stopped in vain."""
    queues = [
        Queue("company"),
        Queue("a", "company", quota={GPU: 8}, within_queue=LOWER),
        Queue("b", "company", quota={GPU: 8}),
    ]
    gangs = [Spec("high", "a", 16, priority=1), Spec("old", "b", 8)]
    cluster = Cluster(queues, {"n1": 16}, gangs[:1], [part("low", {"n1": 16})])
    assert cluster.stop(cluster.cycle())
    cluster.gangs, cluster.aged = gangs, gangs[1:]
    cluster.end()
    cluster.cycle()
    assert cluster.runs("high") == 16
