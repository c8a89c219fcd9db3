"""A pod of others that claims devices leaves those that a gang is to get."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.filter import DEVICES, NO_ROOM, RESERVED, Filtered, filter_nodes
from extender.ledger import Ledger
from extender.memory.in_flight import InFlightPods
from extender.memory.in_flight_room import NONE_IN_FLIGHT, InFlight
from extender.preempt import Rules, kept_nodes
from extender.prioritize import scores
from extender.unscheduled_pods import UnscheduledPods
from extender.wire.node_lists import NodeList
from kube.devices.resource_claims import resource_claim
from kube.devices.resource_slices import ReadSlice, resource_slice
from kube.objects import names
from tests.extender.claimed import (
    ONE,
    a_gang_and_its_devices,
    claiming,
    name_resource,
    put_claim,
    put_slice,
    see_all,
    worker,
)
from tests.extender.worlds import (
    TEAM,
    Json,
    as_gang,
    as_node,
    as_watched_pod,
    gang,
    member,
    node,
    pinned,
    pod,
)
from tests.kube.devices.objects import GPU, claim_spec, decoded, gpu, request

AB = ["a", "b"]
KEPT = {"a": DEVICES}


def ask(
    known: Ledger, found: Json, in_flight: InFlight = NONE_IN_FLIGHT, names: list[str] = AB
) -> Filtered:
    return filter_nodes(as_watched_pod(found), NodeList(names), known.snapshot(), in_flight)


def stranger(known: Ledger, name: str = "stranger", spec: Json = ONE) -> Json:
    put_claim(known, name, spec)
    return claiming(name)


def test_a_stranger_does_not_take_the_device_that_a_gang_is_to_get() -> None:
    known = a_gang_and_its_devices("0", "1", slots=2)
    answer = ask(known, stranger(known))
    assert (answer.passed, answer.unresolvable) == (["b"], KEPT)
    assert ask(known, pod("plain")).passed == AB


def test_it_passes_where_another_device_is_left() -> None:
    known = a_gang_and_its_devices("0", "1", "2", slots=2)
    assert ask(known, stranger(known)).passed == AB


def test_what_a_member_was_allocated_is_taken_once() -> None:
    """Its claim shows the device before it is seen bound."""
    known = a_gang_and_its_devices("0", "1", slots=1)
    known.put_pod(as_watched_pod(worker("w0", to="a")))
    put_claim(known, "w0", ONE, "0", on="a")
    assert ask(known, stranger(known)).passed == AB


def test_a_member_that_is_bound_counts_until_its_claim_shows_the_device() -> None:
    known = a_gang_and_its_devices("0", "1", slots=2)
    known.put_pod(as_watched_pod(worker("w0", on="a")))
    asked = stranger(known)
    assert ask(known, asked).unresolvable == KEPT
    known.put_pod(as_watched_pod(worker("w1", on="a")))
    put_claim(known, "w0", ONE, "0", on="a")
    put_claim(known, "w1", ONE, "1", on="a")
    assert ask(known, asked).passed == AB


def test_the_slot_of_a_lost_member_keeps_the_device_that_its_like_would_get() -> None:
    known = a_gang_and_its_devices("0", "1", slots=2)
    known.remove_pod("uid-w1")
    assert ask(known, stranger(known)).unresolvable == KEPT
    known.remove_pod("uid-w0")
    assert ask(known, claiming("stranger")).passed == AB, "nobody tells what it would claim"


def test_a_planned_slot_keeps_devices_too_and_a_gang_that_has_gone_none() -> None:
    known = a_gang_and_its_devices("0")
    known.put_gang(as_gang(gang(planned={"b": 1}, gpu=0)))
    asked = stranger(known)
    assert ask(known, asked).unresolvable == {"b": DEVICES}
    known.remove_gang(as_gang(gang(gpu=0)))
    assert ask(known, asked).passed == AB


def test_pods_that_were_passed_count_until_their_claims_show_devices() -> None:
    """The first may be on either node, so it counts on both: the second may not have `a`."""
    known = a_gang_and_its_devices("0", "1")
    in_flight = InFlightPods(settle=0.0, keep=60.0, limit=100)
    first = ask(known, stranger(known, "first"))
    assert first.passed == AB
    in_flight.answered("uid-first", first.remember, 0.0)
    second = stranger(known, "second")
    assert ask(known, second, in_flight.view_for("uid-second", 0.0)).unresolvable == KEPT
    put_claim(known, "first", ONE, "0", on="b")
    assert ask(known, second, in_flight.view_for("uid-second", 0.0)).passed == AB
    put_claim(known, "first")
    in_flight.settled("uid-first")
    known.put_pod(as_watched_pod(claiming("first", on="a")))
    assert ask(known, second, in_flight.view_for("uid-second", 0.0)).unresolvable == KEPT


def test_a_member_passes_for_its_slot_and_has_its_device_from_then_on() -> None:
    """The device that the allocator gives the member first leaves another to the stranger."""
    either = claim_spec(request(selectors=[]))
    known = a_gang_and_its_devices("0", "1", slots=1)
    known.put_pod(as_watched_pod(worker("w0", to="a")))
    in_flight = InFlightPods(settle=0.0, keep=60.0, limit=100)
    answer = ask(known, worker("w0", to="a"))
    assert answer.passed == ["a"]
    in_flight.answered("uid-w0", answer.remember, 0.0)
    asked = stranger(known, spec=either)
    assert ask(known, asked, in_flight.view_for("uid-stranger", 0.0)).passed == AB


def test_the_order_is_that_of_the_allocator() -> None:
    """Of any device it takes the first, which is the one that the gang needs; or is not."""
    h100 = {"cel": {"expression": 'device.attributes["gpu.example.com"].model == "H100"'}}
    t4 = {"model": {"string": "T4"}}
    first, last = [gpu("0"), gpu("1", attributes=t4)], [gpu("0", attributes=t4), gpu("1")]
    for devices, passes in ((first, ["b"]), (last, AB)):
        known = a_gang_and_its_devices(*devices)
        put_claim(known, "w0", claim_spec(request(selectors=[h100])))
        assert ask(known, stranger(known)).passed == passes


def no_list(known: Ledger) -> None:
    known.devices.lose_sight(ReadSlice)


def silence(known: Ledger) -> None:
    known.devices.is_current = lambda: False


def no_claim(known: Ledger) -> None:
    found = decoded("of-stranger", ONE, {}, namespace=TEAM)
    known.devices.drop(resource_claim(found))


def no_claim_of_the_gang(known: Ledger) -> None:
    found = decoded("of-w0", ONE, {}, namespace=TEAM)
    known.devices.drop(resource_claim(found))


@pytest.mark.parametrize("lost", [no_list, silence, no_claim, no_claim_of_the_gang])
def test_what_is_not_known_keeps_it_off_where_devices_are_decided(
    lost: Callable[[Ledger], None],
) -> None:
    known = a_gang_and_its_devices("0", "1", "2")
    asked = stranger(known)
    assert ask(known, asked).passed == AB
    lost(known)
    assert ask(known, asked).unresolvable == KEPT


def test_in_doubt_about_other_replicas_it_is_kept_off_as_well() -> None:
    known = a_gang_and_its_devices("0", "1", "2")
    answer = ask(known, stranger(known), InFlight(complete=False))
    assert answer.unresolvable["a"] in (DEVICES, RESERVED)
    assert answer.passed == ["b"]


def test_one_text_for_each_node() -> None:
    """What has no room is told so: evicting pods may help there, until devices are asked again."""
    known = a_gang_and_its_devices("0")
    known.put_pod(as_watched_pod(pod("old", cpu=96, on="a")))
    answer = ask(known, stranger(known))
    assert (answer.failed, answer.unresolvable) == ({"a": NO_ROOM}, {})


def test_nobody_is_evicted_for_a_pod_that_may_not_have_the_devices() -> None:
    known = a_gang_and_its_devices("0")
    known.put_pod(as_watched_pod(pod("old", cpu=90, on="a")))
    known.put_pod(as_watched_pod(pod("older", cpu=90, on="b")))
    put_claim(known, "stranger")
    asked = as_watched_pod(claiming("stranger", cpu=20))
    victims = {"a": ("uid-old",), "b": ("uid-older",)}
    assert kept_nodes(asked, victims, known.snapshot(), Rules()) == ["b"]


def test_a_refused_pod_is_woken_when_devices_are_left_for_it() -> None:
    known, unscheduled = a_gang_and_its_devices("0", slots=1), UnscheduledPods()
    unscheduled.woken()
    asked = as_watched_pod(stranger(known))
    assert not unscheduled.ask_for_devices
    unscheduled.note(asked)
    assert unscheduled.ask_for_devices
    known.devices.take_news()
    assert known.devices.take_news() == set()
    put_slice(known, "a", "0", "1", generation=2)
    nodes = known.devices.take_news()
    assert nodes == {"a"}
    assert unscheduled.any_fits(nodes, known.snapshot(), NONE_IN_FLIGHT)


def test_where_nothing_is_decided_no_device_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is any for pods that claim none."""
    known = a_gang_and_its_devices("0")
    monkeypatch.setattr(type(known.devices), "_passes", None)
    assert ask(known, pod("plain")).passed == AB
    asked = stranger(known)
    assert ask(known, asked, names=["b"]).passed == ["b"]
    known.remove_gang(as_gang(gang(gpu=0)))
    assert ask(known, asked).passed == AB


def test_a_question_is_bounded_and_goes_on_where_the_last_one_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nodes that were looked at are known; those that were not are kept for the moment."""
    known = a_gang_and_its_devices("0", "1")
    monkeypatch.setattr("extender.devices.guard.STEPS", 60)
    slots = {f"n{at}": 1 for at in range(40)}
    for each in slots:
        known.put_node(as_node(node(each)))
        put_slice(known, each, "0", "1")
    known.put_gang(as_gang(gang(slots=slots, gpu=0)))
    asked = stranger(known)
    left = [len(ask(known, asked, names=[*slots]).passed) for _ in range(8)]
    assert left[0] == 0
    assert left[-1] == 40


def test_the_facts_are_kept_by_what_is_told() -> None:
    """Of a claim that is deleted nothing stays."""
    known = a_gang_and_its_devices("0", "1")
    asked = stranger(known)
    put_claim(known, "other", ONE, "0", on="a")
    assert ask(known, asked).unresolvable == KEPT
    known.devices.drop(resource_claim(decoded("of-other", ONE, {}, namespace=TEAM)))
    assert ask(known, asked).passed == AB


Change = Callable[[Ledger, int], None]


def put_worker(**where: str) -> Change:
    return lambda known, at: known.put_pod(as_watched_pod(worker(f"w{at}", **where)))


def put_by_resource(known: Ledger, at: int) -> None:
    known.put_pod(as_watched_pod(by_resource(f"w{at}")))


def put_with_special_claim(known: Ledger, at: int) -> None:
    """kube-scheduler made its claim; the pod is bound, or on its way."""
    released = pinned(member(pod(f"w{at}", gpu=1)), "a")
    found = released if at else by_resource(f"w{at}", on="a")
    found["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": f"of-w{at}"}
    known.put_pod(as_watched_pod(found))


def put_stranger(known: Ledger, at: int) -> None:
    known.put_pod(as_watched_pod(claiming(f"s{at}", on="a")))


def put_slots(known: Ledger, at: int) -> None:
    known.put_gang(as_gang(gang(slots={"a": at, "b": 1}, gpu=0)))


def put_listing_node(known: Ledger, at: int) -> None:
    known.put_node(as_node(node("a", gpu=at)))


def drop_claim(known: Ledger, at: int) -> None:
    known.devices.drop(resource_claim(decoded(f"of-w{at}", ONE, {}, namespace=TEAM)))


def give_by_class(known: Ledger, at: int) -> None:
    name_resource(known)


CHANGES: tuple[Change, ...] = (
    put_worker(),
    put_worker(to="a"),
    put_worker(on="a"),
    put_by_resource,
    put_with_special_claim,
    put_stranger,
    put_slots,
    put_listing_node,
    drop_claim,
    lambda known, at: known.remove_pod(f"uid-w{at}"),
    lambda known, at: put_claim(known, f"w{at}"),
    lambda known, at: put_claim(known, f"s{at}"),
    lambda known, at: put_claim(known, f"w{at}", ONE, "0", on="a"),
    lambda known, at: put_slice(known, "a", *map(str, range(at))),
    give_by_class,
)


@given(st.lists(st.tuples(st.sampled_from(CHANGES), st.integers(0, 2)), max_size=12))
def test_what_is_known_of_a_gang_is_what_a_look_at_all_finds(
    changes: list[tuple[Change, int]],
) -> None:
    known = a_gang_and_its_devices("0", "1", slots=2, gpu=0)
    name_resource(known)
    for change, at in changes:
        change(known, at)
        found = known.devices.coming
        known.devices._of_gang.clear()
        known.devices._changed()
        assert found == known.devices.coming


# ---- extended resources that a class gives


def test_what_a_node_does_not_list_its_devices_give() -> None:
    """kube-scheduler has judged it, or would not ask; of what is listed the amount counts."""
    known = a_gang_and_its_devices("0", gpu=0)
    known.put_node(as_node(node("c", gpu=2)))
    known.put_pod(as_watched_pod(pod("old", gpu=1, on="c")))
    answer = ask(known, pod("new", gpu=2), names=["b", "c"])
    assert (answer.passed, answer.failed) == (["b"], {"c": NO_ROOM})


def test_a_stranger_that_asks_for_a_resource_of_the_class_counts_like_one_that_claims() -> None:
    known = a_gang_and_its_devices("0", "1", gpu=0)
    asked = pod("new", gpu=1)
    assert ask(known, asked).unresolvable == KEPT, "its class is not known"
    name_resource(known)
    assert ask(known, asked).passed == AB
    assert ask(known, pod("large", gpu=2)).unresolvable == KEPT
    in_flight = InFlightPods(settle=0.0, keep=60.0, limit=100)
    in_flight.answered("uid-new", ask(known, asked).remember, 0.0)
    view = in_flight.view_for("uid-stranger", 0.0)
    assert ask(known, stranger(known), view).unresolvable == KEPT


def test_no_class_gives_a_resource_where_kube_scheduler_runs_without_the_gate() -> None:
    for gates_off, passed in (([], []), (["DRAExtendedResource"], ["a"])):
        known = Ledger(gates_off=gates_off)
        known.put_node(as_node(node("a", gpu=0)))
        known.put_gang(as_gang(gang(slots={"a": 1}, gpu=1)))
        known.put_pod(as_watched_pod(by_resource("w0")))
        put_slice(known, "a", "0")
        name_resource(known)
        see_all(known)
        known.devices.follow("1.37")
        assert ask(known, stranger(known), names=["a"]).passed == passed


def by_resource(name: str, *, on: str = "") -> Json:
    """A pod of a gang that asks for a GPU by the name of the resource, gated unless it is bound."""
    found = member(pod(name, gpu=1, on=on))
    gates = {"schedulingGates": [{"name": names.GATE}]}
    return pinned(found, on) if on else {**found, "spec": {**found["spec"], **gates}}


@pytest.mark.parametrize("listed", [0, 8])
def test_devices_are_kept_for_a_gang_that_asks_for_the_resource_of_a_class(listed: int) -> None:
    """Where the node lists it, the gang is given what is listed."""
    known = Ledger()
    known.put_node(as_node(node("a", gpu=listed)))
    known.put_gang(as_gang(gang(slots={"a": 1}, gpu=1)))
    known.put_pod(as_watched_pod(by_resource("w0")))
    put_slice(known, "a", "0")
    name_resource(known)
    see_all(known)
    asked = stranger(known)
    assert ask(known, asked, names=["a"]).passed == ([] if listed == 0 else ["a"])
    bound = by_resource("w0", on="a")
    bound["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "of-w0"}
    known.put_pod(as_watched_pod(bound))
    put_claim(known, "w0", ONE, "0", on="a")
    assert ask(known, asked, names=["a"]).passed == ["a"], "kube-scheduler knows what is taken"


@pytest.mark.parametrize("asked_before", [False, True])
def test_a_node_that_lists_none_any_more_gives_devices_of_slices_that_name_none(
    asked_before: bool,
) -> None:
    known = Ledger()
    known.put_node(as_node(node("a", gpu=2)))
    known.put_gang(as_gang(gang(slots={"a": 1}, gpu=1)))
    known.put_pod(as_watched_pod(by_resource("w0")))
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU, "pool": pool, "devices": [{"name": "0"}]}
    selector = {"nodeSelectorTerms": [term]}
    known.devices.put(resource_slice(decoded("of-a", {**spec, "nodeSelector": selector})))
    name_resource(known)
    see_all(known)
    asked = stranger(known)
    if asked_before:
        assert ask(known, asked, names=["a"]).passed == ["a"]
    known.put_node(as_node(node("a", gpu=0)))
    assert ask(known, asked, names=["a"]).passed == []


def test_where_a_device_plugin_lists_the_resource_no_device_is_taken_for_it() -> None:
    known = a_gang_and_its_devices("0", gpu=8)
    name_resource(known)
    assert ask(known, pod("new", gpu=2)).passed == AB


def test_it_is_woken_for_nodes_that_list_the_resource_or_give_it_by_a_class() -> None:
    known, unscheduled = a_gang_and_its_devices("0", "1", gpu=0), UnscheduledPods()
    unscheduled.woken()
    unscheduled.note(as_watched_pod(pod("new", gpu=1)))
    assert not unscheduled.any_fits(AB, known.snapshot(), NONE_IN_FLIGHT)
    name_resource(known)
    assert unscheduled.any_fits(AB, known.snapshot(), NONE_IN_FLIGHT)


def test_pods_are_evicted_for_one_whose_gpus_the_devices_give() -> None:
    known = a_gang_and_its_devices("0", gpu=0)
    known.put_pod(as_watched_pod(pod("old", cpu=90, on="b")))
    asked = as_watched_pod(pod("new", gpu=1, cpu=20))
    assert kept_nodes(asked, {"b": ("uid-old",)}, known.snapshot(), Rules()) == ["b"]


def test_nodes_are_scored_for_such_a_pod() -> None:
    known = a_gang_and_its_devices("0", gpu=0)
    asked = as_watched_pod(pod("new", gpu=1))
    assert len(scores(asked.pod.used, NodeList(AB), known.snapshot())) == 2
