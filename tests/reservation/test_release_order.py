"""Waves of releases: what is held back, and what happens to placements that have several."""

from dataclasses import replace

from kube.codec.observed_pod import ObservedPod
from reservation.edits import merged
from reservation.release_order import (
    held_back,
    is_ordered,
    order_in_words,
    waves_of,
    without_passed,
    without_waiting,
)
from reservation.slots import kind_of
from scheduling.model.placement import Assignment, Placement
from tests.reservation.test_slots import worker


def in_waves(*waves: str) -> Placement:
    """One slot on each of the nodes named, all of the wave at that place."""
    kind = kind_of(worker("any"))
    assert kind is not None
    used = worker("any").used
    return Placement(
        tuple(
            Assignment(*kind, used, tuple((node, 1) for node in nodes.split()), wave)
            for wave, nodes in enumerate(waves)
            if nodes
        )
    )


def bound(*nodes: str) -> list[ObservedPod]:
    return [worker(f"on-{node}", node) for node in nodes]


def held(placement: Placement, *on: str) -> str:
    """The nodes whose slots are held back while pods on these are bound."""
    return " ".join(sorted(slot.node for slot in held_back(placement, bound(*on))))


def test_a_wave_is_due_once_all_before_it_are_bound() -> None:
    placement = in_waves("n1 n2", "n3", "n4")
    assert [held(placement, *on) for on in ((), ("n1",), ("n1", "n3"))] == ["n3 n4"] * 3
    assert held(placement, "n1", "n2") == "n4"
    assert held(placement, "n1", "n2", "n3") == ""
    assert held(placement, "n1", "n2", "n3", "n4") == ""
    assert held(in_waves("n1")) == ""


def test_a_pod_that_is_being_deleted_holds_up_the_waves_after_its_own() -> None:
    leaving = [replace(each, terminating=True) for each in bound("n1")]
    assert {slot.node for slot in held_back(in_waves("n1", "n2"), leaving)} == {"n2"}


def test_one_wave_is_no_order_and_not_worth_a_word() -> None:
    assert is_ordered(in_waves("n1", "n2"))
    assert not is_ordered(in_waves("n1 n2"))
    assert order_in_words(in_waves("n1", "n2", "n3")) == " in 3 waves"
    assert order_in_words(in_waves("n1 n2")) == ""


def test_vacant_slots_of_waves_before_the_last_that_was_begun_are_given_up() -> None:
    placement = in_waves("n1 n2", "n3 n4")
    assert without_passed(placement, bound("n1")) is placement
    assert without_passed(placement, bound("n1", "n3")) == in_waves("n1", "n3 n4")
    assert without_passed(in_waves("n1 n2"), bound("n1")) == in_waves("n1 n2")


def test_all_vacant_slots_of_an_ordered_placement_are_given_up() -> None:
    placement = in_waves("n1 n2", "n3 n4")
    assert without_waiting(placement, bound("n1", "n3")) == in_waves("n1", "n3")
    assert without_waiting(in_waves("n1 n2"), bound("n1")) == in_waves("n1 n2")


def test_what_is_decided_later_does_not_come_between_the_waves() -> None:
    """With the last one, or after it while a pod of what was there is not bound."""
    first = in_waves("n1", "n2")
    assert merged(first, in_waves("n3"), bound("n1", "n2")) == in_waves("n1", "n2 n3")
    assert merged(first, in_waves("n3"), bound("n1")) == in_waves("n1", "n2", "n3")
    assert merged(first, in_waves("n3", "n4"), bound("n1")) == in_waves("n1", "n2", "n3", "n4")
    assert merged(in_waves("n1"), in_waves("n2", "n3"), []) == in_waves("n1 n2", "n3")


def test_a_second_pod_beside_one_of_its_kind_has_its_wave() -> None:
    """Whatever lets the one in on a node lets in the other."""
    both = merged(in_waves("n1", "n2"), in_waves("n1"), bound("n1", "n2"))
    assert set(waves_of(both).values()) == {0, 1}
    assert [(each.wave, each.nodes) for each in both.assignments] == [
        (0, (("n1", 2),)),
        (1, (("n2", 1),)),
    ]
