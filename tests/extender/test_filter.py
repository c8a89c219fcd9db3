"""A pod passes the nodes with room beside bound, nominated, in-flight and reserved pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.filter import NO_ROOM, NO_SLOT, RESERVED, UNKNOWN, Filtered, filter_nodes
from extender.ledger import Ledger
from extender.memory.in_flight_room import NONE_IN_FLIGHT, InFlight, InFlightRoom, PassedPod
from extender.wire.node_lists import NodeList
from kube.objects import names
from tests.extender.worlds import (
    GPU,
    Json,
    as_gang,
    as_node,
    as_watched_pod,
    gang,
    ledger,
    member,
    node,
    pinned,
    pod,
    with_port,
)

AB = ("a", "b")


def ask(
    known: Ledger, found: Json, names: Sequence[str] = AB, in_flight: InFlight = NONE_IN_FLIGHT
) -> Filtered:
    return filter_nodes(as_watched_pod(found), NodeList(names), known.snapshot(), in_flight)


def remembered(answer: Filtered) -> PassedPod:
    assert answer.remember is not None
    return answer.remember


def passed(*them: PassedPod) -> InFlight:
    return InFlight(InFlightRoom.of(them))


def test_a_list_of_names_outlives_the_nodes_it_was_looked_up_among() -> None:
    known, names = ledger(node("b")), NodeList(AB)
    assert filter_nodes(as_watched_pod(pod("new", gpu=1)), names, known.snapshot()).passed == ["b"]
    known.put_node(as_node(node("a")))
    known.put_pod(as_watched_pod(pod("old", gpu=8, on="b")))
    assert filter_nodes(as_watched_pod(pod("new", gpu=1)), names, known.snapshot()).passed == ["a"]


# ---- pods of no gang


def test_a_pod_passes_where_it_fits() -> None:
    known = ledger(node("a"), node("b"), pod("old", gpu=6, on="b"))
    answer = ask(known, pod("new", gpu=4))
    assert (answer.passed, answer.failed, answer.unresolvable) == (["a"], {"b": NO_ROOM}, {})


def test_reserved_room_is_refused_for_good() -> None:
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}))
    answer = ask(known, pod("new", gpu=1))
    assert (answer.passed, answer.failed, answer.unresolvable) == (["b"], {}, {"a": RESERVED})


def test_a_reserved_host_port_is_refused_and_others_are_the_schedulers_matter() -> None:
    running = with_port(pod("old", on="b"), 81)
    known = ledger(node("a"), node("b"), running, with_port(gang(gpu=1, slots={"a": 1}), 80))
    answer = ask(known, with_port(pod("new"), 80))
    assert (answer.passed, answer.failed, answer.unresolvable) == (["b"], {}, {"a": RESERVED})
    assert list(ask(known, with_port(pod("new"), 81)).passed) == ["a", "b"]
    known.put_gang(as_gang(with_port(gang("other", gpu=1, slots={"a": 1}), 81)))
    assert ask(known, with_port(pod("new"), 81)).failed == {"b": NO_ROOM}
    known.remove_gang(as_gang(gang()))
    assert list(ask(known, with_port(pod("new"), 80)).passed) == ["a", "b"]


def test_room_that_is_being_made_for_a_gang_is_refused_before_and_after_the_victim_ends() -> None:
    """Also to its own pods: nothing of it is released before the placement is written."""
    victim = pod("victim", gpu=8, on="a")
    known = ledger(node("a"), node("b"), victim, gang(planned={"a": 1}))
    assert ask(known, pod("new", gpu=1)).passed == ["b"]
    known.remove_pod(victim["metadata"]["uid"])
    asked = ask(known, pod("new", gpu=1))
    assert (asked.passed, asked.unresolvable) == (["b"], {"a": RESERVED})
    own = member(pinned(pod("w", gpu=8), "a"))
    assert ask(known, own).unresolvable == {"a": NO_SLOT, "b": NO_SLOT}
    known.put_gang(as_gang(gang(slots={"a": 1})))
    assert ask(known, own).passed == ["a"]
    assert ask(known, pod("new", gpu=1)).passed == ["b"]


@pytest.mark.parametrize("after", [None, gang(), gang(planned={"b": 1})], ids=str)
def test_room_that_is_made_no_more_is_free(after: Json | None) -> None:
    known = ledger(node("a"), node("b"), gang(planned={"a": 1}))
    known.freed.clear()
    if after is None:
        known.remove_gang(as_gang(gang()))
    else:
        known.put_gang(as_gang(after))
    assert "a" in ask(known, pod("new", gpu=8)).passed
    assert "a" in known.freed


def test_full_is_full_even_where_room_is_reserved_too() -> None:
    known = ledger(node("a"), pod("old", gpu=8, on="a"), gang(slots={"a": 1}))
    assert ask(known, pod("new", gpu=1), ["a"]).failed == {"a": NO_ROOM}


def test_what_a_gang_leaves_free_is_free() -> None:
    known = ledger(node("a"), gang(slots={"a": 1}, gpu=4))
    assert list(ask(known, pod("new", gpu=4), ["a"]).passed) == ["a"]
    assert ask(known, pod("new", gpu=5), ["a"]).unresolvable == {"a": RESERVED}


def test_every_refused_node_is_told_once() -> None:
    known = ledger(node("a"), node("b"), pod("old", gpu=8, on="b"), gang(slots={"a": 1}))
    answer = ask(known, pod("new", gpu=1), ["a", "b", "gone"])
    assert answer.passed == []
    assert answer.failed == {"b": NO_ROOM}
    assert answer.unresolvable == {"a": RESERVED, "gone": UNKNOWN}


def test_a_bound_member_turns_its_reservation_into_use() -> None:
    known = ledger(node("a"), gang(slots={"a": 1}))
    known.put_pod(as_watched_pod(member(pinned(pod("w", gpu=8, on="a"), "a"))))
    assert known.reservations == 0
    assert ask(known, pod("new", gpu=1), ["a"]).failed == {"a": NO_ROOM}


def test_a_lost_member_keeps_its_slot() -> None:
    known = ledger(node("a"), gang(slots={"a": 1}), member(pod("w", gpu=8, on="a")))
    known.remove_pod("uid-w")
    assert ask(known, pod("new", gpu=1), ["a"]).unresolvable == {"a": RESERVED}


def test_room_is_kept_alike_for_gangs_of_ray_clusters_and_of_app_wrappers() -> None:
    wrapped = gang("appwrapper.train", slots={"b": 1}, of="uid-wrapper", kind="AppWrapper")
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}), wrapped)
    stranger = ask(known, pod("other", gpu=1))
    assert (known.reservations, [*stranger.passed]) == (2, [])
    assert stranger.unresolvable == {"a": RESERVED, "b": RESERVED}
    assert ask(known, with_slot()).passed == ["a"]
    assert ask(known, wrapped_with_slot("b")).passed == ["b"]


def wrapped_with_slot(to: str) -> Json:
    """A pod of AppWrapper train, released to a node."""
    labels = {names.APP_WRAPPER: "train", names.APP_WRAPPER_UID: "uid-wrapper"}
    found = pinned(pod("job", gpu=8), to)
    labelled = {**found["metadata"], "labels": {**labels, names.POD_SET: "workers"}}
    return {**found, "metadata": labelled}


def test_a_gang_that_is_gone_reserves_nothing() -> None:
    known = ledger(node("a"), gang(slots={"a": 1}))
    known.freed.clear()
    known.remove_gang(as_gang(gang(slots={"a": 1})))
    assert list(ask(known, pod("new", gpu=1), ["a"]).passed) == ["a"]
    assert known.freed == {"a"}


def test_a_placement_edited_into_nonsense_reserves_nothing() -> None:
    known = ledger(node("a"), gang(slots={"a": -1}))
    assert list(ask(known, pod("new", gpu=1), ["a"]).passed) == ["a"]


def test_pods_without_requests_need_a_slot() -> None:
    bare: Json = pod("bare")
    bare["spec"]["containers"] = [{"name": "c"}]
    known = ledger(node("a"), gang(slots={"a": 1}))
    assert list(ask(known, bare, ["a"]).passed) == ["a"]


def test_a_pod_whose_amounts_cannot_be_read_passes_nowhere() -> None:
    odd: Json = pod("odd")
    odd["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "much"}
    assert ask(ledger(node("a")), odd, ["a"]).failed == {"a": NO_ROOM}


def test_overcommitted_memory_does_not_concern_pods_without_requests() -> None:
    known = ledger(node("a", cpu=1), pod("old", cpu=4, on="a"))
    frugal: Json = pod("frugal", gpu=1)
    del frugal["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert list(ask(known, frugal, ["a"]).passed) == ["a"]


# ---- nominations


@pytest.mark.parametrize(("priority", "passes"), [(5, False), (10, False), (11, True)])
def test_nominated_pods_count_against_their_equals(priority: int, passes: bool) -> None:
    known = ledger(node("a"), pod("waits", gpu=8, nominated="a", priority=10))
    answer = ask(known, pod("new", gpu=1, priority=priority), ["a"])
    assert bool(answer.passed) is passes


def test_a_nomination_does_not_count_against_itself() -> None:
    waits = pod("waits", gpu=8, nominated="a")
    assert list(ask(ledger(node("a"), waits), waits, ["a"]).passed) == ["a"]


def test_a_nominated_member_counts_once() -> None:
    waits = member(pinned(pod("w", gpu=8, nominated="a"), "a"))
    known = ledger(node("a"), gang(slots={"a": 1}), waits)
    assert list(ask(known, waits, ["a"]).passed) == ["a"]
    assert ask(known, pod("new", gpu=1, priority=99), ["a"]).unresolvable == {"a": RESERVED}


def test_nominations_of_more_than_64_bits_can_count_fill_their_node() -> None:
    known = ledger(node("a"))
    for i in range(16):
        known.put_pod(as_watched_pod(pod(f"waits-{i}", gpu=2**60 - (i == 15), nominated="a")))
    assert ask(known, pod("new", gpu=1), ["a"]).failed == {"a": NO_ROOM}


def test_each_nomination_takes_its_own() -> None:
    known = ledger(node("a"), *(pod(f"waits-{i}", gpu=4 - i, nominated="a") for i in range(3)))
    assert ask(known, pod("new", gpu=1), ["a"]).failed == {"a": NO_ROOM}


# ---- what was passed


def test_a_pod_on_its_way_counts_where_room_is_reserved() -> None:
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}, gpu=4))
    first = remembered(ask(known, pod("first", gpu=4)))
    answer = ask(known, pod("second", gpu=4), AB, passed(first))
    assert (list(answer.passed), answer.unresolvable) == (["b"], {"a": RESERVED})


def test_a_pod_on_its_way_counts_where_room_came_to_be_reserved_later() -> None:
    known = ledger(node("a"), node("b"))
    first = remembered(ask(known, pod("first", gpu=4)))
    known.put_gang(as_gang(gang(slots={"a": 1}, gpu=4)))
    answer = ask(known, pod("second", gpu=4), AB, passed(first))
    assert (list(answer.passed), answer.unresolvable) == (["b"], {"a": RESERVED})


def test_a_pod_on_its_way_counts_where_nothing_is_reserved_for_the_scheduler_alone() -> None:
    known = ledger(node("a"))
    first = remembered(ask(known, pod("first", gpu=8), ["a"]))
    assert list(ask(known, pod("second", gpu=8), ["a"], passed(first)).passed) == ["a"]


def test_a_refused_pod_is_not_on_its_way() -> None:
    assert ask(ledger(node("a")), pod("first", gpu=9), ["a"]).remember is None


def test_pods_on_their_way_count_beside_nominated_ones() -> None:
    waits = pod("waits", gpu=4, nominated="a")
    known = ledger(node("a"), gang(slots={"a": 1}, gpu=2), waits)
    first = remembered(ask(known, pod("first", gpu=1), ["a"]))
    for gpus, passes in ((1, True), (2, False)):
        answer = ask(known, pod("second", gpu=gpus), ["a"], passed(first))
        assert bool(answer.passed) is passes


def test_a_pod_on_its_way_keeps_its_node_when_others_come() -> None:
    known = ledger(node("b"), gang(slots={"b": 1}, gpu=4))
    first = remembered(ask(known, pod("first", gpu=4), ["b"]))
    known = ledger(node("a"), node("b"), gang(slots={"b": 1}, gpu=4))
    answer = ask(known, pod("second", gpu=4), AB, passed(first))
    assert list(answer.passed) == ["a"]


def test_a_replica_in_doubt_gives_no_reserved_node() -> None:
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}, gpu=4))
    answer = ask(known, pod("new", gpu=1), AB, InFlight(complete=False))
    assert (list(answer.passed), answer.unresolvable) == (["b"], {"a": RESERVED})


# ---- pods of a gang


def with_slot(name: str = "w", to: str = "a", **more: Any) -> Json:
    return member(pinned(pod(name, gpu=8, **more), to))


def test_a_member_passes_its_own_node_and_no_other() -> None:
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}))
    answer = ask(known, with_slot())
    assert (answer.passed, answer.failed, answer.unresolvable) == (["a"], {}, {"b": NO_SLOT})


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(with_slot(to="b"), id="pinned to a node that is not in the placement"),
        pytest.param(member(pod("w", gpu=8)), id="not pinned"),
        pytest.param(member(pinned(pod("w", gpu=8), "a"), pod_set="other"), id="another pod set"),
    ],
)
def test_a_pin_that_we_did_not_write_leads_nowhere(forged: Json) -> None:
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}))
    answer = ask(known, forged)
    assert (answer.passed, answer.unresolvable) == ([], {"a": NO_SLOT, "b": NO_SLOT})


def test_a_pod_of_a_gang_without_placement_is_refused_everywhere() -> None:
    answer = ask(ledger(node("a"), gang()), with_slot(), ["a"])
    assert (answer.passed, answer.unresolvable) == ([], {"a": NO_SLOT})


def test_a_slot_on_a_node_that_is_not_known_is_none() -> None:
    answer = ask(ledger(node("b"), gang(slots={"a": 1})), with_slot())
    assert (answer.passed, answer.unresolvable) == ([], {"a": NO_SLOT, "b": NO_SLOT})


def test_another_gangs_pin_is_no_slot() -> None:
    known = ledger(node("a"), gang("train", slots={"a": 1}), gang("other"))
    thief = member(pinned(pod("thief", gpu=8), "a"), "other")
    assert ask(known, thief, ["a"]).passed == []


def test_a_stranger_with_our_labels_or_owner_gets_no_reserved_room() -> None:
    known = ledger(node("a"), gang(slots={"a": 1}))
    labelled = member(pinned(pod("forged", gpu=8), "a"))
    labelled["metadata"]["ownerReferences"] = []
    elsewhere = member(pinned(pod("forged", gpu=8), "a"))
    elsewhere["metadata"]["namespace"] = "elsewhere"
    earlier = member(pinned(pod("forged", gpu=8), "a"))
    earlier["metadata"]["ownerReferences"][0]["uid"] = "of an earlier RayCluster"
    for forged in (labelled, elsewhere, earlier):
        assert ask(known, forged, ["a"]).unresolvable == {"a": RESERVED}


def test_a_slot_is_for_one_pod() -> None:
    known = ledger(node("a", gpu=16), gang(slots={"a": 1}), with_slot("first", on="a"))
    assert ask(known, with_slot("second"), ["a"]).unresolvable == {"a": NO_SLOT}


def test_a_slot_is_taken_by_a_member_on_its_way() -> None:
    known = ledger(node("a", gpu=16), gang(slots={"a": 1}))
    first = remembered(ask(known, with_slot("first"), ["a"]))
    assert ask(known, with_slot("second"), ["a"], passed(first)).passed == []


def test_the_slot_of_a_member_that_is_not_on_its_way_any_more_is_free() -> None:
    known = ledger(node("a", gpu=16), gang(slots={"a": 1}))
    in_flight = passed(remembered(ask(known, with_slot("first"), ["a"])))
    in_flight.room.remove("uid-first")
    assert ask(known, with_slot("second"), ["a"], in_flight).passed == ["a"]


def test_a_member_of_another_gang_on_its_way_takes_no_slot_of_ours() -> None:
    known = ledger(node("a", gpu=16), gang(slots={"a": 1}), gang("other", slots={"a": 1}))
    theirs = member(pinned(pod("theirs", gpu=8), "a"), "other")
    first = remembered(ask(known, theirs, ["a"]))
    assert ask(known, with_slot(), ["a"], passed(first)).passed == ["a"]


def test_a_member_on_its_way_counts_once() -> None:
    known = ledger(node("a", gpu=16), gang(slots={"a": 2}))
    first = remembered(ask(known, with_slot("first"), ["a"]))
    assert ask(known, with_slot("second"), ["a"], passed(first)).passed == ["a"]


def test_a_member_gets_its_slot_also_in_doubt() -> None:
    known = ledger(node("a"), gang(slots={"a": 1}))
    assert ask(known, with_slot(), ["a"], InFlight(complete=False)).passed == ["a"]


def test_a_slot_that_another_pod_took_is_full() -> None:
    known = ledger(node("a"), pod("thief", gpu=1, on="a"), gang(slots={"a": 1}))
    assert ask(known, with_slot(), ["a"]).failed == {"a": NO_ROOM}


def test_a_member_that_grew_needs_room_beside_the_other_slots() -> None:
    grown = member(pinned(pod("w", gpu=9), "a"))
    for gpus, passes in ((16, False), (17, True)):
        known = ledger(node("a", gpu=gpus), gang(slots={"a": 2}))
        assert bool(ask(known, grown, ["a"]).passed) is passes


def test_a_member_that_grew_needs_room_beside_pods_on_their_way() -> None:
    grown = member(pinned(pod("w", gpu=9), "a"))
    known = ledger(node("a", gpu=17), gang(slots={"a": 2}))
    first = remembered(ask(known, pod("first", gpu=1), ["a"]))
    assert ask(known, grown, ["a"]).passed == ["a"]
    assert ask(known, grown, ["a"], passed(first)).failed == {"a": NO_ROOM}


def test_what_an_in_flight_member_takes_beyond_its_slot_counts_for_all_pods() -> None:
    grown, second = (member(pinned(pod(name, gpu=9), "a")) for name in ("w", "v"))
    known = ledger(node("a", gpu=17), gang(slots={"a": 2}))
    first = remembered(ask(known, grown, ["a"]))
    assert first.amounts == ((GPU, 1),)
    assert ask(known, second, ["a"], passed(first)).failed == {"a": NO_ROOM}
    assert ask(known, pod("new", gpu=1), ["a"], passed(first)).unresolvable == {"a": RESERVED}
    assert ask(known, with_slot("v"), ["a"], passed(first)).passed == ["a"]


def test_a_pod_of_a_ray_cluster_that_is_no_gang_is_like_any_other() -> None:
    known = ledger(node("a"), node("b"))
    assert list(ask(known, with_slot()).passed) == ["a", "b"]


def test_a_pod_of_a_ray_cluster_that_was_opted_out_is_like_any_other() -> None:
    """Its Gang stays for the sake of quota."""
    known = ledger(node("a"), node("b"), gang(slots={"a": 1}))
    out = gang() | {"status": {"reason": "OptedOut"}}
    known.put_gang(as_gang(out))
    unpinned = member(pod("later", gpu=8))
    assert list(ask(known, unpinned).passed) == ["a", "b"]
    assert list(ask(known, pod("other", gpu=8)).passed) == ["a", "b"]


# ---- whatever the numbers are


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Json], list[Json]]:
    """Two nodes, pods and slots on them; and pods and gangs that come, in any order."""
    many = st.integers(0, 3)
    things: list[Json] = [node(name) for name in AB]
    things += [
        pod(f"old-{i}", gpu=draw(st.integers(0, 4)), on=draw(st.sampled_from(AB)))
        for i in range(draw(many))
    ]
    come = [pod(f"new-{i}", gpu=draw(st.integers(0, 6))) for i in range(draw(st.integers(1, 6)))]
    for i in range(draw(many)):
        slots = {draw(st.sampled_from(AB)): 1}
        placed = gang(f"g{i}", slots=slots, gpu=draw(st.integers(1, 4)))
        draw(st.sampled_from((things, come))).append(placed)
    return things, draw(st.permutations(come))


@given(crowds())
def test_whatever_passes_leaves_every_slot_its_room(crowd: tuple[list[Json], list[Json]]) -> None:
    """Bound unseen wherever they were passed first, no pod lands on room that is reserved then."""
    things, come = crowd
    known = ledger(*things)
    remember: list[PassedPod] = []
    took = dict.fromkeys(AB, 0)
    for found in come:
        if "podSets" in found["spec"]:
            known.put_gang(as_gang(found))
            continue
        answer = ask(known, found, AB, passed(*remember))
        told = [*answer.passed, *answer.failed, *answer.unresolvable]
        assert sorted(told) == sorted(AB)
        remember += [answer.remember] if answer.remember else []
        if answer.passed:
            gpus = int(found["spec"]["containers"][0]["resources"]["requests"].get(GPU, 0))
            took[answer.passed[0]] += gpus
            leaves_room(known, answer.passed[0], took[answer.passed[0]] if gpus else 0)


def leaves_room(known: Ledger, name: str, gpus: int) -> None:
    """A pod that asks for no GPU passes where others are in the way of slots, as it is not."""
    snapshot = known.snapshot()
    at = snapshot.guarded.index[name]
    if snapshot.reserved[at]:
        assert gpus <= max(snapshot.guarded.free[snapshot.guarded.row[GPU], at], 0)


@given(crowds())
def test_the_same_question_gets_the_same_answer(crowd: tuple[list[Json], list[Json]]) -> None:
    things, come = crowd
    known = ledger(*things, *(each for each in come if "podSets" in each["spec"]))
    for found in (each for each in come if "podSets" not in each["spec"]):
        first, second = ask(known, found), ask(known, found)
        assert replace(first, remember=None) == replace(second, remember=None)
