"""A leader that is late or hung does no harm once another one leads."""

from __future__ import annotations

from http import HTTPStatus
from itertools import takewhile

import pytest

from testbed.waiting import wait_until
from tests.controlplane.plot import Plot
from tests.controlplane.rayclusters import Json, gang, group
from tests.faults.calls import is_placement, is_release, makes_gang, of_lease
from tests.faults.chronicle import Chronicle
from tests.faults.crew import STEADY, Crew, Member
from tests.faults.ledger import problems
from tests.faults.proxied import Exchange, Hold, Match

REFUSED = {409, 422}
PODS = 3

Pair = tuple[Member, Member]


@pytest.fixture
def pair(crew: Crew) -> Pair:
    """One that leads and one that stands by."""
    one, other = crew.start(2, STEADY)
    return (one, other) if crew.wait_leader() is one else (other, one)


def three_pods() -> Json:
    """A gang of a head and two workers."""
    return gang("three", group(replicas=PODS - 1))


def stop_at_first(leader: Member, plot: Plot, match: Match) -> Hold:
    """Let a gang come, and freeze the leader with its first write that matches in the proxy.

    The other one may not take the Lease until then: on a busy machine it would lead instead.
    """
    hold = leader.proxy.hold(match)
    plot.create(three_pods())
    wait_until(lambda: bool(hold.met), "the leader to send what is held")
    leader.process.pause()
    return hold


def answers_to(member: Member, hold: Hold) -> set[int]:
    """Let the held writes go, and return what the API server says to them."""
    member.proxy.lift(hold)
    wait_until(lambda: all(each.is_over for each in hold.met), "the late writes to be answered")
    return {each.status for each in hold.met}


def begins_a_term(write: Exchange) -> bool:
    """Whether a lease was taken: on a busy machine the other one may lose it again."""
    return write.status == HTTPStatus.OK and "/leases/" in write.call.path


def test_a_hung_leader_is_replaced_and_writes_nothing_more(
    plot: Plot, chronicle: Chronicle, pair: Pair
) -> None:
    """A leader that does not ask its clock when it wakes would go on where it was stopped."""
    leader, follower = pair
    plot.add_node(PODS)
    too_early = follower.proxy.refuse(500, of_lease)
    hold = stop_at_first(leader, plot, is_release)
    follower.proxy.lift(too_early)
    follower.wait_leads()
    plot.wait_running("three", PODS)
    before = len(leader.proxy.writes)
    leader.process.resume()
    wait_until(lambda: not leader.leads, "the old leader to know")
    assert answers_to(leader, hold) <= REFUSED
    plot.create(gang("later", group(replicas=0)))
    plot.wait_phase("later", "Queued")
    late = leader.proxy.writes[before:]
    wait_until(lambda: all(each.is_over for each in late), "the late writes to be answered")
    late = [*takewhile(lambda each: not begins_a_term(each), late)]
    assert {each.status for each in late} <= REFUSED
    assert [each.call.path for each in late if "/leases/" not in each.call.path] == []
    assert not problems(chronicle.ledger, {plot.node("node"): PODS})


@pytest.mark.long
def test_a_late_release_to_the_same_node_changes_nothing(
    plot: Plot, chronicle: Chronicle, pair: Pair
) -> None:
    """The gate is gone by then: unless the patch fails as a whole, the pin is written twice."""
    leader, follower = pair
    plot.add_node(PODS)
    too_early = follower.proxy.refuse(500, of_lease)
    hold = stop_at_first(leader, plot, is_release)
    follower.proxy.lift(too_early)
    follower.wait_leads()
    plot.wait_running("three", PODS)
    assert answers_to(leader, hold) <= REFUSED
    assert len(chronicle.ledger.releases()) == PODS
    assert not problems(chronicle.ledger, {plot.node("node"): PODS})


@pytest.mark.variant
def test_a_late_release_to_a_node_that_was_given_up_fails(
    plot: Plot, chronicle: Chronicle, pair: Pair
) -> None:
    """Without the fence the old leader's patch would win a pod that the new one sends elsewhere.

    Nothing but the fence can stop it: when the patch arrives the pod is as gated as it was.
    """
    leader, follower = pair
    plot.add_equal_nodes(2, PODS)
    too_early, own = follower.proxy.refuse(500, of_lease), follower.proxy.hold(is_release)
    hold = stop_at_first(leader, plot, is_release)
    given_up = give_up_node(plot)
    follower.proxy.lift(too_early)
    wait_until(lambda: bool(own.met), "the new leader to release the pod")
    assert promised_node(plot) != given_up
    assert answers_to(leader, hold) <= REFUSED
    follower.proxy.lift(own)
    runs_elsewhere(plot, chronicle, given_up)


@pytest.mark.variant
def test_a_leader_that_ends_in_order_with_a_release_under_way_has_its_pods_fenced(
    plot: Plot, chronicle: Chronicle, pair: Pair
) -> None:
    """It gives the Lease back at once, but may not say that its requests are over."""
    leader, follower = pair
    plot.add_equal_nodes(2, PODS)
    too_early, hold = follower.proxy.refuse(500, of_lease), leader.proxy.hold(is_release)
    plot.create(three_pods())
    wait_until(lambda: bool(hold.met), "the leader to send a release")
    leader.process.stop()
    given_up = give_up_node(plot)
    own = follower.proxy.hold(is_release)
    follower.proxy.lift(too_early)
    wait_until(lambda: bool(own.met), "the new leader to release the pod")
    assert follower.value('muster_writes_total{outcome="done",what="pod_fence"}') >= 1
    assert answers_to(leader, hold) <= REFUSED
    follower.proxy.lift(own)
    runs_elsewhere(plot, chronicle, given_up)


@pytest.mark.variant
def test_a_leader_that_ends_in_order_spares_the_next_one_its_fences(
    plot: Plot, chronicle: Chronicle, pair: Pair
) -> None:
    """Of a gang without a record the next one cannot know that nothing was decided."""
    leader, follower = pair
    unwritten = leader.proxy.refuse(403, makes_gang)
    plot.create(three_pods())
    plot.wait_pods("three", PODS)
    wait_until(lambda: bool(unwritten.met), "the leader to have seen the gang")
    leader.process.stop()
    follower.wait_leads()
    plot.add_node(PODS)
    plot.wait_running("three", PODS)
    assert follower.value('muster_writes_total{outcome="done",what="pod_fence"}') == 0
    assert follower.value('muster_writes_total{outcome="done",what="pod_release"}') == PODS
    assert not problems(chronicle.ledger, {plot.node("node"): PODS})


def give_up_node(plot: Plot) -> str:
    """Close the node that is promised, so that the pods must go to another one."""
    node = promised_node(plot)
    plot.patch_node(node, {"spec": {"unschedulable": True}})
    return node


def runs_elsewhere(plot: Plot, chronicle: Chronicle, given_up: str) -> None:
    """All on the node that is promised now, which is another one, and nothing was done twice."""
    plot.wait_running("three", PODS)
    assert set(plot.bound("three").values()) == {promised_node(plot)} != {given_up}
    assert not problems(chronicle.ledger, {plot.node(f"n-{i}"): PODS for i in range(2)})


def promised_node(plot: Plot) -> str:
    """The one node of the placement, without the plot's name."""
    placement = plot.status("three")["placement"]
    assignments = [each for s in placement["podSets"] for each in s["assignments"]]
    (node,) = {node for each in assignments for node in each["nodes"]}
    return str(node).removeprefix(f"{plot.name}-")


def test_a_late_placement_is_refused(plot: Plot, chronicle: Chronicle, pair: Pair) -> None:
    """Without version and epoch the old placement would replace the one that is being carried out.

    It would name a node that is cordoned by now, while the pods are on another one.
    """
    leader, follower = pair
    plot.add_equal_nodes(1, PODS)
    too_early = follower.proxy.refuse(500, of_lease)
    hold = stop_at_first(leader, plot, is_placement)
    plot.patch_node("n-0", {"spec": {"unschedulable": True}})
    follower.proxy.lift(too_early)
    follower.wait_leads()
    plot.wait_phase("three", "Queued")
    plot.patch_node("n-0", {"spec": {"unschedulable": False}})
    plot.wait_running("three", PODS)
    written = plot.status("three")["placement"]
    assert answers_to(leader, hold) <= REFUSED
    assert plot.status("three")["placement"] == written
    epochs = [change.epoch for change in chronicle.ledger.gangs]
    assert epochs == sorted(epochs)
